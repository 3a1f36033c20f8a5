/* pipeline/resize.c: separable resize with a triangle filter, in integers throughout.
 *
 * Each result pixel is the mean of the source pixels near its centre, weighted by a triangle that spans two pixels of
 * whichever grid is coarser: linear interpolation when enlarging, an antialiasing filter when reducing. Positions are
 * fractions with denominator 2 * out, so weights are exact integers; they are scaled to sum to exactly 2^bits, by rounding
 * the running sum, so that a flat picture stays flat.
 *
 *   rows of the source  --- vertical: 8 bits x 22 bits, rounded to 12 --->  one row of int32
 *   that row            --- horizontal: 12 bits x 18 bits, rounded to 8 -->  result row, mirrored on the way if asked
 *
 * Sums stay below 2^31 and nothing is ever rounded twice to 8 bits: the result is within 1 of the real number.
 * Integers make every variant equal bit for bit; AVX2 is chosen at run time because it halves the time (wider
 * multiplication, gather-free loads), and nothing depends on it. */
#include "pipeline/resize.h"

#define VERTICAL_BITS 22
#define HORIZONTAL_BITS 18
#define ROW_EXTRA_BITS 4 /* of the row in between, beyond 8 */
#define ROWS 4           /* go through the horizontal pass together: they share every weight */

/* Taps of one result pixel: weight[0..count) for source pixels from start on. */
struct taps {
    uint32_t start, count;
};

/* Coefficients of one axis: per wanted pixel its taps, and its weights at weights + k * most. */
struct filter {
    struct taps *taps;
    int32_t     *weights;
    uint32_t     most;
};

void mri_resizer_free(mri_resizer *r)
{
    mri_buffer_free(&r->x_taps);
    mri_buffer_free(&r->y_taps);
    mri_buffer_free(&r->row);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    const int64_t q = a / b;
    return a % b < 0 ? q - 1 : q;
}

/* Pixel x of the source lies at (2x + 1) * out, result pixel i at (2i + 1) * in, and the triangle reaches `reach` to both
 * sides, in units of 1 / (2 * in * out) of the side. */
static struct taps taps_of(const mri_axis *a, uint32_t i)
{
    const int64_t in = a->in, out = a->out, reach = 2 * (in > out ? in : out), centre = (2 * (int64_t)i + 1) * in;
    int64_t from = floor_div(centre - reach - out, 2 * out) + 1, to = -floor_div(-(centre + reach - out), 2 * out);
    if (from < 0) from = 0;
    if (to > in) to = in;
    return (struct taps){(uint32_t)from, (uint32_t)(to - from)};
}

void mri_axis_support(mri_axis a, uint32_t *lo, uint32_t *hi)
{
    const struct taps first = taps_of(&a, a.first), last = taps_of(&a, a.first + a.count - 1);
    *lo = first.start;
    *hi = last.start + last.count;
}

static void weigh(const mri_axis *a, uint32_t i, struct taps t, int bits, int32_t *weights)
{
    const int64_t in = a->in, out = a->out, reach = 2 * (in > out ? in : out), centre = (2 * (int64_t)i + 1) * in;
    uint64_t sum = 0;
    for (uint32_t k = 0; k < t.count; k++) {
        const int64_t d = (2 * ((int64_t)t.start + k) + 1) * out - centre;
        sum += (uint64_t)(reach - (d < 0 ? -d : d));
    }
    uint64_t running = 0, given = 0;
    for (uint32_t k = 0; k < t.count; k++) {
        const int64_t d = (2 * ((int64_t)t.start + k) + 1) * out - centre;
        running += (uint64_t)(reach - (d < 0 ? -d : d));
        const uint64_t upto = ((running << bits) + sum / 2) / sum; /* running <= 2^41: sides are at most 2^20 */
        weights[k] = (int32_t)(upto - given);
        given = upto;
    }
}

static uint64_t most_taps(uint64_t in, uint64_t out) { return in > out ? 2 * (in / out + 1) + 1 : 3; }

