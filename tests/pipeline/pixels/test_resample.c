/* resample: against the definition in double precision; every variant gives the plain one's bits; windows,
 * mirrors, copies; nothing is read outside the samples or written outside the result. */
#include "base/simd.h"
#include "base/util.h"
#include "mrt.h"
#include "pipeline/pixels/resample.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the definition ---- */

static double cubic(double x)
{
    x = fabs(x);
    if (x < 1) return 1 - 2.5 * x * x + 1.5 * x * x * x;
    if (x < 2) return 2 - 4 * x + 2.5 * x * x - 0.5 * x * x * x;
    return 0;
}

static double triangle(double x) { return fmax(0, 1 - fabs(x)); }

/* weights[0, samples) of result pixel i, summing to 1. */
static void weights_of(const mri_axis *a, mri_filter filter, uint32_t i, double *weights)
{
    const double unit = (double)a->unit_num / a->unit_den, scale = (double)a->size / a->out,
                 wide = fmax(unit, scale);
    const double lo = fmin(a->start * a->unit_den / a->unit_num, a->samples - 1);
    const double hi = fmin(((a->start + a->size) * a->unit_den + a->unit_num - 1) / a->unit_num, a->samples);
    const double centre = fmin(a->start + (i + 0.5) * scale, hi * unit);
    double sum = 0;
    for (uint32_t j = 0; j < a->samples; j++) {
        const double x = ((j + 0.5) * unit - centre) / wide;
        weights[j] = j < lo || j >= hi ? 0 : filter == MRI_FILTER_BICUBIC ? cubic(x) : triangle(x);
        sum += weights[j];
    }
    for (uint32_t j = 0; j < a->samples; j++) weights[j] /= sum;
}

/* The picture's result, not rounded, clipped; malloc'd. step: only every step-th pixel of each direction. */
static double *definition(const uint8_t *p, const mri_axis *x, const mri_axis *y, mri_filter filter,
                          uint32_t channels, uint32_t step)
{
    double *result = malloc((size_t)x->count * y->count * channels * sizeof *result);
    double *row = malloc((size_t)x->samples * channels * sizeof *row);
    double *wx = malloc((size_t)x->count * x->samples * sizeof *wx), *wy = malloc(y->samples * sizeof *wy);
    for (uint32_t k = 0; k < x->count; k += step)
        weights_of(x, filter, x->first + k, wx + (size_t)k * x->samples);
    for (uint32_t v = 0; v < y->count; v += step) {
        weights_of(y, filter, y->first + v, wy);
        memset(row, 0, (size_t)x->samples * channels * sizeof *row);
        for (uint32_t j = 0; j < y->samples; j++)
            for (size_t k = 0; wy[j] != 0 && k < (size_t)x->samples * channels; k++)
                row[k] += wy[j] * p[j * (size_t)x->samples * channels + k];
        for (uint32_t u = 0; u < x->count; u += step)
            for (uint32_t c = 0; c < channels; c++) {
                double sum = 0;
                for (uint32_t j = 0; j < x->samples; j++)
                    sum += wx[(size_t)u * x->samples + j] * row[(size_t)j * channels + c];
                result[((size_t)v * x->count + u) * channels + c] = fmin(255, fmax(0, sum));
            }
    }
    free(row);
    free(wx);
    free(wy);
    return result;
}

/* ---- geometries ---- */

struct shape {
    mri_axis x, y;
    mri_filter filter;
    bool flip;
    uint32_t channels;
};

static uint64_t state;
static uint32_t below(uint32_t n) { return (uint32_t)((state = mri_mix64(state)) >> 33) % n; }

