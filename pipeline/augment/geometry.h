/* pipeline/augment/geometry.h: boxes and masks follow their picture. Private.
 *
 *   stored picture ──EXIF──► upright ──crop, resize, flip, shift, turn──► the picture in the batch
 *                                 └───────── mri_geometry (augment.h) ─────────┘
 *
 * Annotations are in the frame of the stored picture, as the programs that make them see it. */
#ifndef MRI_GEOMETRY_H
#define MRI_GEOMETRY_H

#include "pipeline/augment/augment.h"
#include "pipeline/pixels/resample.h"
#include "pipeline/pixels/warp.h"

/* ---- following a picture (augment.c) ----
 * A mask goes through one map from the result's pixels to the stored ones, composed of the maps of all
 * operations; a rotation takes the pixel in which a centre falls. Boxes end where the picture does: repeated
 * edges do not make them longer. */

/* The picture as stored, upright. */
void mri_geometry_start(mri_geometry *g, uint32_t stored_w, uint32_t stored_h, uint32_t orientation);
/* The result becomes its width x height window at (x, y), as mri_copy_window() makes it. */
void mri_geometry_window(mri_geometry *g, int64_t x, int64_t y, uint32_t width, uint32_t height,
                         mri_outside outside, bool flip);
/* It is resampled. */
void mri_geometry_resample(mri_geometry *g, const mri_axis *x, const mri_axis *y, bool flip);
/* It goes through a map, in its size. At most MRI_GEOMETRY_TURNS times. */
void mri_geometry_warp(mri_geometry *g, const mri_warp *w);

/* ---- taking others the same way ---- */

/* A value's boxes (TENSOR [n][columns], columns >= 4, f32 or f64: x0 y0 x1 y1 and whatever belongs to them)
 * through g. Corners are parts of the stored picture's width and height, 0 to 1, or its pixels with
 * in_pixels. Boxes are cut to the picture in the batch; a box that is empty after that is dropped. Of the
 * *kept others, in their order: box k's `columns` floats at out, the corners as parts of the picture in the
 * batch, 0 to 1, the rest as they were (a turned box becomes the bounding box of its visible part); which[k]:
 * its number in the value. MR_EFORMAT: no boxes; a corner that is not a number, not in front of the other, or
 * so far outside that its unit must be another one. MR_ELIMIT: more than `most` in the value. out and which
 * have room for `most`. The same bits on every machine. */
int mri_boxes_place(const mri_geometry *g, const mr_value *boxes, bool in_pixels, uint32_t columns,
                    uint32_t most, float *out, uint32_t *which, uint32_t *kept, mr_error *err);

/* A box in pixels, x0 <= x1 and y0 <= y1. */
typedef struct mri_box {
    double x0, y0, x1, y1;
} mri_box;

/* The errors of boxes that mri_boxes_place() returns. */
int mri_boxes_check(const mri_boxes *b, mr_error *err);
/* Pick one of the checked boxes that are visible in g's picture, all equally likely, by a word of a draw.
 * *out is the visible part, in pixels of that picture. false: no box is visible. The same bits on every
 * machine. */
bool mri_boxes_pick(const mri_geometry *g, const mri_boxes *b, uint32_t word, mri_box *out);

/* A mask of the stored picture's size, one byte a pixel, rows `stride` bytes apart, through g: out_h * out_w
 * bytes at dst. Each takes the value of the one pixel that its centre falls on (values are never mixed),
 * where the picture has nothing: outside. */
void mri_mask_place(const mri_geometry *g, const uint8_t *mask, size_t stride, uint8_t outside, uint8_t *dst);

#endif
