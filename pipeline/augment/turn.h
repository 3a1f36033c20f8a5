/* pipeline/augment/turn.h: rotations, shears, moves and scales as maps (warp.h). Private to this room. */
#ifndef MRI_TURN_H
#define MRI_TURN_H

#include "pipeline/pixels/warp.h"

/* Sine and cosine of an angle in degrees from additions, multiplications and divisions only, which IEEE 754
 * defines to the bit. Error below 1e-15; multiples of 90 are exact. */
void mri_sine_cosine(double degrees, double *sine, double *cosine);

/* What happens to a picture, in this order: sheared, turned and scaled around its middle, or around its first
 * corner, then moved. Start with {.scale = 1}. */
typedef struct mri_turn {
    double degrees; /* clockwise, as it is seen */
    double scale;
    double shear_x, shear_y; /* tangents: a row moves left by shear_x times how far it lies below, a column up
                                by shear_y times how far it lies to the right */
    double move_x, move_y;   /* to the right and down, in pixels */
    bool corner;
} mri_turn;

mri_warp mri_warp_of(const mri_turn *t, uint32_t width, uint32_t height);

#endif
