/* kernels/ops/dnnl/winograd_tiles.h: the arithmetic of Winograd's convolution, F(4 x 4, 3 x 3) of Lavin &
 * Gray (2016), section 4.3. Included once for each instruction set, which says its floats a vector (LANES),
 * the rows of a product that fit its registers (ROWS), its function attribute (TARGET) and its names (NAME).
 *
 *   forward    V = B'dB of a tile of 6 x 6 inputs, U = GgG' of 3 x 3 weights, M = sum over channels of V U at
 *              each of the 36 points, outputs of 4 x 4 = A'MA
 *   weights    D = AyA' of a tile of 4 x 4 gradients, dU = sum over tiles of V D, G'(dU)G
 *
 * A sum runs in the order of channels (of tiles) whatever the number of lanes, so every variant gives the
 * same bits. The gradient to the input is forward with turned weights. */
#include "kernels/host/simd_loop.h"
#include "kernels/ops/dnnl/winograd.h"

#define PANEL  ((size_t)2 * LANES) /* columns of a product at a time */
#define INLINE TARGET MRI_INLINE

typedef float NAME(vector) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define V NAME(vector)

/* ---- transforms of one line; in and out may be the same ---- */

INLINE void NAME(inputs)(V *out, size_t step, V d0, V d1, V d2, V d3, V d4, V d5)
{
    const V even = d4 - 4 * d2, odd = d3 - 4 * d1, near = d4 - d2, far = 2 * (d3 - d1);
    out[0] = 4 * d0 - 5 * d2 + d4;
    out[step] = even + odd;
    out[2 * step] = even - odd;
    out[3 * step] = near + far;
    out[4 * step] = near - far;
    out[5 * step] = 4 * d1 - 5 * d3 + d5;
}

INLINE void NAME(outputs)(V *out, size_t step, const V *m, size_t m_step)
{
    const V sum = m[m_step] + m[2 * m_step], difference = m[m_step] - m[2 * m_step],
            sum2 = m[3 * m_step] + m[4 * m_step], difference2 = m[3 * m_step] - m[4 * m_step];
    out[0] = m[0] + sum + sum2;
    out[step] = difference + 2 * difference2;
    out[2 * step] = sum + 4 * sum2;
    out[3 * step] = difference + 8 * difference2 + m[5 * m_step];
}

INLINE void NAME(gradients)(V *out, size_t step, V y0, V y1, V y2, V y3)
{
    const V even = y0 + y2, odd = y1 + y3, even2 = y0 + 4 * y2, odd2 = 2 * y1 + 8 * y3;
    out[0] = y0;
    out[step] = even + odd;
    out[2 * step] = even - odd;
    out[3 * step] = even2 + odd2;
    out[4 * step] = even2 - odd2;
    out[5 * step] = y3;
}

INLINE void NAME(weights)(V *out, size_t step, V g0, V g1, V g2)
{
    const V ends = g0 + g2, ends2 = (g0 + 4 * g2) * (1.0f / 24), middle2 = g1 * (1.0f / 12);
    out[0] = g0 * 0.25f;
    out[step] = (ends + g1) * (-1.0f / 6);
    out[2 * step] = (ends - g1) * (-1.0f / 6);
    out[3 * step] = ends2 + middle2;
    out[4 * step] = ends2 - middle2;
    out[5 * step] = g2;
}

INLINE void NAME(weight_sums)(V *out, size_t step, const V *u, size_t u_step)
{
    const V sum = (u[u_step] + u[2 * u_step]) * (1.0f / 6), sum2 = u[3 * u_step] + u[4 * u_step];
    out[0] = u[0] * 0.25f - sum + sum2 * (1.0f / 24);
    out[step] = (u[2 * u_step] - u[u_step]) * (1.0f / 6) + (u[3 * u_step] - u[4 * u_step]) * (1.0f / 12);
    out[2 * step] = sum2 * (1.0f / 6) - sum + u[5 * u_step];
}

/* ---- of tiles ---- */

