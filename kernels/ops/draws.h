/* kernels/ops/draws.h: many 16-bit random draws at once, for dropout.
 *
 * A group is 128 draws from 16 Philox 4x32-10 blocks that lie side by side in vector lanes: block j of group
 * g has counter (g * 16 + j, place; step), and its eight half words k = 0..7 are draws k * 16 + j of the
 * group. In this order nothing has to be transposed. Every variant gives the same draws. */
#ifndef MRI_DRAWS_H
#define MRI_DRAWS_H

#include <stdint.h>

#define MRI_DRAW_GROUP 128u

struct mri_draw_key {
    uint64_t key, step;
    uint32_t place; /* of the sample in the global batch */
};

/* Draws of `groups` groups from first_group on: groups * MRI_DRAW_GROUP numbers. */
void mri_draws(uint16_t *out, struct mri_draw_key key, uint32_t first_group, uint32_t groups);
/* The same in plain C: the tests compare the fast ones with it. */
void mri_draws_plain(uint16_t *out, struct mri_draw_key key, uint32_t first_group, uint32_t groups);

#endif
