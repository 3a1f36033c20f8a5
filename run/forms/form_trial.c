/* run/forms/form_trial.c: samples of a set in a folder of their own, and their cost in other forms.
 *
 * The room run/forms/
 *   takes     an open source with pictures, settings of a loader
 *   gives     the calls of millrace/forms.h: costs (here), advice (advice.c)
 *   callers   programs */
#include "run/forms/form_trial.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/abi.h"
#include "formats/source/source.h"
#include "millrace/measure.h"
#include "pipeline/loader_private.h"

enum { SAMPLES_MOST = 200, PIXELS_MOST = 48 << 20, PASSES = 3, BATCH = 16, ROUNDS = 3 };

struct mr_form_trial {
    uint32_t process;                                               /* that made the folder */
    char folder[PATH_MAX], now[PATH_MAX + 16], then[PATH_MAX + 16]; /* as they are; in another form */
    bool is_converted;                                              /* there is another form */
    const volatile int *stop;
    mr_form_trial_info info;
};

int mri_forms_stopped(mr_error *err) { return mr_error_set(err, MR_ECANCELED, "stopped by its caller"); }

/* ---- the samples ---- */

/* Evenly spaced, as they are; bad ones are left out. */
static int copy_samples(mr_form_trial *t, const mr_source *src, mr_writer *w, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    const uint64_t step = (info->count + SAMPLES_MOST - 1) / SAMPLES_MOST;
    uint64_t pixels = 0;
    void *buffer = NULL;
    size_t bytes = 0;
    int rc = MR_OK;
    for (uint64_t i = 0; i < info->count && rc == MR_OK && pixels < PIXELS_MOST && !mri_is_stopped(t->stop);
         i += step) {
        mr_sample sample;
        mr_image_header h;
        mr_extent extent;
        if (mr_source_extent(src, i, &extent, NULL) != MR_OK ||
            mr_source_read(src, i, &buffer, &bytes, &sample, NULL) != MR_OK ||
            mr_value_header(&sample.value[info->image_field], &h, NULL) != MR_OK) {
            t->info.bad++;
            continue;
        }
        pixels += (uint64_t)h.width * h.height;
        rc = mr_writer_append(w, i, sample.value, err);
        t->info.count++;
        t->info.bytes += (double)extent.bytes;
        t->info.shorter_side += h.width < h.height ? h.width : h.height;
    }
    free(buffer);
    return rc;
}

static int write_samples(mr_form_trial *t, const mr_source *src, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_writer_config cfg;
    mr_writer *w;
    mr_writer_defaults(&cfg);
    cfg.fields = info->fields;
    cfg.field_count = info->field_count;
    int rc = mr_writer_open(&w, t->now, &cfg, NULL, err);
    if (rc != MR_OK) return rc;
    rc = copy_samples(t, src, w, err);
    if (rc == MR_OK) return mr_writer_finish(w, err);
    mr_writer_abort(w, false);
    return rc;
}

static int make_folder(mr_form_trial *t, mr_error *err)
{
    const char *place = getenv("TMPDIR");
    snprintf(t->folder, sizeof t->folder, "%s/millrace-forms-XXXXXX", place && place[0] ? place : "/tmp");
    if (!mkdtemp(t->folder)) {
        const int rc = mr_error_sys(err, errno, "%s: cannot make a temporary folder; set TMPDIR", t->folder);
        t->folder[0] = '\0';
        return rc;
    }
    snprintf(t->now, sizeof t->now, "%s/now.mrec", t->folder);
    snprintf(t->then, sizeof t->then, "%s/then.mrec", t->folder);
    return MR_OK;
}

