/* kernels/ops/batchnorm.c: batch normalisation per channel over n, h, w (Ioffe & Szegedy 2015), in any layout.
 *
 * Every sample's sums are taken by one thread in double, then added over the samples in order, so results do not depend on
 * the number of threads. Running statistics use the biased variance. saved holds mean and 1 / sqrt(variance + epsilon).
 *
 * scratch: double sums[n][2][c], then four coefficient arrays of c floats. */
#include <math.h>

#include "kernels/host_op.h"
#include "kernels/simd.h"

static int prepare(mri_host_op *op, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    op->base.info.out = d->in;
    op->base.info.saved_bytes = 2 * (size_t)d->in.c * sizeof(float);
    op->base.info.scratch_bytes = (size_t)d->max_batch * 2 * d->in.c * sizeof(double) + 4 * (size_t)d->in.c * sizeof(float);
    return MR_OK;
}

static float *coefficients(const mri_host_op *op, const mr_op_args *a)
{
    return (float *)((double *)a->scratch + (size_t)op->base.desc.max_batch * 2 * op->base.desc.in.c);
}

/* sums[0][c] += u, sums[1][c] += u * v: with u = v = x the moments, with u = dz, v = x - mean what the gradients need. */
MRI_INLINE void moments_body(double *restrict s0, double *restrict s1, const float *u, const float *v, const float *shift,
                             size_t pixels, uint32_t stride, uint32_t channels)
{
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t c = 0; c < channels; c++) {
            const double du = u[p * stride + c];
            s0[c] += du;
            s1[c] += du * ((double)v[p * stride + c] - (double)shift[c]);
        }
}
MRI_SIMD_LOOP(moments,
              (double *restrict s0, double *restrict s1, const float *u, const float *v, const float *shift, size_t pixels,
               uint32_t stride, uint32_t channels),
              (s0, s1, u, v, shift, pixels, stride, channels))

/* out = u * k + v * m + d per channel */
MRI_INLINE void combine_body(float *out, const float *u, const float *v, const float *k, const float *m, const float *d,
                             size_t pixels, uint32_t stride, uint32_t channels)
{
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t c = 0; c < channels; c++)
            out[p * stride + c] = u[p * stride + c] * k[c] + v[p * stride + c] * m[c] + d[c];
}
MRI_SIMD_LOOP(combine,
              (float *out, const float *u, const float *v, const float *k, const float *m, const float *d, size_t pixels,
               uint32_t stride, uint32_t channels),
              (out, u, v, k, m, d, pixels, stride, channels))

/* One block of channels of one sample: where it starts, how many channels are real. */
static uint32_t block_channels(const mr_tensor *t, uint32_t first)
{
    const uint32_t block = mri_layout_block(t);
    return t->c - first < block ? t->c - first : block;
}

static void sum_batch(const mri_host_op *op, const mr_op_args *a, const float *u, const float *v, const float *shift)
{
    const mr_tensor *t = &op->base.desc.in;
    const size_t     floats = mri_tensor_floats(t), pixels = (size_t)t->h * t->w;
    const uint32_t   block = mri_layout_block(t);
    double          *sums = a->scratch;
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++) {
        double *s = sums + (size_t)i * 2 * t->c;
        memset(s, 0, 2 * (size_t)t->c * sizeof *s);
        for (uint32_t c = 0; c < t->c; c += block) {
            const size_t at = i * floats + mri_tensor_index(t, 0, c);
            moments(s + c, s + t->c + c, u + at, v + at, shift + c, pixels, block, block_channels(t, c));
        }
    }
    for (uint32_t i = 1; i < a->n; i++)
        for (size_t c = 0; c < 2 * (size_t)t->c; c++) sums[c] += sums[(size_t)i * 2 * t->c + c];
}