/* Sides are small more often than not; units as JPEG planes have them and some that they have not. */
static mri_axis random_axis(uint32_t most)
{
    static const uint32_t units[][2] = {{1, 1}, {1, 1}, {1, 1}, {2, 1}, {2, 1},
                                        {4, 1}, {3, 2}, {3, 1}, {4, 3}, {1, 2}};
    const uint32_t *unit = units[below(MRI_ARRAY_COUNT(units))];
    const uint32_t side = 1 + below(below(3) ? 1 + most / 8 : most);
    mri_axis a = {.unit_num = unit[0], .unit_den = unit[1]};
    a.samples = (side * unit[1] + unit[0] - 1) / unit[0];
    if (below(8) == 0) a.samples = 1 + below(a.samples); /* fewer than there should be */
    a.start = below(side);
    if (below(2)) a.start = 0;
    a.size = below(2) ? side - a.start : 1 + below(side - a.start);
    a.out = 1 + below(below(3) ? 1 + most / 8 : most);
    if (below(8) == 0) a.out = a.size;
    if (below(12) == 0) a.out = 1;
    a.count = a.out;
    return a;
}

static void random_window(mri_axis *a)
{
    a->first = below(a->out);
    a->count = 1 + below(a->out - a->first);
}

static struct shape random_shape(uint32_t most)
{
    struct shape s = {.x = random_axis(most), .y = random_axis(most)};
    s.filter = below(3) ? MRI_FILTER_BILINEAR : MRI_FILTER_BICUBIC;
    s.flip = below(2);
    s.channels = below(2) ? 3 : 1;
    return s;
}

static const char *text_of(const struct shape *s)
{
    static char text[256];
    const mri_axis *a[2] = {&s->x, &s->y};
    int at = 0;
    for (int k = 0; k < 2; k++)
        at +=
            snprintf(text + at, sizeof text - (size_t)at, "%s box %u+%u to %u[%u+%u] of %u samples of %u/%u ",
                     k ? "| y" : "x", a[k]->start, a[k]->size, a[k]->out, a[k]->first, a[k]->count,
                     a[k]->samples, a[k]->unit_num, a[k]->unit_den);
    snprintf(text + at, sizeof text - (size_t)at, "| %s flip %d channels %u",
             s->filter ? "cubic" : "triangle", s->flip, s->channels);
    return text;
}

static mri_resample_plan *plan;

/* The rows of the result as soon as mri_resample_ready() says, while the source grows downward, and without
 * the source rows above the first that mri_resample_needs() names: the same bits. */
static void check_rising(const struct shape *s, const uint8_t *samples, const uint8_t *expected)
{
    const size_t stride = (size_t)s->x.samples * s->channels, out = (size_t)s->x.count * s->channels;
    uint8_t *grown = malloc(stride * s->y.samples), *dst = malloc(out * s->y.count);
    uint32_t done = 0;
    memset(grown, 0x5a, stride * s->y.samples);
    for (uint32_t end = 0; end < s->y.samples;) {
        const uint32_t left = s->y.samples - end, more = left < 8 ? left : 8;
        memcpy(grown + end * stride, samples + end * stride, more * stride);
        end += more;
        const uint32_t ready = mri_resample_ready(plan, done, end), top = mri_resample_needs(plan, done);
        const mri_view v = {grown + top * stride, s->x.samples, s->y.samples - top, s->channels, stride, 0};
        if (ready > done)
            MRT_EQ(mri_resample_rows(plan, &v, 0, top, done, ready, dst + done * out, out), MR_OK);
        done = ready;
        memset(grown, 0x5a, mri_resample_needs(plan, done) * stride);
    }
    MRT_EQ(done, s->y.count);
    assert_memory_equal(dst, expected, out * s->y.count);
    free(grown);
    free(dst);
}

/* From the whole source to packed rows. */
static void run(const struct shape *s, const uint8_t *samples, uint8_t *dst)
{
    const size_t stride = (size_t)s->x.samples * s->channels;
    const mri_view v = {samples, s->x.samples, s->y.samples, s->channels, stride, 0};
    MRT_EQ(mri_resample_plan_set(plan, &s->x, &s->y, s->filter, s->flip, s->channels), MR_OK);
    MRT_EQ(mri_resample_run(plan, &v, 0, 0, dst, (size_t)s->x.count * s->channels), MR_OK);
    check_rising(s, samples, dst);
}

static size_t result_bytes(const struct shape *s) { return (size_t)s->x.count * s->y.count * s->channels; }

/* ---- tests ---- */

