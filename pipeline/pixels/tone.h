/* pipeline/pixels/tone.h: operations that look each byte of a packed 8-bit picture up in a table: invert,
 * solarize, posterize, autocontrast, equalize. Private. channels 1 or 3. */
#ifndef MRI_TONE_H
#define MRI_TONE_H

#include "base/util.h"

/* 255 - x. */
void mri_invert(uint8_t *p, size_t bytes);
/* 255 - x where x >= threshold, which may be 256: nowhere. */
void mri_solarize(uint8_t *p, size_t bytes, uint32_t threshold);
/* The `bits` highest bits of x, 0 to 8. */
void mri_posterize(uint8_t *p, size_t bytes, uint32_t bits);
/* Each channel stretched so that its smallest value becomes 0 and its largest 255, rounded. A channel of one
 * value stays. */
void mri_autocontrast(uint8_t *p, size_t pixels, uint32_t channels);
/* Each channel's values made about equally frequent: with step = (pixels - pixels of the largest value) /
 * 255, x becomes ((pixels of smaller values) + step / 2) / step, at most 255, divisions rounded down. A
 * channel where step is 0 stays. */
void mri_equalize(uint8_t *p, size_t pixels, uint32_t channels);

#endif
