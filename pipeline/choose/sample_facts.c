/* pipeline/choose/sample_facts.c: label, sizes and a hash of every sample, taken by several threads. See
 * choosing.h. */
#include <pthread.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/process.h"
#include "pipeline/choose/choosing.h"
#include "settings/limits.h"

enum { CHUNK = 16 };

typedef struct facts_run {
    const mr_source *src;
    const mr_choice_config *cfg;
    mri_sample_fact *fact;
    uint64_t count;
    pthread_mutex_t lock;
    uint64_t next, done; /* lock */
    mr_error failure;    /* lock */
} facts_run;

static int take_pixels(const facts_run *r, const mr_value *v, mri_sample_fact *out, mr_error *err)
{
    mr_image i;
    const int rc = mr_image_decode(v, &r->cfg->decode, &i, err);
    if (rc) return rc;
    const uint64_t sides = (uint64_t)i.width << 34 ^ (uint64_t)i.height << 4 ^ i.channels;
    out->hash = XXH3_64bits_withSeed(i.pixels, (size_t)i.width * i.height * i.channels, sides);
    mr_image_free(&i);
    return MR_OK;
}

static int take_picture(const facts_run *r, const mr_value *v, mri_sample_fact *out, mr_error *err)
{
    mr_image_header h;
    const int rc = mr_value_header(v, &h, err);
    if (rc) return rc;
    out->width = h.orientation > 4 ? h.height : h.width;
    out->height = h.orientation > 4 ? h.width : h.height;
    out->bytes = v->bytes;
    if (r->cfg->dedup == MR_COPIES_PIXELS) return take_pixels(r, v, out, err);
    if (r->cfg->dedup) out->hash = XXH3_64bits_withSeed(v->data, v->bytes, (XXH64_hash_t)v->type);
    return MR_OK;
}

static int take_label(const mr_source_info *info, int64_t label, mri_sample_fact *out, mr_error *err)
{
    if (label < 0 || (info->class_count && label >= (int64_t)info->class_count))
        return mr_error_set(err, MR_EFORMAT, "expected a label from 0 to %u, found %lld",
                            info->class_count ? info->class_count - 1 : 0, (long long)label);
    out->label = label < INT32_MAX ? (int32_t)label : -1;
    return MR_OK;
}

static int take_sample(facts_run *r, uint64_t at, void **buffer, size_t *buffer_bytes, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(r->src);
    mri_sample_fact *out = &r->fact[at];
    mr_sample sample;
    out->label = -1;
    int rc = mr_source_read(r->src, at, buffer, buffer_bytes, &sample, err);
    if (!rc && info->label_field >= 0 && sample.value[info->label_field].type == MR_TYPE_INT)
        rc = take_label(info, sample.value[info->label_field].i, out, err);
    if (rc) return rc;
    if (info->image_field >= 0) rc = take_picture(r, &sample.value[info->image_field], out, err);
    else {
        mr_extent e = {0};
        rc = mr_source_extent(r->src, at, &e, err);
        out->bytes = e.bytes;
        if (!rc) out->hash = XXH3_64bits(*buffer, (size_t)e.bytes);
    }
    out->good = rc == MR_OK;
    return rc;
}

/* The next samples: from *at to *end. */
static bool take_chunk(facts_run *r, uint64_t done, uint64_t *at, uint64_t *end, uint64_t *done_all)
{
    pthread_mutex_lock(&r->lock);
    r->done += done;
    *done_all = r->done;
    *at = r->next;
    *end = mri_min_u64(r->next + CHUNK, r->count);
    const bool more = *at < *end && !r->failure.code;
    if (more) r->next = *end;
    pthread_mutex_unlock(&r->lock);
    return more;
}

static void fail(facts_run *r, const mr_error *why)
{
    pthread_mutex_lock(&r->lock);
    if (!r->failure.code) r->failure = *why;
    pthread_mutex_unlock(&r->lock);
}

/* caller: reports progress. */
static void work(facts_run *r, bool caller)
{
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    uint64_t at, end, done = 0, done_all;
    const volatile int *before = mri_stop_at(r->cfg->stop);
    while (take_chunk(r, done, &at, &end, &done_all)) {
        mr_error err = MR_ERROR_INIT;
        if (caller && r->cfg->on_progress) r->cfg->on_progress(r->cfg->context, done_all, r->count);
        if (mri_stop_asked()) {
            mri_stopped(&err);
            fail(r, &err);
            break;
        }
        for (done = 0; at < end; at++, done++) {
            const int rc = take_sample(r, at, &buffer, &buffer_bytes, &err);
            if (rc && !mr_error_of_sample(rc, &err)) fail(r, &err);
        }
    }
    mri_stop_at(before);
    free(buffer);
}

static void *worker_main(void *arg)
{
    work(arg, false);
    return NULL;
}

static int read_all(facts_run *r, mr_error *err)
{
    pthread_t thread[MRI_CHECK_WORKERS_MOST];
    uint32_t workers = r->cfg->workers ? r->cfg->workers : mr_cores(), started = 0;
    workers = workers > MRI_CHECK_WORKERS_MOST ? MRI_CHECK_WORKERS_MOST : workers;
    while (started + 1 < workers && started < r->count / CHUNK &&
           mri_thread_start(&thread[started], "mr-choose", worker_main, r) == 0)
        started++;
    work(r, true); /* with no further thread, too */
    for (uint32_t k = 0; k < started; k++) pthread_join(thread[k], NULL);
    if (r->failure.code && err) *err = r->failure;
    return r->failure.code;
}

/* false: they are known only by reading. */
static bool know_labels(const facts_run *r)
{
    const mr_source_info *info = mr_source_info_of(r->src);
    for (uint64_t k = 0; k < r->count; k++) {
        int64_t label = -1;
        mri_sample_fact *f = &r->fact[k];
        f->label = -1;
        f->good = true;
        if (info->label_field < 0) continue;
        if (mr_source_label(r->src, k, &label) != MR_OK) return false;
        f->good = label < 0 || take_label(info, label, f, NULL) == MR_OK;
    }
    return true;
}

int mri_sample_facts(const mr_source *src, const mri_facts_config *cfg, mri_sample_fact **out, mr_error *err)
{
    facts_run r = {.src = src,
                   .cfg = cfg->choice,
                   .count = mr_source_info_of(src)->count,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .failure = MR_ERROR_INIT};
    *out = r.fact = calloc((size_t)r.count + 1, sizeof *r.fact);
    if (!r.fact) return mr_error_set(err, MR_ENOMEM, "no memory for the facts of all samples");
    if (!cfg->read && know_labels(&r)) return MR_OK;
    memset(r.fact, 0, (size_t)r.count * sizeof *r.fact);
    return read_all(&r, err);
}