int mr_form_trial_open(mr_form_trial **out, const mr_source *src, const volatile int *stop, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_OWN(err, src);
    if (mr_source_info_of(src)->image_field < 0)
        return mr_error_set(err, MR_EUNSUPPORTED, "expected pictures, found none");
    mr_form_trial *t = calloc(1, sizeof *t);
    if (!t) return mr_error_set(err, MR_ENOMEM, "out of memory for samples in other forms");
    t->process = mri_process();
    t->stop = stop;
    t->info.struct_size = sizeof t->info;
    int rc = make_folder(t, err);
    if (rc == MR_OK) rc = write_samples(t, src, err);
    if (rc == MR_OK && mri_is_stopped(stop)) rc = mri_forms_stopped(err);
    if (rc != MR_OK) {
        mr_form_trial_close(t);
        return rc;
    }
    if (t->info.count) {
        t->info.bytes /= (double)t->info.count;
        t->info.shorter_side /= (double)t->info.count;
    }
    *out = t;
    return MR_OK;
}

/* Part files of a conversion that was stopped are there, too. */
void mr_form_trial_close(mr_form_trial *t)
{
    if (!MRI_IS_OWN(t)) return;
    DIR *folder = t->folder[0] ? opendir(t->folder) : NULL;
    if (folder) {
        for (const struct dirent *e; (e = readdir(folder));) unlinkat(dirfd(folder), e->d_name, 0);
        closedir(folder);
    }
    if (t->folder[0]) rmdir(t->folder);
    free(t);
}

const mr_form_trial_info *mr_form_trial_info_of(const mr_form_trial *t) { return t ? &t->info : NULL; }

/* ---- other forms ---- */

static bool has_form(const mr_form *form, const mr_convert_result *made)
{
    if (made->records == 0) return false;
    if (form->store == MR_STORE_COEF) return made->coefficients > 0;
    return form->transcode ? made->transcoded > 0 : true;
}

int mr_form_trial_convert_sized(mr_form_trial *t, const mr_form *form, bool *made, mr_convert_result *out,
                                mr_error *err)
{
    mr_source *src;
    mr_convert_config cfg;
    mr_convert_result result = {.struct_size = sizeof result};
    MRI_OWN(err, t);
    MRI_GIVEN(err, form);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    if (made) *made = false;
    mr_convert_defaults(&cfg);
    cfg.store = form->store;
    cfg.resize = form->resize;
    cfg.transcode = form->transcode;
    cfg.check = cfg.verify = false;
    cfg.force = true;
    cfg.stop = t->stop;
    rc = mr_source_open(&src, t->now, NULL, err);
    if (rc) return rc;
    rc = mr_convert(src, t->then, &cfg, &result, err);
    mr_source_close(src);
    t->is_converted = rc == MR_OK;
    if (rc) return rc;
    if (made) *made = has_form(form, &result);
    mri_result_give(out, &result, sizeof result);
    return MR_OK;
}

/* ---- costs ---- */

static int open_samples(const mr_form_trial *t, bool converted, mr_source **out, mr_error *err)
{
    if (!converted || t->is_converted) return mr_source_open(out, converted ? t->then : t->now, NULL, err);
    return mr_error_set(err, MR_EINVAL, "no form was converted: call mr_form_trial_convert() first");
}

static int small_batches(mr_loader_config *cfg, const mr_loader_config *like, mr_error *err)
{
    mr_loader_defaults(cfg);
    int rc = mri_settings_take(cfg, sizeof *cfg, like, "loader", err);
    if (rc == MR_OK) rc = mri_loader_check(cfg, err);
    cfg->batch = BATCH;
    cfg->devices = NULL;
    cfg->device_count = 0;
    cfg->trace = NULL;
    cfg->record = NULL;
    cfg->cache = MR_CACHE_OFF;
    cfg->resident_bytes = 0;
    cfg->budget = NULL;
    cfg->bad = MR_BAD_REPLACE;
    cfg->on_bad = NULL;
    cfg->on_note = NULL;
    cfg->direct = false;
    return rc;
}

/* PASSES times, or until batches_most batches; the first pass does not count, but for a large set. */
static int decode_all(mr_loader *l, mr_record *record, uint64_t batches_most, const volatile int *stop,
                      mr_error *err)
{
    mr_batch b;
    int rc = MR_OK;
    for (uint64_t n = 0; n < batches_most && rc == MR_OK; n++) {
        if (mri_is_stopped(stop)) return mri_forms_stopped(err);
        rc = mr_loader_next(l, &b, MR_FOREVER, err);
        if (rc != MR_OK) break;
        const bool first = b.last && b.epoch == 0;
        mr_loader_release(l, &b, NULL);
        if (first) mr_record_clear(record);
    }
    return rc == MR_EEND ? MR_OK : rc;
}

