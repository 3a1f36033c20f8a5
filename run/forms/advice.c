/* run/forms/advice.c: mr_advise(). Every form is made of the same samples in a temporary folder and read from
 * memory. If the whole set is larger than memory, its rate from storage follows from its bytes.
 *
 * The choice: of the forms that keep the pixels and fit on the disk, the fastest; among those nearly as fast
 * the smallest, and the data as they are before all others. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/abi.h"
#include "formats/source/source.h"
#include "run/forms/form_trial.h"

#define RATE_SECONDS    0.6
#define STORAGE_SECONDS 0.5
#define WORTH_RESIZING  1.3

typedef struct known_form {
    const char *name;
    mr_form form;
} known_form;

static const known_form known[] = {
    {"jpeg records", {.store = MR_STORE_JPEG}},
    {"sequential jpeg records", {.store = MR_STORE_JPEG, .transcode = true}},
    {"coefficient records", {.store = MR_STORE_COEF}},
    {"raw records", {.store = MR_STORE_RAW}},
    {"jpeg records of 256", {.store = MR_STORE_JPEG, .resize = MR_ADVICE_RESIZE}},
    {"raw records of 256", {.store = MR_STORE_RAW, .resize = MR_ADVICE_RESIZE}},
};
enum { KNOWN = sizeof known / sizeof *known };
_Static_assert((int)KNOWN < (int)MR_ADVICE_FORMS, "and the data as they are");

typedef struct advising {
    const mr_source *src;
    const mr_advise_config *cfg;
    mr_loader_config like;
    mr_form_trial *trial;
    mr_advice advice;
} advising;

void mr_advise_defaults_sized(mr_advise_config *cfg, size_t struct_size)
{
    mr_advise_config all = {0};
    mr_decode_defaults(&all.decode);
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

/* ---- measuring ---- */

static int measure_form(const advising *a, bool converted, mr_advice_form *out, mr_error *err)
{
    mr_form_cost cost;
    int rc = mr_form_trial_cost(a->trial, converted, &a->like, &cost, err);
    if (rc == MR_OK)
        rc = mr_form_trial_rate(a->trial, converted, &a->like, a->advice.workers, RATE_SECONDS,
                                &out->samples_per_s, &out->cores, err);
    if (rc) return rc;
    out->sample_bytes = converted ? cost.bytes : mr_form_trial_info_of(a->trial)->bytes;
    out->decode_ms = cost.decode_ms;
    return MR_OK;
}

/* Not worth making for these data. */
static bool is_pointless(const known_form *k, const advising *a)
{
    const mr_source_info *info = mr_source_info_of(a->src);
    const bool pixels = info->fields[info->image_field].type == MR_TYPE_PIXELS;
    if (k->form.resize) return mr_form_trial_info_of(a->trial)->shorter_side < 1.1 * MR_ADVICE_RESIZE;
    return pixels && k->form.store == MR_STORE_RAW; /* the same bytes as the other records */
}

/* A form that these data do not have, or that cannot be made, is left out. */
static int measure_other(advising *a, const known_form *k, mr_error *err)
{
    mr_error none = MR_ERROR_INIT;
    mr_convert_result result;
    bool made;
    if (is_pointless(k, a)) return MR_OK;
    const int rc = mr_form_trial_convert(a->trial, &k->form, &made, &result, &none);
    if (mri_is_stopped(a->cfg->stop)) return mri_forms_stopped(err);
    if (rc || !made) return MR_OK;
    mr_advice_form *out = &a->advice.form[a->advice.form_count];
    *out = (mr_advice_form){.name = k->name, .form = k->form, .changes_pixels = k->form.resize > 0};
    if (k->form.store == MR_STORE_JPEG && !k->form.resize && result.with_entries == 0)
        out->name = "records"; /* of PNG, of pixels */
    const int measured = measure_form(a, true, out, err);
    a->advice.form_count += measured == MR_OK;
    return measured;
}

static int measure_forms(advising *a, mr_error *err)
{
    const mr_form_trial_info *trial = mr_form_trial_info_of(a->trial);
    a->advice.sampled = trial->count;
    a->advice.bad = trial->bad;
    if (trial->count == 0) {
        mr_error_set(err, MR_EBADSAMPLE,
                     "none of the %llu pictures that were looked at can be read; 'millrace inspect --bad' "
                     "lists their faults",
                     (unsigned long long)trial->bad);
        return mr_error_at(err, mr_source_info_of(a->src)->path, MR_NOWHERE, MR_NOWHERE);
    }
    a->advice.form[0] = (mr_advice_form){.name = "as they are"};
    int rc = measure_form(a, false, &a->advice.form[0], err);
    a->advice.form_count = 1;
    for (uint32_t i = 0; i < KNOWN && rc == MR_OK; i++) {
        if (a->cfg->on_form) a->cfg->on_form(a->cfg->context, i + 1, KNOWN + 1, known[i].name);
        rc = measure_other(a, &known[i], err);
    }
    return rc;
}

static double free_bytes_here(void)
{
    struct statvfs st;
    return statvfs(".", &st) == 0 ? (double)st.f_bavail * (double)st.f_frsize : (double)NAN;
}

