/* formats/image/jpeg_entry.h: entry points: where decoding can begin inside an unchanged JPEG. Private.
 *
 * One every `gap` MCUs of each row of MCUs: the position of the next bit and the DC predictions. The bytes
 * are specified in formats/record/FORMAT.md, section 3. They are never trusted: any bytes are safe, and a
 * decoder compares each entry that it passes with its own position. Only for pictures of one scan. */
#ifndef MRI_JPEG_ENTRY_H
#define MRI_JPEG_ENTRY_H

#include "formats/image/jpeg_frame.h"

#define MRI_JPEG_ENTRY_GAP                                                                                   \
    16 /* in MCUs: costs 0.9 % of the bytes of photographs, and on average 8 MCUs a row are decoded in vain  \
        */
#define MRI_JPEG_ENTRY_COMPONENTS 3

/* The position just before an MCU; after the restart marker when one is due there. */
typedef struct mri_jpeg_entry {
    uint64_t bit; /* of the file: 8 * byte + bit from the most significant; the byte is one of data, never a
                     stuffed 00 */
    int32_t dc[MRI_JPEG_ENTRY_COMPONENTS];
} mri_jpeg_entry;

/* Parsed entry points of one picture. The caller keeps payload. */
typedef struct mri_jpeg_entries {
    const uint8_t *fields;
    size_t field_bytes;
    uint64_t origin;   /* bit of the file that positions count from: where the scan begins */
    uint64_t row_bits; /* of the fields of one row */
    uint32_t gap, per_row, components;
    uint8_t position_width, dc_width[MRI_JPEG_ENTRY_COMPONENTS];
    uint8_t step_width, dc_step_width[MRI_JPEG_ENTRY_COMPONENTS];
} mri_jpeg_entries;

/* entry: the entries of row 0 from left to right, then row 1, ...: ceil(mcus_wide / gap) * mcus_high. gap: 1
 * to 255. *out is malloc'd. MR_EUNSUPPORTED: predictions beyond 16 bits, more than one scan, over 4 GiB. */
int mri_jpeg_entries_pack(const mri_jpeg_layout *layout, const void *jpeg, size_t jpeg_bytes, uint32_t gap,
                          const mri_jpeg_entry *entry, void **out, size_t *bytes, mr_error *err);

/* Check that payload is whole and made for this JPEG: its length and the bytes before its scan. Takes no
 * memory. */
int mri_jpeg_entries_open(mri_jpeg_entries *t, const void *payload, size_t bytes,
                          const mri_jpeg_layout *layout, const void *jpeg, size_t jpeg_bytes, mr_error *err);

/* The first entry of a row; then from entry idx of that row to the next one. row < mcus_high, idx + 1 <
 * per_row. */
mri_jpeg_entry mri_jpeg_entries_row(const mri_jpeg_entries *t, uint32_t row);
void mri_jpeg_entries_next(const mri_jpeg_entries *t, uint32_t row, uint32_t idx, mri_jpeg_entry *entry);

#endif
