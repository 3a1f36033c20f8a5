/* pipeline/pixels/colour.h: brightness, contrast, saturation, hue and sums over packed 8-bit pictures.
 * Private.
 *
 * Factors come as 1/65536, so every result is integer arithmetic: x' = clip(round(...)), halves rounded
 * up. */
#ifndef MRI_COLOUR_H
#define MRI_COLOUR_H

#include "base/util.h"

#define MRI_FACTOR_ONE 65536
#define MRI_FACTOR_MAX 16 /* times one: what int32 leaves room for */

/* x + delta. */
void mri_brightness(uint8_t *p, size_t bytes, int32_t delta);
/* factor * x. */
void mri_scale(uint8_t *p, size_t bytes, int32_t factor);
/* mean + factor * (x - mean), where mean is the mean of the picture's gray (one number for all channels). */
void mri_contrast(uint8_t *p, size_t pixels, uint32_t channels, int32_t factor);
/* gray + factor * (x - gray), where gray is the pixel's. Nothing for one channel. */
void mri_saturation(uint8_t *p, size_t pixels, uint32_t channels, int32_t factor);
/* The pixel's hue, an angle in the hexagon of HSV, moves on by `by` / MRI_FACTOR_ONE of a whole turn; -1/2 to
 * 1/2. Its largest and smallest channel keep their values. Nothing for one channel. */
void mri_hue(uint8_t *p, size_t pixels, uint32_t channels, int32_t by);
/* All channels become the pixel's gray. Nothing for one channel. */
void mri_to_gray(uint8_t *p, size_t pixels, uint32_t channels);
/* Each with `share` 256ths of the other, 0 to 256: halves rounded up, both computed from the old values. */
void mri_blend(uint8_t *a, uint8_t *b, size_t bytes, uint32_t share);
/* factor, offset such that factor * x + offset is (x - mean) / max(standard deviation, 1 / sqrt(bytes)), over
 * all values. */
void mri_standardise(const uint8_t *p, size_t bytes, float affine[2]);

#endif