/* Black and white noise: what rounding of weights harms most. */
static uint8_t *noise(const struct shape *s, uint64_t seed)
{
    const size_t bytes = (size_t)s->x.samples * s->y.samples * s->channels;
    uint8_t *p = malloc(bytes);
    mrt_noise(p, bytes, seed);
    for (size_t k = 0; seed % 2 && k < bytes; k++) p[k] = p[k] & 1 ? 255 : 0;
    return p;
}

static double scale_of(const mri_axis *a)
{
    return (double)a->size * a->unit_den / ((double)a->out * a->unit_num);
}

/* The bound that resample.c states. */
static double bound_of(const struct shape *s)
{
    const double coarse = fmax(scale_of(&s->x), scale_of(&s->y)),
                 rest = 0.1 + (coarse > 32 ? coarse / 1000 : 0);
    return 0.5 + (s->filter == MRI_FILTER_BICUBIC ? 2 * rest : rest);
}

static void compare(const struct shape *s, uint32_t step, uint64_t seed)
{
    uint8_t *samples = noise(s, seed), *found = malloc(result_bytes(s));
    double *expected = definition(samples, &s->x, &s->y, s->filter, s->channels, step);
    run(s, samples, found);
    for (uint32_t v = 0; v < s->y.count; v += step)
        for (uint32_t u = 0; u < s->x.count; u += step)
            for (uint32_t c = 0; c < s->channels; c++) {
                const size_t at = ((size_t)v * s->x.count + u) * s->channels + c;
                const size_t from =
                    s->flip ? ((size_t)v * s->x.count + s->x.count - 1 - u) * s->channels + c : at;
                if (fabs(found[from] - expected[at]) > bound_of(s))
                    fail_msg("%s: at %u,%u,%u %d, expected %.3f", text_of(s), u, v, c, found[from],
                             expected[at]);
            }
    free(expected);
    free(samples);
    free(found);
}

static void equals_the_definition(void **unused)
{
    (void)unused;
    state = 1;
    for (uint64_t n = 0; n < 600; n++) {
        const struct shape s = random_shape(n % 10 ? 80 : 300);
        compare(&s, n % 10 ? 1 : 7, n);
    }
    static const uint32_t cases[][4] = {
        {1, 1, 1, 1},        {1, 1, 5, 7},       {7, 5, 1, 1},     {500, 375, 224, 224}, {3000, 2, 7, 2},
        {5000, 20, 224, 20}, {20, 5000, 8, 224}, {65535, 3, 2, 3}, {2, 30000, 2, 1},     {30, 20, 700, 700}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cases); k++)
        for (int variant = 0; variant < 4; variant++) {
            const uint32_t *c = cases[k];
            const struct shape s = {mri_axis_of(c[0], 0, c[0], c[2]), mri_axis_of(c[1], 0, c[1], c[3]),
                                    variant & 1 ? MRI_FILTER_BICUBIC : MRI_FILTER_BILINEAR, false,
                                    variant & 2 ? 3 : 1};
            compare(&s, 1 + c[2] / 20, k);
        }
}

/* Pages that cannot be touched lie right before and right after the bytes, as asked. */
struct guarded {
    uint8_t *map, *at;
    size_t bytes;
};

