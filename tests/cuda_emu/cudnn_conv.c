/* tests/cuda_emu/cudnn_conv.c: the three passes of a convolution as products of matrices, a strip of pixels
 * at a time.
 *
 *   forward   y[pixel][k]      = patch of x [pixel][r s c] * w[r s c][k]
 *   data      x[pixel][c]      = patch of y [pixel][r s k] * w[r s k][c]     the pixels of y that this one of
 *             x went into
 *   filter    w[k][r s c]      = sum over pixels of y[pixel][k] * patch of x [pixel][r s c]
 *
 * Tensors are first unpacked to f32 with neighbouring channels, whatever their layout and type, and the
 * result is packed back. Where x has more channels than w, each group is a convolution of its own on its
 * share of the three tensors, one after the other. */
#include <stdlib.h>

#include "tests/cuda_emu/emu_cudnn.h"

enum { STRIP = 64 };

size_t emu_dnn_tensor_bytes(const struct emu_dnn_tensor *t)
{
    int64_t last = 0;
    for (int i = 0; i < 4; i++) last += (t->dim[i] - 1) * t->stride[i];
    return ((size_t)last + 1) * emu_type_bytes(t->type);
}

/* To [0][2][3][1] of its dimensions: n h w c, or k r s c. */
static float *unpack(const struct emu_dnn_tensor *t, const void *at, enum emu_rounding rounding)
{
    const int64_t *d = t->dim, *s = t->stride;
    float *out = emu_floats((size_t)(d[0] * d[1] * d[2] * d[3])), *to = out;
    for (int64_t n = 0; n < d[0]; n++)
        for (int64_t y = 0; y < d[2]; y++)
            for (int64_t x = 0; x < d[3]; x++) {
                const int64_t from = n * s[0] + y * s[2] + x * s[3];
                for (int64_t c = 0; c < d[1]; c++)
                    *to++ = emu_round(rounding, emu_load(t->type, at, from + c * s[1]));
            }
    return out;
}

struct packing {
    const struct emu_dnn_tensor *t;
    void *at;
    float alpha, beta;
    bool coarse;
};

static void pack_row(const struct packing *to, int64_t offset, const float *sums)
{
    for (int64_t c = 0; c < to->t->dim[1]; c++) {
        const int64_t at = offset + c * to->t->stride[1];
        /* 0: it may hold anything */
        const float before = to->beta != 0 ? to->beta * emu_load(to->t->type, to->at, at) : 0;
        const float sum = to->coarse ? emu_drop_bits(sums[c], 18) : sums[c];
        emu_store(to->t->type, to->at, at, to->alpha * sum + before);
    }
}

/* Pixel number p of a tensor, counted through n, h, w. */
struct pixel {
    int64_t n, y, x;
};

static struct pixel pixel_of(const struct emu_dnn_tensor *t, int64_t p)
{
    return (struct pixel){p / (t->dim[2] * t->dim[3]), p / t->dim[3] % t->dim[2], p % t->dim[3]};
}

static int64_t pixel_offset(const struct emu_dnn_tensor *t, int64_t p)
{
    const struct pixel at = pixel_of(t, p);
    return at.n * t->stride[0] + at.y * t->stride[2] + at.x * t->stride[3];
}

/* Where the tap at (r, s) of the filter lies in memory. */
static int64_t tap_of(const struct emu_dnn_conv *c, int64_t r, int64_t s)
{
    if (!c->mirrored) return r * c->w.dim[3] + s;
    return (c->w.dim[2] - 1 - r) * c->w.dim[3] + c->w.dim[3] - 1 - s;
}

