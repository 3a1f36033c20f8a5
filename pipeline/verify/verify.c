/* pipeline/verify/verify.c: mr_verify_samples() and mr_verify_place(). Workers take samples in turn; one that
 * met a bad sample waits until all earlier ones are done and the calling thread has reported it, so that the
 * list is the same in every run and nothing has to be kept.
 *
 * The room pipeline/verify/
 *   takes     an open source
 *   gives     the calls of millrace/verify.h
 *   callers   programs */
#include "millrace/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "formats/source/source.h"
#include "settings/limits.h"

#define PROGRESS_NS 20000000u

typedef struct verification {
    const mr_source *src;
    const mr_verify_config *cfg;
    mr_budget *budget;
    pthread_mutex_t lock;
    pthread_cond_t sample_done;          /* for workers: a sample is done, or reported */
    pthread_cond_t for_caller;           /* a report is there, or a worker ended */
    mr_verify_result result;             /* records and bytes: lock; wrong: the calling thread's */
    uint64_t next;                       /* first sample no worker has; lock */
    uint64_t at[MRI_CHECK_WORKERS_MOST]; /* what each worker has, UINT64_MAX: nothing; lock */
    const mr_error *report;              /* of the worker that waits for it to be reported, or NULL; lock */
    bool over;                           /* the caller has seen enough; lock */
    mr_error failure;                    /* the check itself failed; lock */
    uint32_t working;                    /* workers still at it; lock */
    uint32_t started;                    /* numbers given to workers; lock */
} verification;

void mr_verify_defaults_sized(mr_verify_config *cfg, size_t struct_size)
{
    const mr_verify_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

/* ---- where a sample is ---- */

/* In a shared file the number alone says little to whoever made the pictures. */
static void add_name(const mr_source *src, mr_error *what)
{
    char name[512], shown[768];
    mr_text_shown(mr_source_sample_name(src, what->sample, NULL, 0, name, sizeof name), shown, sizeof shown);
    const size_t at = strlen(what->text);
    if (!shown[0] || strstr(what->text, shown)) return;
    snprintf(what->text + at, sizeof what->text - at, "; the sample is %s", shown);
}

void mr_verify_place(const mr_source *src, mr_error *err)
{
    mr_extent extent;
    char path[512];
    if (!src || !err || err->sample == MR_NOWHERE ||
        mr_source_extent(src, err->sample, &extent, NULL) != MR_OK)
        return;
    if (extent.file != MR_FILE_OF_SAMPLE && err->code != MR_EIO && err->code != MR_ENOMEM) add_name(src, err);
    if (!err->file[0])
        mr_error_at(err, mr_source_sample_path(src, err->sample, path, sizeof path), MR_NOWHERE, MR_NOWHERE);
    if (err->offset == MR_NOWHERE && extent.file != MR_FILE_OF_SAMPLE)
        mr_error_at(err, NULL, extent.offset, MR_NOWHERE);
}

/* ---- a sample ---- */

static int check_label(const mr_source_info *info, const mr_sample *sample, mr_error *err)
{
    if (info->label_field < 0 || !info->class_count) return MR_OK;
    const mr_value *label = &sample->value[info->label_field];
    if (label->type != MR_TYPE_INT || (label->i >= 0 && label->i < (int64_t)info->class_count)) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "expected a label from 0 to %u, found %" PRId64,
                        info->class_count - 1, label->i);
}

static int check_sample(const verification *v, mr_checker *checker, uint64_t at, void **buffer,
                        size_t *buffer_bytes, uint64_t *bytes, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(v->src);
    mr_sample sample;
    mr_extent extent = {0};
    int rc = mr_source_extent(v->src, at, &extent, err);
    if (rc == MR_OK) rc = mr_source_read(v->src, at, buffer, buffer_bytes, &sample, err);
    *bytes = extent.bytes;
    if (v->cfg->decode_only && mr_error_of_sample(rc, err)) return MR_OK;
    if (rc == MR_OK) rc = check_label(info, &sample, err);
    if (rc == MR_OK && info->image_field >= 0 && !v->cfg->no_decode)
        rc = mr_checker_run(checker, &sample.value[info->image_field], v->cfg->decode, err);
    if (rc == MR_OK) return MR_OK;
    if (err->code != rc) mr_error_set(err, rc, "%s", mr_status_text(rc)); /* described by its code alone */
    mr_error_at(err, NULL, MR_NOWHERE, at);
    mr_verify_place(v->src, err);
    return rc;
}

/* ---- workers ---- */

static bool take_locked(verification *v, uint32_t self)
{
    if (v->next >= mr_source_info_of(v->src)->count || v->over || v->failure.code != MR_OK ||
        mri_is_stopped(v->cfg->stop))
        return false;
    v->at[self] = v->next++;
    return true;
}

static bool is_first_locked(const verification *v, uint64_t at)
{
    for (uint32_t k = 0; k < v->started; k++)
        if (v->at[k] < at) return false;
    return true;
}

static void report_in_order_locked(verification *v, uint64_t at, const mr_error *what)
{
    while (!is_first_locked(v, at) && !v->over) pthread_cond_wait(&v->sample_done, &v->lock);
    if (v->over) return;
    v->report = what;
    pthread_cond_signal(&v->for_caller);
    while (v->report == what) pthread_cond_wait(&v->sample_done, &v->lock);
}

/* A picture that needs more memory than the budget is listed like one over the limit of pixels; the others
 * are checked. */