/* `size` x `size` pixels from (y, x), which may lie outside: zeros there. */
INLINE void NAME(load_tile)(V *tile, uint32_t size, const float *image, const struct mri_winograd_array *a,
                            int32_t y, int32_t x)
{
    static const float nothing[LANES];
    const int32_t h = (int32_t)a->t.h, w = (int32_t)a->t.w, end = (int32_t)size;
    if (y >= 0 && x >= 0 && y + end <= h && x + end <= w) {
        const float *at = image + ((size_t)y * a->t.w + (size_t)x) * a->step;
        for (int32_t i = 0; i < end; i++, at += a->t.w * a->step)
            for (int32_t j = 0; j < end; j++)
                tile[i * end + j] = *(const V *)(const void *)(at + (size_t)j * a->step);
        return;
    }
    for (int32_t i = 0; i < end; i++)
        for (int32_t j = 0; j < end; j++) { /* without branches: tiles differ in their outside part */
            const bool inside = ((uint32_t)(y + i) < (uint32_t)h) & ((uint32_t)(x + j) < (uint32_t)w);
            const ptrdiff_t pixel = (ptrdiff_t)(y + i) * w + x + j;
            const float *from = inside ? image + pixel * (ptrdiff_t)a->step : nothing;
            tile[i * end + j] = *(const V *)(const void *)from;
        }
}

/* B'dB of a vector of channels; the 36 results `apart` floats from each other. */
INLINE void NAME(store_inputs)(float *to, size_t apart, const float *image,
                               const struct mri_winograd_array *a, int32_t y, int32_t x)
{
    V d[36], t[36], line[6];
    NAME(load_tile)(d, 6, image, a, y, x);
    for (int j = 0; j < 6; j++)
        NAME(inputs)(t + j, 6, d[j], d[6 + j], d[12 + j], d[18 + j], d[24 + j], d[30 + j]);
    for (int i = 0; i < 6; i++) {
        const V *r = t + 6 * i;
        NAME(inputs)(line, 1, r[0], r[1], r[2], r[3], r[4], r[5]);
        for (int j = 0; j < 6; j++) *(V *)(void *)(to + (size_t)(6 * i + j) * apart) = line[j];
    }
}

INLINE void NAME(store_gradients)(float *to, size_t apart, const float *image,
                                  const struct mri_winograd_array *a, int32_t y, int32_t x)
{
    V d[16], t[24], line[6];
    NAME(load_tile)(d, 4, image, a, y, x);
    for (int j = 0; j < 4; j++) NAME(gradients)(t + j, 4, d[j], d[4 + j], d[8 + j], d[12 + j]);
    for (int i = 0; i < 6; i++) {
        const V *r = t + 4 * i;
        NAME(gradients)(line, 1, r[0], r[1], r[2], r[3]);
        for (int j = 0; j < 6; j++) *(V *)(void *)(to + (size_t)(6 * i + j) * apart) = line[j];
    }
}

INLINE void NAME(store_outputs)(float *image, const struct mri_winograd_array *a, uint32_t y, uint32_t x,
                                const float *from, size_t apart, V bias, bool relu)
{
    V m[36], t[24], out[16];
    for (int i = 0; i < 36; i++) m[i] = *(const V *)(const void *)(from + (size_t)i * apart);
    for (int j = 0; j < 6; j++) NAME(outputs)(t + j, 6, m + j, 6);
    for (int i = 0; i < 4; i++) NAME(outputs)(out + 4 * i, 1, t + 6 * i, 1);
    const uint32_t rows = a->t.h - y < 4 ? a->t.h - y : 4, columns = a->t.w - x < 4 ? a->t.w - x : 4;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < columns; j++) {
            V v = out[4 * i + j] + bias;
            if (relu) v = MAXIMUM((V){0}, v); /* a NaN stays a NaN */
            *(V *)(void *)(image + ((size_t)(y + i) * a->t.w + x + j) * a->step) = v;
        }
}

/* ---- products ---- */