static struct guarded guard(size_t bytes, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = mri_align_up(bytes, page);
    struct guarded g = {.bytes = inside + 2 * page};
    g.map = mmap(NULL, g.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MRT_TRUE(g.map != MAP_FAILED);
    MRT_EQ(mprotect(g.map, page, PROT_NONE), 0);
    MRT_EQ(mprotect(g.map + page + inside, page, PROT_NONE), 0);
    memset(g.map + page, 0xa5, inside);
    g.at = at_end ? g.map + page + inside - bytes : g.map + page;
    return g;
}

static void unguard(struct guarded *g) { munmap(g->map, g->bytes); }

/* s from no more samples than its support, in rows of their own stride, to rows of their own stride, every
 * byte around them watched; packed to dst. */
static void run_guarded(const struct shape *s, const uint8_t *samples, bool at_end, uint8_t *dst)
{
    const uint32_t ch = s->channels, gap_in = below(5), gap_out = below(5);
    uint32_t lo_x, hi_x, lo_y, hi_y;
    mri_axis_support(&s->x, s->filter, &lo_x, &hi_x);
    mri_axis_support(&s->y, s->filter, &lo_y, &hi_y);
    MRT_TRUE(lo_x < hi_x && hi_x <= s->x.samples && lo_y < hi_y && hi_y <= s->y.samples);
    const size_t wide = (size_t)(hi_x - lo_x) * ch, stride = wide + gap_in, rows = hi_y - lo_y;
    const size_t out = (size_t)s->x.count * ch, out_stride = out + gap_out;
    struct guarded in = guard((rows - 1) * stride + wide, at_end),
                   to = guard((s->y.count - 1) * out_stride + out, at_end);
    for (size_t k = 0; k < rows; k++)
        memcpy(in.at + k * stride, samples + ((lo_y + k) * s->x.samples + lo_x) * ch, wide);
    const mri_view v = {in.at, hi_x - lo_x, (uint32_t)rows, ch, stride, 0};
    MRT_EQ(mri_resample_plan_set(plan, &s->x, &s->y, s->filter, s->flip, ch), MR_OK);
    MRT_EQ(mri_resample_run(plan, &v, lo_x, lo_y, to.at, out_stride), MR_OK);
    for (uint32_t k = 0; k < s->y.count; k++) {
        memcpy(dst + k * out, to.at + k * out_stride, out);
        for (size_t n = 0; k + 1 < s->y.count && n < gap_out; n++)
            MRT_EQ(to.at[k * out_stride + out + n], 0xa5);
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE); /* what lies between the result and the guards */
    for (uint8_t *p = to.map + page; p < to.at; p++) MRT_EQ(*p, 0xa5);
    for (uint8_t *p = to.at + (s->y.count - 1) * out_stride + out; p < to.map + to.bytes - page; p++)
        MRT_EQ(*p, 0xa5);
    unguard(&in);
    unguard(&to);
}

/* Part of a whole result, in columns as the part has them. */
static void expect_part(const struct shape *whole, const uint8_t *all, const struct shape *part,
                        const uint8_t *found, const char *variant)
{
    const uint32_t ch = part->channels;
    for (uint32_t v = 0; v < part->y.count; v++)
        for (uint32_t u = 0; u < part->x.count; u++) {
            const size_t i = part->x.first + (part->flip ? part->x.count - 1 - u : u);
            const uint8_t *expected = all + ((size_t)(part->y.first + v) * whole->x.count + i) * ch;
            const uint8_t *is = found + ((size_t)v * part->x.count + u) * ch;
            if (memcmp(is, expected, ch) != 0)
                fail_msg("%s, %s: at %u,%u %d, expected %d", variant, text_of(part), u, v, *is, *expected);
        }
}

/* Every variant, whole and in windows, mirrored and not: the bits of the plain whole one. */
static void variants_windows_mirrors(void **unused)
{
    (void)unused;
    state = 2;
    for (int n = 0; n < 2500; n++) {
        struct shape whole = random_shape(n % 10 ? 120 : 700);
        whole.flip = false;
        uint8_t *samples = noise(&whole, (uint64_t)n), *all = malloc(result_bytes(&whole)),
                *found = malloc(result_bytes(&whole));
        MRT_TRUE(mri_simd_use(MRI_SIMD_PLAIN));
        run(&whole, samples, all);
        for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++) {
            if (!mri_simd_use((mri_simd_level)level)) continue;
            struct shape part = whole;
            part.flip = below(2);
            run(&part, samples, found);
            expect_part(&whole, all, &part, found, mri_simd_name((mri_simd_level)level));
            part.flip = below(2);
            random_window(&part.x);
            random_window(&part.y);
            run_guarded(&part, samples, below(2), found);
            expect_part(&whole, all, &part, found, mri_simd_name((mri_simd_level)level));
        }
        free(samples);
        free(all);
        free(found);
    }
}

/* A loader's usual work, at every scale from enlarging to coarse: all variants, whole rows at the end of a
 * page. */
