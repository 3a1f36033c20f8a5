/* Crops that cover a box: rrc(..,covers=F). A second implementation of the rule is compared crop by crop;
 * also, boxes are painted, and the paint visible in a crop shows whether it contained its box, after any
 * operations before it. */
#include <math.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/augment/geometry.h"
#include "tests/pipeline/pictures.h"

typedef struct rect {
    double x0, y0, x1, y1; /* parts of the stored picture, or its pixels */
} rect;

static mr_value boxes_of(const rect *r, uint64_t n)
{
    return (mr_value){.type = MR_TYPE_TENSOR,
                      .dtype = MR_F64,
                      .ndim = 2,
                      .dim = {n, 4},
                      .data = r,
                      .bytes = (size_t)n * sizeof *r};
}

/* ---- the rule, once more ---- */

static mri_philox ref_draw(mri_sample_key key, uint32_t index, uint32_t block)
{
    const uint64_t at = 64 * (uint64_t)index + block % 64 + (block >= 64 ? 64 * 32 : 0);
    return mri_philox4x32(mri_mix64(mri_mix64(key.seed) + at), key.sample, key.epoch);
}

static double held(const rect *crop, const rect *box)
{
    const double w = fmin(crop->x1, box->x1) - fmax(crop->x0, box->x0),
                 h = fmin(crop->y1, box->y1) - fmax(crop->y0, box->y0);
    return fmax(w, 0) * fmax(h, 0) / ((box->x1 - box->x0) * (box->y1 - box->y0));
}

/* Boxes in pixels, all of them with an area inside of the picture. *tries: the one taken, or how many there
 * were; *which: the box. */
static rect ref_crop(mri_sample_key key, uint32_t index, double W, double H, double lo, double hi, double f,
                     const rect *boxes, uint32_t n, uint32_t *tries, uint32_t *which)
{
    const uint32_t most = n ? 100 : 10;
    *which = n ? (uint32_t)((uint64_t)ref_draw(key, index, 127).v[0] * n >> 32) : 0;
    for (*tries = 0; *tries < most; ++*tries) {
        const mri_philox d = ref_draw(key, index, *tries);
        const double area = W * H * (lo + (hi - lo) * (d.v[0] / 4294967296.0));
        const double ratio = exp(log(0.75) + (log(4 / 3.0) - log(0.75)) * (d.v[1] / 4294967296.0));
        const double w = floor(sqrt(area * ratio) + 0.5), h = floor(sqrt(area / ratio) + 0.5);
        if (w < 1 || h < 1 || w > W || h > H) continue;
        const double x = mri_below(d.v[2], (uint32_t)(W - w) + 1),
                     y = mri_below(d.v[3], (uint32_t)(H - h) + 1);
        const rect crop = {x, y, x + w, y + h};
        if (n == 0 || held(&crop, &boxes[*which]) >= f) return crop;
    }
    double w = W, h = H;
    if (W / H < 0.75) h = floor(W / 0.75 + 0.5);
    else if (W / H > 4 / 3.0) w = floor(H * (4 / 3.0) + 0.5);
    const double x = floor((W - w) / 2), y = floor((H - h) / 2);
    return (rect){x, y, x + w, y + h};
}

/* ---- runs ---- */

enum { SIDE = 24, MOST = SIDE * SIDE * 3 };

typedef struct run {
    mr_augment *a;
    mri_scratch *s;
    mr_decode_config cfg;
    mri_geometry g;
    uint8_t out[MOST];
} run;

static void begin(run *r, const char *spec)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_augment_create(&r->a, spec, true, &err), &err);
    MRT_EQ(mri_scratch_create(&r->s), MR_OK);
    mr_decode_defaults(&r->cfg);
}

static void end(run *r)
{
    mr_augment_destroy(r->a);
    mri_scratch_destroy(r->s);
}

static void go(run *r, const mr_value *picture, mri_sample_key key, const mri_boxes *boxes)
{
    mr_error err = MR_ERROR_INIT;
    if (boxes) MRT_OK(mri_boxes_check(boxes, &err), &err);
    MRT_OK(
        mri_augment_run(r->a, r->s, picture, &r->cfg, 3, key, SIDE, SIDE, r->out, NULL, boxes, &r->g, &err),
        &err);
}

/* The part of the upright picture that the result shows. */
static rect shown(const run *r) { return (rect){r->g.x.from, r->g.y.from, r->g.x.to, r->g.y.to}; }

static void same_rect(rect a, rect b)
{
    MRT_TRUE(fabs(a.x0 - b.x0) + fabs(a.y0 - b.y0) + fabs(a.x1 - b.x1) + fabs(a.y1 - b.y1) < 1e-6);
}

