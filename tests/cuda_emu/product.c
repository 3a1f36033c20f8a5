/* tests/cuda_emu/product.c: a product of matrices: tiles of 4 x 8 with every sum in registers. Plain vectors
 * of the compiler, no fused multiply-add, so that the bits do not depend on the processor. */
#include "tests/cuda_emu/product.h"

#include <stdio.h>
#include <stdlib.h>

typedef float four __attribute__((vector_size(16)));

enum { ROWS = 4, COLUMNS = 8 };

struct tile {
    four sum[ROWS][2];
};

float *emu_floats(size_t count)
{
    float *p = count < SIZE_MAX / sizeof(float) ? malloc((count + 1) * sizeof(float)) : NULL;
    if (!p) {
        fprintf(stderr, "emulated CUDA: no memory for a computation with %zu numbers\n", count);
        abort();
    }
    return p;
}

void emu_scribble(void *workspace, size_t bytes)
{
    const size_t end = bytes < 4096 ? bytes : 4096;
    memset(workspace, 0xA5, end);
    memset((char *)workspace + bytes - end, 0x5A, end);
}

size_t emu_panels_floats(size_t k, size_t n) { return (n + COLUMNS - 1) / COLUMNS * COLUMNS * k; }

void emu_panels(float *panels, const float *b, size_t step, size_t column, size_t k, size_t n)
{
    for (size_t from = 0; from < n; from += COLUMNS) {
        const size_t here = n - from < COLUMNS ? n - from : COLUMNS;
        for (size_t p = 0; p < k; p++, panels += COLUMNS) {
            const float *source = b + p * step + from * column;
            for (size_t j = 0; j < here; j++) panels[j] = source[j * column];
            for (size_t j = here; j < COLUMNS; j++) panels[j] = 0;
        }
    }
}

static void add_terms(struct tile *t, const float *const a[ROWS], size_t step, const float *panel,
                      size_t from, size_t to)
{
    struct tile s = *t;
    for (size_t p = from; p < to; p++) {
        four low, high;
        memcpy(&low, panel + p * COLUMNS, sizeof low);
        memcpy(&high, panel + p * COLUMNS + 4, sizeof high);
        for (int i = 0; i < ROWS; i++) {
            const float f = a[i][p * step];
            s.sum[i][0] += (four){f, f, f, f} * low;
            s.sum[i][1] += (four){f, f, f, f} * high;
        }
    }
    *t = s;
}

static void sum_tile(struct tile *t, const float *const a[ROWS], size_t step, const float *panel, size_t k,
                     struct emu_sum_order order)
{
    struct tile rest = {0};
    *t = rest;
    add_terms(t, a, step, panel, order.start, k);
    add_terms(order.split ? &rest : t, a, step, panel, 0, order.start);
    if (!order.split) return;
    for (int i = 0; i < ROWS; i++)
        for (int h = 0; h < 2; h++) t->sum[i][h] += rest.sum[i][h];
}

void emu_multiply(float *c, size_t ldc, const float *a, size_t row, size_t step, const float *panels,
                  size_t m, size_t n, size_t k, struct emu_sum_order order, bool add)
{
    if (order.start > k) order.start = k;
    for (size_t j0 = 0; j0 < n; j0 += COLUMNS) {
        const float *panel = panels + j0 * k;
        const size_t columns = n - j0 < COLUMNS ? n - j0 : COLUMNS;
        for (size_t i0 = 0; i0 < m; i0 += ROWS) {
            const float *rows[ROWS];
            for (size_t i = 0; i < ROWS; i++) rows[i] = a + (i0 + i < m ? i0 + i : i0) * row;
            struct tile t;
            sum_tile(&t, rows, step, panel, k, order);
            float sums[ROWS][COLUMNS];
            memcpy(sums, &t, sizeof sums);
            for (size_t i = 0; i < ROWS && i0 + i < m; i++)
                for (size_t j = 0; j < columns; j++) {
                    float *to = &c[(i0 + i) * ldc + j0 + j];
                    *to = add ? *to + sums[i][j] : sums[i][j];
                }
        }
    }
}
