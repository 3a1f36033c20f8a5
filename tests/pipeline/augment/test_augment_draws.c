/* augment_draws: what random operations draw is distributed as augment.h says: seen from their results
 * alone, over many samples, epochs and seeds. All draws are fixed, so a bound holds always or never. */
#include <math.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/augment/op.h"
#include "tests/pipeline/pictures.h"

enum { MANY = 20000, BINS = 10 };

typedef struct runner {
    mr_augment *a;
    mri_scratch *s;
    mr_decode_config cfg;
    mr_value v;
    uint32_t w, h, c;
} runner;

static runner runner_of(const char *spec, const uint8_t *pixels, uint32_t w, uint32_t h, uint32_t c)
{
    runner r = {.v = mrt_pixels(pixels, w, h, c, MR_HWC), .w = w, .h = h, .c = c};
    mr_error err = MR_ERROR_INIT;
    mr_decode_defaults(&r.cfg);
    MRT_OK(mr_augment_create(&r.a, spec, true, &err), &err);
    MRT_EQ(mri_scratch_create(&r.s), MR_OK);
    return r;
}

static void runner_end(runner *r)
{
    mri_scratch_destroy(r->s);
    mr_augment_destroy(r->a);
}

/* Draw number k: by the sample, the epoch and the seed in turn. */
static void take(const runner *r, uint32_t k, uint8_t *dst)
{
    const mri_sample_key key = {k % 3 == 0 ? k : 1, k % 3 == 1 ? k : 2, k % 3 == 2 ? k : 3};
    mr_error err = MR_ERROR_INIT;
    float affine[2];
    MRT_OK(mri_augment_run(r->a, r->s, &r->v, &r->cfg, r->c, key, r->h, r->w, dst, affine, NULL, NULL, &err),
           &err);
}

/* How often each tenth of [0, 1) was hit. */
typedef struct histogram {
    uint32_t count[BINS], all;
} histogram;

static void add(histogram *h, double at)
{
    MRT_TRUE(at > -0.02 && at < 1.02);
    const int bin = (int)floor(at * BINS);
    h->count[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
    h->all++;
}

/* Chi-square with nine degrees of freedom: above 40 once in a hundred thousand. Draws become whole pixels,
 * which moves some of them from one tenth to the next: rounding is the extra allowance for that. */
static void is_uniform(const histogram *h, const char *what, double rounding)
{
    const double expected = (double)h->all / BINS;
    double sum = 0;
    for (int k = 0; k < BINS; k++) {
        const double off = fmax(0, fabs(h->count[k] - expected) - rounding * expected);
        sum += off * off / expected;
    }
    if (sum > 40) fail_msg("%s: chi-square %g, first tenth %u of %u", what, sum, h->count[0], h->all);
}

/* ---- with a probability ---- */

static void probabilities_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        double p;
    } cases[] = {{"gray(0.2)", 0.2},
                 {"invert(0.2)", 0.2},
                 {"solarize(100,0.7)", 0.7},
                 {"posterize(1,0.5)", 0.5},
                 {"autocontrast(0.9)", 0.9},
                 {"erase(0.25)", 0.25},
                 {"jitter(0,0,1,0.5,1/3)", 1 / 3.0},
                 {"sharpness(3:3,0.3)", 0.3},
                 {"blur(3,1:1,0.6)", 0.6}};
    uint8_t pixels[4 * 4 * 3], dst[sizeof pixels];
    for (size_t k = 0; k < sizeof pixels; k++) pixels[k] = (uint8_t)(60 + 11 * k);
    for (size_t n = 0; n < MRI_ARRAY_COUNT(cases); n++) {
        runner r = runner_of(cases[n].spec, pixels, 4, 4, 3);
        uint32_t changed = 0;
        for (uint32_t k = 0; k < MANY; k++) {
            take(&r, k, dst);
            changed += memcmp(dst, pixels, sizeof dst) != 0;
        }
        const double p = cases[n].p, deviation = sqrt(MANY * p * (1 - p));
        if (fabs(changed - MANY * p) > 5 * deviation)
            fail_msg("%s: %u of %u pictures changed", cases[n].spec, changed, MANY);
        runner_end(&r);
    }
}