static void crops_to_224(void **unused)
{
    (void)unused;
    state = 3;
    for (uint32_t size = 50; size < 2400; size += size < 500 ? 13 : 190) {
        const uint32_t unit = 1 + size % 2, channels = unit == 1 && size % 3 ? 3 : 1, side = size + 9;
        struct shape s = {
            .x = mri_axis_of(side, 5, size, 224), .y = mri_axis_of(40, 1, 37, 21), .channels = channels};
        s.x.unit_num = unit;
        s.x.samples = (side + unit - 1) / unit;
        uint8_t *samples = noise(&s, size), *all = malloc(result_bytes(&s)),
                *found = malloc(result_bytes(&s));
        MRT_TRUE(mri_simd_use(MRI_SIMD_PLAIN));
        run(&s, samples, all);
        for (int level = MRI_SIMD_AVX2; level <= MRI_SIMD_NEON; level++) {
            if (!mri_simd_use((mri_simd_level)level)) continue;
            struct shape part = s;
            part.flip = below(2);
            run_guarded(&part, samples, true, found);
            expect_part(&s, all, &part, found, mri_simd_name((mri_simd_level)level));
        }
        free(samples);
        free(all);
        free(found);
    }
}

/* Weights come from doubles: this number is what keeps them from depending on the compiler or the machine. */
static void same_bits_on_every_machine(void **unused)
{
    (void)unused;
    state = 7;
    uint64_t hash = 0;
    for (int n = 0; n < 400; n++) {
        const struct shape s = random_shape(n % 5 ? 80 : 400);
        const size_t bytes = (size_t)s.x.samples * s.y.samples * s.channels;
        uint8_t *samples = malloc(bytes), *found = malloc(result_bytes(&s));
        for (size_t k = 0; k < bytes; k++) samples[k] = (uint8_t)(mri_mix64(k * 400 + (size_t)n) >> 50);
        run(&s, samples, found);
        for (size_t k = 0; k < result_bytes(&s); k++) hash = mri_mix64(hash ^ found[k]);
        free(samples);
        free(found);
    }
    if (hash != 0x879fba9ba5bcb54f) fail_msg("hash of all results is %016llx", (unsigned long long)hash);
}

static void flat_stays_flat(void **unused)
{
    (void)unused;
    state = 4;
    for (int n = 0; n < 600; n++) {
        const struct shape s = random_shape(n % 5 ? 60 : 500);
        const size_t bytes = (size_t)s.x.samples * s.y.samples * s.channels;
        const int level = (int)below(256);
        uint8_t *flat = malloc(bytes), *found = malloc(result_bytes(&s));
        memset(flat, level, bytes);
        run(&s, flat, found);
        for (size_t k = 0; k < result_bytes(&s); k++)
            if (found[k] != level) fail_msg("%s: %d, expected %d", text_of(&s), found[k], level);
        free(flat);
        free(found);
    }
}

static void same_size_is_a_copy(void **unused)
{
    (void)unused;
    for (int variant = 0; variant < 8; variant++) {
        const uint32_t ch = variant & 1 ? 3 : 1, side = 61;
        struct shape s = {mri_axis_of(side, 7, 50, 50), mri_axis_of(side, 3, 40, 40),
                          variant & 2 ? MRI_FILTER_BICUBIC : MRI_FILTER_BILINEAR, variant & 4, ch};
        uint8_t *samples = noise(&s, 2), *found = malloc(result_bytes(&s));
        run(&s, samples, found);
        for (uint32_t v = 0; v < 40; v++)
            for (uint32_t u = 0; u < 50; u++)
                MRT_TRUE(memcmp(found + (v * 50 + (s.flip ? 49 - u : u)) * ch,
                                samples + ((3 + v) * side + 7 + u) * ch, ch) == 0);
        uint32_t lo, hi; /* and it needs no more than it copies */
        s.x.first = 10;
        s.x.count = 5;
        mri_axis_support(&s.x, s.filter, &lo, &hi);
        MRT_EQ(lo, 17);
        MRT_EQ(hi, 22);
        free(samples);
        free(found);
    }
}

