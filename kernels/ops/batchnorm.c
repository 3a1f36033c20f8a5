/* kernels/ops/batchnorm.c: batch normalisation per channel over n, h, w (Ioffe & Szegedy 2015), in any
 * layout.
 *
 * Every sample's sums are taken by one thread in double, then added over the samples in order, so results do
 * not depend on the number of threads. Running statistics use the biased variance. saved holds mean and 1 /
 * sqrt(variance + epsilon).
 *
 * The residual, the activation and a second gradient are taken in while a piece of the tensor is in the
 * cache: forward goes through memory twice (moments, values), backward twice (sums, dx).
 *
 * scratch: double sums[n][2][c], then three coefficient arrays of c floats. */
#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

#define PIECE_FLOATS 2048u /* of x, x2, y, dy each: together they fit the first-level cache */

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_batchnorm_desc *norm = &d->batchnorm;
    if (!(norm->epsilon > 0) || !isfinite(norm->epsilon))
        return mr_error_set(err, MR_EINVAL, "batchnorm: epsilon must be above 0");
    if (!(norm->momentum >= 0 && norm->momentum <= 1))
        return mr_error_set(err, MR_EINVAL, "batchnorm: momentum must be 0..1");
    info->param_count = info->state_count = 2;
    if (norm->no_scale) info->param_count = 1;
    else info->param[0] = mri_op_vector("scale", d->in.c);
    info->param[info->param_count - 1] = mri_op_vector("shift", d->in.c);
    info->state[0] = mri_op_vector("mean", d->in.c);
    info->state[1] = mri_op_vector("variance", d->in.c);
    info->flops_per_sample = (norm->residual ? 5.0 : 4.0) * d->in.h * d->in.w * d->in.c;
    return norm->residual ? mri_op_check_second(d, "batchnorm", err) : MR_OK;
}

static bool takes_two(const mr_op_desc *d) { return d->batchnorm.residual; }

static int prepare(mri_host_op *op, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    op->base.info.saved_bytes = 2 * (size_t)d->in.c * sizeof(float);
    op->base.info.scratch_bytes =
        (size_t)d->max_batch * 2 * d->in.c * sizeof(double) + 3 * (size_t)d->in.c * sizeof(float);
    return MR_OK;
}

static float *coefficients(const mri_host_op *op, const mr_op_args *a)
{
    return (float *)((double *)a->scratch + (size_t)op->base.desc.max_batch * 2 * op->base.desc.in.c);
}

/* The factor of a channel; 1 without factors. */
static float factor_of(const mr_op_desc *d, const mr_op_args *a, uint32_t c)
{
    return d->batchnorm.no_scale ? 1 : a->param[0][c];
}

/* Eight numbers side by side, whatever vectors the processor has: left to itself the compiler keeps the sums
 * in memory. */
typedef float floats8 __attribute__((vector_size(32)));
typedef double doubles8 __attribute__((vector_size(64)));

MRI_INLINE void widen(doubles8 *out, const float *from)
{
    floats8 f;
    memcpy(&f, from, sizeof f);
    *out = __builtin_convertvector(f, doubles8);
}

MRI_INLINE void moments_of_8(double *s0, double *s1, const float *u, const float *v, const float *shift,
                             size_t pixels, uint32_t stride)
{
    doubles8 a0, a1, mean, du, dv;
    memcpy(&a0, s0, sizeof a0);
    memcpy(&a1, s1, sizeof a1);
    widen(&mean, shift);
    for (size_t p = 0; p < pixels; p++) {
        widen(&du, u + p * stride);
        widen(&dv, v + p * stride);
        a0 += du;
        a1 += du * (dv - mean);
    }
    memcpy(s0, &a0, sizeof a0);
    memcpy(s1, &a1, sizeof a1);
}

/* s0[c] += u, s1[c] += u * (v - shift): with u = v = x the moments, with u = dz, shift = mean what the
 * gradients need. */
MRI_INLINE void moments_body(double *restrict s0, double *restrict s1, const float *u, const float *v,
                             const float *shift, size_t pixels, uint32_t stride, uint32_t channels)
{
    const uint32_t whole = channels / 8 * 8;
    for (uint32_t c = 0; c < whole; c += 8)
        moments_of_8(s0 + c, s1 + c, u + c, v + c, shift + c, pixels, stride);
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t c = whole; c < channels; c++) {
            const double du = u[p * stride + c];
            s0[c] += du;
            s1[c] += du * ((double)v[p * stride + c] - (double)shift[c]);
        }
}
MRI_SIMD_LOOP(moments,
              (double *restrict s0, double *restrict s1, const float *u, const float *v, const float *shift,
               size_t pixels, uint32_t stride, uint32_t channels),
              (s0, s1, u, v, shift, pixels, stride, channels))

