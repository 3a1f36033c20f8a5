/* formats/tfrecord/tfrecord.h: the framing of TFRecord files. Private.
 *
 *   | u64 bytes | u32 masked CRC32C of those 8 | data | u32 masked CRC32C of the data | u64 bytes | ...
 *
 * Numbers are little-endian. Nothing precedes the first record or follows the last.
 *
 * The room: takes files of tf.train.Example and gives one format for the table in formats/open.c. The framing
 * and the message (example.h) are also for pipeline/convert, which writes such files. */
#ifndef MRI_TFRECORD_H
#define MRI_TFRECORD_H

#include "base/util.h"
#include "formats/source/source.h"

enum { MRI_TFRECORD_HEAD = 12, MRI_TFRECORD_TAIL = 4 };

/* The checksum of data that contains its own checksum would often be 0, so checksums are rotated and
 * offset. */
static inline uint32_t mri_tfrecord_crc(const void *data, size_t bytes)
{
    const uint32_t crc = mr_crc32c(0, data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* The length from the head; false when its checksum is wrong. */
static inline bool mri_tfrecord_length(const uint8_t head[MRI_TFRECORD_HEAD], uint64_t *bytes)
{
    *bytes = mri_le64(head);
    return mri_tfrecord_crc(head, 8) == mri_le32(head + 8);
}

static inline void mri_tfrecord_put_head(uint8_t head[MRI_TFRECORD_HEAD], uint64_t bytes)
{
    mri_put_le64(head, bytes);
    mri_put_le32(head + 8, mri_tfrecord_crc(head, 8));
}

static inline void mri_tfrecord_put_tail(uint8_t tail[MRI_TFRECORD_TAIL], const void *data, size_t bytes)
{
    mri_put_le32(tail, mri_tfrecord_crc(data, bytes));
}

#endif
