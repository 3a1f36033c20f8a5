/* tools/advise/advise.c: see advise.h. Every form is made of the same samples in a temporary folder and
 * read from memory. If the whole set is larger than memory, its rate from storage follows from its bytes.
 *
 * The choice: of the forms that keep the pixels and fit on the disk, the fastest; among those nearly as fast
 * the smallest, and the data as they are before all others. */
#include "tools/advise/advise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/trial/convert_command.h"
#include "tools/trial/forms.h"

#define RATE_SECONDS    0.6
#define STORAGE_SECONDS 0.5
#define NEARLY          0.9 /* of the fastest: a difference that other runs would not show */
#define WORTH_RESIZING  1.3

typedef struct known_form {
    const char *name, *set;
    form_spec form;
} known_form;

static const known_form known[] = {
    {"jpeg records", "", {.store = MR_STORE_JPEG}},
    {"sequential jpeg records", " --transcode", {.store = MR_STORE_JPEG, .transcode = true}},
    {"coefficient records", " --store coef", {.store = MR_STORE_COEF}},
    {"raw records", " --store raw", {.store = MR_STORE_RAW}},
    {"jpeg records of 256", " --resize 256", {.store = MR_STORE_JPEG, .resize = ADVISE_RESIZE}},
    {"raw records of 256", " --store raw --resize 256", {.store = MR_STORE_RAW, .resize = ADVISE_RESIZE}},
};

/* ---- measuring ---- */

static int measure_form(const form_sample *f, const char *path, const mr_loader_config *like,
                        uint32_t workers, advise_form *out)
{
    mr_error err = MR_ERROR_INIT;
    form_cost cost;
    form_rate rate;
    int status = exit_status(form_measure(path, like, &cost, &err), &err);
    if (status == EXIT_DONE) status = form_measure_rate(path, like, workers, RATE_SECONDS, &rate);
    if (status) return status;
    out->sample_bytes = path == f->now ? f->bytes : cost.bytes;
    out->decode_ms = cost.decode_ms;
    out->samples_per_s = rate.samples_per_s;
    out->cores = rate.cores;
    return EXIT_DONE;
}

/* Not worth making for these data. */
static bool is_pointless(const known_form *k, const form_sample *f, const mr_source_info *info)
{
    const bool pixels = info->fields[info->image_field].type == MR_TYPE_PIXELS;
    if (k->form.resize) return f->shorter_side < 1.1 * ADVISE_RESIZE;
    return pixels && k->form.store == MR_STORE_RAW; /* the same bytes as the other records */
}

static int measure_forms(const form_sample *f, const mr_source_info *info, const mr_loader_config *like,
                         progress_bar *bar, advise_result *r)
{
    r->form[0] = (advise_form){.name = "as they are"};
    int status = measure_form(f, f->now, like, r->workers, &r->form[0]);
    r->form_count = 1;
    for (size_t i = 0; i < OPT_COUNT(known) && status == EXIT_DONE && !interrupt_flag; i++) {
        mr_error none = MR_ERROR_INIT;
        mr_convert_result made;
        const known_form *k = &known[i];
        progress_show(bar, i + 1, OPT_COUNT(known) + 1, k->name);
        if (is_pointless(k, f, info) || !form_convert(f, &k->form, &made, &none)) continue;
        advise_form *out = &r->form[r->form_count];
        *out = (advise_form){.name = k->name, .set = k->set, .changes_pixels = k->form.resize > 0};
        if (k->form.store == MR_STORE_JPEG && !k->form.resize && made.with_entries == 0)
            out->name = "records"; /* of PNG, of pixels */
        status = measure_form(f, f->then, like, r->workers, out);
        r->form_count += status == EXIT_DONE;
    }
    return status;
}

/* Crops where pictures are large, else nothing: a batch needs pictures of one size. */
static const char *usual_augment(const mr_source_info *info)
{
    const uint32_t side = info->height < info->width ? info->height : info->width;
    return side && side < 224 ? "none" : "rrc224";
}

static double free_bytes_here(void)
{
    struct statvfs st;
    return statvfs(".", &st) == 0 ? (double)st.f_bavail * (double)st.f_frsize : NAN;
}

/* Scale the results up to the whole set. */
static void scale_up(const mr_source *src, advise_result *r)
{
    const mr_source_info *info = mr_source_info_of(src);
    bool all_fit = true;
    for (uint32_t i = 0; i < r->form_count; i++) {
        advise_form *f = &r->form[i];
        f->total_bytes = i ? f->sample_bytes * (double)info->count : (double)info->total_bytes;
        f->fits_memory = r->memory_bytes <= 0 || f->total_bytes < 0.8 * r->memory_bytes;
        f->fits_disk = i == 0 || isnan(r->disk_bytes) || f->total_bytes < 0.95 * r->disk_bytes;
        all_fit = all_fit && f->fits_memory;
    }
    r->storage_bytes_per_s = all_fit ? NAN : mr_pages_storage_rate(src, STORAGE_SECONDS, &interrupt_flag);
    for (uint32_t i = 0; i < r->form_count; i++) {
        advise_form *f = &r->form[i];
        const double most = r->storage_bytes_per_s / f->sample_bytes;
        f->expected_per_s = !f->fits_memory && most < f->samples_per_s ? most : f->samples_per_s;
    }
}