static void certain_and_impossible(void **state)
{
    (void)state;
    uint8_t pixels[3] = {10, 200, 90}, dst[3];
    for (uint32_t k = 0; k < 2000; k++) {
        runner never = runner_of("gray(0),invert(0),solarize(0,0),posterize(1,0),jitter(1,1,1,0.5,0)", pixels,
                                 1, 1, 3),
               always = runner_of("invert(1)", pixels, 1, 1, 3);
        take(&never, k, dst);
        MRT_TRUE(memcmp(dst, pixels, 3) == 0);
        take(&always, k, dst);
        MRT_TRUE(dst[0] == 245 && dst[1] == 55 && dst[2] == 165);
        runner_end(&never);
        runner_end(&always);
    }
}

/* Two operations of one kind draw apart. */
static void places_draw_apart(void **state)
{
    (void)state;
    uint8_t pixel[1] = {10}, dst[1];
    runner r = runner_of("invert(0.5),invert(0.5)", pixel, 1, 1, 1);
    uint32_t changed = 0;
    for (uint32_t k = 0; k < MANY; k++) {
        take(&r, k, dst);
        changed += dst[0] != 10;
    }
    MRT_TRUE(changed > MANY / 2 - 400 && changed < MANY / 2 + 400);
    runner_end(&r);
}

/* ---- rectangles ---- */

enum { WIDE = 200, HIGH = 150 };

typedef struct rectangle {
    uint32_t x0, y0, x1, y1, count;
} rectangle;

/* Where there is no white. */
static rectangle erased(const uint8_t *p)
{
    rectangle r = {WIDE, HIGH, 0, 0, 0};
    for (uint32_t y = 0; y < HIGH; y++)
        for (uint32_t x = 0; x < WIDE; x++) {
            if (p[y * WIDE + x] == 255) continue;
            r.x0 = x < r.x0 ? x : r.x0;
            r.x1 = x + 1 > r.x1 ? x + 1 : r.x1;
            r.y0 = y < r.y0 ? y : r.y0;
            r.y1 = y + 1;
            r.count++;
        }
    return r;
}

static void erasing_is_uniform(void **state)
{
    (void)state;
    static uint8_t white[WIDE * HIGH], dst[sizeof white];
    memset(white, 255, sizeof white);
    runner r = runner_of("erase(1,scale=0.02:0.25,ratio=0.5:2,value=zero)", white, WIDE, HIGH, 1);
    histogram area = {{0}, 0}, ratio = {{0}, 0}, x = {{0}, 0}, y = {{0}, 0};
    for (uint32_t k = 0; k < MANY; k++) {
        take(&r, k, dst);
        const rectangle e = erased(dst);
        const double w = e.x1 - e.x0, h = e.y1 - e.y0;
        MRT_EQ(e.count, (uint32_t)(w * h)); /* it is one */
        add(&area, (w * h / (WIDE * HIGH) - 0.02) / 0.23);
        add(&ratio, (log(h / w) - log(0.5)) / log(4));
        add(&x, (e.x0 + 0.5) / (WIDE - w + 1));
        add(&y, (e.y0 + 0.5) / (HIGH - h + 1));
    }
    is_uniform(&area, "area", 0.02);
    is_uniform(&ratio, "ratio", 0.05);
    is_uniform(&x, "x", 0.02);
    is_uniform(&y, "y", 0.02);
    runner_end(&r);
}

/* What never fits is not erased: the rectangle is smaller than the picture in both directions. */
static void erasing_fits_or_is_left_out(void **state)
{
    (void)state;
    static uint8_t white[WIDE * HIGH], dst[sizeof white];
    memset(white, 255, sizeof white);
    runner r = runner_of("erase(1,scale=1:1,ratio=1:1,value=zero)", white, WIDE, HIGH, 1);
    for (uint32_t k = 0; k < 50; k++) {
        take(&r, k, dst);
        MRT_TRUE(memcmp(dst, white, sizeof white) == 0);
    }
    runner_end(&r);
}

