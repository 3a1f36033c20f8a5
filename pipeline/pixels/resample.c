/* pipeline/pixels/resample.c: geometry and weights of the separable resampling, and the plan that holds them.
 *
 * Each result pixel is a weighted mean of the source samples near its centre. Positions are fractions of one
 * denominator, 2 * unit_den * out, so that distances are exact integers below 2^46. Weights are integers: the
 * running sum, divided by the whole, is rounded, and the differences are the weights. So they sum to exactly
 * 2^bits, and a flat picture stays flat. There is one division per result pixel, in doubles, and nothing in
 * doubles but + - * /, which every machine rounds alike.
 *
 *   bits    14, one more for every doubling of the scale: a weight is about 2^bits / scale and fits 16 bits
 *   extra   6 bits of the row in between beyond 8, fewer where bits of the horizontal pass need the room: the
 *           horizontal sums stay below 2^31, with the cubic filter's overshoot (a factor of 1.25 for each
 *           pass) too
 *
 * Against the real number the result is off by at most 1/2 (the rounding to 8 bits) + 1/2 / 2^extra (the row
 * in between) + 1/32 for each direction (weights): below 0.6 for reductions by up to 32, growing by scale /
 * 1000 above. The cubic filter's weights may double the second and third part. A box whose samples end early
 * gets 14 bits at every scale: 1/64 for each direction and unit of scale.
 *
 * The passes are in resample_plain.c and its equals; each brings its own arrangement of the weights. */
#include "pipeline/pixels/resample.h"

#include <assert.h>

#include "pipeline/pixels/resample_kernels.h"

#define LANES 2
#define WEIGH_TARGET
#include "pipeline/pixels/resample_weigh.h"

#define BASE_BITS       14
#define ACROSS_BITS_MAX 18 /* with 4 of EXTRA_BITS and 8: 30 */
#define EXTRA_BITS      6
#define SUM_BITS        22 /* bits + extra */

