/* pipeline/decode/jpeg/libjpeg_coef.h: quantised coefficients through libjpeg-turbo: of every kind of JPEG it
 * reads, and back into baseline files. Private.
 *
 * What entropy.h and progressive.h do not take (arithmetic, odd, damaged) is read here,
 * whole: all scans have passed before the first row is there, and the coefficients of the whole picture are
 * in memory meanwhile. What libjpeg warns of is damage. */
#ifndef MRI_LIBJPEG_COEF_H
#define MRI_LIBJPEG_COEF_H

#include "formats/image/jpeg_frame.h"

typedef struct mri_libjpeg mri_libjpeg; /* of one thread */

/* Bytes of coefficient memory a picture may take under a limit of max_pixels. */
uint64_t mri_jpeg_coefficient_bound(uint64_t max_pixels);

int mri_libjpeg_create(mri_libjpeg **out);
void mri_libjpeg_destroy(mri_libjpeg *j); /* accepts NULL */

/* Read a picture; the one before is gone. data is not needed afterwards. max_pixels also bounds the
 * coefficients' memory (mri_jpeg_coefficient_bound()); it is checked before that is taken.
 * MR_OK            *frame is filled; it lives as long as the picture is open. CMYK and YCCK have 4 components
 * MR_ELIMIT        more pixels, scans or coefficients than that
 * MR_EFORMAT, MR_EUNSUPPORTED, MR_ENOMEM  as for decoding */
int mri_libjpeg_open(mri_libjpeg *j, const void *data, size_t bytes, uint64_t max_pixels, uint32_t max_scans,
                     const mri_jpeg_frame **frame, mr_error *err);
/* As mri_coef_rows() (formats/image/coef.h): any row at any time. */
int mri_libjpeg_rows(mri_libjpeg *j, uint32_t mcu_row, const mri_block_window *window,
                     const mri_block_rows *out, mr_error *err);
/* The picture's memory goes back to the system. Again is harmless. */
void mri_libjpeg_close(mri_libjpeg *j);

/* Gives row y of blocks of a component: all of blocks_wide, natural order. MR_OK, or what ends the
 * writing. */
typedef int mri_block_row_source(void *context, uint32_t component, uint32_t y,
                                 int16_t (*row)[MRI_JPEG_BLOCK], mr_error *err);

/* A baseline JPEG (extended where a quantisation step is over 255) of 1 or 3 components with just these
 * coefficients and Huffman tables made for them. A JFIF or Adobe marker gives the colour space, an EXIF
 * segment with nothing else an orientation other than 1. *out is malloc'd. MR_EUNSUPPORTED: another kind, or
 * coefficients that baseline cannot code. */
int mri_libjpeg_write(mri_libjpeg *j, const mri_jpeg_frame *frame, mri_block_row_source *source,
                      void *context, void **out, size_t *bytes, mr_error *err);

/* The same coefficients as a baseline file, with all APPn and COM segments of the original; limits as above.
 * *out is malloc'd. MR_EUNSUPPORTED: coefficients that baseline cannot code. */
int mri_libjpeg_transcode(mri_libjpeg *j, const void *data, size_t bytes, uint64_t max_pixels,
                          uint32_t max_scans, void **out, size_t *out_bytes, mr_error *err);

#endif
