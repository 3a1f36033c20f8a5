/* pipeline/pixels/smooth.h: sharpening and blurring of packed 8-bit pictures, in place. Private. channels 1
 * or 3; copy: room for as many bytes as the picture has. */
#ifndef MRI_SMOOTH_H
#define MRI_SMOOTH_H

#include "base/util.h"

/* smooth + factor * (x - smooth), factor in 1/65536, where smooth is the mean of the 3 x 3 pixels around, the
 * middle one counted five times, rounded. Outermost pixels stay, so pictures of fewer than three rows or
 * columns do. */
void mri_sharpen(uint8_t *p, uint32_t width, uint32_t height, uint32_t channels, int32_t factor,
                 uint8_t *copy);

#define MRI_BLUR_RADIUS_MAX 31

/* Weights of a symmetric filter: weight[0] in the middle, weight[k] k pixels to either side. In 1/65536;
 * weight[0] + 2 * (the others) is 65536. */
typedef struct mri_blur_weights {
    uint32_t radius;
    uint32_t weight[MRI_BLUR_RADIUS_MAX + 1];
} mri_blur_weights;

/* Columns, rounded to 1/128, then rows, rounded. The picture goes on as its mirror image about its outermost
 * pixels, which are there once. */
void mri_blur(uint8_t *p, uint32_t width, uint32_t height, uint32_t channels, const mri_blur_weights *w,
              uint8_t *copy);

#endif