/* c[rows][PANEL] = or += the sum over k of a[row * a_row + k * a_step] * b[k][PANEL]. rows: a constant. */
INLINE void NAME(product)(size_t rows, size_t deep, const float *a, size_t a_row, size_t a_step,
                          const float *b, float *c, size_t c_row, bool adds)
{
    V sum[ROWS][2];
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) sum[i][0] = sum[i][1] = (V){0};
    for (size_t k = 0; k < deep; k++, a += a_step, b += PANEL) {
        const V b0 = *(const V *)(const void *)b, b1 = *(const V *)(const void *)(b + LANES);
#pragma GCC unroll 16
        for (size_t i = 0; i < rows; i++) {
            const V v = BROADCAST(a[i * a_row]);
            sum[i][0] = MULTIPLY_ADD(v, b0, sum[i][0]);
            sum[i][1] = MULTIPLY_ADD(v, b1, sum[i][1]);
        }
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < rows; i++) {
        V *at = (V *)(void *)(c + i * c_row), *next = (V *)(void *)(c + i * c_row + LANES);
        if (adds) sum[i][0] += *at, sum[i][1] += *next;
        *at = sum[i][0];
        *next = sum[i][1];
    }
}

/* ---- what winograd.c calls ---- */

/* Rows a product takes at a time are multiples of it. */
enum { NAME(rows) = ROWS };

/* Weights [3][3][from][to] of one `from` channel, or turned ones of one vector of them. */
TARGET static void NAME(transform_weights)(const struct mri_winograd_pass *p, const float *weights, float *u,
                                           uint32_t at)
{
    const size_t in = p->in.t.c, out = p->out.t.c, panel_floats = in * PANEL,
                 point_floats = mri_winograd_panels(out, PANEL) * panel_floats;
    float turned[9][LANES][LANES];
    for (size_t k = 0; k < out; k += LANES) {
        /* what comes in is a vector's worth in turned weights, one channel otherwise */
        const size_t first = p->turned ? (size_t)at * LANES : at, count = p->turned ? LANES : 1;
        if (p->turned)
            for (size_t tap = 0; tap < 9; tap++)
                for (size_t i = 0; i < LANES; i++) /* stored as [tap][out][in] */
                    for (size_t j = 0; j < LANES; j++)
                        turned[8 - tap][j][i] = weights[(tap * out + k + i) * in + first + j];
        for (size_t c = 0; c < count; c++) {
            V g[9], t[18], line[6];
            for (size_t tap = 0; tap < 9; tap++)
                g[tap] = *(const V *)(const void *)(p->turned ? turned[tap][c]
                                                              : weights + (tap * in + first) * out + k);
            for (int j = 0; j < 3; j++) NAME(weights)(t + j, 3, g[j], g[3 + j], g[6 + j]);
            float *to = u + k / PANEL * panel_floats + (first + c) * PANEL + k % PANEL;
            for (int i = 0; i < 6; i++) {
                NAME(weights)(line, 1, t[3 * i], t[3 * i + 1], t[3 * i + 2]);
                for (size_t j = 0; j < 6; j++)
                    *(V *)(void *)(to + (6 * (size_t)i + j) * point_floats) = line[j];
            }
        }
    }
}

/* Tiles [first, first + count) of the batch, forward. mine: a thread's own memory. */
TARGET static void NAME(run_tiles)(const struct mri_winograd_pass *p, size_t first, size_t count,
                                   const float *src, const float *u, const float *bias, float *dst,
                                   float *mine)
{
    const size_t in = p->in.t.c, out = p->out.t.c, panels = mri_winograd_panels(out, PANEL), v_row = in + 16,
                 v_apart = p->block * v_row, m_row = panels * 36 * PANEL;
    float *v = mine, *m = mine + 36 * v_apart;
    for (size_t t = 0; t < count; t++) {
        const struct mri_winograd_tile at = mri_winograd_tile_at(p, first + t);
        for (size_t c = 0; c < in; c += LANES) NAME(store_inputs)
        (v + t * v_row + c, v_apart,
         src + at.sample * p->in.floats + mri_tensor_index(&p->in.t, 0, (uint32_t)c), &p->in,
         (int32_t)at.y - p->top, (int32_t)at.x - p->left);
    }
    for (size_t point = 0; point < 36; point++)
        for (size_t panel = 0; panel < panels; panel++)
            for (size_t t = 0; t < count; t += ROWS) NAME(product)
    (ROWS, in, v + point * v_apart + t * v_row, v_row, 1, u + (point * panels + panel) * in * PANEL,
     m + t * m_row + (panel * 36 + point) * PANEL, m_row, false);
    for (size_t t = 0; t < count; t++) {
        const struct mri_winograd_tile at = mri_winograd_tile_at(p, first + t);
        for (size_t k = 0; k < out; k += LANES) NAME(store_outputs)
        (dst + at.sample * p->out.floats + mri_tensor_index(&p->out.t, 0, (uint32_t)k), &p->out, at.y, at.x,
         m + t * m_row + k / PANEL * 36 * PANEL + k % PANEL, PANEL,
         bias ? *(const V *)(const void *)(bias + k) : (V){0}, p->relu);
    }
}

