/* geometry: pictures whose pixels are their own coordinates, and filled boxes, run through specifications in
 * every orientation: the geometry's coordinates of a pixel equal the coordinates that the pixel shows. Boxes
 * and masks are also checked by hand. */
#include <math.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/augment/geometry.h"
#include "pipeline/augment/turn.h"
#include "tests/pipeline/augment/reference.h"
#include "tests/pipeline/pictures.h"

enum { NOTHING = 250, DRAWS = 5, MOST_OUT = 420 }; /* sides stay below NOTHING */
enum { MIXED = 100000 };                           /* a shortest side that makes nothing coarser */

/* Effect of a specification on a coordinate: 0: pixels are moved whole; else the shortest intermediate
 * side. */
static const struct spec {
    const char *text;
    uint32_t least;
    bool turns; /* a box's corner may be a tip that no pixel shows */
} specs[] = {
    {"none", 0, false},
    {"flip", 0, false},
    {"flip,flip", 0, false},
    {"padcrop(4)", 0, false},
    {"padcrop(4),flip", 0, false},
    {"flip,padcrop(3,20)", 0, false},
    {"padcrop(60,40x90),flip", 0, false},
    {"center(20)", 0, false},
    {"center(12x31),flip", 0, false},
    {"center(200x240)", 0, false},
    {"flip,center(90x30),flip", 0, false},
    {"shift(0.25)", 0, false},
    {"shift(0.5,0.1),flip", 0, false},
    {"flip,shift(0.2,1),flip", 0, false},
    {"shift(0.3),shift(0.4)", 0, false},
    {"center(20),shift(0.4)", 0, false},
    {"padcrop(5),shift(0.3),flip", 0, false},
    {"shift(0.3),padcrop(7),flip", 0, false},
    {"shift(0.5),center(150),shift(0.2)", 0, false},
    {"center(9),center(60),flip", 0, false},
    {"padcrop(2),flip,padcrop(1),flip,flip", 0, false},
    {"flip,brightness(0),flip,contrast(1:1)", 0, false},
    {"center(150x30),shift(0.9),flip,shift(0.1)", 0, false},
    {"resize(40)", 9, false},
    {"resize(40),center(32)", 9, false},
    {"resize(31x25),flip", 25, false},
    {"flip,resize(70x90,filter=bicubic)", 70, false},
    {"resize(200x160)", 160, false},
    {"resize(31x25),center(60),flip", 25, false},
    {"resize(40),center(32),padcrop(4),flip", 9, false},
    {"rrc(32)", 32, false},
    {"rrc(32),flip", 32, false},
    {"flip,rrc(47,scale=0.3:0.9,filter=bicubic),flip", 47, false},
    {"rrc(60,scale=1:1),shift(0.3)", 60, false},
    {"resize(50x30),resize(30x50),resize(45),center(40)", 30, false},
    {"padcrop(20),rrc(60),flip", 60, false},
    {"shift(0.5),rrc(60),flip", 60, false},
    {"center(100),resize(64)", 64, false},
    {"center(240x200),flip,resize(90),center(80)", 75, false},
    {"rrc(50),center(70),resize(90),flip", 50, false},
    {"resize(60),shift(0.4),resize(90x80),flip", 9, false},
    {"shift(0.2),flip,padcrop(8),resize(100),shift(0.1),center(50)", 25, false},
    {"rotate(180,filter=nearest)", 0, true},
    {"flip,rotate(45,filter=nearest),flip", 0, true},
    {"rotate(30,filter=nearest),center(60),rotate(30,filter=nearest),flip", 0, true},
    {"affine(20,translate=0.2:0.1,shear=25:10,filter=nearest)", 0, true},
    {"rotate(40)", MIXED, true},
    {"flip,rotate(20),padcrop(4),flip", MIXED, true},
    {"padcrop(4),rotate(20),affine(10,scale=0.9:1.5),flip", MIXED, true},
    {"rotate(15),rrc(60),flip", 60, true},
    {"resize(60x70),affine(10,shear=20:5),center(50),rotate(30)", 60, true},
};

static const uint32_t sizes[][2] = {{32, 32}, {57, 43}, {43, 110}, {231, 26}, {9, 17}};

/* ---- pictures ---- */