static int filter_make(struct filter *f, mri_buffer *memory, const mri_axis *a, int bits)
{
    f->most = (uint32_t)most_taps(a->in, a->out);
    const size_t taps_bytes = (size_t)a->count * sizeof *f->taps; /* factors are below 2^21: no overflow */
    const size_t bytes = taps_bytes + (size_t)a->count * f->most * sizeof *f->weights;
    if (mri_buffer_need(memory, bytes)) return MR_ENOMEM;
    f->taps = (struct taps *)(void *)memory->data;
    f->weights = (int32_t *)(void *)(memory->data + taps_bytes);
    for (uint32_t k = 0; k < a->count; k++) {
        f->taps[k] = taps_of(a, a->first + k);
        weigh(a, a->first + k, f->taps[k], bits, f->weights + (size_t)k * f->most);
    }
    return MR_OK;
}

uint64_t mri_resizer_bound_bytes(uint64_t side_in, uint64_t side_out)
{
    /* count * most <= out * (2 * in / out + 3), on each axis; the row in between is int32 of up to 3 channels */
    const uint64_t axis = side_out * sizeof(struct taps) + (2 * side_in + 3 * side_out) * sizeof(int32_t);
    return 2 * axis + ROWS * (3 * side_in + 4) * sizeof(int32_t);
}

/* ---- kernels: written once, compiled for each instruction set ---- */

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* acc[] (a fresh one when first) plus four weighted rows; when last, scaled down to the row in between. */
ALWAYS_INLINE void add_rows(int32_t *restrict acc, const uint8_t *const row[4], const int32_t w[4], size_t count, bool first,
                            bool last)
{
    const int shift = VERTICAL_BITS - ROW_EXTRA_BITS;
    const uint8_t *restrict a = row[0], *restrict b = row[1], *restrict c = row[2], *restrict d = row[3];
    for (size_t k = 0; k < count; k++) {
        const int32_t start = first ? 1 << (shift - 1) : acc[k];
        const int32_t sum = start + a[k] * w[0] + b[k] * w[1] + c[k] * w[2] + d[k] * w[3];
        acc[k] = last ? sum >> shift : sum;
    }
}

ALWAYS_INLINE void vertical(int32_t *acc, const uint8_t *src, size_t stride, const int32_t *w, uint32_t taps, size_t count)
{
    for (uint32_t t = 0; t < taps; t += 4) {
        const uint8_t *row[4];
        int32_t weight[4];
        for (uint32_t k = 0; k < 4; k++) { /* rows that are missing weigh nothing */
            const bool there = t + k < taps;
            row[k] = src + (there ? t + k : t) * stride;
            weight[k] = there ? w[t + k] : 0;
        }
        const bool first = t == 0, last = t + 4 >= taps;
        if (first && last) add_rows(acc, row, weight, count, true, true);
        else if (first) add_rows(acc, row, weight, count, true, false);
        else if (last) add_rows(acc, row, weight, count, false, true);
        else add_rows(acc, row, weight, count, false, false);
    }
}

typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));

/* Three channels at a time; the fourth lane works on whatever follows and is thrown away (the row has room for it). */
ALWAYS_INLINE void pixel3(const int32_t *row, size_t row_count, const int32_t *w, uint32_t taps, uint32_t out[ROWS])
{
    const int32_t half = 1 << (HORIZONTAL_BITS + ROW_EXTRA_BITS - 1);
    i32x4 sum[ROWS] = {{half, half, half, half}, {half, half, half, half}, {half, half, half, half}, {half, half, half, half}};
    for (uint32_t t = 0; t < taps; t++, row += 3) {
        for (uint32_t r = 0; r < ROWS; r++) {
            i32x4 pixel;
            memcpy(&pixel, row + r * row_count, sizeof pixel);
            sum[r] += pixel * w[t];
        }
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        const u8x16 v = (u8x16)(sum[r] >> (HORIZONTAL_BITS + ROW_EXTRA_BITS));
        out[r] = ((u32x4)__builtin_shufflevector(v, v, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12))[0];
    }
}

/* ROWS rows, of which rows are wanted. */
ALWAYS_INLINE void horizontal3(const int32_t *row, size_t row_count, const struct filter *f, uint32_t origin, uint32_t count,
                               bool flip, uint8_t *dst, uint32_t rows)
{
    const size_t out_bytes = 3 * (size_t)count;
    uint32_t out[ROWS];
    for (uint32_t k = 0; k < count; k++, dst += 3) {
        const uint32_t i = flip ? count - 1 - k : k;
        const struct taps t = f->taps[i];
        pixel3(row + 3 * (size_t)(t.start - origin), row_count, f->weights + (size_t)i * f->most, t.count, out);
        if (k + 1 == count) break;
        for (uint32_t r = 0; r < rows; r++) memcpy(dst + r * out_bytes, &out[r], 4); /* one byte of the next pixel, written after */
    }
    for (uint32_t r = 0; r < rows; r++) memcpy(dst + r * out_bytes, &out[r], 3);
}

