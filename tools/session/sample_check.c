/* tools/session/sample_check.c: see sample_check.h. Workers take samples in turn; one that met a bad sample
 * waits until all earlier ones are done before it reports, so that the list is the same in every run and
 * nothing has to be kept. */
#include "tools/session/sample_check.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/session/setup.h"

typedef struct check_run {
    sample_check *c;
    mr_budget *budget;
    pthread_mutex_t lock;
    pthread_cond_t sample_done;
    uint64_t next;                       /* first sample no worker has; lock */
    uint64_t at[MRI_CHECK_WORKERS_MOST]; /* what each worker has, UINT64_MAX: nothing; lock */
    bool stop;                           /* enough was reported; lock */
    mr_error failure;                    /* the check itself failed; lock */
    uint32_t working;                    /* workers still at it; lock */
    uint32_t started;                    /* numbers given to workers; lock */
} check_run;

/* In a shared file the number alone says little to whoever made the pictures. */
static void add_name(const mr_source *src, mr_error *what)
{
    char name[512], shown[768];
    mr_text_shown(mr_source_sample_name(src, what->sample, NULL, 0, name, sizeof name), shown, sizeof shown);
    const size_t at = strlen(what->text);
    if (!shown[0] || strstr(what->text, shown)) return;
    snprintf(what->text + at, sizeof what->text - at, "; the sample is %s", shown);
}

void check_place(const mr_source *src, mr_error *what)
{
    mr_extent extent;
    char path[512];
    if (what->sample == MR_NOWHERE || mr_source_extent(src, what->sample, &extent, NULL) != MR_OK) return;
    if (extent.file != MR_FILE_OF_SAMPLE && what->code != MR_EIO && what->code != MR_ENOMEM)
        add_name(src, what);
    if (!what->file[0])
        mr_error_at(what, mr_source_sample_path(src, what->sample, path, sizeof path), MR_NOWHERE,
                    MR_NOWHERE);
    if (what->offset == MR_NOWHERE && extent.file != MR_FILE_OF_SAMPLE)
        mr_error_at(what, NULL, extent.offset, MR_NOWHERE);
}

static int check_sample(const sample_check *c, mr_checker *checker, uint64_t at, void **buffer,
                        size_t *buffer_bytes, uint64_t *bytes, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(c->src);
    mr_sample sample;
    mr_extent extent = {0};
    int rc = mr_source_extent(c->src, at, &extent, err);
    if (rc == MR_OK) rc = mr_source_read(c->src, at, buffer, buffer_bytes, &sample, err);
    *bytes = extent.bytes;
    if (c->decode_only && mr_error_of_sample(rc, err)) return MR_OK;
    if (rc == MR_OK && info->label_field >= 0 && info->class_count) {
        const mr_value *label = &sample.value[info->label_field];
        if (label->type == MR_TYPE_INT && (label->i < 0 || label->i >= (int64_t)info->class_count))
            rc = mr_error_set(err, MR_EFORMAT, "expected a label from 0 to %u, found %" PRId64,
                              info->class_count - 1, label->i);
    }
    if (rc == MR_OK && info->image_field >= 0 && !c->no_decode)
        rc = mr_checker_run(checker, &sample.value[info->image_field], &c->decode, err);
    if (rc == MR_OK) return MR_OK;
    if (err->code != rc) mr_error_set(err, rc, "%s", mr_status_text(rc)); /* described by its code alone */
    mr_error_at(err, NULL, MR_NOWHERE, at);
    check_place(c->src, err);
    return rc;
}

static bool take_locked(check_run *r, uint32_t self)
{
    if (r->next >= mr_source_info_of(r->c->src)->count || r->stop || r->failure.code != MR_OK ||
        __atomic_load_n(&interrupt_flag, __ATOMIC_RELAXED))
        return false;
    r->at[self] = r->next++;
    return true;
}

static bool is_first_locked(const check_run *r, uint64_t at)
{
    for (uint32_t k = 0; k < r->started; k++)
        if (r->at[k] < at) return false;
    return true;
}

