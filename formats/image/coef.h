/* formats/image/coef.h: pictures as their JPEG's quantised coefficients, packed for random access by rows of
 * blocks. Private.
 *
 * Lossless with respect to the coefficients; no entropy coding that has to be undone bit by bit. The layout
 * is specified in formats/record/FORMAT.md. */
#ifndef MRI_COEF_H
#define MRI_COEF_H

#include "formats/image/jpeg_frame.h"

/* coef[c]: blocks_wide * blocks_high blocks of component c, row after row, natural order. *out is malloc'd. 1
 * or 3 components (GRAY, YCC, RGB), else MR_EUNSUPPORTED. */
int mri_coef_pack(const mri_jpeg_frame *frame, const int16_t (*const *coef)[MRI_JPEG_BLOCK], void **out,
                  size_t *bytes, mr_error *err);

/* A parsed payload. The caller keeps data. */
typedef struct mri_coef {
    mri_jpeg_frame frame;
    const uint8_t *data;
    size_t bytes;
    size_t rows_at[MRI_JPEG_MAX_COMPONENTS]; /* where each component's row index begins: checked */
} mri_coef;

/* Size, orientation and kind from the first bytes, as mr_image_header_parse() for files. */
int mri_coef_header(const void *data, size_t bytes, mr_image_header *out, mr_error *err);
/* Check everything up to the rows themselves. Takes no memory. Any bytes are safe. */
int mri_coef_open(mri_coef *c, const void *data, size_t bytes, mr_error *err);
/* Like mri_entropy_rows() (pipeline/decode/jpeg/entropy.h), but for any row in any order. Damage in a row is
 * found when the row is unpacked. */
int mri_coef_rows(const mri_coef *c, uint32_t mcu_row, const mri_block_window *window,
                  const mri_block_rows *out, mr_error *err);

#endif
