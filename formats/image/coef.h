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

/* The same payload from one row of MCUs after the other. Start with {0}. */
typedef struct mri_coef_packing {
    const mri_jpeg_frame *frame;
    struct mri_coef_part {
        uint8_t *data;
        size_t used, room;
    } part[3];        /* rows of each component; the head and the row index are before the first one's */
    size_t index[3];  /* in the first part: places of a component's rows */
    uint32_t mcu_row; /* the next one */
    bool beyond;      /* a coefficient was met that a baseline JPEG cannot have */
} mri_coef_packing;

/* Begin with this frame, which stays the caller's until the end. Errors as of mri_coef_pack(). */
int mri_coef_pack_begin(mri_coef_packing *p, const mri_jpeg_frame *frame, mr_error *err);
/* The next row of MCUs, mcus_high times: coef[c] has v rows of blocks_wide blocks of component c, at the
 * bottom the remaining rows. */
int mri_coef_pack_row(mri_coef_packing *p, const int16_t (*const *coef)[MRI_JPEG_BLOCK], mr_error *err);
/* After the last row: *out is malloc'd. p keeps memory for the next picture. */
int mri_coef_pack_end(mri_coef_packing *p, void **out, size_t *bytes, mr_error *err);
/* p is {0} again; also after an error, and again. */
void mri_coef_pack_free(mri_coef_packing *p);

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