static int measure_cost(const mr_source *src, mr_loader_config *cfg, uint64_t batches_most,
                        const volatile int *stop, mr_form_cost *out, mr_error *err)
{
    mr_loader *l = NULL;
    mr_record *record = NULL;
    mr_record_totals t;
    int rc = mr_record_create(&record, 65536);
    if (rc) return mr_error_set(err, rc, "no memory for a record of batches");
    cfg->epochs = PASSES;
    cfg->prefetch = 0;
    cfg->record = record;
    rc = mr_loader_open(&l, src, cfg, err);
    if (rc == MR_OK) rc = decode_all(l, record, batches_most, stop, err);
    mr_loader_close(l);
    if (rc == MR_OK) {
        mr_record_totals_read(record, &t);
        const mr_form_cost cost = {.decode_ms = t.decode_ms_per_sample,
                                   .read_core_ms = t.read_core_ms_per_sample,
                                   .bytes = t.bytes_per_sample};
        mri_result_give(out, &cost, sizeof cost);
    }
    mr_record_destroy(record);
    return rc;
}

int mr_form_cost_of_sized(const mr_source *src, const mr_loader_config *like, const volatile int *stop,
                          mr_form_cost *out, mr_error *err)
{
    mr_loader_config cfg;
    MRI_OWN(err, src);
    MRI_GIVEN(err, like);
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = small_batches(&cfg, like, err);
    return rc ? rc : measure_cost(src, &cfg, 2 * SAMPLES_MOST / BATCH, stop, out, err);
}

int mr_form_trial_cost_sized(const mr_form_trial *t, bool converted, const mr_loader_config *like,
                             mr_form_cost *out, mr_error *err)
{
    mr_source *src;
    mr_loader_config cfg;
    MRI_OWN(err, t);
    MRI_GIVEN(err, like);
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = small_batches(&cfg, like, err);
    if (rc == MR_OK) rc = open_samples(t, converted, &src, err);
    if (rc) return rc;
    rc = measure_cost(src, &cfg, UINT64_MAX, t->stop, out, err);
    mr_source_close(src);
    return rc;
}

/* ---- rates ---- */

static double seconds_of(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the loader that is opened; all threads of the process count as its threads. */
static int measure_rate(const mr_source *src, const mr_loader_config *cfg, const mr_measure_config *measure,
                        double *samples_per_s, double *cores, mr_error *err)
{
    mr_loader *l;
    mr_rate rate;
    int rc = mr_loader_open(&l, src, cfg, err);
    if (rc) return rc;
    const double start = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    rc = mr_measure_loader(l, NULL, 0, measure, &rate, err);
    const double passed = seconds_of(CLOCK_MONOTONIC) - start;
    if (rc == MR_OK && cores) *cores = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - used) / (passed + 1e-9);
    if (rc == MR_OK) *samples_per_s = rate.samples_per_s;
    mr_loader_close(l);
    return rc;
}

int mr_form_trial_rate(const mr_form_trial *t, bool converted, const mr_loader_config *like, uint32_t workers,
                       double seconds, double *samples_per_s, double *cores, mr_error *err)
{
    mr_source *src;
    mr_loader_config cfg;
    mr_measure_config measure;
    MRI_OWN(err, t);
    MRI_GIVEN(err, like);
    MRI_GIVEN(err, samples_per_s);
    int rc = small_batches(&cfg, like, err);
    if (rc) return rc;
    cfg.workers = workers;
    cfg.epochs = UINT64_MAX;
    mr_measure_defaults(&measure);
    measure.seconds = seconds;
    measure.rounds = ROUNDS;
    measure.stop = t->stop;
    rc = open_samples(t, converted, &src, err);
    if (rc) return rc;
    rc = measure_rate(src, &cfg, &measure, samples_per_s, cores, err);
    mr_source_close(src);
    return rc;
}