static int measure_sample(const form_sample *f, const mr_source *src, const mr_loader_config *like,
                          bool quiet, advise_result *r)
{
    progress_bar bar;
    const mr_source_info *info = mr_source_info_of(src);
    if (f->count == 0) {
        say("%s: none of the %llu pictures that were looked at can be read; 'millrace inspect --bad' "
            "lists their faults",
            info->path, (unsigned long long)f->bad);
        return EXIT_FAILED;
    }
    progress_start(&bar, "advise", "forms", quiet);
    bar.untimed = true;
    const int status = measure_forms(f, info, like, &bar, r);
    progress_end(&bar);
    r->sampled = f->count;
    r->bad = f->bad;
    return status;
}

int advise_measure(const mr_source *src, const char *augment, const data_args *data, uint32_t workers,
                   uint32_t channels, bool quiet, advise_result *out)
{
    form_sample f;
    mr_loader_config like;
    const mr_source_info *info = mr_source_info_of(src);
    *out = (advise_result){.path = info->path,
                           .format = info->format,
                           .augment = augment ? augment : usual_augment(info),
                           .samples = info->count,
                           .workers = workers ? workers : core_count(),
                           .memory_bytes = (double)mr_pages_memory_available(),
                           .disk_bytes = free_bytes_here()};
    mr_loader_defaults(&like);
    setup_decode(&like.decode, data);
    like.augment = out->augment;
    like.channels = channels;
    like.training = true;
    int status = form_sample_make(&f, src, "");
    if (status == EXIT_DONE && !interrupt_flag) status = measure_sample(&f, src, &like, quiet, out);
    form_sample_remove(&f);
    if (status == EXIT_DONE && interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    if (status == EXIT_DONE) scale_up(src, out);
    return status;
}

/* ---- choosing ---- */

static bool is_better(const advise_form *f, const advise_form *than, double fastest)
{
    const bool nearly = f->expected_per_s >= NEARLY * fastest;
    if (nearly != (than->expected_per_s >= NEARLY * fastest)) return nearly;
    return nearly ? f->total_bytes < than->total_bytes : f->expected_per_s > than->expected_per_s;
}

/* The resized form that is fastest; 0: none is worth it. */
static uint32_t choose_resized(const advise_result *r)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < r->form_count; i++) {
        const advise_form *f = &r->form[i];
        if (!f->changes_pixels || !f->fits_disk) continue;
        if (f->expected_per_s < WORTH_RESIZING * r->form[r->best].expected_per_s) continue;
        if (!best || f->expected_per_s > r->form[best].expected_per_s) best = i;
    }
    return best;
}

static uint32_t choose_form(const advise_result *r)
{
    double fastest = 0;
    for (uint32_t i = 0; i < r->form_count; i++)
        if (!r->form[i].changes_pixels && r->form[i].fits_disk && r->form[i].expected_per_s > fastest)
            fastest = r->form[i].expected_per_s;
    if (r->form[0].expected_per_s >= NEARLY * fastest) return 0;
    uint32_t best = 0;
    for (uint32_t i = 1; i < r->form_count; i++)
        if (!r->form[i].changes_pixels && r->form[i].fits_disk &&
            is_better(&r->form[i], &r->form[best], fastest))
            best = i;
    return best;
}

static void write_command(advise_result *r, const char *src_text)
{
    r->command[0] = '\0';
    if (r->best) convert_command(r->command, sizeof r->command, src_text, r->form[r->best].set);
}

static void write_reason(advise_result *r)
{
    char size[32];
    const advise_form *f = &r->form[r->best], *now = &r->form[0];
    if (r->best == 0) {
        snprintf(r->reason, sizeof r->reason,
                 "no form that keeps the pixels and fits on the disk gives %.0f %% more "
                 "samples/s than the data as they are",
                 100 * (1 / NEARLY - 1));
        return;
    }
    snprintf(r->reason, sizeof r->reason,
             "%.2f times the samples/s of the data as they are, for %.2f times the bytes (%s, which %s)",
             f->expected_per_s / now->expected_per_s, f->total_bytes / now->total_bytes,
             size_text(f->total_bytes, size, sizeof size),
             f->fits_memory ? "memory has room for" : "is more than memory has room for: storage limits");
}

void advise_choose(advise_result *r, const char *src_text)
{
    r->best = choose_form(r);
    r->resized = choose_resized(r);
    write_command(r, src_text);
    write_reason(r);
}