/* Red: the column; green: the row; blue: there is a picture. */
static uint8_t *coordinates(uint32_t w, uint32_t h)
{
    uint8_t *p = malloc((size_t)w * h * 3);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            memcpy(p + ((size_t)y * w + x) * 3, (uint8_t[]){(uint8_t)x, (uint8_t)y, 255}, 3);
    return p;
}

typedef struct rectangle {
    uint32_t x0, y0, x1, y1;
} rectangle;

static uint8_t *filled(uint32_t w, uint32_t h, rectangle r)
{
    uint8_t *p = calloc((size_t)w * h, 3);
    for (uint32_t y = r.y0; y < r.y1; y++)
        memset(p + ((size_t)y * w + r.x0) * 3, 255, (size_t)(r.x1 - r.x0) * 3);
    return p;
}

/* An encoded file of pixels; a JPEG with this orientation, or a PNG for 0. */
typedef struct file {
    uint8_t *data;
    size_t bytes;
} file;

static file file_of(uint8_t *pixels, uint32_t w, uint32_t h, uint32_t orientation)
{
    const mr_image p = {w, h, 3, pixels};
    void *data;
    size_t bytes;
    if (orientation == 0) {
        MRT_EQ(mr_image_encode_png(&p, &data, &bytes, NULL), MR_OK);
        return (file){data, bytes};
    }
    MRT_EQ(mr_image_encode_jpeg(&p, 100, &data, &bytes, NULL), MR_OK);
    file f = {NULL, bytes};
    f.data = mrt_oriented(data, &f.bytes, orientation);
    free(data);
    return f;
}

/* ---- one run ---- */

typedef struct run {
    mri_scratch *s;
    const mr_augment *a;
    const struct spec *spec;
    mr_decode_config cfg;
    mri_sample_key key;
    uint32_t w, h, orientation; /* stored; 0: a PNG */
    double grain;               /* stored pixels in one of the coarsest result */
    mri_geometry g;
    uint8_t out[3 * MOST_OUT * MOST_OUT];
} run;

static void take(run *r, const file *f)
{
    const bool swap = r->orientation >= 5 && !r->cfg.ignore_exif;
    uint32_t h, w;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_augment_output(r->a, swap ? r->w : r->h, swap ? r->h : r->w, &h, &w, &err), &err);
    MRT_TRUE(h <= MOST_OUT && w <= MOST_OUT);
    const mr_value v = mrt_encoded(f->data, f->bytes);
    MRT_OK(mri_augment_run(r->a, r->s, &v, &r->cfg, 3, r->key, h, w, r->out, NULL, NULL, &r->g, &err), &err);
    MRT_EQ(r->g.out_w, w);
    MRT_EQ(r->g.out_h, h);
    MRT_EQ(r->g.stored_w, r->w);
    MRT_EQ(r->g.stored_h, r->h);
}

static void wrong(const run *r, const char *what, uint32_t x, uint32_t y)
{
    const uint8_t *p = r->out + ((size_t)y * r->g.out_w + x) * 3;
    fail_msg("%s of %u x %u, orientation %u, epoch %u: %s at (%u, %u), which shows (%u, %u, %u)",
             r->spec->text, r->w, r->h, r->orientation, (unsigned)r->key.epoch, what, x, y, p[0], p[1], p[2]);
}

/* Two masks, of columns and of rows, say of each pixel where it comes from; the pixel says the same. */
static void masks_show_what_the_picture_shows(run *r, const uint8_t *columns, const uint8_t *rows,
                                              size_t stride)
{
    static uint8_t from_x[MOST_OUT * MOST_OUT], from_y[MOST_OUT * MOST_OUT];
    const double slack = (r->orientation ? 3 : 0) + (r->spec->least ? 1 + 0.75 * r->grain : 0);
    mri_mask_place(&r->g, columns, stride, NOTHING, from_x);
    mri_mask_place(&r->g, rows, stride, NOTHING, from_y);
    for (uint32_t y = 0; y < r->g.out_h; y++)
        for (uint32_t x = 0; x < r->g.out_w; x++) {
            const size_t at = (size_t)y * r->g.out_w + x;
            const uint8_t *p = r->out + at * 3;
            if ((from_x[at] == NOTHING) != (from_y[at] == NOTHING)) wrong(r, "the masks differ", x, y);
            if (from_x[at] == NOTHING ? p[2] >= 245 : p[2] <= 10)
                wrong(r, from_x[at] == NOTHING ? "nothing" : "something", x, y);
            if (r->spec->least == 0 && p[2] > 10 && p[2] < 245) wrong(r, "half a pixel", x, y);
            if (p[2] < 245 || from_x[at] == NOTHING) continue;
            /* two turns take the nearest of mixed pixels; at the border the outside is mixed in */
            const double mixed = slack + (r->spec->turns ? 255 - p[2] + (r->spec->least ? r->grain : 0) : 0);
            if (abs(from_x[at] - p[0]) > mixed || abs(from_y[at] - p[1]) > mixed) {
                char what[64];
                snprintf(what, sizeof what, "(%u, %u) +- %g", from_x[at], from_y[at], mixed);
                wrong(r, what, x, y);
            }
        }
}