/* What output pixel p saw of x, in the order of the filter's memory. */
static void patch_of_x(float *out, const struct emu_dnn_conv *c, const float *x, int64_t p)
{
    const struct pixel at = pixel_of(&c->y, p);
    const int64_t channels = c->x.dim[1];
    for (int64_t r = 0; r < c->w.dim[2]; r++)
        for (int64_t s = 0; s < c->w.dim[3]; s++) {
            const int64_t py = at.y * c->stride[0] - c->before[0] + r * c->dilation[0];
            const int64_t px = at.x * c->stride[1] - c->before[1] + s * c->dilation[1];
            float *to = out + tap_of(c, r, s) * channels;
            if (py < 0 || py >= c->x.dim[2] || px < 0 || px >= c->x.dim[3])
                memset(to, 0, (size_t)channels * sizeof *to);
            else
                memcpy(to, x + ((at.n * c->x.dim[2] + py) * c->x.dim[3] + px) * channels,
                       (size_t)channels * sizeof *to);
        }
}

/* Output coordinate that saw this input coordinate through tap r along one axis; -1: none. */
static int64_t seen_by(const struct emu_dnn_conv *c, int axis, int64_t at, int64_t r)
{
    const int64_t shifted = at + c->before[axis] - r * c->dilation[axis];
    if (shifted < 0 || shifted % c->stride[axis] != 0 || shifted / c->stride[axis] >= c->y.dim[2 + axis])
        return -1;
    return shifted / c->stride[axis];
}

/* The pixels of y that input pixel p went into. */
static void patch_of_y(float *out, const struct emu_dnn_conv *c, const float *y, int64_t p)
{
    const struct pixel at = pixel_of(&c->x, p);
    const int64_t filters = c->y.dim[1];
    for (int64_t r = 0; r < c->w.dim[2]; r++)
        for (int64_t s = 0; s < c->w.dim[3]; s++) {
            const int64_t py = seen_by(c, 0, at.y, r), px = seen_by(c, 1, at.x, s);
            float *to = out + tap_of(c, r, s) * filters;
            if (py < 0 || px < 0) memset(to, 0, (size_t)filters * sizeof *to);
            else
                memcpy(to, y + ((at.n * c->y.dim[2] + py) * c->y.dim[3] + px) * filters,
                       (size_t)filters * sizeof *to);
        }
}

static struct emu_sum_order order_of(const struct emu_dnn_way *way, size_t terms)
{
    static _Atomic unsigned calls;
    const unsigned fraction = way->any_order ? 37 * ++calls % 256 : way->fraction;
    return (struct emu_sum_order){.start = terms * fraction / 256, .split = way->split};
}

/* Forward and data: each pixel of `out` is a patch of `seen` times all weights. */
static void run_pixels(const struct emu_dnn_job *j, const float *seen, const float *panels,
                       const struct packing *to, size_t terms,
                       void (*patch)(float *, const struct emu_dnn_conv *, const float *, int64_t))
{
    const int64_t pixels = to->t->dim[0] * to->t->dim[2] * to->t->dim[3];
    const size_t columns = (size_t)to->t->dim[1];
    float *patches = emu_floats(STRIP * terms), *sums = emu_floats(STRIP * columns);
    for (int64_t from = 0; from < pixels; from += STRIP) {
        const int64_t here = pixels - from < STRIP ? pixels - from : STRIP;
        for (int64_t i = 0; i < here; i++) patch(patches + (size_t)i * terms, &j->conv, seen, from + i);
        emu_multiply(sums, columns, patches, terms, 1, panels, (size_t)here, columns, terms,
                     order_of(&j->way, terms), false);
        for (int64_t i = 0; i < here; i++)
            pack_row(to, pixel_offset(to->t, from + i), sums + (size_t)i * columns);
    }
    free(patches);
    free(sums);
}

static void run_forward(const struct emu_dnn_job *j)
{
    const struct emu_dnn_conv *c = &j->conv;
    const size_t filters = (size_t)c->w.dim[0], terms = (size_t)(c->w.dim[1] * c->w.dim[2] * c->w.dim[3]);
    float *x = unpack(&c->x, j->x, j->way.rounding), *w = unpack(&c->w, j->w, j->way.rounding);
    float *panels = emu_floats(emu_panels_floats(terms, filters));
    emu_panels(panels, w, 1, terms, terms, filters);
    const struct packing to = {
        .t = &c->y, .at = j->y, .alpha = c->alpha, .beta = c->beta, .coarse = j->way.coarse};
    run_pixels(j, x, panels, &to, terms, patch_of_x);
    free(x);
    free(w);
    free(panels);
}

