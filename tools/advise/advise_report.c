/* tools/advise/advise_report.c: the advice as text and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tools/advise/advise.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"

static const char *where_it_fits(const mr_advice_form *f)
{
    if (!f->fits_disk) return "too large for the disk";
    return f->fits_memory ? "memory" : "storage";
}

static void row(const mr_advice_form *f, const mr_advice_form *now)
{
    char total[32];
    printf("%-24s %9.1f %6.2f %11s %9.0f %9.0f %6.2f %9.1f  %s%s\n", f->name, 1e-3 * f->sample_bytes,
           f->total_bytes / now->total_bytes, mri_size_text(f->total_bytes, total, sizeof total),
           f->decode_ms > 0 ? 1e3 / f->decode_ms : 0, f->samples_per_s, f->cores,
           1e-6 * f->samples_per_s * f->sample_bytes, where_it_fits(f),
           f->changes_pixels ? "; other pixels" : "");
}

static void head(const advise_result *report)
{
    const mr_advice *r = &report->advice;
    char memory[32], disk[32];
    printf("data      %s (%s), %" PRIu64 " samples; %s of memory available", shown_text(report->info->path),
           report->info->format, r->samples, mri_size_text(r->memory_bytes, memory, sizeof memory));
    if (!isnan(r->disk_bytes))
        printf(", %s free on the disk here", mri_size_text(r->disk_bytes, disk, sizeof disk));
    printf("\nsample    %" PRIu64 " of them", r->sampled);
    if (r->bad) printf(" (%" PRIu64 " bad ones left out)", r->bad);
    printf(", augment %s, read from memory; %" PRIu32 " workers\n", r->augment, r->workers);
    if (!isnan(r->storage_bytes_per_s))
        printf("storage   %.0f MB/s, read in one thread: limits forms that are larger than memory\n",
               1e-6 * r->storage_bytes_per_s);
}

void advise_print_text(const advise_result *report)
{
    char set[64];
    const mr_advice *r = &report->advice;
    head(report);
    printf("\n%-24s %9s %6s %11s %9s %9s %6s %9s  %s\n", "form", "kB each", "times", "all", "/s a core",
           "samples/s", "cores", "MB/s", "read from");
    for (uint32_t i = 0; i < r->form_count; i++) row(&r->form[i], &r->form[0]);
    printf("\nadvice    %s\nbecause   %s\n",
           report->command[0] ? shown_text(report->command) : "leave the data as they are", report->reason);
    if (r->resized)
        printf("          where pictures of %d pixels will do, 'convert%s' gives %.2f times that\n",
               MR_ADVICE_RESIZE, advise_set(r, r->resized, set),
               r->form[r->resized].expected_per_s / r->form[r->best].expected_per_s);
}

static void form_json(const mr_advice *r, uint32_t at)
{
    char set[64];
    const mr_advice_form *f = &r->form[at];
    json_line j = json_begin(stdout, "convert_form");
    json_text(&j, "name", f->name);
    json_text(&j, "set", advise_set(r, at, set));
    json_bool(&j, "chosen", at == r->best);
    json_bool(&j, "same_pixels", !f->changes_pixels);
    json_real(&j, "bytes_per_sample", f->sample_bytes);
    json_real(&j, "bytes", f->total_bytes);
    json_real(&j, "decode_ms_per_sample", f->decode_ms);
    json_real(&j, "samples_per_s", f->samples_per_s);
    json_real(&j, "cores_used", f->cores);
    json_real(&j, "read_bytes_per_s", f->samples_per_s * f->sample_bytes);
    json_real(&j, "expected_samples_per_s", f->expected_per_s);
    json_bool(&j, "fits_memory", f->fits_memory);
    json_bool(&j, "fits_disk", f->fits_disk);
    json_end(&j);
}

void advise_print_json(const advise_result *report)
{
    char set[64];
    const mr_advice *r = &report->advice;
    for (uint32_t i = 0; i < r->form_count; i++) form_json(r, i);
    json_line j = json_begin(stdout, "convert_advice");
    json_text(&j, "data", report->info->path);
    json_text(&j, "format", report->info->format);
    json_u64(&j, "samples", r->samples);
    json_u64(&j, "sampled", r->sampled);
    json_u64(&j, "bad", r->bad);
    json_text(&j, "augment", r->augment);
    json_u64(&j, "workers", r->workers);
    json_real(&j, "memory_available_bytes", r->memory_bytes);
    json_real(&j, "disk_free_bytes", r->disk_bytes);
    json_real(&j, "storage_bytes_per_s", r->storage_bytes_per_s);
    json_text(&j, "form", r->form[r->best].name);
    json_text(&j, "command", report->command[0] ? report->command : NULL);
    json_text(&j, "reason", report->reason);
    json_text(&j, "resized", r->resized ? advise_set(r, r->resized, set) : NULL);
    json_end(&j);
}

void advise_print_none(const mr_source_info *info, bool json)
{
    static const char *const reason =
        "there are no pictures in it, so nothing has to be decoded and no form is cheaper to "
        "decode than another";
    if (json) {
        json_line j = json_begin(stdout, "convert_advice");
        json_text(&j, "data", info->path);
        json_text(&j, "format", info->format);
        json_u64(&j, "samples", info->count);
        json_text(&j, "form", "as they are");
        json_text(&j, "command", NULL);
        json_text(&j, "reason", reason);
        json_end(&j);
        return;
    }
    printf("data      %s (%s), %" PRIu64 " samples\n", shown_text(info->path), info->format, info->count);
    printf("advice    leave the data as they are\nbecause   %s\n", reason);
    printf(
        "          record files still check every byte that is read, and 'convert --shard-size' cuts them\n");
}
