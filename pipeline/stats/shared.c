/* pipeline/stats/shared.c: samples that the test split shares with the counted split, so that a network is
 * tested on samples of its training. See stats.h. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "millrace/choose.h"
#include "pipeline/stats/stats.h"

/* The good samples of one part by hash, bytes and number. */
static int by_hash(const void *a, const void *b)
{
    const mr_copy_mark *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static mr_copy_mark *sort(const mr_stats *s, uint64_t *count, mr_error *err)
{
    mr_copy_mark *marks = malloc((s->count + 1) * sizeof *marks);
    *count = 0;
    if (!marks) {
        mr_error_set(err, MR_ENOMEM, "out of memory for the hashes of all samples");
        return NULL;
    }
    for (uint64_t k = 0; k < s->count; k++)
        if (s->sample[k].good) marks[(*count)++] = (mr_copy_mark){s->sample[k].hash, s->sample[k].bytes, k};
    if (*count) qsort(marks, *count, sizeof *marks, by_hash);
    return marks;
}

typedef struct content {
    void *buffer;
    size_t room, bytes;
    const void *data;
    mr_type type;
} content;

static int read_one(const mr_source *src, uint64_t at, content *c, mr_error *err)
{
    const int image = mr_source_info_of(src)->image_field;
    mr_sample sample;
    mr_extent e = {0};
    int rc = mr_source_read(src, at, &c->buffer, &c->room, &sample, err);
    if (!rc && image < 0) rc = mr_source_extent(src, at, &e, err);
    if (rc) return rc;
    c->type = image < 0 ? MR_TYPE_BYTES : sample.value[image].type;
    c->data = image < 0 ? c->buffer : sample.value[image].data;
    c->bytes = (size_t)(image < 0 ? e.bytes : sample.value[image].bytes);
    return MR_OK;
}

typedef struct search {
    const mr_stats *s, *test;
    const mr_copy_mark *marks; /* count; of s */
    uint64_t count;
    content mine, theirs;
} search;

/* The first sample of s with the bytes of this one; MR_NOWHERE: none. A hash only finds candidates. */
static int find_copy(search *f, uint64_t at, uint64_t *copy, mr_error *err)
{
    const mr_copy_mark want = {f->test->sample[at].hash, f->test->sample[at].bytes, 0};
    uint64_t low = 0, high = f->count;
    *copy = MR_NOWHERE;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (by_hash(&f->marks[mid], &want) < 0) low = mid + 1;
        else high = mid;
    }
    for (bool read = false; low < f->count; low++, read = true) {
        const mr_copy_mark *m = &f->marks[low];
        if (m->hash != want.hash || m->bytes != want.bytes) return MR_OK;
        int rc = read ? MR_OK : read_one(f->test->src, at, &f->theirs, err);
        if (!rc) rc = read_one(f->s->src, m->sample, &f->mine, err);
        if (rc) return rc;
        if (f->mine.type != f->theirs.type || f->mine.bytes != f->theirs.bytes ||
            memcmp(f->mine.data, f->theirs.data, f->mine.bytes) != 0)
            continue;
        *copy = m->sample;
        return MR_OK;
    }
    return MR_OK;
}

static int compare(search *f, const volatile int *stop, mr_stats_shared *out, mr_error *err)
{
    for (uint64_t k = 0; k < f->test->count; k++) {
        uint64_t copy = MR_NOWHERE;
        if (mri_is_stopped(stop)) return mr_error_set(err, MR_ECANCELED, "stopped by its caller");
        const int rc = f->test->sample[k].good ? find_copy(f, k, &copy, err) : MR_OK;
        if (rc) return rc;
        if (copy == MR_NOWHERE) continue;
        if (out->count < MR_STATS_PAIRS) out->pair[out->count][0] = copy, out->pair[out->count][1] = k;
        out->count++;
    }
    return MR_OK;
}

int mri_stats_find_shared(const mr_stats *s, const mr_stats *test, const volatile int *stop,
                          mr_stats_shared *out, mr_error *err)
{
    search f = {.s = s, .test = test};
    mr_copy_mark *marks = sort(s, &f.count, err);
    if (!marks) return MR_ENOMEM;
    f.marks = marks;
    *out = (mr_stats_shared){.src = test->src, .of = test->count, .bad = test->bad};
    const int rc = compare(&f, stop, out, err);
    free(marks);
    free(f.mine.buffer);
    free(f.theirs.buffer);
    return rc;
}