static void run_data(const struct emu_dnn_job *j)
{
    const struct emu_dnn_conv *c = &j->conv;
    const size_t filters = (size_t)c->w.dim[0], channels = (size_t)c->w.dim[1],
                 taps = (size_t)(c->w.dim[2] * c->w.dim[3]);
    float *y = unpack(&c->y, j->y, j->way.rounding), *w = unpack(&c->w, j->w, j->way.rounding);
    float *turned = emu_floats(taps * filters * channels),
          *panels = emu_floats(emu_panels_floats(taps * filters, channels));
    for (size_t k = 0; k < filters; k++)
        for (size_t t = 0; t < taps; t++)
            memcpy(turned + (t * filters + k) * channels, w + (k * taps + t) * channels,
                   channels * sizeof *w);
    emu_panels(panels, turned, channels, 1, taps * filters, channels);
    const struct packing to = {
        .t = &c->x, .at = j->x, .alpha = c->alpha, .beta = c->beta, .coarse = j->way.coarse};
    run_pixels(j, y, panels, &to, taps * filters, patch_of_y);
    free(y);
    free(w);
    free(turned);
    free(panels);
}

static void run_filter(const struct emu_dnn_job *j)
{
    const struct emu_dnn_conv *c = &j->conv;
    const size_t filters = (size_t)c->w.dim[0], terms = (size_t)(c->w.dim[1] * c->w.dim[2] * c->w.dim[3]);
    const int64_t pixels = c->y.dim[0] * c->y.dim[2] * c->y.dim[3];
    float *x = unpack(&c->x, j->x, j->way.rounding), *y = unpack(&c->y, j->y, j->way.rounding);
    float *patches = emu_floats(STRIP * terms), *panels = emu_floats(emu_panels_floats(STRIP, terms));
    float *sums = emu_floats(filters * terms);
    memset(sums, 0, filters * terms * sizeof *sums);
    for (int64_t from = 0; from < pixels; from += STRIP) {
        const size_t here = (size_t)(pixels - from < STRIP ? pixels - from : STRIP);
        for (size_t i = 0; i < here; i++) patch_of_x(patches + i * terms, c, x, from + (int64_t)i);
        emu_panels(panels, patches, terms, 1, here, terms);
        emu_multiply(sums, terms, y + (size_t)from * filters, 1, filters, panels, filters, terms, here,
                     order_of(&j->way, here), true);
    }
    const struct packing to = {
        .t = &c->w, .at = j->w, .alpha = c->alpha, .beta = c->beta, .coarse = j->way.coarse};
    for (int64_t p = 0; p < c->w.dim[0] * c->w.dim[2] * c->w.dim[3]; p++)
        pack_row(&to, pixel_offset(&c->w, p), sums + (size_t)(p * c->w.dim[1]));
    free(x);
    free(y);
    free(patches);
    free(panels);
    free(sums);
}

/* Share number `at` of `shares` along an axis of t. */
static void *share_of(struct emu_dnn_tensor *t, int axis, void *address, int64_t shares, int64_t at)
{
    t->dim[axis] /= shares;
    return (unsigned char *)address + at * t->dim[axis] * t->stride[axis] * (int64_t)emu_type_bytes(t->type);
}

void emu_dnn_run(void *job)
{
    const struct emu_dnn_job *j = job;
    const int64_t groups = j->conv.x.dim[1] / j->conv.w.dim[1];
    if (j->workspace) emu_scribble(j->workspace, j->way.workspace_bytes);
    for (int64_t g = 0; g < groups; g++) {
        struct emu_dnn_job one = *j;
        one.x = share_of(&one.conv.x, 1, j->x, groups, g);
        one.w = share_of(&one.conv.w, 0, j->w, groups, g);
        one.y = share_of(&one.conv.y, 1, j->y, groups, g);
        switch (j->conv.pass) {
        case EMU_FORWARD: run_forward(&one); break;
        case EMU_BACKWARD_DATA: run_data(&one); break;
        case EMU_BACKWARD_FILTER: run_filter(&one); break;
        }
    }
}