/* The edge of the picture is not repeated in this result pixel. */
static bool is_first_hand(const mri_geometry_side *s, uint32_t i)
{
    const double at = s->scale * (i + 0.5) + s->offset;
    return at > s->from && at < s->to;
}

/* The filled rectangle in the result, where edges are not repeated: x0 y0 x1 y1; false: none of it. */
static bool bounds(const run *r, double out[4])
{
    bool any = false;
    for (uint32_t y = 0; y < r->g.out_h; y++)
        for (uint32_t x = 0; x < r->g.out_w; x++) {
            if (r->out[((size_t)y * r->g.out_w + x) * 3] < 128 || !is_first_hand(&r->g.x, x) ||
                !is_first_hand(&r->g.y, y))
                continue;
            out[0] = !any || x < out[0] ? x : out[0];
            out[1] = any ? out[1] : y;
            out[2] = !any || x + 1 > out[2] ? x + 1 : out[2];
            out[3] = y + 1;
            any = true;
        }
    return any;
}

static void box_bounds_what_was_filled(run *r, rectangle b, bool in_pixels)
{
    const double w = in_pixels ? 1 : r->w, h = in_pixels ? 1 : r->h;
    const double corners[5] = {b.x0 / w, b.y0 / h, b.x1 / w, b.y1 / h, 17};
    const mr_value v = {.type = MR_TYPE_TENSOR,
                        .dtype = MR_F64,
                        .ndim = 2,
                        .dim = {1, 5},
                        .data = corners,
                        .bytes = sizeof corners};
    float placed[5];
    uint32_t which, kept;
    mr_error err = MR_ERROR_INIT;
    double seen[4] = {0};
    MRT_OK(mri_boxes_place(&r->g, &v, in_pixels, 5, 1, placed, &which, &kept, &err), &err);
    const bool any = bounds(r, seen);
    /* an edge may be blurred over the coarsest pixel, and lie anywhere in one of the result's */
    const double tip = r->spec->turns ? 3 : 0;
    const double slack_x = tip + (r->spec->least ? 1 + 0.75 * r->grain / fabs(r->g.x.scale) : 1e-3);
    const double slack_y = tip + (r->spec->least ? 1 + 0.75 * r->grain / fabs(r->g.y.scale) : 1e-3);
    const double wide = kept ? (placed[2] - placed[0]) * r->g.out_w : 0,
                 high = kept ? (placed[3] - placed[1]) * r->g.out_h : 0;
    if (!any && (wide <= slack_x || high <= slack_y)) return;
    if (!kept && (seen[2] - seen[0] <= slack_x || seen[3] - seen[1] <= slack_y) &&
        (r->spec->least || r->spec->turns))
        return;
    if (!kept || !any)
        wrong(r, kept ? "a box of nothing" : "a box was dropped", (uint32_t)seen[0], (uint32_t)seen[1]);
    MRT_TRUE(placed[4] == 17 && which == 0);
    for (int k = 0; k < 4; k++) {
        const double at = (double)placed[k] * (k % 2 ? r->g.out_h : r->g.out_w),
                     slack = k % 2 ? slack_y : slack_x;
        if (fabs(at - seen[k]) <= slack) continue;
        char what[96];
        snprintf(what, sizeof what, "corner %d lies at %g, expected %g +- %g", k, at, seen[k], slack);
        wrong(r, what, (uint32_t)mri_min_u64((uint64_t)seen[0], r->g.out_w - 1), (uint32_t)seen[1]);
    }
}

