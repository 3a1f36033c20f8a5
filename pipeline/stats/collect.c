/* pipeline/stats/collect.c: the facts of every sample, taken by several threads. See stats.h. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "millrace/verify.h"
#include "pipeline/stats/stats.h"
#include "settings/limits.h"

enum { CHUNK = 16 };

typedef struct bad {
    uint64_t sample;
    mr_error why;
} bad;

typedef struct collecting {
    mri_stats *s;
    const mr_source *src;
    uint64_t count;
    const mr_stats_config *cfg;
    pthread_mutex_t lock;
    uint64_t next, done; /* lock */
    uint32_t working;    /* lock */
    mr_error failure;    /* lock */
    bad *bad;            /* lock; in no order */
    uint64_t bad_count, bad_cap;
} collecting;

/* A hash of 64 bits, in which two different pictures of a billion meet by chance once in forty sets. */
static uint64_t hash_of(const uint8_t *at, size_t bytes)
{
    uint64_t a = 0x9e3779b97f4a7c15u ^ bytes, b = 0xc2b2ae3d27d4eb4fu, word;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        memcpy(&word, at, sizeof word);
        const unsigned __int128 m = (unsigned __int128)(a ^ word) * (b | 1);
        a = (uint64_t)m ^ (uint64_t)(m >> 64);
        b += 0x165667b19e3779f9u;
    }
    word = 0;
    memcpy(&word, at, bytes);
    const unsigned __int128 m = (unsigned __int128)(a ^ word ^ 0x27d4eb2f165667c5u) * (b | 1);
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint8_t sampling_of(const mr_image_header *h)
{
    if (h->channels < 3) return 3;
    const uint8_t(*f)[2] = h->sampling;
    if (f[1][0] != f[2][0] || f[1][1] != f[2][1] || !f[1][0] || !f[1][1]) return 4;
    const int x = f[0][0] * 10 / f[1][0], y = f[0][1] * 10 / f[1][1];
    return x == 10 && y == 10 ? 0 : x == 20 && y == 10 ? 1 : x == 20 && y == 20 ? 2 : 4;
}

/* See mr_stats_kind_name(). */
static uint8_t kind_of(mr_type type)
{
    uint8_t k = 0;
    while (k < MRI_STATS_TYPES - 1 && mri_stats_types[k] != type) k++;
    return k;
}

static int take_picture(const mr_value *v, mr_sample_facts *out, mr_error *err)
{
    mr_image_header h;
    const int rc = mr_value_header(v, &h, err);
    if (rc) return rc;
    out->width = h.orientation > 4 ? h.height : h.width;
    out->height = h.orientation > 4 ? h.width : h.height;
    out->channels = (uint8_t)h.channels;
    out->orientation = (uint8_t)h.orientation;
    out->progressive = h.progressive;
    out->kind = kind_of(v->type);
    out->sampling = out->kind == 0 || out->kind == 2 ? sampling_of(&h) : 0;
    out->bytes = v->bytes;
    out->hash = hash_of(v->data, v->bytes) ^ (uint64_t)v->type;
    return MR_OK;
}

/* The sums are of whole numbers: they are the same in any order. */
static int take_channels(const collecting *c, const mr_value *v, double out[6], mr_error *err)
{
    mr_image image;
    const int rc = mr_image_decode(v, c->cfg->decode, &image, err);
    if (rc) return rc;
    uint64_t sum[3] = {0}, square[3] = {0};
    const uint64_t pixels = (uint64_t)image.width * image.height;
    for (uint64_t k = 0; k < pixels; k++)
        for (uint32_t ch = 0; ch < image.channels; ch++) {
            const uint64_t p = image.pixels[k * image.channels + ch];
            sum[ch] += p;
            square[ch] += p * p;
        }
    for (uint32_t ch = 0; ch < 3; ch++) {
        const uint32_t from = image.channels == 3 ? ch : 0;
        out[ch] = (double)sum[from] / (double)pixels;
        out[3 + ch] = (double)square[from] / (double)pixels;
    }
    mr_image_free(&image);
    return MR_OK;
}

/* The number of this sample among the decoded ones; false: it is not decoded. */
static bool is_decoded(const collecting *c, uint64_t at, uint64_t *number)
{
    const uint64_t count = c->count, want = c->s->of.decode_asked;
    if (want == 0) return false;
    *number = (uint64_t)(((unsigned __int128)at * want + count - 1) / count);
    return *number < want && (uint64_t)((unsigned __int128)*number * count / want) == at;
}

static int take_sample(collecting *c, uint64_t at, void **buffer, size_t *buffer_bytes, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(c->src);
    mr_sample_facts *out = &c->s->sample[at];
    mr_sample sample;
    uint64_t number;
    int rc = mr_source_read(c->src, at, buffer, buffer_bytes, &sample, err);
    if (rc) return rc;
    out->label = -1;
    if (info->label_field >= 0 && sample.value[info->label_field].type == MR_TYPE_INT) {
        const int64_t label = sample.value[info->label_field].i;
        if (label < 0 || (info->class_count && label >= (int64_t)info->class_count))
            return mr_error_set(err, MR_EFORMAT, "expected a label from 0 to %u, found %" PRId64,
                                info->class_count ? info->class_count - 1 : 0, label);
        out->label = label < INT32_MAX ? (int32_t)label : -1;
    }
    if (info->image_field < 0) {
        mr_extent e = {0};
        rc = mr_source_extent(c->src, at, &e, err);
        out->bytes = e.bytes;
        out->hash = hash_of(*buffer, (size_t)e.bytes);
    } else {
        const mr_value *v = &sample.value[info->image_field];
        rc = take_picture(v, out, err);
        if (!rc && is_decoded(c, at, &number)) rc = take_channels(c, v, c->s->sums + 6 * number, err);
    }
    out->good = rc == MR_OK;
    return rc;
}