static void combine_batch(const mri_host_op *op, const mr_op_args *a, float *out, const float *u, const float *v, const float *k,
                          const float *m, const float *d)
{
    const mr_tensor *t = &op->base.desc.in;
    const size_t     floats = mri_tensor_floats(t), pixels = (size_t)t->h * t->w;
    const uint32_t   block = mri_layout_block(t);
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t c = 0; c < t->c; c += block) {
            const size_t at = i * floats + mri_tensor_index(t, 0, c);
            combine(out + at, u + at, v + at, k + c, m + c, d + c, pixels, block, block_channels(t, c));
        }
    mri_tensor_zero_padding(t, a->n, out);
}

/* Batch statistics into saved and, weighted, into the running ones. */
static void take_statistics(const mri_host_op *op, const mr_op_args *a, float *mean, float *inverse)
{
    const mr_op_desc *d = &op->base.desc;
    const uint32_t    c_count = d->in.c;
    const double      count = (double)a->n * d->in.h * d->in.w;
    const float      *zero = coefficients(op, a);
    memset(coefficients(op, a), 0, c_count * sizeof *zero);
    sum_batch(op, a, a->x, a->x, zero);
    const double *sums = a->scratch;
    for (uint32_t c = 0; c < c_count; c++) {
        const double m = sums[c] / count, square = sums[c_count + c] / count;
        const double variance = square > m * m ? square - m * m : 0;
        mean[c] = (float)m;
        inverse[c] = (float)(1 / sqrt(variance + (double)d->epsilon));
        a->state[0][c] = d->momentum * a->state[0][c] + (1 - d->momentum) * (float)m;
        a->state[1][c] = d->momentum * a->state[1][c] + (1 - d->momentum) * (float)variance;
    }
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const uint32_t    c_count = d->in.c;
    float *k = coefficients(op, a), *zero = k + c_count, *shift = zero + c_count;
    if (a->training) take_statistics(op, a, a->saved, (float *)a->saved + c_count);
    for (uint32_t c = 0; c < c_count; c++) {
        const float mean = a->training ? ((float *)a->saved)[c] : a->state[0][c];
        const float inverse = a->training ? ((float *)a->saved)[c_count + c] : 1 / sqrtf(a->state[1][c] + d->epsilon);
        k[c] = a->param[0][c] * inverse;
        zero[c] = 0;
        shift[c] = a->param[1][c] - mean * k[c];
    }
    combine_batch(op, a, a->y, a->x, a->x, k, zero, shift);
    mri_activate(d->activation, a->y, mri_tensor_floats(&d->in) * a->n);
    if (d->activation == MR_ACT_SIGMOID) mri_tensor_zero_padding(&d->in, a->n, a->y);
    return MR_OK;
}

/* With M values a channel, z = (x - mean) * inverse:
 *   d shift = sum dz,  d scale = sum dz * z,  dx = scale * inverse * (dz - d shift / M - z * d scale / M) */
static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const uint32_t    c_count = d->in.c;
    const float      *mean = a->saved, *inverse = mean + c_count;
    const double      count = (double)a->n * d->in.h * d->in.w;
    mri_activate_backward(d->activation, a->y, a->dy, mri_tensor_floats(&d->in) * a->n);
    sum_batch(op, a, a->dy, a->x, mean);
    const double *sums = a->scratch;
    float *k = coefficients(op, a), *m = k + c_count, *shift = m + c_count;
    for (uint32_t c = 0; c < c_count; c++) {
        const double dshift = sums[c], dscale = sums[c_count + c] * (double)inverse[c];
        const double gain = (double)a->param[0][c] * (double)inverse[c];
        a->dparam[0][c] = (float)dscale;
        a->dparam[1][c] = (float)dshift;
        k[c] = (float)gain;
        m[c] = (float)(-gain * (double)inverse[c] * dscale / count);
        shift[c] = (float)(-gain * dshift / count) - mean[c] * m[c];
    }
    if (d->need_dx) combine_batch(op, a, a->dx, a->dy, a->x, k, m, shift);
    return MR_OK;
}

const struct mri_op_code mri_batchnorm_code = {.prepare = prepare, .forward = forward, .backward = backward};