static const struct layout {
    const char *name;
    uint32_t w, h, n;
    double lo, hi, f;
    rect box[3];
} layouts[] = {
    {"one", 60, 50, 1, 0.08, 1, 0.1, {{20, 10, 45, 30}}},
    {"a tiny one in the corner", 60, 50, 1, 0.08, 1, 0.1, {{0, 0, 2, 1}}},
    {"the other corner, whole", 60, 50, 1, 0.08, 1, 1, {{57.25, 47.5, 60, 50}}},
    {"so small crops that few tries do", 90, 80, 1, 0.01, 0.02, 1, {{70, 60, 76, 66}}},
    {"the whole picture", 60, 50, 1, 0.08, 1, 0.1, {{0, 0, 60, 50}}},
    {"the whole picture, half of it", 60, 50, 1, 0.08, 1, 0.5, {{0, 0, 60, 50}}},
    {"more than crops hold", 60, 50, 1, 0.08, 0.3, 0.5, {{0, 0, 60, 50}}},
    {"a wide picture", 200, 20, 1, 0.08, 1, 0.5, {{150, 5, 170, 15}}},
    {"a high picture", 20, 200, 2, 0.08, 1, 0.5, {{1, 0, 19, 8}, {5, 150, 10, 199}}},
    {"three", 64, 64, 3, 0.08, 0.5, 0.3, {{0, 0, 60, 60}, {50, 50, 64, 64}, {3, 40, 9.5, 63}}},
    {"less than a pixel", 30, 30, 1, 0.08, 1, 1, {{10.25, 10.25, 10.5, 10.5}}},
};

typedef struct tally {
    uint32_t first, later, late, fallback, boxes[3];
} tally;

static void check_layout(const struct layout *t, bool parts, uint32_t draws, tally *k)
{
    char spec[120];
    rect boxes[3];
    run r;
    uint8_t *pixels = mrt_picture(t->w, t->h, 3, 1);
    const mr_value picture = mrt_pixels(pixels, t->w, t->h, 3, MR_HWC);
    snprintf(spec, sizeof spec, "flip,rrc(%d,scale=%g:%g,covers=%g)", SIDE, t->lo, t->hi, t->f);
    begin(&r, spec + 5);
    for (uint32_t b = 0; b < t->n; b++) {
        boxes[b] = t->box[b];
        if (parts)
            boxes[b] = (rect){boxes[b].x0 / t->w, boxes[b].y0 / t->h, boxes[b].x1 / t->w, boxes[b].y1 / t->h};
    }
    const mr_value v = boxes_of(boxes, t->n);
    const mri_boxes given = {&v, !parts};
    for (uint32_t d = 0; d < draws; d++) {
        const mri_sample_key key = {7, d % 3, d};
        uint32_t tries, which;
        const rect expected = ref_crop(key, 0, t->w, t->h, t->lo, t->hi, t->f, t->box, t->n, &tries, &which);
        go(&r, &picture, key, &given);
        same_rect(shown(&r), expected);
        if (tries < 100) MRT_TRUE(held(&expected, &t->box[which]) >= t->f);
        k->first += tries == 0;
        k->later += tries > 0 && tries < 64;
        k->late += tries >= 64 && tries < 100;
        k->fallback += tries == 100;
        k->boxes[which]++;
    }
    end(&r);
    free(pixels);
}

static void crops_are_those_of_the_rule(void **state)
{
    (void)state;
    tally all = {0};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(layouts); k++) {
        tally t = {0};
        check_layout(&layouts[k], false, 200, &t);
        check_layout(&layouts[k], true, 200, &t);
        for (uint32_t b = 0; b < layouts[k].n; b++)
            MRT_TRUE(t.boxes[b] > 320 / layouts[k].n); /* each has its turn */
        if (strcmp(layouts[k].name, "more than crops hold") == 0) MRT_EQ(t.fallback, 400);
        all.first += t.first, all.later += t.later, all.late += t.late, all.fallback += t.fallback;
    }
    MRT_TRUE(all.first > 500 && all.later > 500 && all.late > 20 && all.fallback > 450);
}

/* ---- painted boxes ---- */

static uint8_t *painted(uint32_t w, uint32_t h, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1)
{
    uint8_t *p = calloc((size_t)w * h, 3);
    for (uint32_t y = y0; y < y1; y++) memset(p + ((size_t)y * w + x0) * 3, 255, (size_t)(x1 - x0) * 3);
    return p;
}

