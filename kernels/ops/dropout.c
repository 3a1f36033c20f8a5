/* kernels/ops/dropout.c: drops elements by 16-bit draws that depend on nothing but (seed, op_id, step, place of the sample in
 * the global batch, canonical element index), so any split of a batch and any layout drops the same ones.
 *
 * Elements in canonical order come in groups of 128. A group takes 16 Philox blocks, side by side in vector lanes: block j
 * (counter: group * 16 + j, place in batch; step) gives eight draws, and draw k of block j belongs to element k * 16 + j of
 * the group. That order needs no transposition, which makes the draws cheap next to a convolution.
 *
 * Forward keeps one byte an element for backward; repeating the draws would cost more than reading the bytes. */
#include <math.h>

#include "kernels/host_op.h"
#include "kernels/simd.h"

#define LANES 16u
#define GROUP (LANES * 8u)
#define CHUNK 4096u /* draws made at a time; they stay in the first-level cache */

struct draw_key {
    uint64_t key, step;
    uint32_t place; /* in the global batch */
};

/* Draws of `groups` groups from first_group on. Philox 4x32-10 as in base/util.h, over lanes. */
MRI_INLINE void draw_groups_body(uint16_t *restrict out, struct draw_key k, uint32_t first_group, uint32_t groups)
{
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
        for (uint32_t j = 0; j < LANES; j++) {
            c0[j] = (first_group + g) * LANES + j;
            c1[j] = k.place;
            c2[j] = (uint32_t)k.step;
            c3[j] = (uint32_t)(k.step >> 32);
        }
        uint32_t k0 = (uint32_t)k.key, k1 = (uint32_t)(k.key >> 32);
        for (int round = 0; round < 10; round++) {
            for (uint32_t j = 0; j < LANES; j++) {
                const uint64_t p0 = (uint64_t)0xD2511F53u * c0[j], p1 = (uint64_t)0xCD9E8D57u * c2[j];
                c0[j] = (uint32_t)(p1 >> 32) ^ c1[j] ^ k0;
                c1[j] = (uint32_t)p1;
                c2[j] = (uint32_t)(p0 >> 32) ^ c3[j] ^ k1;
                c3[j] = (uint32_t)p0;
            }
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        const uint32_t *const words[4] = {c0, c1, c2, c3};
        for (uint32_t w = 0; w < 4; w++)
            for (uint32_t j = 0; j < LANES; j++) {
                out[(2 * w) * LANES + j] = (uint16_t)words[w][j];
                out[(2 * w + 1) * LANES + j] = (uint16_t)(words[w][j] >> 16);
            }
        out += GROUP;
    }
}
MRI_SIMD_LOOP(draw_groups, (uint16_t *restrict out, struct draw_key k, uint32_t first_group, uint32_t groups),
              (out, k, first_group, groups))

MRI_INLINE void apply_run_body(float *y, const float *x, uint8_t *restrict kept, const uint16_t *restrict draws, size_t n,
                               uint32_t threshold, float scale)
{
    for (size_t i = 0; i < n; i++) {
        const bool keep = draws[i] >= threshold;
        kept[i] = keep;
        y[i] = keep ? x[i] * scale : 0;
    }
}
MRI_SIMD_LOOP(apply_run,
              (float *y, const float *x, uint8_t *restrict kept, const uint16_t *restrict draws, size_t n, uint32_t threshold,
               float scale),
              (y, x, kept, draws, n, threshold, scale))

MRI_INLINE void backward_run_body(float *dx, const float *dy, const uint8_t *restrict kept, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) dx[i] = kept[i] ? dy[i] * scale : 0;
}
MRI_SIMD_LOOP(backward_run, (float *dx, const float *dy, const uint8_t *restrict kept, size_t n, float scale),
              (dx, dy, kept, n, scale))

static uint32_t threshold_of(float rate) { return (uint32_t)lrintf(rate * 65536.0f); }
static float    scale_of(float rate) { return 1.0f / (1.0f - rate); }

/* Elements [from, from + n) in canonical order, wherever the layout puts them. NHWC is one run; blocked channels and planes are
 * runs of at most a block inside each pixel. */
static void apply_range(const mr_tensor *t, float *y, const float *x, uint8_t *kept, const uint16_t *draws, size_t from, size_t n,
                        uint32_t threshold, float scale)
{
    if (t->layout == MR_LAYOUT_NHWC) {
        apply_run(y + from, x + from, kept + from, draws, n, threshold, scale);
        return;
    }
    const uint32_t block = mri_layout_block(t);
    for (size_t done = 0; done < n;) {
        const size_t   e = from + done;
        const uint32_t c = (uint32_t)(e % t->c);
        size_t run = block - c % block;
        if (run > t->c - c) run = t->c - c;
        if (run > n - done) run = n - done;
        const size_t at = mri_tensor_index(t, e / t->c, c);
        for (size_t i = 0; i < run; i++) { /* 16 at most: too short to dispatch */
            const bool keep = draws[done + i] >= threshold;
            kept[at + i] = keep;
            y[at + i] = keep ? x[at + i] * scale : 0;
        }
        done += run;
    }
}

static void drop_sample(const mri_host_op *op, const mr_op_args *a, uint32_t i)
{
    const mr_op_desc *d = &op->base.desc;
    const mr_tensor  *t = &d->in;
    const size_t      floats = mri_tensor_floats(t), elements = (size_t)t->h * t->w * t->c;
    const struct draw_key key = {mri_mix64(mri_mix64(a->seed) + d->op_id), a->step, a->first + i};
    uint16_t draws[CHUNK];
    for (size_t at = 0; at < elements; at += CHUNK) {
        const size_t n = elements - at < CHUNK ? elements - at : CHUNK;
        draw_groups(draws, key, (uint32_t)(at / GROUP), (uint32_t)((n + GROUP - 1) / GROUP));
        apply_range(t, (float *)a->y + i * floats, (const float *)a->x + i * floats, (uint8_t *)a->saved + i * floats, draws, at,
                    n, threshold_of(d->rate), scale_of(d->rate));
    }
}

static int prepare(mri_host_op *op, mr_error *err)
{
    (void)err;
    op->base.info.out = op->base.desc.in;
    if (op->base.desc.training) op->base.info.saved_bytes = mri_tensor_floats(&op->base.desc.in) * op->base.desc.max_batch;
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
    for (uint32_t i = 0; i < a->n; i++) drop_sample(op, a, i);
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
    for (uint32_t i = 0; i < a->n; i++)
        backward_run((float *)a->dx + i * floats, (const float *)a->dy + i * floats, (const uint8_t *)a->saved + i * floats,
                     floats, scale_of(d->rate));
    mri_tensor_zero_padding(&d->in, a->n, a->dx);
    return MR_OK;
}

const struct mri_op_code mri_dropout_code = {.prepare = prepare, .forward = forward, .backward = backward};