static void keep_bad_locked(collecting *c, uint64_t at, const mr_error *why)
{
    if (c->bad_count == c->bad_cap) {
        const uint64_t cap = c->bad_cap ? 2 * c->bad_cap : 16;
        bad *more = realloc(c->bad, cap * sizeof *more);
        if (!more) {
            mr_error_set(&c->failure, MR_ENOMEM, "no memory for bad samples");
            return;
        }
        c->bad = more;
        c->bad_cap = cap;
    }
    c->bad[c->bad_count++] = (bad){at, *why};
}

static void *worker_main(void *arg)
{
    collecting *c = arg;
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    pthread_mutex_lock(&c->lock);
    while (c->next < c->count && !c->failure.code && !mri_is_stopped(c->cfg->stop)) {
        const uint64_t from = c->next, to = from + CHUNK < c->count ? from + CHUNK : c->count;
        c->next = to;
        pthread_mutex_unlock(&c->lock);
        for (uint64_t at = from; at < to; at++) {
            mr_error err = MR_ERROR_INIT;
            const int rc = take_sample(c, at, &buffer, &buffer_bytes, &err);
            if (rc == MR_OK) continue;
            pthread_mutex_lock(&c->lock);
            if (!mr_error_of_sample(rc, &err)) c->failure = err;
            else {
                mr_error_at(&err, NULL, MR_NOWHERE, at);
                keep_bad_locked(c, at, &err);
            }
            pthread_mutex_unlock(&c->lock);
        }
        pthread_mutex_lock(&c->lock);
        c->done += to - from;
    }
    c->working--;
    pthread_mutex_unlock(&c->lock);
    free(buffer);
    return NULL;
}

static void watch(collecting *c)
{
    for (bool working = true; working;) {
        const struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&c->lock);
        const uint64_t done = c->done;
        working = c->working > 0;
        pthread_mutex_unlock(&c->lock);
        if (c->cfg->on_progress) c->cfg->on_progress(c->cfg->context, done, c->count);
    }
}

static int by_sample(const void *a, const void *b)
{
    const bad *x = a, *y = b;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static int run(collecting *c, mr_error *err)
{
    pthread_t threads[MRI_CHECK_WORKERS_MOST];
    uint32_t made = 0, wanted = c->cfg->workers ? c->cfg->workers : mr_cores();
    if (wanted > MRI_CHECK_WORKERS_MOST) wanted = MRI_CHECK_WORKERS_MOST;
    c->working = wanted;
    while (made < wanted && mri_thread_start(&threads[made], "mr-stats", worker_main, c) == MR_OK) made++;
    pthread_mutex_lock(&c->lock);
    c->working -= wanted - made;
    pthread_mutex_unlock(&c->lock);
    if (made == 0)
        return mr_error_set(err, MR_ENOMEM, "cannot start a thread: no memory, or too many threads");
    watch(c);
    for (uint32_t t = 0; t < made; t++) pthread_join(threads[t], NULL);
    if (mri_is_stopped(c->cfg->stop)) return mr_error_set(err, MR_ECANCELED, "stopped by its caller");
    if (c->failure.code) {
        if (err) *err = c->failure;
        return c->failure.code;
    }
    return MR_OK;
}

static void report_bad(collecting *c)
{
    if (c->bad_count) qsort(c->bad, c->bad_count, sizeof *c->bad, by_sample);
    for (uint64_t k = 0; k < c->bad_count; k++) {
        mr_verify_place(c->src, &c->bad[k].why);
        if (c->cfg->on_wrong) c->cfg->on_wrong(c->cfg->context, &c->bad[k].why);
    }
}

int mri_stats_collect(mri_stats *s, const mr_stats_config *cfg, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(s->of.src);
    const uint64_t count = info->count,
                   asked = info->image_field < 0 ? 0 : mri_min_u64(cfg->decode_most, count);
    s->sample = calloc(count + 1, sizeof *s->sample);
    s->sums = calloc(6 * asked + 1, sizeof *s->sums);
    if (!s->sample || !s->sums)
        return mr_error_set(err, MR_ENOMEM, "out of memory for the facts of all samples");
    s->of.count = count;
    s->of.decode_asked = asked;
    s->of.sample = s->sample;
    s->of.sums = s->sums;
    collecting c = {.s = s,
                    .src = s->of.src,
                    .count = count,
                    .cfg = cfg,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .failure = MR_ERROR_INIT};
    const int rc = run(&c, err);
    if (rc == MR_OK) report_bad(&c);
    s->of.bad = c.bad_count;
    free(c.bad);
    return rc;
}