static void follow(run *r, bool turned)
{
    uint8_t *picture = coordinates(r->w, r->h), *shape;
    const size_t stride = r->w + 5;
    uint8_t *columns = malloc(stride * r->h), *rows = malloc(stride * r->h);
    memset(columns, 0xee, stride * r->h);
    memset(rows, 0xee, stride * r->h);
    for (uint32_t y = 0; y < r->h; y++)
        for (uint32_t x = 0; x < r->w; x++) {
            columns[y * stride + x] = (uint8_t)x;
            rows[y * stride + x] = (uint8_t)y;
        }
    const rectangle b = {r->w / 5, r->h / 4, r->w - r->w / 3, r->h - r->h / 8};
    shape = filled(r->w, r->h, b);
    for (r->orientation = turned; r->orientation <= (turned ? 8 : 0); r->orientation++) {
        const file where = file_of(picture, r->w, r->h, r->orientation),
                   what = file_of(shape, r->w, r->h, r->orientation);
        for (size_t k = 0; k < MRI_ARRAY_COUNT(specs); k++) {
            mr_augment *a;
            MRT_EQ(mr_augment_create(&a, specs[k].text, true, NULL), MR_OK);
            r->a = a;
            r->spec = &specs[k];
            r->grain = specs[k].least ? fmax(1, (double)mri_max_u64(r->w, r->h) / specs[k].least) : 1;
            for (uint64_t epoch = 0; epoch < DRAWS; epoch++) {
                r->key = (mri_sample_key){3, epoch, 100 * r->w + r->h};
                take(r, &where);
                masks_show_what_the_picture_shows(r, columns, rows, stride);
                take(r, &what);
                box_bounds_what_was_filled(r, b, epoch % 2);
            }
            mr_augment_destroy(a);
        }
        free(where.data);
        free(what.data);
    }
    free(columns);
    free(rows);
    free(picture);
    free(shape);
}

static void follows(bool turned, bool ignore)
{
    static run r;
    memset(&r, 0, sizeof r);
    mr_decode_defaults(&r.cfg);
    r.cfg.ignore_exif = ignore;
    MRT_EQ(mri_scratch_create(&r.s), MR_OK);
    for (size_t n = 0; n < MRI_ARRAY_COUNT(sizes); n += MRT_SANITIZED ? 2 : 1) {
        r.w = sizes[n][0];
        r.h = sizes[n][1];
        follow(&r, turned);
    }
    mri_scratch_destroy(r.s);
}

static void follows_pictures(void **state)
{
    (void)state;
    follows(false, false);
}

static void follows_all_orientations(void **state)
{
    (void)state;
    follows(true, false);
}

static void follows_ignored_orientations(void **state)
{
    (void)state;
    follows(true, true);
}

/* ---- by hand ---- */

static mri_geometry geometry(uint32_t w, uint32_t h, uint32_t orientation)
{
    mri_geometry g;
    mri_geometry_start(&g, w, h, orientation);
    return g;
}

static mr_value boxes_of(const float *corners, uint64_t count, uint32_t columns)
{
    return (mr_value){.type = MR_TYPE_TENSOR,
                      .dtype = MR_F32,
                      .ndim = 2,
                      .dim = {count, columns},
                      .data = corners,
                      .bytes = count * columns * sizeof(float)};
}

static void boxes_turn_with_the_picture(void **state)
{
    (void)state;
    /* x 10..20, y 5..15 of 40 x 20, upright as EXIF defines it: where the stored top and left go */
    static const float expected[9][4] = {{0},
                                         {0.25f, 0.25f, 0.5f, 0.75f},
                                         {0.5f, 0.25f, 0.75f, 0.75f},
                                         {0.5f, 0.25f, 0.75f, 0.75f},
                                         {0.25f, 0.25f, 0.5f, 0.75f},
                                         {0.25f, 0.25f, 0.75f, 0.5f},
                                         {0.25f, 0.25f, 0.75f, 0.5f},
                                         {0.25f, 0.5f, 0.75f, 0.75f},
                                         {0.25f, 0.5f, 0.75f, 0.75f}};
    static const float narrow_one[9][4] = {/* x 0..10, y 0..5: a corner that distinguishes all eight, with its
                                            * aspect
                                              aspect */
                                           {0},
                                           {0, 0, 0.25f, 0.25f},
                                           {0.75f, 0, 1, 0.25f},
                                           {0.75f, 0.75f, 1, 1},
                                           {0, 0.75f, 0.25f, 1},
                                           {0, 0, 0.25f, 0.25f},
                                           {0.75f, 0, 1, 0.25f},
                                           {0.75f, 0.75f, 1, 1},
                                           {0, 0.75f, 0.25f, 1}};
    const float in[2][4] = {{10, 5, 20, 15}, {0, 0, 10, 5}};
    const mr_value v = boxes_of(in[0], 2, 4);
    for (uint32_t o = 1; o <= 8; o++) {
        const mri_geometry g = geometry(40, 20, o);
        float out[2][4];
        uint32_t which[2], kept;
        MRT_EQ(g.out_w, o >= 5 ? 20 : 40);
        MRT_EQ(mri_boxes_place(&g, &v, true, 4, 2, out[0], which, &kept, NULL), MR_OK);
        MRT_EQ(kept, 2);
        for (int k = 0; k < 4; k++) MRT_TRUE(out[0][k] == expected[o][k] && out[1][k] == narrow_one[o][k]);
    }
}

