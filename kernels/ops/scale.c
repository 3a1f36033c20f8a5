/* kernels/ops/scale.c: every channel of every sample times a factor of its own, as squeeze and excitation
 * asks for (Hu et al. 2018). x in any layout; the factors are 1 x 1 x c in any layout of theirs, where
 * channel follows channel in all of them.
 *
 * A tile is the pixels of a sample in up to 64 channels that are neighbours in memory (a plane, a block, a
 * piece of a row of NHWC); one thread takes it as a whole. The gradient to a factor is a sum over pixels: of
 * runs of 64 pixels in float, of runs in double, in order. So it depends on neither threads nor batch. */
#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

#define TILE 64u /* channels */
#define RUN  64u /* pixels; a tile stays in the second-level cache between sum and product */

/* rows of width values, stride apart, each times the same factors. */
MRI_INLINE void rows_body(float *y, const float *x, const float *factor, size_t rows, size_t stride,
                          uint32_t width)
{
    for (size_t r = 0; r < rows; r++)
#pragma omp simd
        for (uint32_t k = 0; k < width; k++) y[r * stride + k] = x[r * stride + k] * factor[k];
}

MRI_INLINE void multiply_body(float *y, const float *x, const float *factor, size_t rows, size_t stride,
                              uint32_t width)
{
    if (width == 8) rows_body(y, x, factor, rows, stride, 8);
    else if (width == 16) rows_body(y, x, factor, rows, stride, 16);
    else if (width == TILE) rows_body(y, x, factor, rows, stride, TILE);
    else rows_body(y, x, factor, rows, stride, width);
}
MRI_SIMD_LOOP(multiply,
              (float *y, const float *x, const float *factor, size_t rows, size_t stride, uint32_t width),
              (y, x, factor, rows, stride, width))

MRI_INLINE void columns_body(float *restrict sum, const float *dy, const float *x, size_t rows, size_t stride,
                             uint32_t width)
{
    for (size_t r = 0; r < rows; r++)
#pragma omp simd
        for (uint32_t k = 0; k < width; k++) sum[k] += dy[r * stride + k] * x[r * stride + k];
}

/* sum[k] += the products of column k, row after row. */
MRI_INLINE void add_products_body(float *restrict sum, const float *dy, const float *x, size_t rows,
                                  size_t stride, uint32_t width)
{
    if (width == 8) columns_body(sum, dy, x, rows, stride, 8);
    else if (width == 16) columns_body(sum, dy, x, rows, stride, 16);
    else if (width == TILE) columns_body(sum, dy, x, rows, stride, TILE);
    else columns_body(sum, dy, x, rows, stride, width);
}
MRI_SIMD_LOOP(add_products,
              (float *restrict sum, const float *dy, const float *x, size_t rows, size_t stride,
               uint32_t width),
              (sum, dy, x, rows, stride, width))

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_tensor *a = &d->in, *b = &d->in2;
    if (b->h != 1 || b->w != 1 || b->c != a->c || b->dtype != a->dtype)
        return mr_error_set(err, MR_EINVAL,
                            "scale: the second input must be 1 x 1 x %u of type %u, a factor for each "
                            "channel of the first, found %u x %u x %u of type %u",
                            a->c, a->dtype, b->h, b->w, b->c, b->dtype);
    info->writes_dx2 = true;
    info->flops_per_sample = (double)a->h * a->w * a->c;
    return MR_OK;
}

static bool takes_two(const mr_op_desc *d)
{
    (void)d;
    return true;
}

static bool lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    return mri_op_lacks(op, a, backward) || (backward && (!a->x || !a->x2));
}

static int prepare(mri_host_op *op, mr_error *err)
{
    const mr_tensor *second = &op->base.desc.in2;
    if (mri_tensor_valid(second)) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "scale: the second input's layout %u with %zu bytes a sample is not one this device makes",
        second->layout, second->sample_bytes);
}

struct tile {
    uint32_t first, width; /* channels; width excludes a layout's padding */
    uint32_t stored;       /* with them */
    size_t at, stride;     /* floats: of the first value in a sample, from pixel to pixel */
};

static uint32_t step_of(const mr_tensor *t)
{
    return t->layout == MR_LAYOUT_NHWC ? TILE : mri_layout_block(t);
}
static uint32_t tiles_of(const mr_tensor *t) { return (t->c - 1) / step_of(t) + 1; }