static void cutting_is_uniform(void **state)
{
    (void)state;
    static uint8_t white[WIDE * HIGH], dst[sizeof white];
    memset(white, 255, sizeof white);
    runner one = runner_of("cutout(1,value=zero)", white, WIDE, HIGH, 1),
           square = runner_of("cutout(31,value=zero)", white, WIDE, HIGH, 1);
    histogram x = {{0}, 0}, y = {{0}, 0};
    for (uint32_t k = 0; k < MANY; k++) {
        take(&one, k, dst);
        const rectangle at = erased(dst);
        MRT_EQ(at.count, 1);
        add(&x, (double)at.x0 / WIDE);
        add(&y, (double)at.y0 / HIGH);
        if (k >= 500) continue;
        take(&square, k, dst); /* around the same pixel, as far as there is a picture */
        const rectangle all = erased(dst);
        MRT_EQ(all.x0, at.x0 < 15 ? 0 : at.x0 - 15);
        MRT_EQ(all.x1, at.x0 + 16 > WIDE ? WIDE : at.x0 + 16);
        MRT_EQ(all.y0, at.y0 < 15 ? 0 : at.y0 - 15);
        MRT_EQ(all.y1, at.y0 + 16 > HIGH ? HIGH : at.y0 + 16);
        MRT_EQ(all.count, (all.x1 - all.x0) * (all.y1 - all.y0));
    }
    is_uniform(&x, "x", 0);
    is_uniform(&y, "y", 0);
    runner_end(&one);
    runner_end(&square);
}

static void noise_is_uniform(void **state)
{
    (void)state;
    static uint8_t white[WIDE * HIGH], dst[sizeof white];
    memset(white, 255, sizeof white);
    runner r = runner_of("cutout(32768,value=random)", white, WIDE, HIGH, 1);
    histogram bytes = {{0}, 0}, steps = {{0}, 0};
    for (uint32_t k = 0; k < 10; k++) {
        take(&r, k, dst);
        for (uint32_t i = 0; i < sizeof dst; i++) {
            add(&bytes, dst[i] / 256.0);
            if (i > 0) add(&steps, (uint8_t)(dst[i] - dst[i - 1]) / 256.0);
        }
    }
    /* 256 values in ten tenths: some have 25, some 26 of them */
    is_uniform(&bytes, "bytes", 0.025);
    is_uniform(&steps, "differences", 0.025);
    runner_end(&r);
}

/* ---- colours ---- */

/* The turn that made this of pure red, 0..1 for -1/2..1/2. */
static double turn_of(const uint8_t p[3])
{
    double h = p[0] == 255   ? (p[1] - p[2]) / 255.0
               : p[1] == 255 ? 2 + (p[2] - p[0]) / 255.0
                             : 4 + (p[0] - p[1]) / 255.0;
    if (h >= 3) h -= 6;
    return h / 6 + 0.5;
}

static void turns_are_uniform(void **state)
{
    (void)state;
    uint8_t red[3] = {255, 0, 0}, dst[3];
    runner all = runner_of("hue(0.5)", red, 1, 1, 3), some = runner_of("hue(0.1)", red, 1, 1, 3);
    histogram h = {{0}, 0}, few = {{0}, 0};
    for (uint32_t k = 0; k < MANY; k++) {
        take(&all, k, dst);
        add(&h, turn_of(dst));
        take(&some, k, dst);
        add(&few, (turn_of(dst) - 0.4) / 0.2);
    }
    is_uniform(&h, "turns", 0.005);
    is_uniform(&few, "turns up to a tenth", 0.02);
    runner_end(&all);
    runner_end(&some);
}

/* Of jitter, each of the four alone. */
static void jitter_is_uniform(void **state)
{
    (void)state;
    static const char *const specs[4] = {"jitter(0.5,0,0,0)", "jitter(0,0.5,0,0)", "jitter(0,0,0.5,0)",
                                         "jitter(0,0,0,0.5)"};
    uint8_t two[6] = {120, 120, 120, 20, 20, 20}, one[3] = {255, 0, 0}, dst[6];
    for (int n = 0; n < 4; n++) {
        runner r = n < 2 ? runner_of(specs[n], two, 2, 1, 3) : runner_of(specs[n], one, 1, 1, 3);
        histogram h = {{0}, 0};
        for (uint32_t k = 0; k < MANY; k++) {
            take(&r, k, dst);
            const double span = n == 2 ? (dst[0] - dst[1]) / 255.0 : (dst[0] - dst[3]) / 100.0;
            if (n == 2 && dst[1] == 0) continue; /* above a factor of 1: cut off */
            add(&h, n == 3 ? turn_of(dst) : n == 2 ? (span - 0.5) / 0.5 : span - 0.5);
        }
        MRT_TRUE(n == 2 ? h.all > MANY / 2 - 400 && h.all < MANY / 2 + 600 : h.all == MANY);
        is_uniform(&h, specs[n], 0.15);
        runner_end(&r);
    }
}