/* The paint in the result, in pixels of the picture. Resizing preserves it except at the edges of a crop. */
static double paint(const run *r)
{
    double sum = 0;
    for (size_t k = 0; k < MOST; k += 3) sum += r->out[k] / 255.0;
    return sum * fabs(r->g.x.scale * r->g.y.scale);
}

enum { W = 96, H = 80, X0 = 68, Y0 = 50, X1 = 92, Y1 = 74 };

/* How many of the draws showed the whole box. */
static uint32_t shows_the_box(const char *spec, const mr_value *picture, bool ignore_exif,
                              const mri_boxes *boxes, uint32_t draws)
{
    uint32_t whole = 0;
    run r;
    begin(&r, spec);
    r.cfg.ignore_exif = ignore_exif;
    for (uint32_t d = 0; d < draws; d++) {
        go(&r, picture, (mri_sample_key){3, 0, d}, boxes);
        whole += paint(&r) > 0.93 * (X1 - X0) * (Y1 - Y0);
    }
    end(&r);
    return whole;
}

/* No operation before the crop cuts the box; and as the sides are within the ratio, the crop that is taken
 * when no try succeeds shows everything. */
static void boxes_go_with_their_picture(void **state)
{
    (void)state;
    static const char *const specs[] = {"rrc(24,scale=0.2:0.6%s)", "flip,rrc(24,scale=0.2:0.6%s),flip",
                                        "padcrop(30,130x130),rrc(24,scale=0.2:0.6%s)",
                                        "flip,padcrop(30,130x130),flip,rrc(24,scale=0.2:0.6%s)",
                                        "resize(120x100),flip,rrc(24,scale=0.2:0.6%s)"};
    uint8_t *pixels = painted(W, H, X0, Y0, X1, Y1);
    const mr_image image = {W, H, 3, pixels};
    const float parts[6] = {X0 / (float)W, Y0 / (float)H, X1 / (float)W, Y1 / (float)H, 5, 6};
    const mr_value v = {.type = MR_TYPE_TENSOR,
                        .dtype = MR_F32,
                        .ndim = 2,
                        .dim = {1, 6},
                        .data = parts,
                        .bytes = sizeof parts};
    const mri_boxes boxes = {&v, false};
    void *jpeg;
    size_t bytes;
    MRT_EQ(mr_image_encode_jpeg(&image, 100, &jpeg, &bytes, NULL), MR_OK);
    for (uint32_t orientation = 0; orientation <= 9; orientation++) {
        size_t n = bytes;
        uint8_t *file = mrt_oriented(jpeg, &n, orientation % 9);
        const mr_value picture = mrt_encoded(file, n);
        for (size_t k = 0; k < MRI_ARRAY_COUNT(specs); k++) {
            char with[100], without[100];
            snprintf(with, sizeof with, specs[k], ",covers=1");
            snprintf(without, sizeof without, specs[k], "");
            MRT_EQ(shows_the_box(with, &picture, orientation == 9, &boxes, 40), 40);
            MRT_TRUE(shows_the_box(without, &picture, orientation == 9, &boxes, 40) < 20);
        }
        free(file);
    }
    free(jpeg);
    free(pixels);
}

/* ---- nothing to go by ---- */

static void same_as_without(const mri_boxes *boxes, uint32_t width, uint32_t height, bool same)
{
    uint8_t *pixels = mrt_picture(width, height, 3, 2);
    const mr_value picture = mrt_pixels(pixels, width, height, 3, MR_HWC);
    uint32_t differ = 0;
    run with, without;
    begin(&with, "flip,rrc(24,covers=1),flip,brightness(30)");
    begin(&without, "flip,rrc(24),flip,brightness(30)");
    for (uint32_t d = 0; d < 60; d++) {
        const mri_sample_key key = {1, 1, d};
        go(&with, &picture, key, boxes);
        go(&without, &picture, key, boxes);
        differ += memcmp(with.out, without.out, MOST) != 0;
    }
    if (same) MRT_EQ(differ, 0);
    else MRT_TRUE(differ > 20);
    end(&with);
    end(&without);
    free(pixels);
}

