/* pipeline/resample.c: geometry and weights of the separable resampling, and the plan that holds them.
 *
 * Each result pixel is a weighted mean of the source samples near its centre. Positions are fractions of one denominator,
 * 2 * unit_den * out, so that distances are exact integers below 2^46. Weights are integers: the running sum, divided by the whole, is
 * rounded, and the differences are the weights. So they sum to exactly 2^bits, and a flat picture stays flat. The
 * division is one reciprocal per result pixel in doubles: additions and multiplications only, which every machine rounds alike.
 *
 *   bits    14, one more for every doubling of the scale: a weight is about 2^bits / scale and fits 16 bits
 *   extra   6 bits of the row in between beyond 8, fewer where bits of the horizontal pass need the room: the
 *           horizontal sums stay below 2^31, with the cubic filter's overshoot (a factor of 1.25 for each pass) too
 *
 * Against the real number the result is off by at most 1/2 (the rounding to 8 bits) + 1/2 / 2^extra (the row in between) +
 * 1/32 for each direction (weights): below 0.6 for reductions by up to 32, growing by scale / 1000 above. The cubic filter's
 * weights may double the second and third part.
 *
 * The passes are in resample_plain.c and its equals; each brings its own arrangement of the weights. */
#include "pipeline/resample.h"

#include <assert.h>

#include "pipeline/resample_kernels.h"

#define BASE_BITS 14
#define DOWN_BITS_MAX 22   /* 8 bits more are 30 */
#define ACROSS_BITS_MAX 18 /* with 4 of EXTRA_BITS and 8: 30 */
#define EXTRA_BITS 6
#define SUM_BITS 22 /* bits + extra */

/* One direction, in units of 1 / (2 * unit_den * out) of a pixel: sample j lies at (j + 1/2) * step, result i at origin + i *
 * advance. All are integers: sides below 2^20 and units of up to 4 keep them, and what is computed from them, below 2^53. In
 * doubles they are exact, and four results go through one instruction. */
struct grid {
    double step, origin, advance;
    double wide;   /* max(step, advance): what the filter is stretched to */
    double reach;  /* of the filter, to both sides */
    double lo, hi; /* the samples there are */
    bool   cubic;
    bool   cut;  /* fewer samples than touch the box */
    bool   copy; /* results lie on samples, one on each: the filter is 0 on all others */
    double per_step, per_wide;
};

static struct grid grid_of(const mri_axis *a, mri_filter filter)
{
    const int64_t num = a->unit_num, den = a->unit_den, out = a->out, start = a->start, size = a->size, samples = a->samples;
    const int64_t step = 2 * num * out, advance = 2 * size * den, origin = 2 * start * den * out + size * den;
    const int64_t lo = start * den / num, hi = ((start + size) * den + num - 1) / num;
    struct grid g = {.step = (double)step, .origin = (double)origin, .advance = (double)advance, .cubic = filter == MRI_FILTER_BICUBIC};
    g.wide = step > advance ? g.step : g.advance;
    g.cut = hi > samples;
    g.lo = (double)(lo < samples ? lo : samples - 1);
    g.hi = (double)(g.cut ? samples : hi);
    g.copy = !g.cut && step == advance && (origin - step / 2) % step == 0;
    g.reach = g.cubic && !g.copy ? 2 * g.wide : g.wide;
    g.per_step = 1 / g.step;
    g.per_wide = 1 / g.wide;
    return g;
}

/* ---- four at a time ---- */

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define LANES 4

typedef double  f64x4 __attribute__((vector_size(32)));
typedef int64_t i64x4 __attribute__((vector_size(32)));
typedef int32_t i32x4 __attribute__((vector_size(16)));

/* a where the comparison holds, else b. A macro: vectors as arguments are passed differently from one instruction set to another. */
#define PICK(where, a, b) ((f64x4)(((i64x4)(a) & (where)) | ((i64x4)(b) & ~(where))))

/* a becomes floor(a / step), exactly: the product is off by one at most. */
ALWAYS_INLINE void floor_steps(const struct grid *g, f64x4 *a)
{
    const f64x4 q = __builtin_convertvector(__builtin_convertvector(*a * g->per_step, i32x4), f64x4);
    const f64x4 rest = *a - q * g->step, up = PICK(rest >= g->step, q + 1, q);
    *a = PICK(rest < 0, q - 1, up);
}

/* Result numbers become the places their filters are centred on: the middle of the pixel, or the end of the samples where they end
 * earlier. */
ALWAYS_INLINE void centres(const struct grid *g, f64x4 *i)
{
    const f64x4 centre = g->origin + *i * g->advance, end = g->hi * g->step + (f64x4){0};
    *i = PICK(centre < end, centre, end);
}