/* out = u * k + v * m + d per channel */
MRI_INLINE void combine_body(float *out, const float *u, const float *v, const float *k, const float *m,
                             const float *d, size_t pixels, uint32_t stride, uint32_t channels)
{
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t c = 0; c < channels; c++)
            out[p * stride + c] = u[p * stride + c] * k[c] + v[p * stride + c] * m[c] + d[c];
}
MRI_SIMD_LOOP(combine,
              (float *out, const float *u, const float *v, const float *k, const float *m, const float *d,
               size_t pixels, uint32_t stride, uint32_t channels),
              (out, u, v, k, m, d, pixels, stride, channels))

/* out = u * k + d per channel */
MRI_INLINE void scale_body(float *out, const float *u, const float *k, const float *d, size_t pixels,
                           uint32_t stride, uint32_t channels)
{
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t c = 0; c < channels; c++) out[p * stride + c] = u[p * stride + c] * k[c] + d[c];
}
MRI_SIMD_LOOP(scale,
              (float *out, const float *u, const float *k, const float *d, size_t pixels, uint32_t stride,
               uint32_t channels),
              (out, u, k, d, pixels, stride, channels))

/* A stretch of pixels of one block of channels of one sample, small enough for the first-level cache: what is
 * done to it in several loops goes through memory once. */
struct piece {
    size_t at, floats; /* in the tensor, padding included */
    size_t pixels;
    uint32_t stride, channels, first;
};

static struct piece piece_at(const mr_tensor *t, uint32_t sample, uint32_t channel, size_t pixel)
{
    const uint32_t block = mri_layout_block(t);
    const size_t most = PIECE_FLOATS > block ? PIECE_FLOATS / block : 1, left = (size_t)t->h * t->w - pixel;
    const size_t pixels = left < most ? left : most;
    return (struct piece){.at = sample * mri_tensor_floats(t) + mri_tensor_index(t, pixel, channel),
                          .floats = pixels * block,
                          .pixels = pixels,
                          .stride = block,
                          .channels = t->c - channel < block ? t->c - channel : block,
                          .first = channel};
}

typedef void work_on_piece(const mri_host_op *op, const mr_op_args *a, const struct piece *p, double *sums);

/* Every piece of every sample, the samples shared by the threads; sums: [2][c] of the sample. */
static void for_pieces(const mri_host_op *op, const mr_op_args *a, work_on_piece *work)
{
    const mr_tensor *t = &op->base.desc.in;
    const size_t pixels = (size_t)t->h * t->w;
    const uint32_t block = mri_layout_block(t);
#pragma omp parallel for schedule(static) if (mri_tensor_floats(t) * a->n > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++) {
        double *sums = (double *)a->scratch + (size_t)i * 2 * t->c;
        for (uint32_t c = 0; c < t->c; c += block)
            for (size_t at = 0; at < pixels;) {
                const struct piece p = piece_at(t, i, c, at);
                work(op, a, &p, sums);
                at += p.pixels;
            }
    }
}

/* Add the sums of all samples to the first sample's, in order. */
static void sum_batch(const mri_host_op *op, const mr_op_args *a, work_on_piece *work)
{
    double *sums = a->scratch;
    const size_t count = 2 * (size_t)op->base.desc.in.c;
    memset(sums, 0, count * a->n * sizeof *sums);
    for_pieces(op, a, work);
    for (uint32_t i = 1; i < a->n; i++)
        for (size_t c = 0; c < count; c++) sums[c] += sums[i * count + c];
}

static void add_moments(const mri_host_op *op, const mr_op_args *a, const struct piece *p, double *sums)
{
    const float *x = (const float *)a->x + p->at;
    moments(sums + p->first, sums + op->base.desc.in.c + p->first, x, x, coefficients(op, a) + p->first,
            p->pixels, p->stride, p->channels);
}

/* Batch statistics into saved and, weighted, into the running ones. */
static void take_statistics(const mri_host_op *op, const mr_op_args *a, float *mean, float *inverse)
{
    const mr_op_desc *d = &op->base.desc;
    const uint32_t c_count = d->in.c;
    const double count = (double)a->n * d->in.h * d->in.w;
    memset(coefficients(op, a), 0, c_count * sizeof(float)); /* moments about zero */
    sum_batch(op, a, add_moments);
    const double *sums = a->scratch;
    for (uint32_t c = 0; c < c_count; c++) {
        const double m = sums[c] / count, square = sums[c_count + c] / count;
        const double variance = square > m * m ? square - m * m : 0;
        mean[c] = (float)m;
        inverse[c] = (float)(1 / sqrt(variance + (double)d->batchnorm.epsilon));
        a->state[0][c] = d->batchnorm.momentum * a->state[0][c] + (1 - d->batchnorm.momentum) * (float)m;
        a->state[1][c] =
            d->batchnorm.momentum * a->state[1][c] + (1 - d->batchnorm.momentum) * (float)variance;
    }
}

