/* formats/tfrecord/protobuf.h: writing the protobuf wire format, piece by piece, into memory that is large
 * enough. Private. */
#ifndef MRI_PROTOBUF_H
#define MRI_PROTOBUF_H

#include "base/util.h"

/* The last three bits of a tag: how its value is written. */
enum { MRI_PB_VARINT = 0, MRI_PB_64 = 1, MRI_PB_BYTES = 2, MRI_PB_32 = 5 };

static inline uint8_t mri_pb_tag(uint32_t field, uint32_t kind)
{
    return (uint8_t)(field << 3 | kind);
} /* below 16 */

static inline size_t mri_pb_varint_bytes(uint64_t v)
{
    size_t bytes = 1;
    for (; v >= 0x80; v >>= 7) bytes++;
    return bytes;
}

static inline uint8_t *mri_pb_put_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

/* In front of that many bytes. */
static inline uint8_t *mri_pb_put_head(uint8_t *p, uint8_t tag, uint64_t bytes)
{
    *p++ = tag;
    return mri_pb_put_varint(p, bytes);
}

/* With its tag and length. */
static inline uint64_t mri_pb_field_bytes(uint64_t inner) { return 1 + mri_pb_varint_bytes(inner) + inner; }

static inline uint8_t *mri_pb_put_bytes(uint8_t *p, uint32_t field, const void *data, size_t bytes)
{
    p = mri_pb_put_head(p, mri_pb_tag(field, MRI_PB_BYTES), bytes);
    if (bytes > 0) memcpy(p, data, bytes);
    return p + bytes;
}

#endif
