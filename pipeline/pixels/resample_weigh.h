/* pipeline/pixels/resample_weigh.h: places and weights of LANES results at a time. Included by each variant,
 * which says how many (LANES) and for what instruction set (WEIGH_TARGET); the arithmetic of a lane is the
 * same everywhere: additions, multiplications and one division of doubles, never contracted. */
#ifndef MRI_RESAMPLE_WEIGH_H
#define MRI_RESAMPLE_WEIGH_H

#include "pipeline/pixels/resample_kernels.h"

#define WEIGH_INLINE WEIGH_TARGET static inline __attribute__((always_inline))

typedef double lanes_f64 __attribute__((vector_size(8 * LANES)));
typedef int64_t lanes_i64 __attribute__((vector_size(8 * LANES)));
typedef int32_t lanes_i32 __attribute__((vector_size(4 * LANES)));

/* a where the comparison holds, else b. A macro: how vectors are passed to a function depends on the
 * instruction set. */
#define PICK(where, a, b) ((lanes_f64)(((lanes_i64)(a) & (where)) | ((lanes_i64)(b) & ~(where))))

/* a becomes floor(a / step), exactly: the product is off by one at most. */
WEIGH_INLINE void floor_steps(const mri_grid *g, lanes_f64 *a)
{
    const lanes_f64 q =
        __builtin_convertvector(__builtin_convertvector(*a * g->per_step, lanes_i32), lanes_f64);
    const lanes_f64 rest = *a - q * g->step, up = PICK(rest >= g->step, q + 1, q);
    *a = PICK(rest < 0, q - 1, up);
}

/* Result numbers become the places their filters are centred on: the middle of the pixel, or the end of the
 * samples where they end earlier. */
WEIGH_INLINE void centres(const mri_grid *g, lanes_f64 *i)
{
    const lanes_f64 centre = g->origin + *i * g->advance, end = g->hi * g->step + (lanes_f64){0};
    *i = PICK(centre < end, centre, end);
}

/* Centres become the first samples nearer than reach. */
WEIGH_INLINE void firsts(const mri_grid *g, lanes_f64 *centre)
{
    *centre -= g->reach + g->step / 2;
    floor_steps(g, centre);
    *centre += 1;
}

/* Distances (negative: to the left) become weights, neither normalised nor rounded. The cubic is Keys' with a
 * = -1/2. */
WEIGH_INLINE void raw_weights(const mri_grid *g, bool cubic, lanes_f64 *distance)
{
    const lanes_f64 zero = {0}, d = PICK(*distance < 0, -*distance, *distance);
    if (!cubic) {
        *distance = PICK(d < g->reach, g->reach - d, zero);
        return;
    }
    const lanes_f64 x = d * g->per_wide;
    const lanes_f64 near = (1.5 * x - 2.5) * x * x + 1, far = ((-0.5 * x + 2.5) * x - 4) * x + 2,
                    rest = PICK(x < 2, far, zero);
    *distance = PICK(x < 1, near, rest);
}

/* Results [k, k + LANES) of the table; the table has count. */
WEIGH_INLINE void weigh_block(const mri_weighing *w, bool cubic, mri_taps *to, uint32_t k, uint32_t count)
{
    const double bias = (double)(1 << (MRI_WEIGHT_BITS_MAX + 1)); /* makes sums positive: conversion rounds
                                                                     towards 0 */
    lanes_f64 result;                                             /* lanes to spare repeat the first */
    for (uint32_t l = 0; l < LANES; l++) result[l] = k + (l < count ? l : 0);
    lanes_f64 centre = w->first + w->direction * result, start;
    centres(&w->g, &centre);
    start = centre;
    firsts(&w->g, &start);
    start = PICK(start > w->lo, start, w->lo + (lanes_f64){0});
    start = PICK(start < w->last, start, w->last + (lanes_f64){0});
    const lanes_f64 distance = (start + 0.5) * w->g.step - centre;
    const lanes_i32 from = __builtin_convertvector(start - w->lo, lanes_i32);
    for (uint32_t l = 0; l < count; l++) to->start[k + l] = (uint32_t)from[l];

    lanes_f64 sum = {0}, running = {0};
    for (uint32_t t = 0; t < to->taps; t++) {
        lanes_f64 raw = distance + t * w->g.step;
        raw_weights(&w->g, cubic, &raw);
        sum += raw;
    }
    const lanes_f64 factor = (double)(1 << to->bits) / sum;
    lanes_i32 given = (int32_t)bias + (lanes_i32){0};
    int16_t *weight = to->weight + (size_t)k * to->stride;
    for (uint32_t t = 0; t < to->taps; t++) {
        lanes_f64 raw = distance + t * w->g.step;
        raw_weights(&w->g, cubic, &raw);
        running += raw;
        const lanes_i32 upto = __builtin_convertvector(running * factor + (bias + 0.5), lanes_i32),
                        share = upto - given;
        for (uint32_t l = 0; l < count; l++) weight[l * to->stride + t] = (int16_t)share[l];
        given = upto;
    }
}

WEIGH_TARGET static inline void weigh(const mri_weighing *w, mri_taps *to)
{
    memset(to->weight, 0, (size_t)to->count * to->stride * sizeof *to->weight);
    for (uint32_t k = 0; k < to->count; k += LANES) {
        const uint32_t count = to->count - k < LANES ? to->count - k : LANES;
        if (w->g.cubic) weigh_block(w, true, to, k, count);
        else if (count == LANES) weigh_block(w, false, to, k, LANES);
        else weigh_block(w, false, to, k, count);
    }
}

#endif