/* Centres become the first samples nearer than reach. */
ALWAYS_INLINE void firsts(const struct grid *g, f64x4 *centre)
{
    *centre -= g->reach + g->step / 2;
    floor_steps(g, centre);
    *centre += 1;
}

void mri_axis_support(const mri_axis *a, mri_filter filter, uint32_t *lo, uint32_t *hi)
{
    const struct grid g = grid_of(a, filter);
    f64x4 from = {a->first}, to = {(double)a->first + a->count - 1};
    centres(&g, &from);
    firsts(&g, &from);
    centres(&g, &to);
    to += g.reach - g.step / 2 - 1;
    floor_steps(&g, &to);
    *lo = (uint32_t)(from[0] > g.lo ? from[0] : g.lo);
    *hi = (uint32_t)(to[0] + 1 < g.hi ? to[0] + 1 : g.hi);
}

/* ---- weights ---- */

/* How many bits weights of at most about 1 / scale may have. Where samples are cut the filter may be down to its half, or to one
 * sample, and weights are up to twice as large, or 1. */
static int bits_of(const struct grid *g, int most)
{
    int bits = BASE_BITS;
    if (g->cut) return bits;
    for (double scale = g->wide / g->step; scale >= 2 && bits < most; scale /= 2) bits++;
    return bits;
}

/* Distances (negative: to the left) become weights, neither normalised nor rounded. The cubic is Keys' with a = -1/2. */
ALWAYS_INLINE void raw_weights(const struct grid *g, bool cubic, f64x4 *distance)
{
    const f64x4 zero = {0}, d = PICK(*distance < 0, -*distance, *distance);
    if (!cubic) {
        *distance = PICK(d < g->reach, g->reach - d, zero);
        return;
    }
    const f64x4 x = d * g->per_wide;
    const f64x4 near = (1.5 * x - 2.5) * x * x + 1, far = ((-0.5 * x + 2.5) * x - 4) * x + 2, rest = PICK(x < 2, far, zero);
    *distance = PICK(x < 1, near, rest);
}

/* What the results of one direction have in common. */
struct weighing {
    struct grid g;
    double      lo, last;         /* between which taps may start */
    double      first, direction; /* result k of the table is result first + k * direction */
};

/* Results [k, k + LANES) of the table, of which count exist. */
ALWAYS_INLINE void weigh_block(const struct weighing *w, bool cubic, mri_taps *to, uint32_t k, uint32_t count)
{
    const double bias = (double)(1 << (DOWN_BITS_MAX + 1)); /* makes sums positive: conversion rounds towards 0 */
    const f64x4 lane = {0, 1, 2, 3}, result = PICK(lane < count, lane, (f64x4){0}); /* lanes to spare repeat the first */
    f64x4 centre = w->first + w->direction * (result + k), start;
    centres(&w->g, &centre);
    start = centre;
    firsts(&w->g, &start);
    start = PICK(start > w->lo, start, w->lo + (f64x4){0});
    start = PICK(start < w->last, start, w->last + (f64x4){0});
    const f64x4 distance = (start + 0.5) * w->g.step - centre;
    const i32x4 from = __builtin_convertvector(start - w->lo, i32x4);
    for (uint32_t l = 0; l < count; l++) to->start[k + l] = (uint32_t)from[l];

    f64x4 sum = {0}, running = {0};
    for (uint32_t t = 0; t < to->taps; t++) {
        f64x4 raw = distance + t * w->g.step;
        raw_weights(&w->g, cubic, &raw);
        sum += raw;
    }
    const f64x4 factor = (double)(1 << to->bits) / sum;
    i32x4 given = (int32_t)bias + (i32x4){0};
    int16_t *weight = to->weight + (size_t)k * to->stride;
    for (uint32_t t = 0; t < to->taps; t++) {
        f64x4 raw = distance + t * w->g.step;
        raw_weights(&w->g, cubic, &raw);
        running += raw;
        const i32x4 upto = __builtin_convertvector(running * factor + (bias + 0.5), i32x4), share = upto - given;
        for (uint32_t l = 0; l < count; l++) weight[l * to->stride + t] = (int16_t)share[l];
        given = upto;
    }
}

ALWAYS_INLINE void weigh_all(const struct weighing *w, mri_taps *to)
{
    memset(to->weight, 0, (size_t)to->count * to->stride * sizeof *to->weight);
    for (uint32_t k = 0; k < to->count; k += LANES) {
        const uint32_t count = to->count - k < LANES ? to->count - k : LANES;
        if (w->g.cubic) weigh_block(w, true, to, k, count);
        else if (count == LANES) weigh_block(w, false, to, k, LANES);
        else weigh_block(w, false, to, k, count);
    }
}