static void boxes_are_cut_and_dropped(void **state)
{
    (void)state;
    static const float in[][6] = {
        {0, 0, 1, 1, 1, -1},                 /* all of the picture */
        {0, 0, 0.4f, 0.4f, 2, NAN},          /* left of and above the window */
        {0.5f, 0.5f, 0.5f, 0.75f, 3, 0},     /* no area */
        {0.625f, 0.375f, 2, 0.5f, 4, 1e30f}, /* beyond the picture */
        {-0.25f, 0.5f, 0.5f, 1.5f, 5, 0},    /* touches the window's side */
        {0.5f, 0.25f, 0.625f, 1, 6, 0},
    };
    mri_geometry g = geometry(80, 40, 1);
    mri_geometry_window(&g, 40, 0, 80, 20, MRI_OUTSIDE_ZERO, false); /* 40 of the picture's columns, 40 of
                                                                        nothing */
    float out[6][6];
    uint32_t which[6], kept;
    const mr_value v = boxes_of(in[0], 6, 6);
    MRT_EQ(mri_boxes_place(&g, &v, false, 6, 6, out[0], which, &kept, NULL), MR_OK);
    static const float expected[][5] = {
        {0, 0, 0.5f, 1, 1}, {0.125f, 0.75f, 0.5f, 1, 4}, {0, 0.5f, 0.125f, 1, 6}};
    static const uint32_t numbers[] = {0, 3, 5};
    MRT_EQ(kept, 3);
    for (uint32_t k = 0; k < kept; k++) {
        MRT_EQ(which[k], numbers[k]);
        for (int c = 0; c < 5; c++) MRT_TRUE(out[k][c] == expected[k][c]);
    }
    MRT_TRUE(out[0][5] == -1 && out[1][5] == 1e30f);
    /* edges that are repeated make no box longer, and a window of nothing else holds none */
    g = geometry(80, 40, 1);
    mri_geometry_window(&g, -20, 0, 80, 40, MRI_OUTSIDE_EDGE, false);
    MRT_EQ(mri_boxes_place(&g, &v, false, 6, 6, out[0], which, &kept, NULL), MR_OK);
    MRT_TRUE(out[0][0] == 0.25f && out[0][2] == 1);
    mri_geometry_window(&g, -80, 0, 80, 40, MRI_OUTSIDE_EDGE, false);
    MRT_EQ(mri_boxes_place(&g, &v, false, 6, 6, out[0], which, &kept, NULL), MR_OK);
    MRT_EQ(kept, 0);
}

/* What policies do to places, by the slow reference: the same to the pixel. (At other levels, such as 20,
 * centres fall between two pixels, and doubles on either.) */