/* V and D of one tile, the t-th of a round. */
TARGET static void NAME(transform_pair)(const struct mri_winograd_pass *p, size_t tile, size_t t,
                                        const float *x, const float *dy, float *v, float *d)
{
    const struct mri_winograd_tile at = mri_winograd_tile_at(p, tile);
    const size_t in = p->in.t.c, out = p->out.t.c, panels = mri_winograd_panels(out, PANEL);
    for (size_t c = 0; c < in; c += LANES) NAME(store_inputs)
    (v + c * p->block + t * LANES, mri_winograd_apart(p, in),
     x + at.sample * p->in.floats + mri_tensor_index(&p->in.t, 0, (uint32_t)c), &p->in,
     (int32_t)at.y - p->top, (int32_t)at.x - p->left);
    for (size_t k = 0; k < out; k += LANES) NAME(store_gradients)
    (d + k / PANEL * p->block * PANEL + t * PANEL + k % PANEL, mri_winograd_apart(p, panels * PANEL),
     dy + at.sample * p->out.floats + mri_tensor_index(&p->out.t, 0, (uint32_t)k), &p->out, (int32_t)at.y,
     (int32_t)at.x);
}

/* One panel of one point: du += V D over a round's tiles; and, at the point whose D is a tile's sum, the
 * bias. */
TARGET static void NAME(add_products)(const struct mri_winograd_pass *p, size_t unit, size_t count,
                                      const float *v, const float *d, float *du, double *bias, bool adds)
{
    const size_t in = p->in.t.c, panels = mri_winograd_panels(p->out.t.c, PANEL), point = unit / panels,
                 panel = unit % panels;
    const float *my_d = d + point * mri_winograd_apart(p, panels * PANEL) + panel * p->block * PANEL,
                *my_v = v + point * mri_winograd_apart(p, in);
    float *to = du + point * in * panels * PANEL + panel * PANEL;
    for (size_t c = 0; c < in; c += LANES / 2) NAME(product)
    (LANES / 2, count, my_v + c / LANES * LANES * p->block + c % LANES, 1, LANES, my_d,
     to + c * panels * PANEL, panels * PANEL, adds);
    if (point != 7) return;
    for (size_t k = 0; k < PANEL && panel * PANEL + k < p->out.t.c; k++) {
        double sum = adds ? bias[panel * PANEL + k] : 0;
        for (size_t t = 0; t < count; t++) sum += (double)my_d[t * PANEL + k];
        bias[panel * PANEL + k] = sum;
    }
}

/* The gradient of one input channel's weights, [3][3][in][out]. */
TARGET static void NAME(finish_weights)(const struct mri_winograd_pass *p, const float *du, float *weights,
                                        size_t c)
{
    const size_t in = p->in.t.c, out = p->out.t.c, row = mri_winograd_panels(out, PANEL) * PANEL;
    for (size_t k = 0; k < out; k += LANES) {
        V u[36], t[18], g[9];
        for (size_t i = 0; i < 36; i++) u[i] = *(const V *)(const void *)(du + (i * in + c) * row + k);
        for (int j = 0; j < 6; j++) NAME(weight_sums)(t + j, 6, u + j, 6);
        for (int i = 0; i < 3; i++) NAME(weight_sums)(g + 3 * i, 1, t + 6 * i, 1);
        for (size_t tap = 0; tap < 9; tap++) *(V *)(void *)(weights + (tap * in + c) * out + k) = g[tap];
    }
}

#undef V
#undef INLINE
#undef PANEL
