/* pipeline/pixels/resample.h: antialiased separable resampling of 8-bit pictures and planes, the same bits on
 * every machine. Private.
 *
 * A plan holds the weights of one geometry; it is made once and run on every plane that has it (Cb and Cr
 * share one). Integers throughout; the plain C variant is the specification and the others give its bits. */
#ifndef MRI_RESAMPLE_H
#define MRI_RESAMPLE_H

#include "pipeline/pixels/pixels.h"

#define MRI_RESAMPLE_MAX_SIDE                                                                                \
    (1u << 20) /* of a picture, a box or a result: the sizes of integers rely on it */

typedef enum mri_filter {
    MRI_FILTER_BILINEAR, /* triangle */
    MRI_FILTER_BICUBIC,  /* cubic convolution, a = -1/2 (Keys, IEEE TASSP 29, 1981) */
} mri_filter;

/* One direction. Lengths are in pixels of the picture. A source sample covers unit_num / unit_den of them (a
 * chroma plane of half width: 2 / 1; the picture's own pixels: 1 / 1), sample j from j * unit on. The box
 * [start, start + size) becomes `out` result pixels; [first, first + count) is wanted. The filter, widened by
 * the scale when that reduces, sees the existing samples that touch the box: [floor(start / unit),
 * min(samples, ceil((start + size) / unit))), but the last one at least. A result pixel whose centre lies
 * beyond the samples is taken where they end. */
typedef struct mri_axis {
    uint32_t start, size, out, first, count;
    uint32_t unit_num, unit_den, samples;
} mri_axis;

/* The picture's own pixels, side of them. */
static inline mri_axis mri_axis_of(uint32_t side, uint32_t start, uint32_t size, uint32_t out)
{
    return (mri_axis){.start = start,
                      .size = size,
                      .out = out,
                      .count = out,
                      .unit_num = 1,
                      .unit_den = 1,
                      .samples = side};
}

/* Pixels [first, first + count) of a side, as they are. */
static inline mri_axis mri_axis_window(uint32_t side, uint32_t first, uint32_t count)
{
    mri_axis a = mri_axis_of(side, 0, side, side);
    a.first = first;
    a.count = count;
    return a;
}

/* The source samples [*lo, *hi) that the wanted part depends on. */
void mri_axis_support(const mri_axis *a, mri_filter filter, uint32_t *lo, uint32_t *hi);

typedef struct mri_resample_plan mri_resample_plan; /* one thread's; memory grows and stays */
int mri_resample_plan_create(mri_resample_plan **out);
void mri_resample_plan_destroy(mri_resample_plan *p); /* accepts NULL */
/* The most a plan, once set and run, may hold for boxes up to side_in (samples) and results up to
 * side_out. */
uint64_t mri_resample_bound_bytes(uint64_t side_in, uint64_t side_out);
uint64_t mri_resample_plan_bytes(const mri_resample_plan *p); /* its present memory */

/* Set the geometry. flip: result columns right to left. channels 1 or 3, interleaved. MR_OK or MR_ENOMEM. */
int mri_resample_plan_set(mri_resample_plan *p, const mri_axis *x, const mri_axis *y, mri_filter filter,
                          bool flip, uint32_t channels);

/* Resample src (interleaved), whose first sample is sample (src_x, src_y) of the whole source and which
 * covers at least both supports, to y.count rows of x.count packed pixels at dst, dst_stride bytes apart.
 * Reads nothing outside src's rows, writes nothing outside the result. MR_OK or MR_ENOMEM (working memory,
 * taken here). */
int mri_resample_run(mri_resample_plan *p, const mri_view *src, uint32_t src_x, uint32_t src_y, uint8_t *dst,
                     size_t dst_stride);
/* The same for rows [first, past) of the result alone; dst is row `first`. src may begin as far down as these
 * rows allow (mri_resample_needs()). */
int mri_resample_rows(mri_resample_plan *p, const mri_view *src, uint32_t src_x, uint32_t src_y,
                      uint32_t first, uint32_t past, uint8_t *dst, size_t dst_stride);
/* How many rows of the result depend on source rows before `end` alone, counted from *from, which are known
 * to. */
uint32_t mri_resample_ready(const mri_resample_plan *p, uint32_t from, uint32_t end);
/* The first source row that row `from` of the result, or a later one, depends on. */
uint32_t mri_resample_needs(const mri_resample_plan *p, uint32_t from);

#endif