/* The same arithmetic for all: doubles, without contraction. */
static void weigh_plain(const struct weighing *w, mri_taps *to) { weigh_all(w, to); }
#if defined(__x86_64__)
MRI_TARGET_AVX2 static void   weigh_avx2(const struct weighing *w, mri_taps *to) { weigh_all(w, to); }
MRI_TARGET_AVX512 static void weigh_avx512(const struct weighing *w, mri_taps *to) { weigh_all(w, to); }
#endif

static void weigh(const struct weighing *w, mri_taps *to)
{
#if defined(__x86_64__)
    if (mri_simd() == MRI_SIMD_AVX512) weigh_avx512(w, to);
    else if (mri_simd() == MRI_SIMD_AVX2) weigh_avx2(w, to);
    else weigh_plain(w, to);
#else
    weigh_plain(w, to);
#endif
}

static uint32_t most_taps(const struct grid *g, uint32_t lo, uint32_t hi)
{
    f64x4 most = {-2 * g->reach};
    floor_steps(g, &most);
    return -most[0] < hi - lo ? (uint32_t)-most[0] : hi - lo;
}

/* Memory for count results of t->taps weights. */
static int taps_need(mri_taps *t, mri_buffer *memory, uint32_t count)
{
    t->count = count;
    t->stride = (uint32_t)mri_align_up(t->taps, MRI_TAPS_STEP);
    const size_t starts = mri_align_up((size_t)count * sizeof *t->start, 16); /* factors up to 2^20 and 2^21: no overflow */
    if (mri_buffer_need(memory, starts + (size_t)count * t->stride * sizeof *t->weight)) return MR_ENOMEM;
    t->start = (uint32_t *)(void *)memory->data;
    t->weight = (int16_t *)(void *)(memory->data + starts);
    return MR_OK;
}

/* The support [lo, hi) of a is known. */
static int taps_make(mri_taps *t, mri_buffer *memory, const mri_axis *a, mri_filter filter, bool flip, int most_bits, uint32_t lo,
                     uint32_t hi)
{
    struct weighing w = {.g = grid_of(a, filter), .lo = lo};
    t->taps = most_taps(&w.g, lo, hi);
    t->bits = bits_of(&w.g, most_bits);
    if (taps_need(t, memory, a->count)) return MR_ENOMEM;
    w.last = (double)hi - t->taps;
    w.first = (double)a->first + (flip ? a->count - 1 : 0);
    w.direction = flip ? -1 : 1;
    weigh(&w, t);
    return MR_OK;
}

/* ---- plans ---- */

struct mri_resample_plan {
    const mri_resample_variant *variant;
    mri_taps   y;
    mri_across x;
    uint32_t   x_lo, x_hi, y_lo, y_hi; /* support */
    int        extra;
    bool       copy, flip;
    mri_buffer x_memory, y_memory, table, rows;
};

int mri_resample_plan_create(mri_resample_plan **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? MR_OK : MR_ENOMEM;
}

void mri_resample_plan_destroy(mri_resample_plan *p)
{
    if (!p) return;
    mri_buffer_free(&p->x_memory);
    mri_buffer_free(&p->y_memory);
    mri_buffer_free(&p->table);
    mri_buffer_free(&p->rows);
    free(p);
}

uint64_t mri_resample_plan_bytes(const mri_resample_plan *p)
{
    return sizeof *p + p->x_memory.bytes + p->y_memory.bytes + p->table.bytes + p->rows.bytes;
}

uint64_t mri_resample_bound_bytes(uint64_t side_in, uint64_t side_out)
{
    /* Of a result pixel there are at most 4 in / out + 1 taps (cubic), so of all of them out * stride <= 4 in + 8 out weights. The
     * largest table is that of AVX-512 and three channels: 3 out / 16 + 1 groups of 2 + taps / 2 vectors. */
    const uint64_t axis = 16 + 4 * side_out + 2 * (4 * side_in + 8 * side_out);
    const uint64_t table = 48 * side_out + 56 * side_in + 288;
    const uint64_t rows = MRI_RESAMPLE_ROWS * sizeof(int16_t) * (3 * side_in + 3 * (side_in + MRI_TAPS_STEP) + 128 + 32) + 64;
    return sizeof(mri_resample_plan) + 2 * axis + table + rows;
}

static const mri_resample_variant *variant_in_use(void)
{
    switch (mri_simd()) {
#if defined(__x86_64__)
    case MRI_SIMD_AVX512:
        return &mri_resample_avx512;
    case MRI_SIMD_AVX2:
        return &mri_resample_avx2;
#elif defined(__aarch64__)
    case MRI_SIMD_NEON:
        return &mri_resample_neon;
#endif
    default:
        return &mri_resample_plain;
    }
}

static uint8_t *aligned(mri_buffer *b) { return b->data + (-(uintptr_t)b->data & (MRI_CACHE_LINE - 1)); }