static void report_in_order_locked(check_run *r, uint64_t at, const mr_error *what)
{
    while (!is_first_locked(r, at) && !r->stop) pthread_cond_wait(&r->sample_done, &r->lock);
    if (!r->stop && !r->c->wrong(r->c->context, what)) r->stop = true;
}

/* A picture that needs more memory than the budget is listed like one over --max-pixels; the others are
 * checked. */
static bool is_of_sample(int rc, const mr_error *err)
{
    return rc == MR_ELIMIT || mr_error_of_sample(rc, err);
}

static void work(check_run *r, uint32_t self, mr_checker *checker)
{
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    pthread_mutex_lock(&r->lock);
    while (take_locked(r, self)) {
        const uint64_t at = r->at[self];
        uint64_t bytes = 0;
        mr_error err = MR_ERROR_INIT;
        pthread_mutex_unlock(&r->lock);
        const int rc = check_sample(r->c, checker, at, &buffer, &buffer_bytes, &bytes, &err);
        pthread_mutex_lock(&r->lock);
        if (rc && !is_of_sample(rc, &err)) r->failure = err;
        else if (rc) report_in_order_locked(r, at, &err);
        r->c->done++;
        r->c->bytes += bytes;
        r->at[self] = UINT64_MAX;
        pthread_cond_broadcast(&r->sample_done);
    }
    pthread_mutex_unlock(&r->lock);
    free(buffer);
}

static void *worker_main(void *arg)
{
    check_run *r = arg;
    mr_checker *checker;
    const int rc = mr_checker_create(&checker);
    pthread_mutex_lock(&r->lock);
    const uint32_t self = r->started++;
    r->at[self] = UINT64_MAX;
    if (rc) mr_error_set(&r->failure, MR_ENOMEM, "no memory for decoders; lower --workers");
    pthread_mutex_unlock(&r->lock);
    if (rc == MR_OK) mr_checker_share(checker, r->budget);
    if (rc == MR_OK) work(r, self, checker);
    mr_checker_destroy(checker);
    pthread_mutex_lock(&r->lock);
    r->working--;
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void watch(check_run *r)
{
    const uint64_t count = mr_source_info_of(r->c->src)->count;
    progress_bar bar;
    progress_start(&bar, r->c->label, "samples", r->c->quiet);
    for (bool working = true; working;) {
        const struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&r->lock);
        const uint64_t done = r->c->done;
        working = r->working > 0;
        pthread_mutex_unlock(&r->lock);
        progress_show(&bar, done, count, NULL);
    }
    progress_end(&bar);
}

int check_samples(sample_check *c)
{
    pthread_t threads[MRI_CHECK_WORKERS_MOST];
    const uint32_t asked = c->workers ? c->workers : core_count(),
                   wanted = asked < MRI_CHECK_WORKERS_MOST ? asked : MRI_CHECK_WORKERS_MOST;
    uint32_t made = 0;
    check_run r = {.c = c,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .sample_done = PTHREAD_COND_INITIALIZER,
                   .failure = MR_ERROR_INIT,
                   .working = wanted};
    if (mr_budget_create(&r.budget, c->memory) != MR_OK) return exit_no_memory("decoders");
    while (made < wanted && pthread_create(&threads[made], NULL, worker_main, &r) == 0) made++;
    pthread_mutex_lock(&r.lock);
    r.working -= wanted - made;
    pthread_mutex_unlock(&r.lock);
    if (made == 0) {
        say("cannot start a thread");
        mr_budget_destroy(r.budget);
        return EXIT_FAILED;
    }
    watch(&r);
    for (uint32_t t = 0; t < made; t++) pthread_join(threads[t], NULL);
    mr_budget_destroy(r.budget);
    return r.failure.code ? exit_status(r.failure.code, &r.failure) : EXIT_DONE;
}

int check_files(const sample_check *c)
{
    mr_error err = MR_ERROR_INIT;
    const int rc = mr_source_check(c->src, &err);
    if (rc != MR_ECHECKSUM && rc != MR_EFORMAT) return exit_status(rc, &err);
    c->wrong(c->context, &err);
    return EXIT_DONE;
}
