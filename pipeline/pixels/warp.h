/* pipeline/pixels/warp.h: a packed 8-bit picture seen through an affine map: turned, sheared, moved, scaled.
 * Private. */
#ifndef MRI_WARP_H
#define MRI_WARP_H

#include "base/util.h"

/* Where the centre of result pixel (i, j) falls on the picture, in 1/2^32 of a pixel from its first corner:
 * x = xx * i + xy * j + x0, y = yx * i + yy * j + y0. All of these within 64 bits, and a pixel beyond. */
typedef struct mri_warp {
    int64_t xx, xy, x0, yx, yy, y0;
} mri_warp;

/* The picture through w, in its size, at dst, which is another place. nearest: each result pixel takes the
 * pixel its centre falls on; else it mixes the four around, with weights of 1/1024 a side. What lies outside
 * of the picture is fill. channels 1 or 3. */
void mri_warp_picture(const uint8_t *src, uint32_t width, uint32_t height, uint32_t channels,
                      const mri_warp *w, bool nearest, const uint8_t fill[4], uint8_t *dst);

#endif
