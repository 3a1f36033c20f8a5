/* kernels/ops/upsample.c: pictures a whole number of times as high and wide, in any layout: each pixel
 * repeated, or bilinear between the centres of pixels, the edges repeated.
 *
 * Backward asks for each pixel of the input which pixels of the output it went into, in their order, so that
 * no two threads add to one place. */
#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/rows.h"

enum { PIECE = 512 };

/* Which places of the input a place of the output is made of, along one axis. */
typedef struct blend {
    uint32_t low, high; /* places of the input; high may be low */
    float share;        /* of high */
} blend;

/* Along one axis of `count` places. The centre of output place o lies at (o + 1/2) / factor - 1/2 of the
 * input's. */
static void blend_of(const mr_upsample_desc *d, uint32_t o, uint32_t count, blend *out)
{
    const uint32_t at = o / d->factor, twice = 2 * (o % d->factor) + 1; /* of 2 factor: where in the input's
                                                                           place */
    out->low = out->high = at;
    out->share = 0;
    if (!d->bilinear) return;
    if (twice < d->factor) { /* between the place before and this one */
        if (at == 0) return;
        out->low = at - 1;
        out->share = (float)(twice + d->factor) / (float)(2 * d->factor);
    } else {
        if (at + 1 == count) return;
        out->high = at + 1;
        out->share = (float)(twice - d->factor) / (float)(2 * d->factor);
    }
}

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const uint32_t f = d->upsample.factor;
    if (f < 1 || d->in.h > MRI_OP_MAX_SIDE / (f ? f : 1) || d->in.w > MRI_OP_MAX_SIDE / (f ? f : 1))
        return mr_error_set(
            err, MR_EINVAL,
            "upsample: factor %u for %u x %u pixels: expected 1 or more, and sides of at most %u", f, d->in.h,
            d->in.w, MRI_OP_MAX_SIDE);
    const int rc =
        mri_op_set_output(d, info, d->in.h * f, d->in.w * f, d->in.c, d->in.dtype, "upsample", err);
    info->flops_per_sample = (d->upsample.bilinear ? 8.0 : 1.0) * info->out.h * info->out.w * info->out.c;
    return rc;
}

static int prepare(mri_host_op *op, mr_error *err)
{
    (void)err;
    mri_tensor_set_layout(&op->base.info.out, op->base.desc.in.layout);
    return MR_OK;
}

static void add_scaled(float *sum, const float *row, uint32_t count, float weight)
{
    for (uint32_t i = 0; i < count; i++) sum[i] += weight * row[i];
}

/* Of output pixel (row, column), from channel c on. */
static void forward_piece(const mr_op_desc *d, uint32_t row, uint32_t column, uint32_t c, uint32_t count,
                          const float *x, float *sum)
{
    float taken[PIECE];
    blend v, h;
    blend_of(&d->upsample, row, d->in.h, &v);
    blend_of(&d->upsample, column, d->in.w, &h);
    if (!d->upsample.bilinear) {
        mri_take_row(&d->in, x, (size_t)v.low * d->in.w + h.low, c, count, sum);
        return;
    }
    memset(sum, 0, count * sizeof *sum);
    for (int k = 0; k < 4; k++) {
        const uint32_t y = k / 2 ? v.high : v.low, at = k % 2 ? h.high : h.low;
        const float weight = (k / 2 ? v.share : 1 - v.share) * (k % 2 ? h.share : 1 - h.share);
        mri_take_row(&d->in, x, (size_t)y * d->in.w + at, c, count, taken);
        add_scaled(sum, taken, count, weight);
    }
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const size_t in_floats = mri_tensor_floats(&d->in), out_floats = mri_tensor_floats(out),
                 pixels = (size_t)out->h * out->w, rows = pixels * a->n;
#pragma omp parallel for schedule(static) if (out_floats * a->n > MRI_PARALLEL_ELEMENTS / 4)
    for (size_t k = 0; k < rows; k++) {
        const size_t sample = k / pixels, pixel = k % pixels;
        float sum[PIECE];
        for (uint32_t c = 0; c < out->c; c += PIECE) {
            const uint32_t count = out->c - c < PIECE ? out->c - c : PIECE;
            forward_piece(d, (uint32_t)(pixel / out->w), (uint32_t)(pixel % out->w), c, count,
                          (const float *)a->x + sample * in_floats, sum);
            mri_put_row(out, (float *)a->y + sample * out_floats, pixel, c, count, sum);
        }
    }
    mri_tensor_zero_padding(out, a->n, a->y);
    return MR_OK;
}

/* The share that a place of the input has in a place of the output. */
static float share_of(const blend *b, uint32_t in)
{
    return (b->low == in ? 1 - b->share : 0) + (b->high == in ? b->share : 0);
}

static void backward_piece(const mr_op_desc *d, const mr_tensor *out, size_t pixel, uint32_t c,
                           uint32_t count, const float *dy, float *sum)
{
    float taken[PIECE];
    const uint32_t y = (uint32_t)(pixel / d->in.w), x = (uint32_t)(pixel % d->in.w), f = d->upsample.factor,
                   reach = d->upsample.bilinear ? f : 0;
    memset(sum, 0, count * sizeof *sum);
    for (uint32_t row = y * f > reach ? y * f - reach : 0; row < (y + 1) * f + reach && row < out->h; row++)
        for (uint32_t at = x * f > reach ? x * f - reach : 0; at < (x + 1) * f + reach && at < out->w; at++) {
            blend v, h;
            blend_of(&d->upsample, row, d->in.h, &v);
            blend_of(&d->upsample, at, d->in.w, &h);
            const float weight = share_of(&v, y) * share_of(&h, x);
            if (weight == 0) continue;
            mri_take_row(out, dy, (size_t)row * out->w + at, c, count, taken);
            add_scaled(sum, taken, count, weight);
        }
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor *out = &op->base.info.out;
    const size_t in_floats = mri_tensor_floats(&d->in), out_floats = mri_tensor_floats(out),
                 pixels = (size_t)d->in.h * d->in.w, rows = pixels * a->n;
    if (!d->need_dx) return MR_OK;
#pragma omp parallel for schedule(static) if (out_floats * a->n > MRI_PARALLEL_ELEMENTS / 4)
    for (size_t k = 0; k < rows; k++) {
        const size_t sample = k / pixels, pixel = k % pixels;
        float sum[PIECE];
        for (uint32_t c = 0; c < d->in.c; c += PIECE) {
            const uint32_t count = d->in.c - c < PIECE ? d->in.c - c : PIECE;
            backward_piece(d, out, pixel, c, count, (const float *)a->dy + sample * out_floats, sum);
            mri_put_row(&d->in, (float *)a->dx + sample * in_floats, pixel, c, count, sum);
        }
    }
    mri_tensor_zero_padding(&d->in, a->n, a->dx);
    return MR_OK;
}

static const struct mri_op_code reference = {.prepare = prepare, .forward = forward, .backward = backward};
const struct mri_op_class mri_upsample_class = {
    .name = "upsample", .describe = describe, .reference = &reference};