/* ---- neighbours ---- */

static void sharpness_is_uniform(void **state)
{
    (void)state;
    uint8_t p[9] = {0, 0, 0, 0, 100, 0, 0, 0, 0}, dst[9]; /* smoothed: 500 / 13, rounded */
    runner r = runner_of("sharpness(0.5:2)", p, 3, 3, 1);
    histogram h = {{0}, 0};
    for (uint32_t k = 0; k < MANY; k++) {
        take(&r, k, dst);
        add(&h, ((dst[4] - 38) / 62.0 - 0.5) / 1.5);
    }
    is_uniform(&h, "sharpness", 0.15);
    runner_end(&r);
}

/* What stays in the middle of a row of 41 pixels says how wide it was blurred. */
static double left_in_the_middle(double sigma)
{
    double all = 0;
    for (int k = -20; k <= 20; k++) all += exp(-k * k / (2 * sigma * sigma));
    return 255 / all;
}

static void blur_is_uniform(void **state)
{
    (void)state;
    uint8_t p[101] = {0}, dst[101];
    p[50] = 255;
    runner r = runner_of("blur(41,0.6:1.6)", p, 101, 1, 1);
    histogram h = {{0}, 0};
    for (uint32_t k = 0; k < MANY; k++) {
        take(&r, k, dst);
        int tenth = 0;
        while (tenth < BINS - 1 && dst[50] + 0.5 < left_in_the_middle(0.6 + 0.1 * (tenth + 1))) tenth++;
        add(&h, (tenth + 0.5) / BINS);
    }
    is_uniform(&h, "blur", 0.25); /* a step of the middle is up to a quarter of a tenth */
    runner_end(&r);
}

/* ---- maps ---- */

static void turn_taken(const runner *r, uint32_t k, mri_geometry *g)
{
    static uint8_t dst[WIDE * HIGH];
    const mri_sample_key key = {3, 4, k};
    MRT_EQ(mri_augment_run(r->a, r->s, &r->v, &r->cfg, r->c, key, r->h, r->w, dst, NULL, NULL, g, NULL),
           MR_OK);
}

static void turns_of_pictures_are_uniform(void **state)
{
    (void)state;
    static uint8_t p[WIDE * HIGH];
    const double degree = acos(-1) / 180;
    runner turn = runner_of("rotate(30)", p, WIDE, HIGH, 1),
           move = runner_of("affine(0,translate=0.1:0.2)", p, WIDE, HIGH, 1),
           rest = runner_of("affine(180,scale=0.5:1.5)", p, WIDE, HIGH, 1),
           shear = runner_of("affine(0,shear=30:20)", p, WIDE, HIGH, 1);
    histogram angle = {{0}, 0}, x = {{0}, 0}, y = {{0}, 0}, around = {{0}, 0}, scale = {{0}, 0},
              shear_x = {{0}, 0}, shear_y = {{0}, 0};
    for (uint32_t k = 0; k < MANY / 10; k++) {
        mri_geometry g;
        const mri_geometry_turn *t = &g.turn[0];
        turn_taken(&turn, k, &g);
        MRT_EQ(g.turns, 1);
        add(&angle, (atan2(t->xy, t->xx) / degree + 30) / 60);
        turn_taken(&move, k, &g);
        MRT_TRUE(t->xx == 1 && t->xy == 0 && t->x0 - 0.5 == floor(t->x0)); /* whole pixels */
        add(&x, (t->x0 + 20) / 41);
        add(&y, (t->y0 + 30) / 61);
        turn_taken(&rest, k, &g);
        add(&around, (atan2(t->xy, t->xx) / degree + 180) / 360);
        add(&scale, 1 / sqrt(t->xx * t->yy - t->xy * t->yx) - 0.5);
        turn_taken(&shear, k, &g); /* x = (1 + ab) i + a j, y = b i + j */
        add(&shear_y, (atan(t->yx) / degree + 20) / 40);
        add(&shear_x, (atan(t->xy) / degree + 30) / 60);
    }
    is_uniform(&angle, "angle", 0);
    is_uniform(&x, "x", 0.1);
    is_uniform(&y, "y", 0.1);
    is_uniform(&around, "angle up to 180", 0);
    is_uniform(&scale, "scale", 0);
    is_uniform(&shear_x, "shear x", 0);
    is_uniform(&shear_y, "shear y", 0);
    runner_end(&turn);
    runner_end(&move);
    runner_end(&rest);
    runner_end(&shear);
}

