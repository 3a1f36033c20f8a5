/* formats/tfrecord/example_build.c: writing tf.train.Example.
 *
 *   | room for two tags and lengths | entry | entry | ...      finish() puts them in front of the first
 *                                                              entry, where they end
 *
 * Lengths inside an entry are computed before it is written. */
#include "base/util.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/protobuf.h"

enum { ROOM = 24, PACKED_TAG = 0x0a /* field 1, length-delimited: all there is here but the kinds */ };
#define MOST_BYTES ((size_t)INT32_MAX)

static uint8_t *make_room(mri_example_builder *b, uint64_t bytes)
{
    if (b->used < ROOM) b->used = ROOM;
    if (!b->failed && (bytes > MOST_BYTES || b->used + bytes > MOST_BYTES)) b->failed = MR_ELIMIT;
    if (b->failed) return NULL;
    if (b->used + bytes > b->cap) {
        size_t cap = b->cap < 4096 ? 4096 : b->cap;
        while (cap < b->used + bytes) cap *= 2;
        uint8_t *larger = realloc(b->buffer, cap);
        if (!larger) {
            b->failed = MR_ENOMEM;
            return NULL;
        }
        b->buffer = larger;
        b->cap = cap;
    }
    uint8_t *p = b->buffer + b->used;
    b->used += (size_t)bytes;
    return p;
}

/* All of an entry but the inside of its list, which is `list` bytes and follows at the place returned; NULL:
 * no room. */
static uint8_t *put_entry(mri_example_builder *b, const char *key, mri_feature_kind kind, uint64_t list)
{
    const size_t key_bytes = strlen(key);
    const uint64_t feature = mri_pb_field_bytes(list),
                   entry = mri_pb_field_bytes(key_bytes) + mri_pb_field_bytes(feature);
    uint8_t *p = make_room(b, mri_pb_field_bytes(entry));
    if (!p) return NULL;
    p = mri_pb_put_head(p, PACKED_TAG, entry);
    p = mri_pb_put_head(p, PACKED_TAG, key_bytes);
    memcpy(p, key, key_bytes);
    p = mri_pb_put_head(p + key_bytes, mri_pb_tag(2, MRI_PB_BYTES), feature);
    return mri_pb_put_head(p, mri_pb_tag((uint32_t)kind, MRI_PB_BYTES), list);
}

void mri_example_restart(mri_example_builder *b)
{
    b->used = ROOM;
    b->failed = MR_OK;
}

void mri_example_add_bytes(mri_example_builder *b, const char *key, const void *data, size_t bytes)
{
    uint8_t *p = put_entry(b, key, MRI_FEATURE_BYTES, mri_pb_field_bytes(bytes));
    if (!p) return;
    p = mri_pb_put_head(p, PACKED_TAG, bytes);
    if (bytes > 0) memcpy(p, data, bytes);
}

void mri_example_add_ints(mri_example_builder *b, const char *key, const int64_t *values, size_t count)
{
    uint64_t packed = 0;
    for (size_t k = 0; k < count; k++) packed += mri_pb_varint_bytes((uint64_t)values[k]);
    uint8_t *p = put_entry(b, key, MRI_FEATURE_INTS, mri_pb_field_bytes(packed));
    if (!p) return;
    p = mri_pb_put_head(p, PACKED_TAG, packed);
    for (size_t k = 0; k < count; k++) p = mri_pb_put_varint(p, (uint64_t)values[k]);
}

void mri_example_add_floats(mri_example_builder *b, const char *key, const float *values, size_t count)
{
    const uint64_t packed = (uint64_t)count * sizeof *values;
    uint8_t *p = put_entry(b, key, MRI_FEATURE_FLOATS, mri_pb_field_bytes(packed));
    if (!p) return;
    p = mri_pb_put_head(p, PACKED_TAG, packed);
    if (count > 0) memcpy(p, values, (size_t)packed);
}

int mri_example_finish(mri_example_builder *b, mri_span *out, mr_error *err)
{
    if (!make_room(b, 0))
        return mr_error_set(err, b->failed,
                            b->failed == MR_ENOMEM ? "no memory for an Example"
                                                   : "an Example may have 2 GiB, no more");
    const size_t features = b->used - ROOM, head = (size_t)mri_pb_field_bytes(features) - features;
    uint8_t *start = b->buffer + ROOM - head;
    mri_pb_put_head(start, PACKED_TAG, features);
    *out = (mri_span){start, head + features};
    return MR_OK;
}

void mri_example_fini(mri_example_builder *b)
{
    free(b->buffer);
    *b = (mri_example_builder){0};
}