ALWAYS_INLINE void horizontal1(const int32_t *row, const struct filter *f, uint32_t origin, uint32_t count, bool flip,
                               uint8_t *dst)
{
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t i = flip ? count - 1 - k : k;
        const struct taps t = f->taps[i];
        const int32_t *w = f->weights + (size_t)i * f->most, *pixel = row + (t.start - origin);
        int32_t sum = 1 << (HORIZONTAL_BITS + ROW_EXTRA_BITS - 1);
        for (uint32_t n = 0; n < t.count; n++) sum += pixel[n] * w[n];
        dst[k] = (uint8_t)(sum >> (HORIZONTAL_BITS + ROW_EXTRA_BITS));
    }
}

struct job {
    const uint8_t *src; /* the first source column that matters, in row 0 of the view */
    size_t         stride;
    uint32_t       src_y, x_lo, columns, channels, width, height;
    struct filter  x, y;
    int32_t       *row;       /* ROWS of them, row_count apart */
    size_t         row_count;
    bool           flip;
};

ALWAYS_INLINE void run_job(const struct job *j, uint8_t *dst)
{
    const size_t out_bytes = (size_t)j->width * j->channels;
    for (uint32_t k = 0; k < j->height; k += ROWS) {
        const uint32_t rows = j->height - k < ROWS ? j->height - k : ROWS;
        for (uint32_t r = 0; r < rows; r++) {
            const struct taps t = j->y.taps[k + r];
            vertical(j->row + r * j->row_count, j->src + (t.start - j->src_y) * j->stride, j->stride,
                     j->y.weights + (size_t)(k + r) * j->y.most, t.count, (size_t)j->columns * j->channels);
        }
        uint8_t *to = dst + k * out_bytes;
        if (j->channels == 3 && rows == ROWS) {
            horizontal3(j->row, j->row_count, &j->x, j->x_lo, j->width, j->flip, to, ROWS);
        } else if (j->channels == 3) {
            horizontal3(j->row, j->row_count, &j->x, j->x_lo, j->width, j->flip, to, rows);
        } else {
            for (uint32_t r = 0; r < rows; r++)
                horizontal1(j->row + r * j->row_count, &j->x, j->x_lo, j->width, j->flip, to + r * out_bytes);
        }
    }
}

static void run_plain(const struct job *j, uint8_t *dst) { run_job(j, dst); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void run_avx2(const struct job *j, uint8_t *dst) { run_job(j, dst); }
#endif

int mri_resize(mri_resizer *r, const mri_view *src, uint32_t src_x, uint32_t src_y, mri_axis x, mri_axis y, bool flip,
               uint8_t *dst, mri_resize_level level)
{
    struct job j = {.stride = src->stride, .src_y = src_y, .channels = src->channels, .width = x.count, .height = y.count,
                    .flip = flip};
    uint32_t x_hi;
    mri_axis_support(x, &j.x_lo, &x_hi);
    j.columns = x_hi - j.x_lo;
    j.src = src->pixels + (size_t)(j.x_lo - src_x) * src->channels;
    j.row_count = (size_t)j.columns * src->channels + 4;
    const size_t row_bytes = ROWS * j.row_count * sizeof(int32_t);
    if (filter_make(&j.x, &r->x_taps, &x, HORIZONTAL_BITS) || filter_make(&j.y, &r->y_taps, &y, VERTICAL_BITS) ||
        mri_buffer_need(&r->row, row_bytes))
        return MR_ENOMEM;
    j.row = (int32_t *)(void *)r->row.data;
    memset(j.row, 0, row_bytes); /* rows and lanes that are not wanted are computed all the same, from something */
#if defined(__x86_64__)
    if (level == MRI_RESIZE_BEST && __builtin_cpu_supports("avx2")) {
        run_avx2(&j, dst);
        return MR_OK;
    }
#endif
    (void)level;
    run_plain(&j, dst);
    return MR_OK;
}