/* ---- policies ---- */

/* Fourteen equally likely deeds; nine of them have two equally likely directions: 23 results, distinguished
 * by their pixels. */
static void deeds_are_uniform(void **state)
{
    (void)state;
    enum { SIDE = 40, RESULTS = 23 };
    uint8_t *p = mrt_picture(SIDE, SIDE, 3, 1), dst[SIDE * SIDE * 3];
    for (size_t k = 0; k < sizeof dst; k++) p[k] = (uint8_t)(40 + p[k] / 2 + k % 3 * 20);
    runner r = runner_of("randaugment(1,17)", p, SIDE, SIDE, 3);
    uint64_t seen[RESULTS + 1];
    uint32_t count[RESULTS + 1] = {0}, results = 0, often = 0, rare = 0;
    for (uint32_t k = 0; k < MANY; k++) {
        uint64_t hash = 0;
        uint32_t n = 0;
        take(&r, k, dst);
        for (size_t i = 0; i < sizeof dst; i++) hash = mri_mix64(hash ^ dst[i]);
        while (n < results && seen[n] != hash) n++;
        if (n == results) seen[results++] = hash;
        MRT_TRUE(results <= RESULTS);
        count[n]++;
    }
    MRT_EQ(results, RESULTS);
    for (uint32_t n = 0; n < RESULTS; n++) { /* within five standard deviations */
        often += fabs(count[n] - MANY / 14.0) < 5 * sqrt(MANY / 14.0);
        rare += fabs(count[n] - MANY / 28.0) < 5 * sqrt(MANY / 28.0);
    }
    MRT_EQ(often, 5);
    MRT_EQ(rare, 18);
    runner_end(&r);
    free(p);
}

/* Of a wide policy, the turns: 30 levels of 4.5 degrees, either way. */
static void levels_are_uniform(void **state)
{
    (void)state;
    static uint8_t p[WIDE * HIGH];
    runner r = runner_of("trivial(filter=nearest)", p, WIDE, HIGH, 1);
    uint32_t count[61] = {0}, all = 0;
    for (uint32_t k = 0; k < MANY; k++) {
        mri_geometry g;
        turn_taken(&r, k, &g);
        const mri_geometry_turn *t = &g.turn[0];
        if (g.turns == 0 || fabs(t->xy + t->yx) > 1e-6 || fabs(t->xy) < 1e-6) continue; /* no turn */
        const double level = atan2(t->xy, t->xx) / acos(-1) * 180 / 4.5;
        MRT_TRUE(fabs(level - nearbyint(level)) < 1e-6);
        count[30 + (int)nearbyint(level)]++;
        all++;
    }
    const double expected = MANY / 14.0 / 62;
    double sum = 0;
    for (int k = 0; k < 61; k++)
        if (k != 30) sum += (count[k] - expected) * (count[k] - expected) / expected;
    MRT_EQ(count[30], 0);
    MRT_TRUE(sum < 120); /* 60 degrees of freedom: more once in a hundred thousand */
    MRT_TRUE(fabs(all - MANY / 14.0 * 30 / 31) < 5 * sqrt(MANY / 14.0));
    runner_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_kept),
        cmocka_unit_test(certain_and_impossible),
        cmocka_unit_test(places_draw_apart),
        cmocka_unit_test(erasing_is_uniform),
        cmocka_unit_test(erasing_fits_or_is_left_out),
        cmocka_unit_test(cutting_is_uniform),
        cmocka_unit_test(noise_is_uniform),
        cmocka_unit_test(turns_are_uniform),
        cmocka_unit_test(jitter_is_uniform),
        cmocka_unit_test(sharpness_is_uniform),
        cmocka_unit_test(blur_is_uniform),
        cmocka_unit_test(turns_of_pictures_are_uniform),
        cmocka_unit_test(deeds_are_uniform),
        cmocka_unit_test(levels_are_uniform),
    };
    return mrt_run(tests);
}