static void normalise(const mri_host_op *op, const mr_op_args *a, const struct piece *p, double *sums)
{
    (void)sums;
    const mr_op_desc *d = &op->base.desc;
    const float *k = coefficients(op, a) + p->first, *shift = k + d->in.c;
    float *y = (float *)a->y + p->at;
    scale(y, (const float *)a->x + p->at, k, shift, p->pixels, p->stride, p->channels);
    if (d->batchnorm.residual) mri_accumulate_piece(y, (const float *)a->x2 + p->at, p->floats);
    mri_activate_piece(d->activation, y, p->floats);
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const uint32_t c_count = d->in.c;
    float *k = coefficients(op, a), *shift = k + c_count;
    if (a->training) take_statistics(op, a, a->saved, (float *)a->saved + c_count);
    for (uint32_t c = 0; c < c_count; c++) {
        const float mean = a->training ? ((float *)a->saved)[c] : a->state[0][c];
        const float inverse =
            a->training ? ((float *)a->saved)[c_count + c] : 1 / sqrtf(a->state[1][c] + d->batchnorm.epsilon);
        k[c] = factor_of(d, a, c) * inverse;
        shift[c] = a->param[d->batchnorm.no_scale ? 0 : 1][c] - mean * k[c];
    }
    for_pieces(op, a, normalise);
    mri_tensor_zero_padding(&d->in, a->n, a->y);
    return MR_OK;
}

/* dy becomes dz, the gradient to the normalised values and to x2. */
static void gather_gradient(const mri_host_op *op, const mr_op_args *a, const struct piece *p, double *sums)
{
    const uint32_t c_count = op->base.desc.in.c;
    const float *mean = a->saved;
    float *dy = (float *)a->dy + p->at;
    if (a->dy2) mri_accumulate_piece(dy, (const float *)a->dy2 + p->at, p->floats);
    mri_activate_backward_piece(op->base.desc.activation, (const float *)a->y + p->at, dy, p->floats);
    moments(sums + p->first, sums + c_count + p->first, dy, (const float *)a->x + p->at, mean + p->first,
            p->pixels, p->stride, p->channels);
}

static void spread_gradient(const mri_host_op *op, const mr_op_args *a, const struct piece *p, double *sums)
{
    (void)sums;
    const uint32_t c_count = op->base.desc.in.c;
    const float *k = coefficients(op, a) + p->first, *m = k + c_count, *shift = m + c_count;
    combine((float *)a->dx + p->at, (const float *)a->dy + p->at, (const float *)a->x + p->at, k, m, shift,
            p->pixels, p->stride, p->channels);
}

/* With M values a channel, z = (x - mean) * inverse:
 *   d shift = sum dz,  d scale = sum dz * z,  dx = scale * inverse * (dz - d shift / M - z * d scale / M) */
static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const uint32_t c_count = d->in.c;
    const float *mean = a->saved, *inverse = mean + c_count;
    const double count = (double)a->n * d->in.h * d->in.w;
    sum_batch(op, a, gather_gradient);
    const double *sums = a->scratch;
    float *k = coefficients(op, a), *m = k + c_count, *shift = m + c_count;
    for (uint32_t c = 0; c < c_count; c++) {
        const double dshift = sums[c], dscale = sums[c_count + c] * (double)inverse[c];
        const double gain = (double)factor_of(d, a, c) * (double)inverse[c];
        if (!d->batchnorm.no_scale) a->dparam[0][c] = (float)dscale;
        a->dparam[d->batchnorm.no_scale ? 0 : 1][c] = (float)dshift;
        k[c] = (float)gain;
        m[c] = (float)(-gain * (double)inverse[c] * dscale / count);
        shift[c] = (float)(-gain * dshift / count) - mean[c] * m[c];
    }
    if (!d->need_dx) return MR_OK;
    for_pieces(op, a, spread_gradient);
    mri_tensor_zero_padding(&d->in, a->n, a->dx);
    return MR_OK;
}

static const struct mri_op_code reference = {
    .prepare = prepare, .forward = forward, .backward = backward, .adds_dy2 = true};
const struct mri_op_class mri_batchnorm_class = {.name = "batchnorm",
                                                 .fuses = true,
                                                 .keeps_layout = true,
                                                 .describe = describe,
                                                 .takes_two = takes_two,
                                                 .reference = &reference};
