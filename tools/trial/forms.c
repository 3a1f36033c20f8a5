/* tools/trial/forms.c: see forms.h. */
#include "tools/trial/forms.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/trial/measure.h"

enum { SAMPLES_MOST = 200, PIXELS_MOST = 48 << 20, PASSES = 3, BATCH = 16 };

/* ---- the sample ---- */

/* Evenly spaced, as they are; bad ones are left out. */
static int copy_samples(form_sample *f, const mr_source *src, mr_writer *w, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    const uint64_t step = (info->count + SAMPLES_MOST - 1) / SAMPLES_MOST;
    uint64_t pixels = 0;
    void *buffer = NULL;
    size_t bytes = 0;
    int rc = MR_OK;
    for (uint64_t i = 0; i < info->count && rc == MR_OK && pixels < PIXELS_MOST && !interrupt_flag;
         i += step) {
        mr_sample sample;
        mr_image_header h;
        mr_extent extent;
        if (mr_source_extent(src, i, &extent, NULL) != MR_OK ||
            mr_source_read(src, i, &buffer, &bytes, &sample, NULL) != MR_OK ||
            mr_value_header(&sample.value[info->image_field], &h, NULL) != MR_OK) {
            f->bad++;
            continue;
        }
        pixels += (uint64_t)h.width * h.height;
        rc = mr_writer_append(w, i, sample.value, err);
        f->count++;
        f->bytes += (double)extent.bytes;
        f->shorter_side += h.width < h.height ? h.width : h.height;
    }
    free(buffer);
    return rc;
}

static int write_sample(form_sample *f, const mr_source *src, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_writer_config cfg;
    mr_writer *w;
    mr_writer_defaults(&cfg);
    cfg.fields = info->fields;
    cfg.field_count = info->field_count;
    int rc = mr_writer_open(&w, f->now, &cfg, NULL, err);
    if (rc != MR_OK) return rc;
    rc = copy_samples(f, src, w, err);
    if (rc == MR_OK) return mr_writer_finish(w, err);
    mr_writer_abort(w, false);
    return rc;
}

int form_sample_make(form_sample *out, const mr_source *src, const char *advice)
{
    mr_error err = MR_ERROR_INIT;
    const char *place = getenv("TMPDIR");
    *out = (form_sample){.count = 0};
    snprintf(out->folder, sizeof out->folder, "%s/millrace-forms-XXXXXX", place && place[0] ? place : "/tmp");
    if (!mkdtemp(out->folder)) {
        say("%s: cannot make a temporary folder: %s; set TMPDIR%s", out->folder, strerror(errno), advice);
        out->folder[0] = '\0';
        return EXIT_FAILED;
    }
    snprintf(out->now, sizeof out->now, "%s/now.mrec", out->folder);
    snprintf(out->then, sizeof out->then, "%s/then.mrec", out->folder);
    const int rc = write_sample(out, src, &err);
    if (rc == MR_OK && out->count) {
        out->bytes /= (double)out->count;
        out->shorter_side /= (double)out->count;
    }
    return exit_status(rc, &err);
}

/* Part files of a conversion that was stopped are there, too. */
void form_sample_remove(form_sample *f)
{
    if (!f->folder[0]) return;
    DIR *folder = opendir(f->folder);
    if (folder) {
        for (const struct dirent *e; (e = readdir(folder));) unlinkat(dirfd(folder), e->d_name, 0);
        closedir(folder);
    }
    rmdir(f->folder);
    f->folder[0] = '\0';
}

/* ---- other forms ---- */

static bool has_form(const form_spec *form, const mr_convert_result *made)
{
    if (made->records == 0) return false;
    if (form->store == MR_STORE_COEF) return made->coefficients > 0;
    return form->transcode ? made->transcoded > 0 : true;
}