/* White exactly where the cubic's weights are positive, at every scale: the largest sums there are. Then the
 * reverse. */
static void overshoot_is_clipped(void **unused)
{
    (void)unused;
    for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        for (uint32_t scale = 1; scale <= 70; scale += scale < 10 ? 1 : 6) {
            const uint32_t side = 5 * scale, channels = scale % 2 ? 3 : 1;
            const struct shape s = {mri_axis_of(side, 0, side, 5), mri_axis_of(side, 0, side, 5),
                                    MRI_FILTER_BICUBIC, false, channels};
            uint8_t *samples = malloc((size_t)side * side * channels), found[5 * 5 * 3];
            for (int reverse = 0; reverse < 2; reverse++) {
                for (uint32_t k = 0; k < side * side * channels; k++) { /* the middle result reaches `scale`
                                                                           from 5 / 2 * scale */
                    const uint32_t x = 2 * (k / channels % side) + 1, y = 2 * (k / channels / side) + 1;
                    const bool in_x = x > 3 * scale && x<7 * scale, in_y = y> 3 * scale && y < 7 * scale;
                    samples[k] = (in_x && in_y) == !reverse ? 255 : 0;
                }
                run(&s, samples, found);
                for (uint32_t c = 0; c < channels; c++)
                    MRT_EQ(found[(2 * 5 + 2) * channels + c], reverse ? 0 : 255);
            }
            free(samples);
        }
    }
}

/* Chroma at half resolution to full: 3/4 of the nearer sample, 1/4 of the other one, and only the nearest at
 * the borders. */
static void half_resolution_is_triangle_upsampling(void **unused)
{
    (void)unused;
    struct shape s = {.x = mri_axis_of(20, 0, 20, 20), .y = mri_axis_of(1, 0, 1, 1), .channels = 1};
    s.x.unit_num = 2;
    s.x.samples = 10;
    uint8_t samples[10], found[20];
    for (int k = 0; k < 10; k++) samples[k] = (uint8_t)(k * k * 2);
    run(&s, samples, found);
    MRT_EQ(found[0], samples[0]);
    MRT_EQ(found[19], samples[9]);
    for (int k = 1; k < 19; k++) {
        const int near = samples[k / 2], other = samples[k % 2 ? k / 2 + 1 : k / 2 - 1];
        MRT_EQ(found[k], (3 * near + other + 2) / 4);
    }
}

/* As wide as a picture may be: a ramp stays one, in every variant. */
static void largest_sides(void **unused)
{
    (void)unused;
    static const uint32_t cases[][4] = {/* size, out, unit */
                                        {MRI_RESAMPLE_MAX_SIDE, 3, 1, 1},
                                        {5, MRI_RESAMPLE_MAX_SIDE, 1, 1},
                                        {MRI_RESAMPLE_MAX_SIDE, MRI_RESAMPLE_MAX_SIDE - 1, 4, 1},
                                        {MRI_RESAMPLE_MAX_SIDE, MRI_RESAMPLE_MAX_SIDE / 9, 4, 3}};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(cases); n++)
        for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++) {
            if (!mri_simd_use((mri_simd_level)level)) continue;
            const uint32_t *c = cases[n];
            struct shape s = {mri_axis_of(c[0], 0, c[0], c[1]), mri_axis_of(1, 0, 1, 1), (mri_filter)(n % 2),
                              false, 1};
            s.x.unit_num = c[2];
            s.x.unit_den = c[3];
            s.x.samples = (c[0] * c[3] + c[2] - 1) / c[2];
            uint8_t *samples = malloc(s.x.samples), *found = malloc(s.x.count);
            for (uint64_t k = 0; k < s.x.samples; k++) samples[k] = (uint8_t)(k * 255 / s.x.samples);
            run(&s, samples, found);
            for (uint64_t k = 1; k < s.x.count; k++)
                MRT_TRUE(s.filter == MRI_FILTER_BICUBIC || found[k] >= found[k - 1]);
            const double half = 127 * (1 - 1.0 / s.x.count);
            MRT_TRUE(fabs(found[s.x.count / 2] - 127.5) < 26);
            MRT_TRUE(found[0] < 127.5 - half / 2 && found[s.x.count - 1] > 127 + half / 2);
            free(samples);
            free(found);
        }
}

