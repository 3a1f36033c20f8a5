/* kernels/ops/dropout.c: drops elements by 16-bit draws that depend on nothing but (seed, op_id, step, place
 * of the sample in the global batch, canonical element index), so any split of a batch and any layout drops
 * the same ones. Element e takes draw e of its sample (draws.h).
 *
 * Forward keeps one byte an element for backward; repeating the draws would cost more than reading the
 * bytes. Of whole samples (stochastic depth) it is draw 0 of the sample, and one byte each. */
#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/draws.h"
#include "kernels/ops/host_op.h"

#define CHUNK 4096u /* draws made at a time; they stay in the first-level cache */

MRI_INLINE void apply_run_body(float *y, const float *x, uint8_t *restrict kept,
                               const uint16_t *restrict draws, size_t n, uint32_t threshold, float scale)
{
    for (size_t i = 0; i < n; i++) {
        const bool keep = draws[i] >= threshold;
        kept[i] = keep;
        y[i] = keep ? x[i] * scale : 0;
    }
}
MRI_SIMD_LOOP(apply_run,
              (float *y, const float *x, uint8_t *restrict kept, const uint16_t *restrict draws, size_t n,
               uint32_t threshold, float scale),
              (y, x, kept, draws, n, threshold, scale))

MRI_INLINE void multiply_run_body(float *y, const float *x, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++) y[i] = x[i] * factor;
}
MRI_SIMD_LOOP(multiply_run, (float *y, const float *x, size_t n, float factor), (y, x, n, factor))

MRI_INLINE void backward_run_body(float *dx, const float *dy, const uint8_t *restrict kept, size_t n,
                                  float scale)
{
    for (size_t i = 0; i < n; i++) dx[i] = kept[i] ? dy[i] * scale : 0;
}
MRI_SIMD_LOOP(backward_run, (float *dx, const float *dy, const uint8_t *restrict kept, size_t n, float scale),
              (dx, dy, kept, n, scale))

static uint32_t threshold_of(float rate) { return (uint32_t)lrintf(rate * 65536.0f); }
static float scale_of(float rate) { return 1.0f / (1.0f - rate); }

/* Whole pixels of a layout in full blocks of 16 channels: runs of 16, each somewhere else in memory, y and
 * draws contiguous. */
MRI_INLINE void apply_pixels16_body(float *y, const float *x, uint8_t *restrict kept,
                                    const uint16_t *restrict draws, size_t pixels, size_t plane,
                                    uint32_t blocks, uint32_t threshold, float scale)
{
    for (uint32_t b = 0; b < blocks; b++)
        for (size_t p = 0; p < pixels; p++) {
            const uint16_t *from = draws + p * blocks * 16 + b * 16;
            const size_t at = b * plane + p * 16;
#pragma omp simd /* y may be x, but only element for element */
            for (uint32_t i = 0; i < 16; i++) {
                const bool keep = from[i] >= threshold;
                kept[at + i] = keep;
                y[at + i] = keep ? x[at + i] * scale : 0;
            }
        }
}
MRI_SIMD_LOOP(apply_pixels16,
              (float *y, const float *x, uint8_t *restrict kept, const uint16_t *restrict draws,
               size_t pixels, size_t plane, uint32_t blocks, uint32_t threshold, float scale),
              (y, x, kept, draws, pixels, plane, blocks, threshold, scale))

struct drop {
    const mr_tensor *t;
    float *y;
    const float *x;
    uint8_t *kept;
    uint32_t threshold;
    float scale;
};

/* Elements [from, from + n) in canonical order where they come in runs of at most a block. */
static void apply_runs(const struct drop *d, const uint16_t *draws, size_t from, size_t n)
{
    const mr_tensor *t = d->t;
    const uint32_t block = mri_layout_block(t);
    for (size_t done = 0; done < n;) {
        const size_t e = from + done;
        const uint32_t c = (uint32_t)(e % t->c);
        const size_t run = mri_min_u64(mri_min_u64(block - c % block, t->c - c), n - done),
                     at = mri_tensor_index(t, e / t->c, c);
        for (size_t i = 0; i < run; i++) { /* 16 at most: too short to dispatch */
            const bool keep = draws[done + i] >= d->threshold;
            d->kept[at + i] = keep;
            d->y[at + i] = keep ? d->x[at + i] * d->scale : 0;
        }
        done += run;
    }
}