static struct tile tile_of(const mr_tensor *t, uint32_t number)
{
    const bool rows = t->layout == MR_LAYOUT_NHWC;
    const uint32_t step = step_of(t), first = number * step, left = t->c - first,
                   width = left < step ? left : step;
    return (struct tile){.first = first,
                         .width = width,
                         .stored = rows ? width : step,
                         .at = mri_tensor_index(t, 0, first),
                         .stride = rows ? t->c : step};
}

/* A plane is one column of pixels; neighbouring pixels are handled like channels. */
static void multiply_tile(const struct tile *k, float *y, const float *x, const float *factors, size_t pixels)
{
    float mine[TILE] = {0}; /* entries of a layout's padding stay zero */
    memcpy(mine, factors + k->first, k->width * sizeof *mine);
    if (k->stored > 1 || k->stride > 1) {
        multiply(y, x, mine, pixels, k->stride, k->stored);
        return;
    }
    for (uint32_t i = 1; i < TILE; i++) mine[i] = mine[0];
    multiply(y, x, mine, pixels / TILE, TILE, TILE);
    const size_t done = pixels / TILE * TILE;
    multiply(y + done, x + done, mine, 1, TILE, (uint32_t)(pixels - done));
}

static void sum_tile(const struct tile *k, double *sums, const float *dy, const float *x, size_t pixels)
{
    float run[TILE] = {0};
    if (k->stored > 1 || k->stride > 1) {
        add_products(run, dy, x, pixels, k->stride, k->stored);
        for (uint32_t i = 0; i < k->width; i++) sums[i] += (double)run[i];
        return;
    }
    add_products(run, dy, x, 1, TILE, (uint32_t)pixels);
    for (uint32_t i = 0; i < pixels; i++) sums[0] += (double)run[i];
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_tensor *t = &op->base.desc.in;
    const size_t floats = mri_tensor_floats(t), factor_floats = mri_tensor_floats(&op->base.desc.in2);
    const uint32_t tiles = tiles_of(t);
#pragma omp parallel for collapse(2) schedule(static) if (a->n * floats > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t number = 0; number < tiles; number++) {
            const struct tile k = tile_of(t, number);
            const size_t at = i * floats + k.at;
            multiply_tile(&k, (float *)a->y + at, (const float *)a->x + at,
                          (const float *)a->x2 + i * factor_floats, (size_t)t->h * t->w);
        }
    return MR_OK;
}

/* dx and the gradients to the factors of one tile of sample i. */
static void backward_tile(const mri_host_op *op, const mr_op_args *a, uint32_t i, const struct tile *k)
{
    const mr_op_desc *d = &op->base.desc;
    const size_t at = i * mri_tensor_floats(&d->in) + k->at, pixels = (size_t)d->in.h * d->in.w,
                 factor_at = i * mri_tensor_floats(&d->in2);
    const float *dy = (const float *)a->dy + at, *x = (const float *)a->x + at;
    float *dx = d->need_dx ? (float *)a->dx + at : NULL;
    double sums[TILE] = {0};
    for (size_t from = 0; from < pixels; from += RUN) {
        const size_t count = pixels - from < RUN ? pixels - from : RUN, to = from * k->stride;
        if (a->dx2) sum_tile(k, sums, dy + to, x + to, count);
        if (dx) multiply_tile(k, dx + to, dy + to, (const float *)a->x2 + factor_at, count);
    }
    for (uint32_t c = 0; a->dx2 && c < k->width; c++)
        ((float *)a->dx2)[factor_at + k->first + c] = (float)sums[c];
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const uint32_t tiles = tiles_of(&d->in);
    const size_t floats = mri_tensor_floats(&d->in);
#pragma omp parallel for collapse(2) schedule(static) if (a->n * floats > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t number = 0; number < tiles; number++) {
            const struct tile k = tile_of(&d->in, number);
            backward_tile(op, a, i, &k);
        }
    if (a->dx2) mri_tensor_zero_padding(&d->in2, a->n, a->dx2);
    return MR_OK;
}

static const struct mri_op_code reference = {.prepare = prepare, .forward = forward, .backward = backward};
const struct mri_op_class mri_scale_class = {.name = "scale",
                                             .keeps_layout = true,
                                             .describe = describe,
                                             .takes_two = takes_two,
                                             .lacks = lacks,
                                             .reference = &reference};