static void masks_follow_policies(void **state)
{
    (void)state;
    enum { W = 47, H = 31 };
    static const char *const texts[] = {"randaugment(3,19,filter=nearest)", "trivial(filter=nearest)",
                                        "flip,randaugment(16,9,filter=nearest)"};
    uint8_t *p = mrt_picture(W, H, 3, 1), out[W * H * 3], mask[W * H], placed[W * H];
    const mr_value v = mrt_pixels(p, W, H, 3, MR_HWC);
    const mrt_ref_look look = {.nearest = true, .fill = (uint8_t[3]){NOTHING}, .moves_only = true};
    mr_decode_config cfg;
    mri_scratch *s;
    mr_decode_defaults(&cfg);
    MRT_EQ(mri_scratch_create(&s), MR_OK);
    for (size_t n = 0; n < MRI_ARRAY_COUNT(texts); n++) {
        mr_augment *a;
        uint32_t turned = 0;
        MRT_EQ(mr_augment_create(&a, texts[n], true, NULL), MR_OK);
        for (uint64_t epoch = 0; epoch < 200; epoch++) {
            const mri_sample_key key = {5, epoch, 8};
            mri_geometry g;
            mr_error err = MR_ERROR_INIT;
            MRT_OK(mri_augment_run(a, s, &v, &cfg, 3, key, H, W, out, NULL, NULL, &g, &err), &err);
            turned += g.turns > 0;
            mrt_ref r = {.p = {W, H, 1, malloc(W * H)}, .key = key, .index = n == 2};
            const bool flips = n == 2 && mri_philox4x32(mri_mix64(mri_mix64(5)), 8, epoch).v[0] >> 31;
            for (uint32_t k = 0; k < W * H; k++) mask[k] = (uint8_t)(k * 7 % NOTHING);
            for (uint32_t k = 0; k < W * H; k++) r.p.pixels[k] = mask[flips ? k / W * W + W - 1 - k % W : k];
            if (n == 0) mrt_ref_randaugment(&r, 3, 19, look);
            if (n == 1) mrt_ref_trivial(&r, look);
            if (n == 2) mrt_ref_randaugment(&r, 16, 9, look);
            mri_mask_place(&g, mask, W, NOTHING, placed);
            for (uint32_t k = 0; k < W * H; k++)
                if (placed[k] != r.p.pixels[k])
                    fail_msg("%s, epoch %u: (%u, %u) is %u, expected %u", texts[n], (unsigned)epoch, k % W,
                             k / W, placed[k], r.p.pixels[k]);
            mr_image_free(&r.p);
        }
        MRT_TRUE(turned > 50); /* 5 of 14 */
        mr_augment_destroy(a);
    }
    mri_scratch_destroy(s);
    free(p);
}

/* 80 x 40 pixels. */
static mri_geometry turned_by(double degrees, double scale)
{
    mri_geometry g = geometry(80, 40, 1);
    const mri_warp w = mri_warp_of(&(mri_turn){.degrees = degrees, .scale = scale}, 80, 40);
    mri_geometry_warp(&g, &w);
    return g;
}

static void box_is(const mri_geometry *g, const float in[4], double x0, double y0, double x1, double y1)
{
    float out[4];
    uint32_t which, kept;
    const mr_value v = boxes_of(in, 1, 4);
    mri_box seen; /* the box that a crop with boxes uses is the same */
    MRT_EQ(mri_boxes_place(g, &v, true, 4, 1, out, &which, &kept, NULL), MR_OK);
    MRT_EQ(mri_boxes_pick(g, &(mri_boxes){&v, true}, 12345, &seen), kept == 1);
    MRT_EQ(kept, x0 < x1);
    if (!kept) return;
    MRT_TRUE(fabs(seen.x0 - x0) < 1e-4 && fabs(seen.y0 - y0) < 1e-4 && fabs(seen.x1 - x1) < 1e-4 &&
             fabs(seen.y1 - y1) < 1e-4);
    const double found[4] = {out[0] * g->out_w, out[1] * g->out_h, out[2] * g->out_w, out[3] * g->out_h};
    const double expected[4] = {x0, y0, x1, y1};
    for (int k = 0; k < 4; k++)
        if (fabs(found[k] - expected[k]) > 1e-4)
            fail_msg("corner %d of (%g, %g, %g, %g) lies at %g, expected %g", k, in[0], in[1], in[2], in[3],
                     found[k], expected[k]);
}

