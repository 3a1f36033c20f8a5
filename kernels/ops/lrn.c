/* kernels/ops/lrn.c: local response normalisation across channels (Krizhevsky et al. 2012, section 3.3; the
 * constants mean the same as in TensorFlow's tf.nn.lrn):
 *
 *     s_c = bias + alpha * (x_(c-r)^2 + ... + x_(c+r)^2)       what lies beyond the channels counts 0
 *     y_c = x_c s_c^-beta
 *     dx_c = dy_c s_c^-beta - 2 alpha beta x_c * sum over c-r..c+r of dy_j x_j s_j^(-beta-1)
 *
 * Any layout: a pixel's channels, up to 256 of them with their neighbours in the window, are copied to one
 * row and computed there. Sums are taken in the order of channels, within a pixel, so a sample's result
 * depends on neither threads nor batch. Backward works s out again: that passes less memory than keeping it.
 *
 * oneDNN has this, too, with alpha / (2 r + 1) for alpha. For the window of nine that TensorFlow's tutorials
 * have, its code for NHWC takes 1.8 times as long, forward and backward together, and in blocks of channels
 * it has plain loops alone (12 x 12 x 64, AVX-512); of windows of five channels in blocks it is the faster.
 */
#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

#define TILE 256u /* channels of a row */
#define STEP 16u  /* channels that are computed at once; rows have room for this number after their end */
#define ROOM (TILE + 4 * MR_LRN_MOST_RADIUS + STEP)

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_lrn_desc *l = &d->lrn;
    if (l->radius > MR_LRN_MOST_RADIUS)
        return mr_error_set(err, MR_EINVAL, "lrn: radius %u; expected 0..%u", l->radius, MR_LRN_MOST_RADIUS);
    if (!(l->bias > 0) || !(l->alpha >= 0) || !(l->beta >= 0) || isinf(l->bias) || isinf(l->alpha) ||
        isinf(l->beta))
        return mr_error_set(
            err, MR_EINVAL,
            "lrn: bias %g, alpha %g, beta %g; expected finite numbers, bias above 0, the others not below",
            (double)l->bias, (double)l->alpha, (double)l->beta);
    info->flops_per_sample = (double)d->in.h * d->in.w * d->in.c * (2 * l->radius + 5);
    return MR_OK;
}

/* Backward reads x. */
static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    return mri_op_lacks(op, a, backward) || (backward && !a->x);
}

/* Arguments of the loops below. */
struct response {
    uint32_t window; /* 2 r + 1 */
    float bias, alpha, beta;
};

/* More than c - 1 on either side is beyond the channels. */
static uint32_t radius_of(const mr_op_desc *d)
{
    return d->lrn.radius < d->in.c - 1 ? d->lrn.radius : d->in.c - 1;
}

/* Powers that square roots give, which a processor has for whole vectors; else one at a time. */
MRI_INLINE void roots_body(float *restrict f, const float *restrict s)
{
#pragma omp simd
    for (uint32_t i = 0; i < STEP; i++) {
        const float root = sqrtf(s[i]);
        f[i] = 1 / (root * sqrtf(root));
    }
}

MRI_INLINE void root_body(float *restrict f, const float *restrict s)
{
#pragma omp simd
    for (uint32_t i = 0; i < STEP; i++) f[i] = 1 / sqrtf(s[i]);
}

MRI_INLINE void power_body(float *restrict f, const float *restrict s, float beta)
{
    if (beta == 0.75f) roots_body(f, s);
    else if (beta == 0.5f) root_body(f, s);
    else
        for (uint32_t i = 0; i < STEP; i++) f[i] = powf(s[i], -beta);
}