static void without_a_box_crops_are_as_ever(void **state)
{
    (void)state;
    const rect flat[] = {{0.25, 0.25, 0.25, 0.75}, {0.5, 0.5, 0.5, 0.5}},
               outside[] = {{1, 0.2, 1.5, 0.8}, {-0.5, -0.5, 0, 0}},
               one_left[] = {{0.25, 0.25, 0.25, 0.75}, {0.5, 0.5, 1, 1}, {1, 0.2, 1.5, 0.8}};
    const mr_value none = boxes_of(NULL, 0), flats = boxes_of(flat, 2), outsides = boxes_of(outside, 2),
                   left = boxes_of(one_left, 3);
    static const uint32_t sizes[][2] = {{70, 50}, {400, 12}}; /* in the second few tries fit: their number
                                                                 shows */
    for (size_t k = 0; k < MRI_ARRAY_COUNT(sizes); k++) {
        same_as_without(NULL, sizes[k][0], sizes[k][1], true);
        same_as_without(&(mri_boxes){&none, false}, sizes[k][0], sizes[k][1], true);
        same_as_without(&(mri_boxes){&flats, false}, sizes[k][0], sizes[k][1], true);
        same_as_without(&(mri_boxes){&outsides, false}, sizes[k][0], sizes[k][1], true);
    }
    same_as_without(&(mri_boxes){&left, false}, 70, 50, false);
}

/* Invisible boxes are not drawn: the crops are the crops of the visible box. */
static void boxes_that_cannot_be_seen_are_not_drawn(void **state)
{
    (void)state;
    static rect many[1000];
    uint8_t *pixels = mrt_picture(64, 48, 3, 4);
    const mr_value picture = mrt_pixels(pixels, 64, 48, 3, MR_HWC);
    for (uint32_t k = 0; k < 1000; k++)
        many[k] = k == 700 ? (rect){50, 30, 60, 44} : (rect){k % 64, 10, k % 64, 20};
    const mr_value all = boxes_of(many, 1000), one = boxes_of(&many[700], 1);
    const mri_boxes of_all = {&all, true}, of_one = {&one, true};
    run a, b;
    begin(&a, "rrc(24,covers=0.8)");
    begin(&b, "rrc(24,covers=0.8)");
    for (uint32_t d = 0; d < 50; d++) {
        const mri_sample_key key = {9, 0, d};
        uint32_t tries, which;
        go(&a, &picture, key, &of_all);
        go(&b, &picture, key, &of_one);
        MRT_TRUE(memcmp(a.out, b.out, MOST) == 0);
        same_rect(shown(&a), ref_crop(key, 0, 64, 48, 0.08, 1, 0.8, &many[700], 1, &tries, &which));
    }
    for (uint32_t k = 0; k < 1000; k++) many[k] = (rect){k % 60, k % 40, k % 60 + 4, k % 40 + 5};
    uint32_t later = 0;
    for (uint32_t d = 0; d < 200; d++) {
        const mri_sample_key key = {9, 1, d};
        uint32_t tries, which;
        const rect expected = ref_crop(key, 0, 64, 48, 0.08, 1, 0.8, many, 1000, &tries, &which);
        go(&a, &picture, key, &of_all);
        same_rect(shown(&a), expected);
        later += which >= 500;
    }
    MRT_TRUE(later > 70 && later < 130);
    end(&a);
    end(&b);
    free(pixels);
}

/* The next operation has blocks of random numbers of its own: its draws do not depend on the number of
 * tries. */
static void tries_do_not_reach_the_next_operation(void **state)
{
    (void)state;
    uint8_t *pixels = mrt_picture(90, 80, 3, 5);
    const mr_value picture = mrt_pixels(pixels, 90, 80, 3, MR_HWC);
    const rect corner = {88, 78, 90, 80};
    const mr_value v = boxes_of(&corner, 1);
    const mri_boxes boxes = {&v, true};
    run r;
    uint32_t late = 0;
    /* the second has its box where the first left it */
    begin(&r, "brightness(0),rrc(24,scale=0.01:0.02,covers=1),rrc(24,scale=0.5:1,covers=0.5)");
    for (uint32_t d = 0; d < 60; d++) {
        const mri_sample_key key = {5, 0, d};
        uint32_t tries, which;
        const rect first = ref_crop(key, 1, 90, 80, 0.01, 0.02, 1, &corner, 1, &tries, &which);
        late += tries >= 64;
        const double w = first.x1 - first.x0, h = first.y1 - first.y0;
        const rect in_first = {fmax(0, (88 - first.x0) / w * 24), fmax(0, (78 - first.y0) / h * 24),
                               (90 - first.x0) / w * 24, (80 - first.y0) / h * 24};
        const rect second = ref_crop(key, 2, 24, 24, 0.5, 1, 0.5, &in_first, 1, &tries, &which);
        go(&r, &picture, key, &boxes);
        same_rect(shown(&r), (rect){first.x0 + second.x0 * w / 24, first.y0 + second.y0 * h / 24,
                                    first.x0 + second.x1 * w / 24, first.y0 + second.y1 * h / 24});
    }
    MRT_TRUE(late > 20);
    end(&r);
    free(pixels);
}