/* Scale the results up to the whole set. */
static void scale_up(const mr_source *src, const volatile int *stop, mr_advice *r)
{
    const mr_source_info *info = mr_source_info_of(src);
    bool all_fit = true;
    for (uint32_t i = 0; i < r->form_count; i++) {
        mr_advice_form *f = &r->form[i];
        f->total_bytes = i ? f->sample_bytes * (double)info->count : (double)info->total_bytes;
        f->fits_memory = r->memory_bytes <= 0 || f->total_bytes < 0.8 * r->memory_bytes;
        f->fits_disk = i == 0 || isnan(r->disk_bytes) || f->total_bytes < 0.95 * r->disk_bytes;
        all_fit = all_fit && f->fits_memory;
    }
    r->storage_bytes_per_s = all_fit ? (double)NAN : mr_pages_storage_rate(src, STORAGE_SECONDS, stop);
    for (uint32_t i = 0; i < r->form_count; i++) {
        mr_advice_form *f = &r->form[i];
        const double most = r->storage_bytes_per_s / f->sample_bytes;
        f->expected_per_s = !f->fits_memory && most < f->samples_per_s ? most : f->samples_per_s;
    }
}

/* ---- choosing ---- */

static bool is_better(const mr_advice_form *f, const mr_advice_form *than, double fastest)
{
    const bool nearly = f->expected_per_s >= MR_ADVICE_NEARLY * fastest;
    if (nearly != (than->expected_per_s >= MR_ADVICE_NEARLY * fastest)) return nearly;
    return nearly ? f->total_bytes < than->total_bytes : f->expected_per_s > than->expected_per_s;
}

/* The resized form that is fastest; 0: none is worth it. */
static uint32_t choose_resized(const mr_advice *r)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < r->form_count; i++) {
        const mr_advice_form *f = &r->form[i];
        if (!f->changes_pixels || !f->fits_disk) continue;
        if (f->expected_per_s < WORTH_RESIZING * r->form[r->best].expected_per_s) continue;
        if (!best || f->expected_per_s > r->form[best].expected_per_s) best = i;
    }
    return best;
}

static uint32_t choose_form(const mr_advice *r)
{
    double fastest = 0;
    for (uint32_t i = 0; i < r->form_count; i++)
        if (!r->form[i].changes_pixels && r->form[i].fits_disk && r->form[i].expected_per_s > fastest)
            fastest = r->form[i].expected_per_s;
    if (r->form[0].expected_per_s >= MR_ADVICE_NEARLY * fastest) return 0;
    uint32_t best = 0;
    for (uint32_t i = 1; i < r->form_count; i++)
        if (!r->form[i].changes_pixels && r->form[i].fits_disk &&
            is_better(&r->form[i], &r->form[best], fastest))
            best = i;
    return best;
}

/* ---- all of it ---- */

/* Crops where pictures are large, else nothing: a batch needs pictures of one size. */
static const char *usual_augment(const mr_source_info *info)
{
    const uint32_t side = info->height < info->width ? info->height : info->width;
    return side && side < 224 ? "none" : "rrc224";
}

static int begin(advising *a, mr_error *err)
{
    const mr_advise_config *cfg = a->cfg;
    const mr_source_info *info = mr_source_info_of(a->src);
    const char *augment = cfg->augment ? cfg->augment : usual_augment(info);
    a->advice = (mr_advice){.samples = info->count,
                            .workers = cfg->workers ? cfg->workers : mr_cores(),
                            .memory_bytes = (double)mr_pages_memory_available(),
                            .disk_bytes = free_bytes_here()};
    if (snprintf(a->advice.augment, sizeof a->advice.augment, "%s", augment) >= (int)sizeof a->advice.augment)
        return mr_error_set(err, MR_EINVAL, "augment is too long: expected less than %zu characters",
                            sizeof a->advice.augment);
    mr_loader_defaults(&a->like);
    a->like.decode = cfg->decode;
    a->like.augment = a->advice.augment;
    a->like.channels = cfg->channels;
    a->like.training = true;
    return MR_OK;
}

int mr_advise_sized(const mr_source *src, const mr_advise_config *cfg, mr_advice *out, mr_error *err)
{
    mr_advise_config mine;
    advising a = {.src = src, .cfg = &mine};
    MRI_OWN(err, src);
    MRI_GIVEN(err, out);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_advise_defaults(&mine);
    rc = cfg ? mri_settings_take(&mine, sizeof mine, cfg, "advise", err) : MR_OK;
    if (rc == MR_OK) rc = begin(&a, err);
    if (rc == MR_OK) rc = mr_form_trial_open(&a.trial, src, mine.stop, err);
    if (rc == MR_OK) rc = measure_forms(&a, err);
    mr_form_trial_close(a.trial);
    if (rc == MR_OK) scale_up(src, mine.stop, &a.advice);
    if (rc == MR_OK && mri_is_stopped(mine.stop)) rc = mri_forms_stopped(err);
    if (rc) return rc;
    a.advice.best = choose_form(&a.advice);
    a.advice.resized = choose_resized(&a.advice);
    mri_result_give(out, &a.advice, sizeof a.advice);
    return MR_OK;
}