/* out[i] = q[i] + ... + q[i + window - 1], in this order, for i < STEP. */
MRI_INLINE void window_body(float *restrict out, const float *restrict q, uint32_t window)
{
    float sum[STEP];
#pragma omp simd
    for (uint32_t i = 0; i < STEP; i++) sum[i] = q[i];
    for (uint32_t k = 1; k < window; k++) {
        q++;
#pragma omp simd
        for (uint32_t i = 0; i < STEP; i++) sum[i] += q[i];
    }
#pragma omp simd
    for (uint32_t i = 0; i < STEP; i++) out[i] = sum[i];
}

/* s of STEP channels and its power; q: squares, the first of them a radius before. */
MRI_INLINE void scales_body(float *restrict s, float *restrict power, const float *restrict q,
                            struct response p)
{
    window_body(s, q, p.window);
#pragma omp simd
    for (uint32_t i = 0; i < STEP; i++) s[i] = p.bias + p.alpha * s[i];
    power_body(power, s, p.beta);
}

MRI_INLINE void squares_body(float *restrict q, const float *restrict x, size_t count)
{
#pragma omp simd
    for (size_t i = 0; i < count; i++) q[i] = x[i] * x[i];
}

/* y of n channels; x is of n and of the radius on both sides. All have room for STEP more. */
MRI_INLINE void respond_body(float *restrict y, float *restrict q, const float *restrict x, size_t n,
                             struct response p)
{
    squares_body(q, x, n + p.window - 1 + STEP);
    x += p.window / 2;
    for (size_t at = 0; at < n; at += STEP) {
        float s[STEP], power[STEP];
        scales_body(s, power, q + at, p);
#pragma omp simd
        for (size_t i = 0; i < STEP; i++) y[at + i] = x[at + i] * power[i];
    }
}
MRI_SIMD_LOOP(respond,
              (float *restrict y, float *restrict q, const float *restrict x, size_t n, struct response p),
              (y, q, x, n, p))

/* dx of n channels; dy and q, f are of those and of the radius on both sides, x of twice the radius. */
MRI_INLINE void return_gradient_body(float *restrict dx, float *restrict q, float *restrict f,
                                     const float *restrict dy, const float *restrict x, size_t n,
                                     struct response p)
{
    const uint32_t radius = p.window / 2;
    const float both = 2 * p.alpha * p.beta;
    squares_body(q, x, n + 4 * (size_t)radius + STEP);
    x += radius;
    for (size_t at = 0; at < n + 2 * (size_t)radius; at += STEP) { /* q is overwritten behind where it is
                                                                      read */
        float s[STEP], power[STEP];
        scales_body(s, power, q + at, p);
#pragma omp simd
        for (size_t i = 0; i < STEP; i++) {
            f[at + i] = power[i];
            q[at + i] = dy[at + i] * x[at + i] * (power[i] / s[i]);
        }
    }
    x += radius, dy += radius, f += radius;
    for (size_t at = 0; at < n; at += STEP) {
        float sum[STEP];
        window_body(sum, q + at, p.window);
#pragma omp simd
        for (size_t i = 0; i < STEP; i++) dx[at + i] = dy[at + i] * f[at + i] - both * x[at + i] * sum[i];
    }
}
MRI_SIMD_LOOP(return_gradient,
              (float *restrict dx, float *restrict q, float *restrict f, const float *restrict dy,
               const float *restrict x, size_t n, struct response p),
              (dx, q, f, dy, x, n, p))

/* Whole blocks without a call. */
static inline void copy_run(float *to, const float *from, uint32_t run)
{
    if (run == 16) memcpy(to, from, 16 * sizeof *to);
    else if (run == 8) memcpy(to, from, 8 * sizeof *to);
    else memcpy(to, from, run * sizeof *to);
}