static void boxes_are_turned(void **state)
{
    (void)state;
    const double root = sqrt(0.5);
    mri_geometry g = turned_by(90, 1); /* clockwise around (40, 20): x = 60 - y, y = x - 20 */
    box_is(&g, (float[4]){30, 10, 45, 12}, 48, 10, 50, 25);
    box_is(&g, (float[4]){0, 0, 80, 40}, 20, 0, 60, 40);  /* all there is to be seen */
    box_is(&g, (float[4]){0, 0, 20, 40}, 0, 0, 0, 0);     /* ends where the picture does */
    box_is(&g, (float[4]){10, 5, 30, 15}, 45, 0, 55, 10); /* cut at its side */
    box_is(&g, (float[4]){30, 12, 50, 12}, 0, 0, 0, 0);   /* no area, also when it lies across */
    g = turned_by(45, 1); /* a square becomes a rhombus, and its box is around that */
    box_is(&g, (float[4]){35, 15, 45, 25}, 40 - 10 * root, 20 - 10 * root, 40 + 10 * root, 20 + 10 * root);
    box_is(&g, (float[4]){35, 20, 45, 20}, 0, 0, 0, 0); /* no area, however it lies */
    /* a box whose ends are cut off shrinks to its visible part */
    box_is(&g, (float[4]){0, 15, 80, 25}, 20 - 10 * root, 0, 60 + 10 * root, 40);
    g = turned_by(180, 2);
    box_is(&g, (float[4]){35, 15, 40, 25}, 40, 10, 50, 30);
    /* the part cut off by one turn does not come back at the next */
    g = turned_by(0, 4);
    const mri_warp back = mri_warp_of(&(mri_turn){.scale = 0.25}, 80, 40);
    mri_geometry_warp(&g, &back);
    box_is(&g, (float[4]){0, 0, 80, 40}, 30, 15, 50, 25);
    box_is(&g, (float[4]){32, 0, 38, 16}, 32, 15, 38, 16);
    box_is(&g, (float[4]){0, 0, 29, 40}, 0, 0, 0, 0);
    /* a window between two turns and after them */
    g = turned_by(90, 1);
    mri_geometry_window(&g, 20, 0, 40, 40, MRI_OUTSIDE_ZERO, true);
    const mri_warp again = mri_warp_of(&(mri_turn){.scale = 1, .degrees = -90}, 40, 40);
    mri_geometry_warp(&g, &again);
    mri_geometry_window(&g, 0, 0, 40, 20, MRI_OUTSIDE_ZERO, false);
    /* turned, mirrored, turned back: upside down */
    box_is(&g, (float[4]){30, 25, 45, 27}, 10, 13, 25, 15);
    box_is(&g, (float[4]){30, 10, 45, 12}, 0, 0, 0, 0);
}

static void boxes_of_doubles_and_of_none(void **state)
{
    (void)state;
    const double in[] = {0.25, 0, 0.75, 1};
    const mr_value v = {
        .type = MR_TYPE_TENSOR, .dtype = MR_F64, .ndim = 2, .dim = {1, 4}, .data = in, .bytes = sizeof in};
    mri_geometry g = geometry(30, 20, 1);
    const mri_axis x = mri_axis_of(30, 10, 10, 7), y = mri_axis_of(20, 0, 20, 9);
    mri_geometry_resample(&g, &x, &y, true);
    float out[4] = {9, 9, 9, 9};
    uint32_t which, kept = 7;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_boxes_place(&g, &v, false, 4, 1, out, &which, &kept, &err), &err);
    MRT_EQ(kept, 1);
    MRT_TRUE(out[0] == 0 && out[1] == 0 && out[2] == 1 && out[3] == 1); /* exactly */
    const mr_value none = boxes_of(NULL, 0, 4);
    MRT_OK(mri_boxes_place(&g, &none, false, 4, 1, out, &which, &kept, &err), &err);
    MRT_EQ(kept, 0);
}

static void refused(const mr_value *v, bool in_pixels, uint32_t columns, int rc, const char *text)
{
    const mri_geometry g = geometry(30, 20, 1);
    float out[16];
    uint32_t which[2], kept = 7;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_boxes_place(&g, v, in_pixels, columns, 2, out, which, &kept, &err), rc);
    MRT_HAS(err.text, text);
    MRT_EQ(kept, 0);
}

