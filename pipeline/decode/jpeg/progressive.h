/* pipeline/decode/jpeg/progressive.h: decoder of 8-bit progressive Huffman-coded JPEG data: bytes to
 * quantised coefficients of a window. Private.
 *
 *   mri_progressive_open()    markers up to the first scan
 *   mri_progressive_window()  reads all scans: keeps the coefficients of wanted blocks, and of the others a
 *                             mask of the coefficients other than 0. In each scan it stops after the last
 *                             wanted block
 *   mri_progressive_rows()    the coefficients, in any order
 *
 * Whatever is not an ordinary sound picture is MR_EUNSUPPORTED, at open or at window: libjpeg-turbo, which
 * then reads the picture, reports the error. Where this decoder says MR_OK for all blocks, libjpeg-turbo
 * decodes the picture without a warning, with the same coefficients. No read outside the data and no table
 * index out of range, whatever the bytes. */
#ifndef MRI_PROGRESSIVE_H
#define MRI_PROGRESSIVE_H

#include "formats/image/jpeg_frame.h"

typedef struct mri_progressive mri_progressive; /* tables and blocks of one thread */

int mri_progressive_create(mri_progressive **out);
void mri_progressive_destroy(mri_progressive *p); /* accepts NULL */
/* Its memory besides blocks, which stay below mri_jpeg_coefficient_bound() of the picture's pixels. */
uint64_t mri_progressive_bytes(void);
/* The blocks' memory goes back to the system. */
void mri_progressive_release(mri_progressive *p);

/* Start on a picture. data stays the caller's and must stay until the next open. max_scans: a picture with
 * more is left to libjpeg-turbo. MR_OK: *frame is filled; it lives as long as the picture is open, and its
 * quantisation tables are there after mri_progressive_window(). */
int mri_progressive_open(mri_progressive *p, const void *data, size_t bytes, uint32_t max_scans,
                         const mri_jpeg_frame **frame, mr_error *err);

/* One window for each component. MR_OK, MR_EUNSUPPORTED, MR_EINVAL or MR_ENOMEM. */
int mri_progressive_window(mri_progressive *p, const mri_block_window *window, mr_error *err);
/* out: one for each component; those without requested blocks in this row are not touched. */
void mri_progressive_rows(const mri_progressive *p, uint32_t mcu_row, const mri_block_rows *out);

#endif
