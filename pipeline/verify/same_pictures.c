/* pipeline/verify/same_pictures.c: mr_verify_same(): a hash finds candidates, and their bytes are compared.
 */
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "formats/source/source.h"
#include "millrace/verify.h"

typedef struct mark {
    uint64_t hash, sample;
} mark;

typedef struct reading {
    const mr_source *src;
    const volatile int *stop;
    void *buffer;
    size_t buffer_bytes;
} reading;

/* FNV-1a over words of 8 bytes, the rest byte by byte: only finds candidates. */
static uint64_t hash_of(const uint8_t *at, size_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u ^ bytes, word;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        memcpy(&word, at, sizeof word);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    for (; bytes > 0; at++, bytes--) h = (h ^ *at) * 0x100000001b3u;
    return h;
}

/* The picture of a sample; NULL: it cannot be read. */
static const mr_value *picture_of(reading *r, uint64_t sample, mr_sample *out)
{
    mr_error err = MR_ERROR_INIT;
    const int field = mr_source_info_of(r->src)->image_field;
    if (field < 0 || mr_source_read(r->src, sample, &r->buffer, &r->buffer_bytes, out, &err) != MR_OK)
        return NULL;
    return &out->value[field];
}

static int by_hash(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static uint64_t mark_all(reading *r, mark *marks)
{
    uint64_t count = 0;
    mr_sample s;
    for (uint64_t i = 0; i < mr_source_info_of(r->src)->count && !mri_is_stopped(r->stop); i++) {
        const mr_value *v = picture_of(r, i, &s);
        if (v) marks[count++] = (mark){hash_of(v->data, v->bytes), i};
    }
    qsort(marks, count, sizeof *marks, by_hash);
    return count;
}

/* The first mark whose hash is not smaller. */
static uint64_t find(const mark *marks, uint64_t count, uint64_t hash)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (marks[middle].hash < hash) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool is_same(reading *first, uint64_t sample, const mr_value *picture)
{
    mr_sample s;
    const mr_value *v = picture_of(first, sample, &s);
    return v && v->type == picture->type && v->bytes == picture->bytes &&
           memcmp(v->data, picture->data, v->bytes) == 0;
}

static void compare(reading *a, reading *b, const mark *marks, uint64_t count, mr_same_pictures *out)
{
    mr_sample s;
    for (uint64_t i = 0; i < mr_source_info_of(b->src)->count && !mri_is_stopped(b->stop); i++) {
        const mr_value *v = picture_of(b, i, &s);
        const uint64_t hash = v ? hash_of(v->data, v->bytes) : 0;
        for (uint64_t k = v ? find(marks, count, hash) : count; k < count && marks[k].hash == hash; k++) {
            if (!is_same(a, marks[k].sample, v)) continue;
            if (out->count++ == 0) out->first = marks[k].sample, out->second = i;
            break;
        }
    }
}

int mr_verify_same_sized(const mr_source *first, const mr_source *second, const volatile int *stop,
                         mr_same_pictures *out, mr_error *err)
{
    mr_same_pictures found = {0};
    MRI_OWN(err, first);
    MRI_OWN(err, second);
    MRI_GIVEN(err, out);
    const int rc = mri_result_check(out, err);
    if (rc) return rc;
    reading a = {.src = first, .stop = stop}, b = {.src = second, .stop = stop};
    mark *marks = malloc((mr_source_info_of(first)->count + 1) * sizeof *marks);
    if (!marks) return mr_error_set(err, MR_ENOMEM, "out of memory for the pictures of a data set");
    compare(&a, &b, marks, mark_all(&a, marks), &found);
    free(marks);
    free(a.buffer);
    free(b.buffer);
    if (mri_is_stopped(stop)) return mr_error_set(err, MR_ECANCELED, "stopped by its caller");
    mri_result_give(out, &found, sizeof found);
    return MR_OK;
}
