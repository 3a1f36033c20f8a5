/* kernels/ops/matrix/orthogonal.c: see orthogonal.h. */
#include "kernels/ops/matrix/orthogonal.h"

#include <math.h>
#include <omp.h>

#include "kernels/host/simd_loop.h"
#include "kernels/ops/matrix/product.h"

#define BLOCK 16384u /* elements whose squares are added up by themselves */

/* Pieces of the room, in floats from its beginning. */
struct places {
    size_t gram, square, next, packed, work, sums, end;
};

static size_t piece(size_t *at, size_t floats)
{
    const size_t from = *at;
    *at += (size_t)mri_align_up(floats, MRI_CACHE_LINE / sizeof(float));
    return from;
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static struct places places_of(size_t rows, size_t columns, uint32_t threads)
{
    const size_t small = rows < columns ? rows : columns, large = rows < columns ? columns : rows;
    struct places p = {0};
    p.gram = piece(&p.end, small * small);
    p.square = piece(&p.end, small * small);
    p.next = piece(&p.end, rows * columns);
    p.packed = piece(&p.end, most(mri_product_packed_floats(large, small),
                                  mri_product_packed_floats(small, most(small, columns))));
    p.work = piece(&p.end, most(mri_product_scratch_floats(small, large, threads),
                                mri_product_scratch_floats(rows, small, threads)));
    p.sums = piece(&p.end, 2 * (rows * columns / BLOCK + 1)); /* doubles */
    return p;
}

size_t mri_orthogonal_floats(uint64_t rows, uint64_t columns, uint32_t threads)
{
    return places_of((size_t)rows, (size_t)columns, threads ? threads : 1).end;
}

MRI_INLINE void squares_body(const float *x, size_t n, double *out)
{
    double sum[8] = {0};
    for (size_t i = 0; i < n; i++) sum[i % 8] += (double)x[i] * (double)x[i];
    *out = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}
MRI_SIMD_LOOP(squares, (const float *x, size_t n, double *out), (x, n, out))

/* to = p to + q from */
MRI_INLINE void blend_body(float *restrict to, const float *restrict from, float p, float q, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = p * to[i] + q * from[i];
}
MRI_SIMD_LOOP(blend, (float *to, const float *from, float p, float q, size_t n), (to, from, p, q, n))

MRI_INLINE void scale_body(float *x, float by, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] *= by;
}
MRI_SIMD_LOOP(scale, (float *x, float by, size_t n), (x, by, n))

static void blend_all(float *to, const float *from, float p, float q, size_t n)
{
#pragma omp parallel for schedule(static) if (n > MRI_PARALLEL_ELEMENTS)
    for (size_t at = 0; at < n; at += BLOCK) blend(to + at, from + at, p, q, n - at < BLOCK ? n - at : BLOCK);
}

static void scale_all(float *x, float by, size_t n)
{
#pragma omp parallel for schedule(static) if (n > MRI_PARALLEL_ELEMENTS)
    for (size_t at = 0; at < n; at += BLOCK) scale(x + at, by, n - at < BLOCK ? n - at : BLOCK);
}

static double norm_of(const float *x, size_t n, double *sums)
{
    const size_t blocks = n / BLOCK + (n % BLOCK != 0);
    double all = 0;
#pragma omp parallel for schedule(static) if (n > MRI_PARALLEL_ELEMENTS)
    for (size_t b = 0; b < blocks; b++)
        squares(x + b * BLOCK, n - b * BLOCK < BLOCK ? n - b * BLOCK : BLOCK, &sums[b]);
    for (size_t b = 0; b < blocks; b++) all += sums[b];
    return sqrt(all);
}

void mri_orthogonalise(float *x, uint64_t rows, uint64_t columns, float epsilon, float *room)
{
    const size_t r = (size_t)rows, c = (size_t)columns, n = r * c, small = r < c ? r : c,
                 large = r < c ? c : r;
    const struct places p = places_of(r, c, (uint32_t)omp_get_max_threads());
    float *const gram = room + p.gram, *const square = room + p.square, *const next = room + p.next,
                 *const packed = room + p.packed, *const work = room + p.work;
    const double norm = norm_of(x, n, (double *)(void *)(room + p.sums));
    const float share = (float)(1 / (norm > (double)epsilon ? norm : (double)epsilon));
    scale_all(x, share, n);
    /* the matrix with its shorter side first, and the other way round */
    const struct mri_matrix flat = {x, r <= c ? c : 1, r <= c ? 1 : c}, tall = {x, flat.column, flat.row},
                            whole = {x, c, 1}, inner = {gram, small, 1};
    for (int step = 0; step < MRI_ORTHOGONAL_STEPS; step++) {
        mri_product_pack(packed, &tall, large, small);
        mri_product_run(small, small, large, &flat, packed, gram, small, work);
        mri_product_pack(packed, &inner, small, small);
        mri_product_run(small, small, small, &inner, packed, square, small, work);
        blend_all(gram, square, MRI_ORTHOGONAL_B, MRI_ORTHOGONAL_C, small * small);
        if (r <= c) { /* (...) X */
            mri_product_pack(packed, &whole, small, c);
            mri_product_run(r, c, small, &inner, packed, next, c, work);
        } else { /* X (...) */
            mri_product_pack(packed, &inner, small, small);
            mri_product_run(r, c, small, &whole, packed, next, c, work);
        }
        blend_all(x, next, MRI_ORTHOGONAL_A, 1, n);
    }
}