static void survives_failing_allocations(void **unused)
{
    (void)unused;
    state = 5;
    const struct shape s = {mri_axis_of(40, 0, 40, 21), mri_axis_of(30, 0, 30, 22), MRI_FILTER_BILINEAR,
                            false, 1};
    uint8_t *samples = noise(&s, 1), dst[21 * 22], expected[21 * 22];
    const mri_view v = {samples, 40, 30, 1, 40, 0};
    run(&s, samples, expected);
    for (int n = 0;; n++) {
        mri_resample_plan *p = (mri_resample_plan *)(void *)&v;
        mrt_fail_alloc_at(n);
        int rc = mri_resample_plan_create(&p);
        if (rc) MRT_TRUE(p == NULL);
        if (!rc) rc = mri_resample_plan_set(p, &s.x, &s.y, s.filter, s.flip, 1);
        if (!rc) rc = mri_resample_run(p, &v, 0, 0, dst, 21);
        mrt_fail_alloc_at(-1);
        if (p && rc) { /* and works when there is memory again */
            MRT_EQ(rc, MR_ENOMEM);
            MRT_EQ(mri_resample_plan_set(p, &s.x, &s.y, s.filter, s.flip, 1), MR_OK);
            MRT_EQ(mri_resample_run(p, &v, 0, 0, dst, 21), MR_OK);
            MRT_TRUE(memcmp(dst, expected, sizeof dst) == 0);
        }
        mri_resample_plan_destroy(p);
        if (rc == MR_OK) {
            MRT_TRUE(n >= 4);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
    }
    mri_resample_plan_destroy(NULL);
    free(samples);
}

static void memory_stays_within_the_bound(void **unused)
{
    (void)unused;
    state = 6;
    for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        for (uint32_t most = 1; most <= 600; most = most * 3 + 1) {
            mri_resample_plan *p;
            MRT_EQ(mri_resample_plan_create(&p), MR_OK);
            for (int n = 0; n < 150; n++) {
                const uint32_t in_x = 1 + below(most), in_y = 1 + below(most), ch = below(2) ? 3 : 1;
                const mri_axis x = mri_axis_of(in_x, 0, in_x, 1 + below(most)),
                               y = mri_axis_of(in_y, 0, in_y, 1 + below(most));
                uint8_t *in = calloc((size_t)in_x * in_y, ch), *out = malloc((size_t)x.out * y.out * ch);
                const mri_view v = {in, in_x, in_y, ch, (size_t)in_x * ch, 0};
                MRT_EQ(mri_resample_plan_set(p, &x, &y, n % 2 ? MRI_FILTER_BICUBIC : MRI_FILTER_BILINEAR,
                                             false, ch),
                       MR_OK);
                MRT_EQ(mri_resample_run(p, &v, 0, 0, out, (size_t)x.out * ch), MR_OK);
                free(in);
                free(out);
            }
            MRT_TRUE(mri_resample_plan_bytes(p) <= mri_resample_bound_bytes(most, most));
            mri_resample_plan_destroy(p);
        }
    }
}

static int open_plan(void **unused)
{
    (void)unused;
    return mri_resample_plan_create(&plan);
}

static int close_plan(void **unused)
{
    (void)unused;
    mri_resample_plan_destroy(plan);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_definition),
        cmocka_unit_test(variants_windows_mirrors),
        cmocka_unit_test(crops_to_224),
        cmocka_unit_test(same_bits_on_every_machine),
        cmocka_unit_test(flat_stays_flat),
        cmocka_unit_test(same_size_is_a_copy),
        cmocka_unit_test(overshoot_is_clipped),
        cmocka_unit_test(half_resolution_is_triangle_upsampling),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(largest_sides),
        cmocka_unit_test(memory_stays_within_the_bound),
    };
    return cmocka_run_group_tests(tests, open_plan, close_plan);
}