/* Channels of a pixel from `first` on, count of them, to row; zeros beyond both ends, and STEP more. */
static void bring(const mr_tensor *t, const float *sample, size_t pixel, int64_t first, uint32_t count,
                  float *row)
{
    const uint32_t block = mri_layout_block(t), from = first < 0 ? (uint32_t)-first : 0;
    const int64_t end = (int64_t)t->c - first;
    const uint32_t to = end < (int64_t)count ? (uint32_t)end : count;
    memset(row, 0, from * sizeof *row);
    for (uint32_t k = from, run; k < to; k += run) {
        const uint32_t c = (uint32_t)(first + k), left = block - c % block;
        run = left < to - k ? left : to - k;
        copy_run(row + k, sample + mri_tensor_index(t, pixel, c), run);
    }
    memset(row + to, 0, (count + STEP - to) * sizeof *row);
}

static void put(const mr_tensor *t, float *sample, size_t pixel, uint32_t first, uint32_t count,
                const float *row)
{
    const uint32_t block = mri_layout_block(t);
    for (uint32_t k = 0, run; k < count; k += run) {
        const uint32_t c = first + k, left = block - c % block;
        run = left < count - k ? left : count - k;
        copy_run(sample + mri_tensor_index(t, pixel, c), row + k, run);
    }
}

static struct response response_of(const mr_op_desc *d)
{
    return (struct response){2 * radius_of(d) + 1, d->lrn.bias, d->lrn.alpha, d->lrn.beta};
}

static void forward_pixel(const mr_op_desc *d, const float *x, float *y, size_t pixel)
{
    const struct response p = response_of(d);
    const uint32_t radius = p.window / 2;
    float row[ROOM], squares[ROOM], out[TILE + STEP];
    for (uint32_t first = 0; first < d->in.c; first += TILE) {
        const uint32_t left = d->in.c - first, n = left < TILE ? left : TILE;
        bring(&d->in, x, pixel, (int64_t)first - radius, n + 2 * radius, row);
        respond(out, squares, row, n, p);
        put(&d->in, y, pixel, first, n, out);
    }
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const uint32_t rows = d->in.h, columns = d->in.w;
    const size_t floats = mri_tensor_floats(&d->in);
#pragma omp parallel for collapse(2) schedule(static) if (a->n * floats > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t row = 0; row < rows; row++)
            for (uint32_t column = 0; column < columns; column++)
                forward_pixel(d, (const float *)a->x + i * floats, (float *)a->y + i * floats,
                              (size_t)row * columns + column);
    mri_tensor_zero_padding(&d->in, a->n, a->y);
    return MR_OK;
}

static void backward_pixel(const mr_op_desc *d, const float *x, const float *dy, float *dx, size_t pixel)
{
    const struct response p = response_of(d);
    const uint32_t radius = p.window / 2;
    float row[ROOM], gradient[ROOM], sums[ROOM], factor[ROOM], out[TILE + STEP];
    for (uint32_t first = 0; first < d->in.c; first += TILE) {
        const uint32_t left = d->in.c - first, n = left < TILE ? left : TILE;
        bring(&d->in, x, pixel, (int64_t)first - 2 * (int64_t)radius, n + 4 * radius, row);
        bring(&d->in, dy, pixel, (int64_t)first - radius, n + 2 * radius, gradient);
        return_gradient(out, sums, factor, gradient, row, n, p);
        put(&d->in, dx, pixel, first, n, out);
    }
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const uint32_t rows = d->in.h, columns = d->in.w;
    const size_t floats = mri_tensor_floats(&d->in);
    if (!d->need_dx) return MR_OK;
#pragma omp parallel for collapse(2) schedule(static) if (a->n * floats > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t row = 0; row < rows; row++)
            for (uint32_t column = 0; column < columns; column++)
                backward_pixel(d, (const float *)a->x + i * floats, (const float *)a->dy + i * floats,
                               (float *)a->dx + i * floats, (size_t)row * columns + column);
    mri_tensor_zero_padding(&d->in, a->n, a->dx);
    return MR_OK;
}

static const struct mri_op_code reference = {.forward = forward, .backward = backward};
const struct mri_op_class mri_lrn_class = {
    .name = "lrn", .keeps_layout = true, .describe = describe, .lacks = lacks, .reference = &reference};