/* ---- bad boxes ---- */

static void bad_value(mr_value v, int code, const char *text)
{
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_boxes_check(&(mri_boxes){&v, false}, &err), code);
    MRT_HAS(err.text, text);
}

static void bad_boxes_are_reported(void **state)
{
    (void)state;
    const rect nan = {0, (double)NAN, 1, 1}, endless = {0, 0, (double)INFINITY, 1},
               turned[] = {{0, 0, 1, 1}, {0.5, 0, 0.25, 1}}, pixels = {10, 10, 50, 50};
    bad_value(boxes_of(&nan, 1), MR_EFORMAT, "box 0 is x0 0, y0 nan, x1 1, y1 1: expected numbers");
    bad_value(boxes_of(&endless, 1), MR_EFORMAT, "expected numbers");
    bad_value(boxes_of(turned, 2), MR_EFORMAT, "box 1 is x0 0.5, y0 0, x1 0.25, y1 1: expected x0 <= x1");
    bad_value(boxes_of(&pixels, 1), MR_EFORMAT, "are these pixels (in_pixels; --fields NAME:pixels)?");
    mr_value v = boxes_of(turned, 1);
    v.dim[1] = 3;
    bad_value(v, MR_EFORMAT, "at least 4");
    v.dim[1] = UINT64_MAX;
    bad_value(v, MR_EFORMAT, "boxes");
    v = boxes_of(turned, 2);
    v.bytes--;
    bad_value(v, MR_EFORMAT, "bytes do not make 2 rows of 4");
    v = boxes_of(turned, 1);
    v.ndim = 1;
    bad_value(v, MR_EFORMAT, "found 1 dimensions");
    v = boxes_of(turned, UINT64_MAX / 8);
    bad_value(v, MR_ELIMIT, "boxes");
    v = boxes_of(turned, 1);
    v.dtype = MR_I32;
    bad_value(v, MR_EFORMAT, "expected a tensor of f32 or f64, found tensor of i32");
}

/* For any numbers in a value: it is refused, or the picked box lies inside the picture. */
static void any_numbers_are_refused_or_inside(void **state)
{
    (void)state;
    uint32_t picked = 0, refused = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        uint64_t noise[20], exponent = (1023 - 12 + seed % 24) << 52;
        mri_geometry g;
        mri_box box;
        mr_error err = MR_ERROR_INIT;
        mrt_noise(noise, sizeof noise, seed);
        for (int k = 0; k < 20 && seed % 5; k++)
            noise[k] = (noise[k] & ((UINT64_C(1) << 52) - 1)) | (noise[k] & (UINT64_C(1) << 63)) | exponent;
        for (int k = 0; k < 20 && seed % 5 > 1; k++)
            noise[k] = (noise[k] & INT64_MAX) + ((uint64_t)(k % 5 == 2 || k % 5 == 3) << 53); /* x1 > x0 */
        const mr_value v = {.type = MR_TYPE_TENSOR,
                            .dtype = MR_F64,
                            .ndim = 2,
                            .dim = {4, 5},
                            .data = noise,
                            .bytes = sizeof noise};
        const mri_boxes boxes = {&v, seed % 2};
        if (mri_boxes_check(&boxes, &err) != MR_OK) {
            refused++;
            continue;
        }
        mri_geometry_start(&g, 1 + seed % 300, 1 + seed % 71, 1 + seed % 8);
        mri_geometry_window(&g, (int64_t)(seed % 40) - 20, (int64_t)(seed % 30) - 15, 1 + seed % 60,
                            1 + seed % 50, seed % 3 ? MRI_OUTSIDE_EDGE : MRI_OUTSIDE_ZERO, seed % 7 > 3);
        if (!mri_boxes_pick(&g, &boxes, (uint32_t)noise[0], &box)) continue;
        MRT_TRUE(0 <= box.x0 && box.x0 < box.x1 && box.x1 <= g.out_w && 0 <= box.y0 && box.y0 < box.y1 &&
                 box.y1 <= g.out_h);
        picked++;
    }
    MRT_TRUE(picked > 1000 && refused > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops_are_those_of_the_rule),
        cmocka_unit_test(boxes_go_with_their_picture),
        cmocka_unit_test(without_a_box_crops_are_as_ever),
        cmocka_unit_test(boxes_that_cannot_be_seen_are_not_drawn),
        cmocka_unit_test(tries_do_not_reach_the_next_operation),
        cmocka_unit_test(bad_boxes_are_reported),
        cmocka_unit_test(any_numbers_are_refused_or_inside),
    };
    return mrt_run(tests);
}