static bool is_of_sample(int rc, const mr_error *err)
{
    return rc == MR_ELIMIT || mr_error_of_sample(rc, err);
}

static void work(verification *v, uint32_t self, mr_checker *checker)
{
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    pthread_mutex_lock(&v->lock);
    while (take_locked(v, self)) {
        const uint64_t at = v->at[self];
        uint64_t bytes = 0;
        mr_error err = MR_ERROR_INIT;
        pthread_mutex_unlock(&v->lock);
        const int rc = check_sample(v, checker, at, &buffer, &buffer_bytes, &bytes, &err);
        pthread_mutex_lock(&v->lock);
        if (rc && !is_of_sample(rc, &err)) v->failure = err;
        else if (rc) report_in_order_locked(v, at, &err);
        v->result.records++;
        v->result.bytes += bytes;
        v->at[self] = UINT64_MAX;
        pthread_cond_broadcast(&v->sample_done);
    }
    pthread_mutex_unlock(&v->lock);
    free(buffer);
}

static void *worker_main(void *arg)
{
    verification *v = arg;
    mr_checker *checker;
    const int rc = mr_checker_create(&checker);
    pthread_mutex_lock(&v->lock);
    const uint32_t self = v->started++;
    v->at[self] = UINT64_MAX;
    if (rc) mr_error_set(&v->failure, MR_ENOMEM, "no memory for decoders; lower --workers");
    pthread_mutex_unlock(&v->lock);
    if (rc == MR_OK) mr_checker_share(checker, v->budget);
    if (rc == MR_OK) work(v, self, checker);
    mr_checker_destroy(checker);
    pthread_mutex_lock(&v->lock);
    v->working--;
    pthread_cond_signal(&v->for_caller);
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

/* ---- the calling thread ---- */

static void wait_locked(verification *v)
{
    const uint64_t until = mri_now_ns() + PROGRESS_NS;
    const struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    pthread_cond_timedwait(&v->for_caller, &v->lock, &t);
}

/* Callbacks are called without the lock. */
static void report_locked(verification *v)
{
    const mr_error *what = v->report;
    bool go_on = true;
    pthread_mutex_unlock(&v->lock);
    v->result.wrong++;
    if (v->cfg->on_wrong) go_on = v->cfg->on_wrong(v->cfg->context, what);
    pthread_mutex_lock(&v->lock);
    v->report = NULL;
    v->over = v->over || !go_on;
    pthread_cond_broadcast(&v->sample_done);
}

static void watch(verification *v)
{
    const uint64_t count = mr_source_info_of(v->src)->count;
    uint64_t told_ns = 0;
    pthread_mutex_lock(&v->lock);
    for (bool working = true; working;) {
        if (v->report) report_locked(v);
        else if (v->working) wait_locked(v);
        working = v->working > 0 || v->report;
        if (!v->cfg->on_progress || (working && mri_now_ns() - told_ns < PROGRESS_NS)) continue;
        const uint64_t done = v->result.records, bytes = v->result.bytes;
        pthread_mutex_unlock(&v->lock);
        v->cfg->on_progress(v->cfg->context, done, count, bytes);
        told_ns = mri_now_ns();
        pthread_mutex_lock(&v->lock);
    }
    pthread_mutex_unlock(&v->lock);
}

static int run(verification *v, mr_error *err)
{
    pthread_t threads[MRI_CHECK_WORKERS_MOST];
    const uint32_t asked = v->cfg->workers ? v->cfg->workers : mr_cores(),
                   wanted = asked < MRI_CHECK_WORKERS_MOST ? asked : MRI_CHECK_WORKERS_MOST;
    uint32_t made = 0;
    v->working = wanted;
    while (made < wanted && mri_thread_start(&threads[made], "mr-verify", worker_main, v) == MR_OK) made++;
    pthread_mutex_lock(&v->lock);
    v->working -= wanted - made;
    pthread_mutex_unlock(&v->lock);
    if (made == 0)
        return mr_error_set(err, MR_ENOMEM, "cannot start a thread: no memory, or too many threads");
    watch(v);
    for (uint32_t t = 0; t < made; t++) pthread_join(threads[t], NULL);
    if (v->failure.code != MR_OK) {
        if (err) *err = v->failure;
        return v->failure.code;
    }
    return mri_is_stopped(v->cfg->stop) ? mr_error_set(err, MR_ECANCELED, "stopped by its caller") : MR_OK;
}

int mr_verify_samples_sized(const mr_source *src, const mr_verify_config *cfg, mr_verify_result *out,
                            mr_error *err)
{
    mr_verify_config mine;
    verification v = {.src = src, .cfg = &mine, .lock = PTHREAD_MUTEX_INITIALIZER, .failure = MR_ERROR_INIT};
    pthread_condattr_t monotonic;
    MRI_OWN(err, src);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_verify_defaults(&mine);
    rc = cfg ? mri_settings_take(&mine, sizeof mine, cfg, "verify", err) : MR_OK;
    if (rc) return rc;
    if (mr_budget_create(&v.budget, mine.memory_bytes) != MR_OK)
        return mr_error_set(err, MR_ENOMEM, "out of memory for decoders");
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&v.sample_done, NULL);
    pthread_cond_init(&v.for_caller, &monotonic);
    pthread_condattr_destroy(&monotonic);
    rc = run(&v, err);
    pthread_cond_destroy(&v.for_caller);
    pthread_cond_destroy(&v.sample_done);
    mr_budget_destroy(v.budget);
    mri_result_give(out, &v.result, sizeof v.result);
    return rc;
}