static void boxes_that_are_none_are_refused(void **state)
{
    (void)state;
    static const struct bad {
        float corner[4];
        const char *text;
    } bad[] = {
        {{0, NAN, 1, 1}, "box 1 is x0 0, y0 nan, x1 1, y1 1: expected numbers"},
        {{0, 0, INFINITY, 1}, "x1 inf"},
        {{-INFINITY, 0, 1, 1}, "expected numbers"},
        {{0, 0, 1, NAN}, "y1 nan"},
        {{0.5f, 0, 0.25f, 1}, "x0 <= x1"},
        {{0, 0.5f, 1, 0.25f}, "y0 <= y1"},
        {{3, 4, 20, 15}, "in_pixels"},
        {{-2, 0, 1, 1}, "in_pixels"},
    };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(bad); k++) {
        float in[2][4] = {{0, 0, 1, 1}};
        memcpy(in[1], bad[k].corner, sizeof in[1]);
        const mr_value v = boxes_of(in[0], 2, 4);
        refused(&v, false, 4, MR_EFORMAT, bad[k].text);
        if (k < 6) refused(&v, true, 4, MR_EFORMAT, "box 1");
    }
    static const float zeros[16];
    mr_value v = boxes_of(zeros, 2, 4);
    refused(&v, false, 5, MR_EFORMAT, "rows of 5 numbers");
    v.dim[1] = 3;
    refused(&v, false, 3, MR_EFORMAT, "rows of 3 numbers (at least 4)");
    v = boxes_of(zeros, 3, 4);
    refused(&v, false, 4, MR_ELIMIT, "3 boxes: there is room for 2");
    v = boxes_of(zeros, 2, 4);
    v.bytes--;
    refused(&v, false, 4, MR_EFORMAT, "31 bytes do not make 2 rows of 4 f32");
    v.ndim = 1;
    refused(&v, false, 4, MR_EFORMAT, "1 dimensions");
    v = boxes_of(zeros, 2, 4);
    v.dtype = MR_I64;
    refused(&v, false, 4, MR_EFORMAT, "f32 or f64, found tensor of i64");
    v = (mr_value){.type = MR_TYPE_INT};
    refused(&v, false, 4, MR_EFORMAT, "found int");
}

static void masks_are_cut_not_mixed(void **state)
{
    (void)state;
    static const uint8_t mask[2][6] = {{1, 2, 3, 4, 99, 99}, {5, 6, 7, 8, 99, 99}};
    uint8_t out[64];
    mri_geometry g = geometry(4, 2, 1);
    mri_geometry_window(&g, -1, 1, 4, 2, MRI_OUTSIDE_ZERO, true);
    mri_mask_place(&g, mask[0], 6, 77, out);
    MRT_TRUE(memcmp(out, (uint8_t[]){7, 6, 5, 77, 77, 77, 77, 77}, 8) == 0);
    g = geometry(4, 2, 1);
    mri_geometry_window(&g, -2, -1, 4, 2, MRI_OUTSIDE_EDGE, false);
    mri_mask_place(&g, mask[0], 6, 77, out);
    MRT_TRUE(memcmp(out, (uint8_t[]){1, 1, 1, 2, 1, 1, 1, 2}, 8) == 0);
    g = geometry(4, 2, 6); /* a quarter turn clockwise */
    mri_mask_place(&g, mask[0], 6, 77, out);
    MRT_TRUE(memcmp(out, (uint8_t[]){5, 1, 6, 2, 7, 3, 8, 4}, 8) == 0);
    g = geometry(4, 2, 1); /* 4 to 6, 2 to 1: the pixel under each centre */
    const mri_axis x = mri_axis_of(4, 0, 4, 6), y = mri_axis_of(2, 0, 2, 1);
    mri_geometry_resample(&g, &x, &y, false);
    mri_mask_place(&g, mask[0], 6, 77, out);
    MRT_TRUE(memcmp(out, (uint8_t[]){5, 6, 6, 7, 8, 8}, 6) == 0);
}

/* More columns than are looked up at once. */
static void wide_masks(void **state)
{
    (void)state;
    enum { W = 1300, H = 2 };
    static uint8_t mask[W * H], out[W * H];
    mrt_noise(mask, sizeof mask, 1);
    for (int flip = 0; flip < 2; flip++) {
        mri_geometry g = geometry(W, H, 1);
        mri_geometry_window(&g, 0, 0, W, H, MRI_OUTSIDE_ZERO, flip);
        mri_mask_place(&g, mask, W, 0, out);
        for (uint32_t k = 0; k < W * H; k++) MRT_EQ(out[k], flip ? mask[k / W * W + W - 1 - k % W] : mask[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_pictures),
        cmocka_unit_test(follows_all_orientations),
        cmocka_unit_test(follows_ignored_orientations),
        cmocka_unit_test(boxes_turn_with_the_picture),
        cmocka_unit_test(boxes_are_cut_and_dropped),
        cmocka_unit_test(masks_follow_policies),
        cmocka_unit_test(boxes_are_turned),
        cmocka_unit_test(boxes_of_doubles_and_of_none),
        cmocka_unit_test(boxes_that_are_none_are_refused),
        cmocka_unit_test(masks_are_cut_not_mixed),
        cmocka_unit_test(wide_masks),
    };
    return mrt_run(tests);
}