static mri_grid grid_of(const mri_axis *a, mri_filter filter)
{
    const int64_t num = a->unit_num, den = a->unit_den, out = a->out, start = a->start, size = a->size,
                  samples = a->samples;
    const int64_t step = 2 * num * out, advance = 2 * size * den, origin = 2 * start * den * out + size * den;
    const int64_t lo = start * den / num, hi = ((start + size) * den + num - 1) / num;
    mri_grid g = {.step = (double)step, .origin = (double)origin, .advance = (double)advance};
    g.cubic = filter == MRI_FILTER_BICUBIC;
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

void mri_axis_support(const mri_axis *a, mri_filter filter, uint32_t *lo, uint32_t *hi)
{
    const mri_grid g = grid_of(a, filter);
    lanes_f64 from = {a->first}, to = {(double)a->first + a->count - 1};
    centres(&g, &from);
    firsts(&g, &from);
    centres(&g, &to);
    to += g.reach - g.step / 2 - 1;
    floor_steps(&g, &to);
    *lo = (uint32_t)(from[0] > g.lo ? from[0] : g.lo);
    *hi = (uint32_t)(to[0] + 1 < g.hi ? to[0] + 1 : g.hi);
}

/* ---- weights ---- */

/* How many bits weights of at most about 1 / scale may have. Where samples are cut the filter may be down to
 * its half, or to one sample, and weights are up to twice as large, or 1. */
static int bits_of(const mri_grid *g, int most)
{
    int bits = BASE_BITS;
    if (g->cut) return bits;
    for (double scale = g->wide / g->step; scale >= 2 && bits < most; scale /= 2) bits++;
    return bits;
}

static uint32_t most_taps(const mri_grid *g, uint32_t lo, uint32_t hi)
{
    lanes_f64 most = {-2 * g->reach};
    floor_steps(g, &most);
    return -most[0] < hi - lo ? (uint32_t)-most[0] : hi - lo;
}

/* Memory for count results of t->taps weights. */
static int taps_need(mri_taps *t, mri_buffer *memory, uint32_t count)
{
    t->count = count;
    t->stride = (uint32_t)mri_align_up(t->taps, MRI_TAPS_STEP);
    const size_t starts = mri_align_up((size_t)count * sizeof *t->start, 16); /* factors up to 2^20 and 2^21:
                                                                                 no overflow */
    if (mri_buffer_need(memory, starts + (size_t)count * t->stride * sizeof *t->weight)) return MR_ENOMEM;
    t->start = (uint32_t *)(void *)memory->data;
    t->weight = (int16_t *)(void *)(memory->data + starts);
    return MR_OK;
}

/* The support [lo, hi) of a is known. */
static int taps_make(const mri_resample_variant *variant, mri_taps *t, mri_buffer *memory, const mri_axis *a,
                     mri_filter filter, bool flip, int most_bits, uint32_t lo, uint32_t hi)
{
    mri_weighing w = {.g = grid_of(a, filter), .lo = lo};
    t->taps = most_taps(&w.g, lo, hi);
    t->bits = bits_of(&w.g, most_bits);
    if (taps_need(t, memory, a->count)) return MR_ENOMEM;
    w.last = (double)hi - t->taps;
    w.first = (double)a->first + (flip ? a->count - 1 : 0);
    w.direction = flip ? -1 : 1;
    variant->weigh(&w, t);
    return MR_OK;
}

/* ---- plans ---- */

struct mri_resample_plan {
    const mri_resample_variant *variant;
    mri_taps y;
    mri_across x;
    uint32_t x_lo, x_hi, y_lo, y_hi; /* support */
    int extra;
    bool copy, flip;
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
    /* Of a result pixel there are at most 4 in / out + 1 taps (cubic), so of all of them out * stride <= 4 in
     * + 8 out weights. The largest table is that of AVX-512 and three channels: 3 out / 16 + 1 groups of 2 +
     * taps / 2 vectors. */
    const uint64_t axis = 16 + 4 * side_out + 2 * (4 * side_in + 8 * side_out);
    const uint64_t table = 48 * side_out + 56 * side_in + 288;
    const uint64_t rows = MRI_RESAMPLE_ROWS * sizeof(int16_t) *
                              (3 * side_in + 3 * (side_in + MRI_TAPS_STEP) + 128 + 2 * MRI_ROW_LEAD) +
                          64;
    return sizeof(mri_resample_plan) + 2 * axis + table + rows;
}

static const mri_resample_variant *variant_in_use(void)
{
    switch (mri_simd()) {
#if defined(__x86_64__)
    case MRI_SIMD_AVX512: return &mri_resample_avx512;
    case MRI_SIMD_AVX2: return &mri_resample_avx2;
#elif defined(__aarch64__)
    case MRI_SIMD_NEON: return &mri_resample_neon;
#endif
    default: return &mri_resample_plain;
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

int mri_resample_plan_set(mri_resample_plan *p, const mri_axis *x, const mri_axis *y, mri_filter filter,
                          bool flip, uint32_t channels)
{
    assert(channels == 1 || channels == 3);
    p->variant = variant_in_use();
    p->flip = flip;
    p->x.channels = channels;
    p->copy = grid_of(x, filter).copy && grid_of(y, filter).copy;
    mri_axis_support(x, filter, &p->x_lo, &p->x_hi);
    mri_axis_support(y, filter, &p->y_lo, &p->y_hi);
    if (p->copy) return MR_OK;
    if (taps_make(p->variant, &p->y, &p->y_memory, y, filter, false, MRI_WEIGHT_BITS_MAX, p->y_lo, p->y_hi) ||
        taps_make(p->variant, &p->x.taps, &p->x_memory, x, filter, flip, ACROSS_BITS_MAX, p->x_lo, p->x_hi))
        return MR_ENOMEM;
    p->extra = SUM_BITS - p->x.taps.bits < EXTRA_BITS ? SUM_BITS - p->x.taps.bits : EXTRA_BITS;
    p->x.shift = p->x.taps.bits + p->extra;
    return make_table(p);
}

/* ---- running ---- */

static void copy_rows(const mri_resample_plan *p, const mri_view *src, const uint8_t *from, uint32_t count,
                      uint8_t *dst, size_t dst_stride)
{
    mri_view v = *src;
    v.pixels = from;
    v.width = p->x_hi - p->x_lo;
    v.height = count;
    if (dst_stride == (size_t)v.width * v.channels) {
        mri_copy_window(&v, 0, 0, v.width, v.height, MRI_OUTSIDE_EDGE, p->flip, dst);
        return;
    }
    for (uint32_t k = 0; k < v.height; k++) {
        mri_copy_window(&v, 0, k, v.width, 1, MRI_OUTSIDE_EDGE, p->flip, dst + k * dst_stride);
    }
}

/* from: row src_y of the source, at the first column that is needed. */
static void down_row(const mri_resample_plan *p, uint32_t k, mri_down *d, const uint8_t *from, uint32_t src_y,
                     int16_t *row)
{
    d->weight = p->y.weight + (size_t)k * p->y.stride;
    d->src = from + (p->y_lo + p->y.start[k] - src_y) * d->stride;
    d->taps = p->y.taps;
    if (d->taps > 1 && d->taps % 2 && d->weight[d->taps - 1] == 0)
        d->taps--; /* about half of the rows: saves a pair */
    p->variant->down(d, row);
}

uint32_t mri_resample_ready(const mri_resample_plan *p, uint32_t from, uint32_t end)
{
    const uint32_t count = p->copy ? p->y_hi - p->y_lo : p->y.count;
    uint32_t k = from;
    while (k < count && p->y_lo + (p->copy ? k + 1 : p->y.start[k] + p->y.taps) <= end) k++;
    return k;
}

uint32_t mri_resample_needs(const mri_resample_plan *p, uint32_t from)
{
    const uint32_t count = p->copy ? p->y_hi - p->y_lo : p->y.count;
    return from >= count ? p->y_hi : p->y_lo + (p->copy ? from : p->y.start[from]);
}

int mri_resample_run(mri_resample_plan *p, const mri_view *src, uint32_t src_x, uint32_t src_y, uint8_t *dst,
                     size_t dst_stride)
{
    return mri_resample_rows(p, src, src_x, src_y, 0, p->copy ? p->y_hi - p->y_lo : p->y.count, dst,
                             dst_stride);
}

int mri_resample_rows(mri_resample_plan *p, const mri_view *src, uint32_t src_x, uint32_t src_y,
                      uint32_t first, uint32_t past, uint8_t *dst, size_t dst_stride)
{
    assert(src->channels == p->x.channels && src->plane_bytes == 0 && src_x <= p->x_lo &&
           src_y <= mri_resample_needs(p, first));
    const uint8_t *from = src->pixels + (size_t)(p->x_lo - src_x) * src->channels;
    if (p->copy) {
        copy_rows(p, src, from + (p->y_lo + first - src_y) * src->stride, past - first, dst, dst_stride);
        return MR_OK;
    }
    mri_down d = {.stride = src->stride,
                  .count = (size_t)(p->x_hi - p->x_lo) * src->channels,
                  .shift = p->y.bits - p->extra};
    const size_t row_count = mri_align_up(MRI_ROW_LEAD + d.count + mri_row_slack(&p->x.taps), MRI_ROW_LEAD);
    const size_t row_bytes = MRI_RESAMPLE_ROWS * row_count * sizeof(int16_t);
    const bool fresh = p->rows.bytes < row_bytes + MRI_CACHE_LINE;
    if (mri_buffer_need(&p->rows, row_bytes + MRI_CACHE_LINE)) return MR_ENOMEM;
    if (fresh)
        memset(p->rows.data, 0, p->rows.bytes); /* what lies around a row is multiplied by 0, but read */
    int16_t *const rows = (int16_t *)(void *)aligned(&p->rows) + MRI_ROW_LEAD;
    for (uint32_t k = first; k < past; k += MRI_RESAMPLE_ROWS) {
        mri_rows four;
        for (uint32_t r = 0; r < MRI_RESAMPLE_ROWS; r++) {
            const bool there = k + r < past; /* else the last one again */
            int16_t *const next = rows + r * row_count;
            if (there) down_row(p, k + r, &d, from, src_y, next);
            four.row[r] = there ? next : four.row[r - 1];
            four.dst[r] = there ? dst + (size_t)(k + r - first) * dst_stride : four.dst[r - 1];
        }
        p->variant->across(&p->x, &four);
    }
    return MR_OK;
}
