/* kernels/ops/matrix/product.h: products of matrices with one factor that is used again and again: c = a b,
 * all in f32.
 *
 *   a (m x k) and b (k x n) lie anywhere, each with a step from row to row and one from column to column; c
 *   lies in rows.
 *
 * b is packed first, into panels of columns in the order in which they are read. A recurrent layer packs its
 * weights once a pass and then multiplies a few rows with them, step after step; a library that packs b in
 * every call spends a good part of its time on that.
 *
 * Sums: an element of c is the sum over k from the first to the last, one after the other in f32, whatever m,
 * n and the number of threads are. So a row of c depends on its row of a and on b alone. Where the processor
 * multiplies and adds in one (AVX2, AVX-512, NEON) a term is rounded once, elsewhere twice: other bits. */
#ifndef MRI_PRODUCT_H
#define MRI_PRODUCT_H

#include "base/util.h"

struct mri_matrix {
    const float *at;
    size_t row, column; /* floats from one to the next */
};

/* Floats of k x n values packed. */
size_t mri_product_packed_floats(size_t k, size_t n);
/* to: at a multiple of MRI_CACHE_LINE, as all memory here; b: k x n. On the threads of the caller. */
void mri_product_pack(float *to, const struct mri_matrix *b, size_t k, size_t n);
/* Floats of scratch for up to m rows on up to `threads` threads. */
size_t mri_product_scratch_floats(size_t m, size_t k, uint32_t threads);
/* c[i * c_row + j], written. scratch: of mri_product_scratch_floats() for the caller's threads. */
void mri_product_run(size_t m, size_t n, size_t k, const struct mri_matrix *a, const float *packed, float *c,
                     size_t c_row, float *scratch);
/* The same by the definition, plain C: the specification. b is not packed. */
void mri_product_plain(size_t m, size_t n, size_t k, const struct mri_matrix *a, const struct mri_matrix *b,
                       float *c, size_t c_row);

#endif
