/* pipeline/decode/jpeg/entropy.h: decoder of 8-bit sequential Huffman-coded JPEG data: bytes to quantised
 * coefficients. Private.
 *
 *   mri_entropy_open()    markers, tables; with entry points (formats/image/jpeg_entry.h) rows and columns
 *                         before the window need not be decoded
 *   mri_entropy_window()  which blocks are wanted
 *   mri_entropy_rows()    for each MCU row that has wanted blocks, in rising order: blocks outside the window
 *                         are parsed, not stored; nothing below it is read
 *   mri_entropy_end()     after the last row: the checks that were not due before
 *
 * No heap allocation per picture in the steady state, no read outside the data, no table index out of range,
 * whatever the bytes. Where libjpeg-turbo decodes the whole picture without a warning, the coefficients are
 * the same. Where it warns or fails, this decoder, asked for all blocks, says MR_EFORMAT. */
#ifndef MRI_ENTROPY_H
#define MRI_ENTROPY_H

#include "formats/image/jpeg_frame.h"

typedef struct mri_entropy mri_entropy; /* tables and buffers of one thread */

int mri_entropy_create(mri_entropy **out);
void mri_entropy_destroy(mri_entropy *e); /* accepts NULL */
/* The most memory it holds after pictures of up to `pixels` pixels: lanes and noted entry points are
 * allocated when first needed. */
uint64_t mri_entropy_bytes(uint64_t pixels);
/* MCU rows that lanes (lanes.h) have decoded so far; for tests. */
uint64_t mri_entropy_lane_rows(const mri_entropy *e);

/* Start on a picture. data stays the caller's and must stay until the next open. entries NULL: there are
 * none.
 * MR_OK            *frame is filled; it lives as long as the picture is open
 * MR_EUNSUPPORTED  a JPEG for libjpeg: progressive, arithmetic, 12 bits, lossless, 2 components, missing
 * tables, ...
 * MR_EFORMAT       damaged: no end marker, segments out of bounds, ...; also entries that do not belong to
 * this picture */
int mri_entropy_open(mri_entropy *e, const void *data, size_t bytes, const void *entries,
                     size_t entries_bytes, const mri_jpeg_frame **frame, mr_error *err);

/* One window for each component. */
int mri_entropy_window(mri_entropy *e, const mri_block_window *window, mr_error *err);
/* After the window: the first coefficient of each block is stored, the others of out are left as they are. */
void mri_entropy_only_dc(mri_entropy *e);
/* out: one for each component; those without requested blocks in this row are not touched. */
int mri_entropy_rows(mri_entropy *e, uint32_t mcu_row, const mri_block_rows *out, mr_error *err);
int mri_entropy_end(mri_entropy *e, mr_error *err);
/* Both: MR_EFORMAT for damage, and for entry points that differ from the decoder's position when it passes
 * them. MR_EUNSUPPORTED, rarely: bytes for which a warning of libjpeg depends on chance (up to 7 left over
 * before a marker, fill bytes inside the data, ...): ask libjpeg. A code that is in no table is always
 * damage, though libjpeg-turbo's fast loop passes over it in silence. */

/* After open, without entry points: note them on the way. False: this picture cannot have them, or has too
 * many. */
bool mri_entropy_note(mri_entropy *e);
/* After mri_entropy_end(), the bytes as at open: the noted entry points, of the rest of the picture as well.
 * As mri_jpeg_entries_build(); the rest is decoded for it, so the picture is proved whole. */
int mri_entropy_noted(mri_entropy *e, void **out, size_t *bytes, mr_error *err);

/* Entry points for a JPEG (formats/image/jpeg_entry.h): decodes all of it, and so proves it whole as well.
 * *out is malloc'd. Closes the open picture. MR_EUNSUPPORTED as in open; also pictures of several scans */
int mri_jpeg_entries_build(mri_entropy *e, const void *jpeg, size_t bytes, void **out, size_t *out_bytes,
                           mr_error *err);
/* The same with one every gap MCUs, 1 to 255, instead of MRI_JPEG_ENTRY_GAP. */
int mri_jpeg_entries_build_gap(mri_entropy *e, const void *jpeg, size_t bytes, uint32_t gap, void **out,
                               size_t *out_bytes, mr_error *err);

#endif