static void apply_range(const struct drop *d, const uint16_t *draws, size_t from, size_t n)
{
    const mr_tensor *t = d->t;
    if (t->layout == MR_LAYOUT_NHWC) {
        apply_run(d->y + from, d->x + from, d->kept + from, draws, n, d->threshold, d->scale);
    } else if (t->layout == MRI_LAYOUT_C16 && t->c % 16 == 0 && from % t->c == 0 && n % t->c == 0) {
        const size_t at = from / t->c * 16;
        apply_pixels16(d->y + at, d->x + at, d->kept + at, draws, n / t->c, (size_t)t->h * t->w * 16,
                       t->c / 16, d->threshold, d->scale);
    } else {
        apply_runs(d, draws, from, n);
    }
}

static struct mri_draw_key key_of(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    return (struct mri_draw_key){mri_mix64(mri_mix64(a->seed) + op->base.desc.dropout.op_id), a->values->step,
                                 a->first + i};
}

/* Keep or drop the sample as a whole; dropping also removes NaN. */
static void keep_sample(const mri_host_op *op, float *y, const float *x, uint8_t kept)
{
    const size_t floats = mri_tensor_floats(&op->base.desc.in);
    if (kept) multiply_run(y, x, floats, scale_of(op->base.desc.dropout.rate));
    else memset(y, 0, floats * sizeof *y);
}

static void drop_whole(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const size_t floats = mri_tensor_floats(&op->base.desc.in);
    uint16_t draws[MRI_DRAW_GROUP];
    mri_draws(draws, key_of(op, a, i), 0, 1);
    const uint8_t kept = draws[0] >= threshold_of(op->base.desc.dropout.rate);
    ((uint8_t *)a->saved)[i] = kept;
    keep_sample(op, (float *)a->y + i * floats, (const float *)a->x + i * floats, kept);
}

static void drop_sample(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const mr_op_desc *desc = &op->base.desc;
    const mr_tensor *t = &desc->in;
    const size_t floats = mri_tensor_floats(t), elements = (size_t)t->h * t->w * t->c;
    const struct drop d = {t,
                           (float *)a->y + i * floats,
                           (const float *)a->x + i * floats,
                           (uint8_t *)a->saved + i * floats,
                           threshold_of(desc->dropout.rate),
                           scale_of(desc->dropout.rate)};
    const struct mri_draw_key key = key_of(op, a, i);
    const size_t chunk = t->c < CHUNK ? CHUNK / t->c * t->c : CHUNK; /* whole pixels */
    uint16_t draws[CHUNK + 2 * MRI_DRAW_GROUP];
    for (size_t at = 0; at < elements; at += chunk) {
        const size_t n = mri_min_u64(chunk, elements - at), group = at / MRI_DRAW_GROUP,
                     skip = at % MRI_DRAW_GROUP;
        mri_draws(draws, key, (uint32_t)group, (uint32_t)((skip + n + MRI_DRAW_GROUP - 1) / MRI_DRAW_GROUP));
        apply_range(&d, draws + skip, at, n);
    }
}

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    info->inplace = true;
    if (d->dropout.rate >= 0 && d->dropout.rate < 1) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "dropout: rate must be at least 0 and below 1");
}

static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    return mri_op_lacks(op, a, backward) || (!backward && a->training && !a->values);
}

static int prepare(mri_host_op *op, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t each = d->dropout.whole_samples ? 1 : mri_tensor_floats(&d->in);
    if (d->training) op->base.info.saved_bytes = each * d->max_batch;
    return MR_OK;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const size_t floats = mri_tensor_floats(&op->base.desc.in);
    if (!a->training || !op->base.desc.training) {
        if (a->y != a->x) memcpy(a->y, a->x, floats * sizeof(float) * a->n);
        return MR_OK;
    }
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++)
        if (op->base.desc.dropout.whole_samples) drop_whole(op, a, i);
        else drop_sample(op, a, i);
    mri_tensor_zero_padding(&op->base.desc.in, a->n, a->y);
    return MR_OK;
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    if (!d->need_dx) return MR_OK;
    const size_t floats = mri_tensor_floats(&d->in);
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++) {
        float *dx = (float *)a->dx + i * floats;
        const float *dy = (const float *)a->dy + i * floats;
        const uint8_t *kept = a->saved;
        if (d->dropout.whole_samples) keep_sample(op, dx, dy, kept[i]);
        else backward_run(dx, dy, kept + i * floats, floats, scale_of(d->dropout.rate));
    }
    mri_tensor_zero_padding(&d->in, a->n, a->dx);
    return MR_OK;
}

static const struct mri_op_code reference = {.prepare = prepare, .forward = forward, .backward = backward};
const struct mri_op_class mri_dropout_class = {
    .name = "dropout", .keeps_layout = true, .describe = describe, .lacks = lacks, .reference = &reference};