bool form_convert(const form_sample *f, const form_spec *form, mr_convert_result *made, mr_error *err)
{
    mr_source *src;
    mr_source_config open;
    mr_convert_config cfg;
    mr_source_defaults(&open);
    mr_convert_defaults(&cfg);
    cfg.store = form->store;
    cfg.resize = form->resize;
    cfg.transcode = form->transcode;
    cfg.check = cfg.verify = false;
    cfg.force = true;
    cfg.stop = &interrupt_flag;
    if (mr_source_open(&src, f->now, &open, err) != MR_OK) return false;
    const int rc = mr_convert(src, f->then, &cfg, made, err);
    mr_source_close(src);
    return rc == MR_OK && has_form(form, made);
}

/* ---- costs ---- */

static mr_loader_config small_batches(const mr_loader_config *like)
{
    mr_loader_config cfg = *like;
    cfg.batch = BATCH;
    cfg.devices = NULL;
    cfg.device_count = 0;
    cfg.trace = NULL;
    cfg.record = NULL;
    cfg.cache = MR_CACHE_OFF;
    cfg.resident_bytes = 0;
    cfg.budget = NULL;
    cfg.bad = MR_BAD_REPLACE;
    cfg.on_bad = NULL;
    cfg.on_note = NULL;
    cfg.direct = false;
    return cfg;
}

/* PASSES times, or until batches_most batches; the first pass does not count, but for a large set. */
static int decode_all(mr_loader *l, mr_record *record, uint64_t batches_most, mr_error *err)
{
    mr_batch b;
    int rc = MR_OK;
    for (uint64_t n = 0; n < batches_most && !interrupt_flag; n++) {
        if ((rc = mr_loader_next(l, &b, MR_FOREVER, err)) != MR_OK) break;
        const bool first = b.last && b.epoch == 0;
        mr_loader_release(l, &b, NULL);
        if (first) mr_record_clear(record);
    }
    return rc == MR_EEND ? MR_OK : rc;
}

static int measure_source(const mr_source *src, const mr_loader_config *like, uint64_t batches_most,
                          form_cost *out, mr_error *err)
{
    mr_loader *l = NULL;
    mr_record *record = NULL;
    mr_record_totals t;
    mr_loader_config cfg = small_batches(like);
    cfg.epochs = PASSES;
    cfg.prefetch = 0;
    int rc = mr_record_create(&record, 65536);
    cfg.record = record;
    if (rc == MR_OK) rc = mr_loader_open(&l, src, &cfg, err);
    if (rc == MR_OK) rc = decode_all(l, record, batches_most, err);
    mr_loader_close(l);
    if (rc == MR_OK) {
        mr_record_totals_read(record, &t);
        *out = (form_cost){t.decode_ms_per_sample, t.read_core_ms_per_sample, t.bytes_per_sample};
    }
    mr_record_destroy(record);
    return rc;
}

int form_measure_there(const mr_source *src, const mr_loader_config *like, form_cost *out, mr_error *err)
{
    return measure_source(src, like, 2 * SAMPLES_MOST / BATCH, out, err);
}

int form_measure(const char *path, const mr_loader_config *like, form_cost *out, mr_error *err)
{
    mr_source *src;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    int rc = mr_source_open(&src, path, &cfg, err);
    if (rc != MR_OK) return rc;
    rc = measure_source(src, like, UINT64_MAX, out, err);
    mr_source_close(src);
    return rc;
}

int form_measure_rate(const char *path, const mr_loader_config *like, uint32_t workers, double seconds,
                      form_rate *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg;
    mr_rate m;
    tool_session s = {.io_reported = true, .loader_cfg = small_batches(like)};
    s.loader_cfg.workers = workers;
    s.loader_cfg.epochs = UINT64_MAX;
    mr_source_defaults(&cfg);
    int status = exit_status(mr_source_open(&s.src, path, &cfg, &err), &err);
    if (status == EXIT_DONE) status = session_open_loader(&s);
    const uint64_t start = clock_ns();
    const double cpu = cpu_seconds();
    if (status == EXIT_DONE) status = measure_loader(&s, seconds, 3, &m);
    if (status == EXIT_DONE)
        *out = (form_rate){.samples_per_s = m.samples_per_s,
                           .cores = (cpu_seconds() - cpu) / (seconds_since(start) + 1e-9)};
    session_close(&s);
    return status;
}
