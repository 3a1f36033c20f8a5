/* pipeline/pixels/resample_kernels.h: between resample.c and its variants: weights, tables, the two passes.
 * Private to them.
 *
 *   source rows, uint8   -- vertical: 8 bits x 14 or more -->   one row of int16, `extra` bits beyond 8
 *   four such rows       -- horizontal: 16 bits x 14 or more -->   four result rows, uint8
 *
 * The horizontal pass processes four rows together because they share all weights and shuffles. */
#ifndef MRI_RESAMPLE_KERNELS_H
#define MRI_RESAMPLE_KERNELS_H

#include "base/simd.h"
#include "base/util.h"

#define MRI_RESAMPLE_ROWS 4

/* Result k of one direction is the sum over t < taps of weight[k * stride + t] * sample[start[k] + t], over
 * 2^bits. Samples count from the first of the support and all taps lie inside it. */
typedef struct mri_taps {
    uint32_t *start;
    int16_t *weight;
    uint32_t count, taps;
    uint32_t stride; /* a multiple of MRI_TAPS_STEP; weights from taps on are 0 */
    int bits;
} mri_taps;
#define MRI_TAPS_STEP       8
#define MRI_WEIGHT_BITS_MAX 22 /* with 8 of a sample: 30 */

/* One direction, in units of 1 / (2 * unit_den * out) of a pixel: sample j lies at (j + 1/2) * step, result i
 * at origin + i * advance. All are integers: sides below 2^20 and units of up to 4 keep them, and what is
 * computed from them, below 2^53. In doubles they are exact, and several results go through one
 * instruction. */
typedef struct mri_grid {
    double step, origin, advance;
    double wide;   /* max(step, advance): the width that the filter is stretched to */
    double reach;  /* of the filter, to both sides */
    double lo, hi; /* the samples there are */
    bool cubic;
    bool cut;  /* fewer samples than touch the box */
    bool copy; /* results lie on samples, one on each: the filter is 0 on all others */
    double per_step, per_wide;
} mri_grid;

/* Values common to the results of one direction. */
typedef struct mri_weighing {
    mri_grid g;
    double lo, last;         /* between which taps may start */
    double first, direction; /* result k of the table is result first + k * direction */
} mri_weighing;

/* The horizontal pass of a plan. */
typedef struct mri_across {
    mri_taps taps; /* in the order of the result's columns: a mirror is in here */
    uint32_t channels;
    int shift;      /* bits of the weights and of the row in between */
    int layout;     /* of the table; the variant's own numbers */
    uint8_t *table; /* 64-byte aligned */
} mri_across;

/* Source rows of one row in between. Nothing outside count bytes of taps rows is read. */
typedef struct mri_down {
    const uint8_t *src;
    size_t stride, count;
    const int16_t *weight; /* an even number of them may be read */
    uint32_t taps;
    int shift;
} mri_down;

/* int16 values that may be read before a row's first, and keep rows aligned. */
#define MRI_ROW_LEAD 32
/* int16 values that may be read or written past a row's last: two 64-byte vectors and every tap of three
 * channels. */
static inline size_t mri_row_slack(const mri_taps *x) { return 128 + 3 * (size_t)x->stride; }

/* Four rows to four result rows. Loops over results take a copy of their own: a store to a result might
 * change anything else. */
typedef struct mri_rows {
    const int16_t *row[MRI_RESAMPLE_ROWS];
    uint8_t *dst[MRI_RESAMPLE_ROWS];
} mri_rows;

typedef struct mri_resample_variant {
    void (*weigh)(const mri_weighing *w, mri_taps *to); /* fill start and weight */
    /* Choose a->layout for a->taps and say how many bytes its table has. */
    size_t (*prepare)(mri_across *a);
    void (*make_table)(const mri_across *a);
    void (*down)(const mri_down *d, int16_t *row); /* writes up to mri_row_slack() past count */
    /* A row may be there twice, in row and in dst alike: where the result ends. */
    void (*across)(const mri_across *a, const mri_rows *rows);
} mri_resample_variant;

extern const mri_resample_variant mri_resample_plain, mri_resample_avx2, mri_resample_avx512,
    mri_resample_neon;

#endif
