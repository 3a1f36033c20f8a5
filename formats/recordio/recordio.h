/* formats/recordio/recordio.h: the RecordIO framing of dmlc and MXNet, and the header of a picture in it.
 * Private. Pure: bytes come through a function, nothing is allocated.
 *
 *   | magic 0xced7230a | flag << 29 | length | data, length bytes | zeros up to a multiple of 4 |
 *
 * Numbers are little-endian.
 *
 * Readers may start anywhere and search for the magic at multiples of 4. Data that contains it there is
 * therefore split: the magic is left out and the parts around it get flag 1 (first), 2, 3 (last); 0 is a
 * whole record. Joining puts the magic back between the parts.
 *
 * A picture record holds
 *
 *   | count u32 | label f32 | id u64 | id2 u64 | f32 labels, count of them | picture     |
 *
 * With count 0 `label` is the label; with more the packed ones are, and `label` is 0.
 *
 * The room: takes .rec files with the lists next to them (recordio_lists.h, recordio_index.h) and gives one
 * format for the table in formats/open.c, which is the only one to use it. */
#ifndef MRI_RECORDIO_H
#define MRI_RECORDIO_H

#include "base/util.h"

#define MRI_RECORDIO_MAGIC     0xced7230au
#define MRI_RECORDIO_MAX_BYTES (((uint32_t)1 << 29) - 1) /* of one part: the limit of a writer */

enum { MRI_RECORDIO_HEAD_BYTES = 8, MRI_PICTURE_HEAD_BYTES = 24 };

/* The input: bytes [offset, offset + bytes) of `end` bytes, valid until the next call. Nothing past end is
 * requested. */
typedef int mri_recordio_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out,
                             mr_error *err);
typedef struct mri_recordio_input {
    mri_recordio_get *get;
    void *context;
    uint64_t end;
} mri_recordio_input;

typedef struct mri_recordio_record {
    uint64_t offset;     /* of its first part */
    uint64_t bytes;      /* with headers and padding: the next record starts at offset + bytes */
    uint64_t data_bytes; /* joined */
    uint64_t parts;
} mri_recordio_record;

/* Read and check the headers of the record at offset. MR_EFORMAT with the offset of the error in err, or the
 * code of get(). */
int mri_recordio_read_headers(const mri_recordio_input *in, uint64_t offset, mri_recordio_record *out,
                              mr_error *err);

/* The first `bytes` <= data_bytes of a record's joined data, for one that look() found good. */
int mri_recordio_copy(const mri_recordio_input *in, const mri_recordio_record *r, void *out, uint64_t bytes,
                      mr_error *err);

/* An input over memory. */
typedef struct mri_recordio_memory {
    const uint8_t *data;
    uint64_t bytes;
} mri_recordio_memory;
mri_recordio_input mri_recordio_in_memory(mri_recordio_memory *m);

typedef struct mri_picture_head {
    uint32_t label_count; /* 0: one label, in the header */
    float label;          /* as in the header */
    uint64_t id, id2;
    uint64_t bytes; /* of the header and the packed labels: where the picture starts */
} mri_picture_head;

/* data: at least the first 24 bytes where there are that many; data_bytes: of all. MR_EFORMAT without a
 * place. */
int mri_picture_head_parse(const void *data, uint64_t data_bytes, mri_picture_head *out, mr_error *err);

/* Packed labels of object detection, as im2rec --pack-label has them:
 *
 *   | A | B | more, A in all | class, xmin, ymin, xmax, ymax, more: B an object | ...
 *
 * A and B are widths, and no class. Coordinates are parts of the picture's width and height, from 0 to 1. */
typedef struct mri_objects {
    uint32_t first, width, count; /* object k begins at the label first + k * width */
} mri_objects;

/* labels: count floats of any alignment. MR_EFORMAT says which is wrong, and how. */
int mri_objects_of(const uint8_t *labels, uint32_t count, mri_objects *out, mr_error *err);
/* Class and corners (xmin ymin xmax ymax) of object k of a label that mri_objects_of() accepted. */
int64_t mri_object_at(const uint8_t *labels, const mri_objects *o, uint32_t k, float box[4]);
/* Are the numbers objects? The header decides: small widths, a whole number of objects, at least one; the
 * classes of objects are whole numbers. The position of boxes is not checked. *empty: a header that says of
 * no objects, so that another record must decide. */
bool mri_labels_of_detection(const uint8_t *labels, uint32_t count, bool *empty);
/* Do these bytes begin as SageMaker's records do, which have this framing and hold a message of numbers? */
bool mri_is_protobuf_record(const uint8_t *data, size_t bytes, uint64_t data_bytes);
/* label_count floats after it when label_count > 0 (then h->label is not written). Returns out's end. */
uint8_t *mri_picture_head_build(const mri_picture_head *h, const float *labels, uint8_t *out);

/* Size of the record that holds this data, and the record. data_bytes <= MRI_RECORDIO_MAX_BYTES. */
uint64_t mri_recordio_bytes(const void *data, uint32_t data_bytes);
uint8_t *mri_recordio_build(const void *data, uint32_t data_bytes, uint8_t *out);

#endif