static int make_table(mri_resample_plan *p)
{
    const size_t bytes = p->variant->prepare(&p->x);
    if (bytes == 0) return MR_OK;
    if (mri_buffer_need(&p->table, bytes + MRI_CACHE_LINE)) return MR_ENOMEM;
    p->x.table = aligned(&p->table);
    p->variant->make_table(&p->x);
    return MR_OK;
}

int mri_resample_plan_set(mri_resample_plan *p, const mri_axis *x, const mri_axis *y, mri_filter filter, bool flip,
                          uint32_t channels)
{
    assert(channels == 1 || channels == 3);
    p->variant = variant_in_use();
    p->flip = flip;
    p->x.channels = channels;
    p->copy = grid_of(x, filter).copy && grid_of(y, filter).copy;
    mri_axis_support(x, filter, &p->x_lo, &p->x_hi);
    mri_axis_support(y, filter, &p->y_lo, &p->y_hi);
    if (p->copy) return MR_OK;
    if (taps_make(&p->y, &p->y_memory, y, filter, false, DOWN_BITS_MAX, p->y_lo, p->y_hi) ||
        taps_make(&p->x.taps, &p->x_memory, x, filter, flip, ACROSS_BITS_MAX, p->x_lo, p->x_hi))
        return MR_ENOMEM;
    p->extra = SUM_BITS - p->x.taps.bits < EXTRA_BITS ? SUM_BITS - p->x.taps.bits : EXTRA_BITS;
    p->x.shift = p->x.taps.bits + p->extra;
    return make_table(p);
}

/* ---- running ---- */

static void copy_rows(const mri_resample_plan *p, const mri_view *src, const uint8_t *from, uint8_t *dst, size_t dst_stride)
{
    mri_view v = *src;
    v.pixels = from;
    v.width = p->x_hi - p->x_lo;
    v.height = p->y_hi - p->y_lo;
    if (dst_stride == (size_t)v.width * v.channels) {
        mri_window(&v, 0, 0, v.width, v.height, MRI_OUTSIDE_EDGE, p->flip, dst);
        return;
    }
    for (uint32_t k = 0; k < v.height; k++) {
        mri_window(&v, 0, k, v.width, 1, MRI_OUTSIDE_EDGE, p->flip, dst + k * dst_stride);
    }
}

static void down_row(const mri_resample_plan *p, uint32_t k, mri_down *d, const uint8_t *from, int16_t *row)
{
    d->weight = p->y.weight + (size_t)k * p->y.stride;
    d->src = from + p->y.start[k] * d->stride;
    d->taps = p->y.taps;
    if (d->taps > 1 && d->taps % 2 && d->weight[d->taps - 1] == 0) d->taps--; /* about half of the rows: saves a pair */
    p->variant->down(d, row);
}

int mri_resample_run(mri_resample_plan *p, const mri_view *src, uint32_t src_x, uint32_t src_y, uint8_t *dst, size_t dst_stride)
{
    assert(src->channels == p->x.channels && src_x <= p->x_lo && src_y <= p->y_lo);
    const uint8_t *from = src->pixels + (p->y_lo - src_y) * src->stride + (size_t)(p->x_lo - src_x) * src->channels;
    if (p->copy) {
        copy_rows(p, src, from, dst, dst_stride);
        return MR_OK;
    }
    mri_down d = {.stride = src->stride, .count = (size_t)(p->x_hi - p->x_lo) * src->channels, .shift = p->y.bits - p->extra};
    const size_t row_count = mri_align_up(d.count + mri_row_slack(&p->x.taps), MRI_CACHE_LINE / sizeof(int16_t));
    const size_t row_bytes = MRI_RESAMPLE_ROWS * row_count * sizeof(int16_t);
    const bool fresh = p->rows.bytes < row_bytes + MRI_CACHE_LINE;
    if (mri_buffer_need(&p->rows, row_bytes + MRI_CACHE_LINE)) return MR_ENOMEM;
    if (fresh) memset(p->rows.data, 0, p->rows.bytes); /* what lies past a row is multiplied by 0, but read */
    int16_t *const rows = (int16_t *)(void *)aligned(&p->rows);
    for (uint32_t k = 0; k < p->y.count; k += MRI_RESAMPLE_ROWS) {
        const int16_t *row[MRI_RESAMPLE_ROWS];
        uint8_t *to[MRI_RESAMPLE_ROWS];
        for (uint32_t r = 0; r < MRI_RESAMPLE_ROWS; r++) {
            const bool there = k + r < p->y.count; /* else the last one again */
            int16_t *const next = rows + r * row_count;
            if (there) down_row(p, k + r, &d, from, next);
            row[r] = there ? next : row[r - 1];
            to[r] = there ? dst + (size_t)(k + r) * dst_stride : to[r - 1];
        }
        p->variant->across(&p->x, row, to);
    }
    return MR_OK;
}
