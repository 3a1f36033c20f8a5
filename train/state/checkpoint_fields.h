/* train/state/checkpoint_fields.h: the header of a checkpoint as one table of fields (CHECKPOINT.md).
 *
 *   takes    the bytes of a header, or the values that go into one
 *   gives    values or bytes, and the name of the first field that is out of its range
 *   callers  checkpoint.c
 *
 * A field has a name, a type, an offset in the file, a member, a range and the version that wrote it first.
 * Fields that are settings come from the rows of settings/ (`kept_at`), which also say what --resume may do
 * with them. A new field is one row; bytes that no field covers are zero. */
#ifndef MRI_CHECKPOINT_FIELDS_H
#define MRI_CHECKPOINT_FIELDS_H

#include "millrace/checkpoint.h"
#include "settings/setting.h"

enum { MRI_CHECKPOINT_HEADER_BYTES = 1024, MRI_CHECKPOINT_CRC_AT = MRI_CHECKPOINT_HEADER_BYTES - 4 };

typedef struct mri_checkpoint_header {
    mr_checkpoint_info info; /* first: offsets in it are offsets in the header */
    uint32_t version, header_bytes, tensor_count, directory_crc;
    uint64_t file_bytes, directory_offset, data_offset, names_bytes;
    uint32_t names_crc, wants_crc, net_crc;
} mri_checkpoint_header;

typedef enum mri_field_form {
    MRI_FIELD_VALUE,   /* a value in the range of its row */
    MRI_FIELD_SETTING, /* a setting; 0, also where its range begins above 0: unknown */
    MRI_FIELD_TEXT,    /* characters, then at least one zero and only zeros */
    MRI_FIELD_ANY      /* any bytes */
} mri_field_form;

typedef struct mri_checkpoint_field {
    mri_setting row; /* at: in mri_checkpoint_header; kept_at: in the file */
    uint16_t bytes;
    mri_field_form form;
} mri_checkpoint_field;

/* The field at index i, or NULL after the last. */
const mri_checkpoint_field *mri_checkpoint_field_at(size_t i);
/* The field with this name, such as "update.lr". There is one. */
const mri_checkpoint_field *mri_checkpoint_field_of(const char *name);

/* Values to bytes and back: MRI_CHECKPOINT_HEADER_BYTES; the magic and the checksum stay as they
 * are. */
void mri_checkpoint_fields_put(const mri_checkpoint_header *from, uint8_t *bytes);
void mri_checkpoint_fields_take(mri_checkpoint_header *to, const uint8_t *bytes);

/* False: `why` is "field NAME is VALUE: expected ...", and *offset is the field's. Checks each field alone.
 */
bool mri_checkpoint_fields_hold(const uint8_t *bytes, char *why, size_t why_bytes, uint64_t *offset);
/* The same sentence for a field that contradicts another one. */
void mri_checkpoint_field_wrong(const char *name, const mri_checkpoint_header *header, const char *expected,
                                char *why, size_t why_bytes, uint64_t *offset);

#endif
