/* augment: whole specifications against a slow reference that does one operation after the other on whole
 * pictures; draws; independence of scratch, thread and history; sizes that do not fit; allocation
 * failures. */
#include <math.h>
#include <pthread.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/augment/op.h"
#include "tests/pipeline/augment/reference.h"
#include "tests/pipeline/pictures.h"

#define RECORDED 0x7da48163c0bac4caULL

/* ---- the reference ---- */

typedef mrt_ref ref;

static mri_philox ref_draw(const ref *r, uint32_t block) { return mrt_ref_draw(r, block); }

/* What lies outside a picture: zeros, its edge repeated, its mirror images. */
enum { ZERO, EDGE, MIRROR };

static long mirrored(long at, long side)
{
    while (at < 0 || at >= side) at = side == 1 ? 0 : at < 0 ? -at : 2 * (side - 1) - at;
    return at;
}

static void ref_window(ref *r, long x0, long y0, uint32_t w, uint32_t h, int outside)
{
    const uint32_t c = r->p.channels;
    mr_image out = {w, h, c, calloc((size_t)w * h, c)};
    for (long y = 0; y < (long)h; y++)
        for (long x = 0; x < (long)w; x++) {
            long sx = x0 + x, sy = y0 + y;
            if (outside == MIRROR) sx = mirrored(sx, r->p.width), sy = mirrored(sy, r->p.height);
            if (outside == EDGE) {
                sx = sx < 0 ? 0 : sx >= (long)r->p.width ? (long)r->p.width - 1 : sx;
                sy = sy < 0 ? 0 : sy >= (long)r->p.height ? (long)r->p.height - 1 : sy;
            }
            if (sx < 0 || sy < 0 || sx >= (long)r->p.width || sy >= (long)r->p.height) continue;
            memcpy(out.pixels + ((size_t)y * w + (size_t)x) * c,
                   r->p.pixels + ((size_t)sy * r->p.width + (size_t)sx) * c, c);
        }
    mr_image_free(&r->p);
    r->p = out;
}

static void ref_resize(ref *r, uint32_t w, uint32_t h)
{
    mr_image out;
    MRT_EQ(mr_image_resize(&r->p, w, h, &out, NULL), MR_OK);
    mr_image_free(&r->p);
    r->p = out;
}

static void ref_shorter(ref *r, uint32_t n)
{
    if (r->p.height <= r->p.width) ref_resize(r, (uint32_t)((uint64_t)n * r->p.width / r->p.height), n);
    else ref_resize(r, n, (uint32_t)((uint64_t)n * r->p.height / r->p.width));
}

static void ref_center(ref *r, uint32_t w, uint32_t h)
{
    ref_window(r, (long)floor(((double)r->p.width - w) / 2), (long)floor(((double)r->p.height - h) / 2), w, h,
               ZERO);
}

static void ref_rrc(ref *r, uint32_t n, double lo, double hi)
{
    const double W = r->p.width, H = r->p.height;
    for (uint32_t try = 0; try < 10; try++) {
        const mri_philox d = ref_draw(r, try);
        const double area = W * H * (lo + (hi - lo) * (d.v[0] / 4294967296.0));
        const double ratio = exp(log(0.75) + (log(4 / 3.0) - log(0.75)) * (d.v[1] / 4294967296.0));
        const double w = floor(sqrt(area * ratio) + 0.5), h = floor(sqrt(area / ratio) + 0.5);
        if (w < 1 || h < 1 || w > W || h > H) continue;
        ref_window(r, mri_below(d.v[2], (uint32_t)(W - w) + 1), mri_below(d.v[3], (uint32_t)(H - h) + 1),
                   (uint32_t)w, (uint32_t)h, ZERO);
        ref_resize(r, n, n);
        return;
    }
    double w = W, h = H;
    if (W / H < 0.75) h = floor(W / 0.75 + 0.5);
    else if (W / H > 4 / 3.0) w = floor(H * (4 / 3.0) + 0.5);
    ref_window(r, (long)((W - w) / 2), (long)((H - h) / 2), (uint32_t)w, (uint32_t)h, ZERO);
    ref_resize(r, n, n);
}

static void ref_flip(ref *r)
{
    if (ref_draw(r, 0).v[0] < 0x80000000u) return;
    const uint32_t c = r->p.channels;
    for (uint32_t y = 0; y < r->p.height; y++)
        for (uint32_t x = 0; x < r->p.width / 2; x++)
            for (uint32_t k = 0; k < c; k++) {
                uint8_t *a = r->p.pixels + ((size_t)y * r->p.width + x) * c + k;
                uint8_t *b = r->p.pixels + ((size_t)y * r->p.width + r->p.width - 1 - x) * c + k;
                const uint8_t t = *a;
                *a = *b;
                *b = t;
            }
}

static void ref_bordered(ref *r, uint32_t pad, uint32_t w, uint32_t h, int border)
{
    const mri_philox d = ref_draw(r, 0);
    if (!w) {
        w = r->p.width;
        h = r->p.height;
    }
    const long room_x = (long)(r->p.width + 2 * pad) - w, room_y = (long)(r->p.height + 2 * pad) - h;
    const long x = room_x < 0 ? (long)floor((double)room_x / 2) : mri_below(d.v[0], (uint32_t)room_x + 1),
               y = room_y < 0 ? (long)floor((double)room_y / 2) : mri_below(d.v[1], (uint32_t)room_y + 1);
    ref_window(r, x - pad, y - pad, w, h, border);
}

static void ref_padcrop(ref *r, uint32_t pad, uint32_t w, uint32_t h) { ref_bordered(r, pad, w, h, ZERO); }

static void ref_shift(ref *r, double fx, double fy)
{
    const mri_philox d = ref_draw(r, 0);
    const uint32_t mx = (uint32_t)(fx * r->p.width), my = (uint32_t)(fy * r->p.height);
    ref_window(r, (long)mri_below(d.v[0], 2 * mx + 1) - mx, (long)mri_below(d.v[1], 2 * my + 1) - my,
               r->p.width, r->p.height, EDGE);
}

/* The result of a real-valued operation: compared within one step, then replaced by the found value, so that
 * steps do not add up. */
static uint8_t clip(double v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : floor(v + 0.5)); }

static void ref_colour(ref *r, char what, double lo, double hi)
{
    const double f = lo + (hi - lo) * (ref_draw(r, 0).v[0] / 4294967296.0);
    const size_t n = (size_t)r->p.width * r->p.height;
    const uint32_t c = r->p.channels;
    double mean = 0;
    for (size_t k = 0; k < n; k++) {
        const uint8_t *p = r->p.pixels + k * c;
        mean += c == 1 ? p[0] : (19595.0 * p[0] + 38470.0 * p[1] + 7471.0 * p[2]) / 65536;
    }
    mean /= (double)n;
    for (size_t k = 0; k < n; k++) {
        uint8_t *p = r->p.pixels + k * c;
        const double gray =
            c == 1 ? p[0] : floor((19595.0 * p[0] + 38470.0 * p[1] + 7471.0 * p[2]) / 65536 + 0.5);
        for (uint32_t i = 0; i < c; i++) {
            if (what == 'b') p[i] = clip(p[i] + floor(f + 0.5));
            if (what == 'c') p[i] = clip(mean + f * (p[i] - mean));
            if (what == 's') p[i] = clip(gray + f * (p[i] - gray));
        }
    }
}

/* Operations that do nothing in evaluation, except for the named cases; which: index into the
 * specifications. */
static void run_more(int which, ref *r, bool training)
{
    static const double scale[2] = {0.02, 0.33}, ratio[2] = {0.3, 3.3};
    static const uint8_t black[3] = {0};
#define OP(i, what) (r->index = (i), what)
    if (!training) {
        if (which == 19) ref_shorter(r, 36), ref_center(r, 32, 32);
        if (which == 45) ref_center(r, 50, 61), ref_center(r, 90, 7);
        return;
    }
    switch (which) {
    case 15:
        OP(0, mrt_ref_erase(r, 0.7, scale, ratio, MRT_MEAN, black));
        OP(1, ref_flip(r));
        break;
    case 16: OP(0, mrt_ref_erase(r, 1, (double[2]){0.1, 0.5}, (double[2]){1, 2}, MRT_RANDOM, black)); break;
    case 17:
        OP(0, ref_flip(r));
        OP(1, mrt_ref_cutout(r, 9, MRT_MEAN, (uint8_t[3]){100, 50, 255}));
        OP(2, ref_flip(r));
        break;
    case 18:
        OP(0, ref_flip(r));
        OP(1, mrt_ref_cutout(r, 12, MRT_MEAN, NULL));
        break;
    case 19:
        OP(0, ref_rrc(r, 32, 0.08, 1));
        OP(1, mrt_ref_erase(r, 0.9, scale, ratio, MRT_ZERO, NULL));
        OP(2, ref_flip(r));
        OP(3, mrt_ref_cutout(r, 4, MRT_RANDOM, NULL));
        OP(4, ref_flip(r));
        break;
    case 20:
        OP(0, mrt_ref_cutout(r, 5, MRT_RANDOM, NULL));
        OP(1, ref_flip(r));
        OP(2, ref_padcrop(r, 2, 0, 0));
        OP(3, ref_flip(r));
        OP(4, mrt_ref_cutout(r, 70, MRT_ZERO, NULL));
        OP(5, ref_flip(r));
        break;
    case 21: OP(0, mrt_ref_hue(r, 0.5)); break;
    case 22:
        OP(0, ref_flip(r));
        OP(1, mrt_ref_hue(r, 0.1));
        OP(2, ref_flip(r));
        break;
    case 23: OP(0, mrt_ref_jitter(r, 0.4, 0.5, 0.6, 0.1, 1)); break;
    case 24: OP(0, mrt_ref_jitter(r, 2, 0, 3, 0.5, 0.5)); break;
    case 25: OP(0, mrt_ref_gray(r, 0.5)); break;
    case 26:
        OP(0, mrt_ref_invert(r, 0.5));
        OP(1, ref_padcrop(r, 1, 0, 0));
        break;
    case 27: OP(0, mrt_ref_solarize(r, 128, 0.7)); break;
    case 28: OP(0, mrt_ref_posterize(r, 3, 0.7)); break;
    case 29: OP(0, mrt_ref_autocontrast(r, 0.6)); break;
    case 30:
        OP(0, mrt_ref_equalize(r, 0.6));
        OP(1, ref_flip(r));
        break;
    case 31: OP(0, mrt_ref_sharpness(r, 0, 4, 1)); break;
    case 32:
        OP(0, ref_flip(r));
        OP(1, mrt_ref_sharpness(r, 2, 2, 0.5));
        OP(2, ref_flip(r));
        break;
    case 33: OP(0, mrt_ref_blur(r, 5, 0.1, 2, 1)); break;
    case 34:
        OP(0, ref_flip(r));
        OP(1, mrt_ref_blur(r, 9, 0.5, 20, 0.4));
        break;
    case 35:
        OP(0, mrt_ref_rotate(r, 180, (mrt_ref_look){.nearest = true, .fill = NULL}));
        OP(1, ref_flip(r));
        OP(2, mrt_ref_rotate(r, 30, (mrt_ref_look){.nearest = true, .fill = (uint8_t[3]){9, 8, 70}}));
        break;
    case 36:
        OP(0, ref_flip(r));
        OP(1, mrt_ref_rotate(r, 45, (mrt_ref_look){.fill = (uint8_t[3]){200, 200, 200}}));
        OP(2, ref_flip(r));
        break;
    case 37:
        OP(0, mrt_ref_affine(r, 30, (double[2]){0.1, 0.2}, (double[2]){0.7, 1.4}, (double[2]){20, 10},
                             (mrt_ref_look){.nearest = true, .fill = NULL}));
        break;
    case 38:
        OP(0, ref_flip(r));
        OP(1, mrt_ref_affine(r, 0, (double[2]){0.3, 0.3}, (double[2]){1, 1}, (double[2]){40, 0},
                             (mrt_ref_look){.fill = NULL}));
        OP(2, ref_padcrop(r, 1, 0, 0));
        break;
    case 39:
        OP(0, mrt_ref_randaugment(r, 2, 9, (mrt_ref_look){.nearest = true, .fill = NULL}));
        OP(1, ref_flip(r));
        break;
    case 40:
        OP(0, ref_flip(r));
        OP(1, mrt_ref_randaugment(r, 3, 30, (mrt_ref_look){.nearest = true, .fill = (uint8_t[3]){7, 7, 7}}));
        break;
    case 41: OP(0, mrt_ref_randaugment(r, 1, 17, (mrt_ref_look){.fill = NULL})); break;
    case 42: OP(0, mrt_ref_trivial(r, (mrt_ref_look){.fill = NULL})); break;
    case 43:
        OP(0, ref_flip(r));
        OP(1, mrt_ref_trivial(r, (mrt_ref_look){.nearest = true, .fill = NULL}));
        OP(2, ref_flip(r));
        break;
    case 44:
        OP(0, ref_bordered(r, 4, 0, 0, MIRROR));
        OP(1, ref_flip(r));
        break;
    case 45:
        OP(0, ref_flip(r));
        OP(1, ref_bordered(r, 90, 50, 61, MIRROR));
        OP(2, ref_flip(r));
        OP(3, ref_bordered(r, 0, 90, 7, MIRROR));
        break;
    default: fail();
    }
#undef OP
}

/* Reference results of the specifications, written by hand. Each case: training; then evaluation. */
static void run_case(int which, ref *r, bool training)
{
#define OP(i) (r->index = (i))
    switch (which) {
    case 0: break;
    case 1:
        if (training) {
            OP(0);
            ref_rrc(r, 32, 0.08, 1);
            OP(1);
            ref_flip(r);
        } else {
            ref_shorter(r, 36);
            ref_center(r, 32, 32);
        }
        break;
    case 2:
        ref_shorter(r, 40);
        ref_center(r, 32, 32);
        break;
    case 3:
        if (training) {
            OP(0);
            ref_padcrop(r, 4, 0, 0);
            OP(1);
            ref_flip(r);
        }
        break;
    case 4:
        ref_resize(r, 25, 31);
        if (training) {
            OP(1);
            ref_padcrop(r, 3, 27, 20);
        } else ref_center(r, 27, 20);
        break;
    case 5:
        if (training) {
            OP(0);
            ref_flip(r);
            OP(1);
            ref_shift(r, 0.25, 0.5);
            OP(2);
            ref_flip(r);
        }
        break;
    case 6:
        if (training) {
            OP(0);
            ref_flip(r);
            OP(1);
            ref_rrc(r, 17, 0.5, 0.9);
        } else {
            ref_shorter(r, 19);
            ref_center(r, 17, 17);
        }
        break;
    case 7: ref_center(r, 20, 12); break;
    case 8:
        ref_center(r, 300, 290);
        if (training) {
            OP(1);
            ref_flip(r);
        }
        break;
    case 9:
        ref_resize(r, 10, 50);
        ref_resize(r, 50, 10);
        ref_shorter(r, 9);
        ref_center(r, 9, 9);
        break;
    case 10:
        if (training) {
            OP(0);
            ref_padcrop(r, 2, 0, 0);
            OP(1);
            ref_flip(r);
            OP(2);
            ref_padcrop(r, 1, 0, 0);
            OP(3);
            ref_flip(r);
            OP(4);
            ref_flip(r);
        }
        break;
    case 11:
        if (training) {
            OP(0);
            ref_colour(r, 'b', -63, 63);
        }
        break;
    case 12:
        if (training) {
            OP(0);
            ref_flip(r);
            OP(1);
            ref_colour(r, 'c', 0.2, 1.8);
            OP(2);
            ref_flip(r);
        }
        break;
    case 13:
        if (training) {
            OP(0);
            ref_padcrop(r, 4, 0, 0);
            OP(1);
            ref_colour(r, 's', 0, 2);
            OP(2);
            ref_flip(r);
        }
        break;
    case 14:
        if (training) {
            OP(0);
            ref_colour(r, 'b', -20, 20);
            OP(1);
            ref_padcrop(r, 2, 0, 0);
        }
        break;
    default: run_more(which, r, training);
    }
#undef OP
}

static const char *const specs[] = {
    "none",
    "rrc(32),flip",
    "resize(40),center(32)",
    "padcrop(4),flip",
    "resize(31x25),padcrop(3,20x27)",
    "flip,shift(0.25,0.5),flip",
    "flip,rrc(17,scale=0.5:0.9)",
    "center(12x20)",
    "center(290x300),flip",
    "resize(50x10),resize(10x50),resize(9),center(9)",
    "padcrop(2),flip,padcrop(1),flip,flip",
    "brightness(63)",
    "flip,contrast(0.2:1.8),flip",
    "padcrop(4),saturation(0:2),flip",
    "brightness(20),padcrop(2)",
    "erase(0.7),flip",
    "erase(1,scale=0.1:0.5,ratio=1:2,value=random)",
    "flip,cutout(9),flip,normalise(100:50.4:300/1)",
    "flip,cutout(12),standardise",
    "rrc(32),erase(0.9,value=zero),flip,cutout(4,value=random),flip",
    "cutout(5,value=random),flip,padcrop(2),flip,cutout(70,value=zero),flip",
    "hue(0.5)",
    "flip,hue(0.1),flip",
    "jitter(0.4,0.5,0.6,0.1)",
    "jitter(2,0,3,0.5,0.5)",
    "gray(0.5)",
    "invert(0.5),padcrop(1)",
    "solarize(128,0.7)",
    "posterize(3,0.7)",
    "autocontrast(0.6)",
    "equalize(0.6),flip",
    "sharpness(0:4)",
    "flip,sharpness(2:2,0.5),flip",
    "blur(5,0.1:2)",
    "flip,blur(9,0.5:20,0.4)",
    "rotate(180,filter=nearest),flip,rotate(30,filter=nearest,fill=mean),normalise(9:8:70/1)",
    "flip,rotate(45,fill=200),flip",
    "affine(30,translate=0.1:0.2,scale=0.7:1.4,shear=20:10,filter=nearest)",
    "flip,affine(0,translate=0.3,shear=40),padcrop(1)",
    "randaugment(2,9,filter=nearest),flip",
    "flip,randaugment(3,30,filter=nearest,fill=7)",
    "randaugment(1,17)",
    "trivial",
    "flip,trivial(filter=nearest),flip",
    "padcrop(4,border=mirror),flip",
    "flip,padcrop(90,61x50,border=mirror),flip,padcrop(0,7x90,border=mirror)",
};

/* How far a value may be from the reference's: factors are kept in 1/65536, so a tie may fall the other way.
 */
static int slack_of(int which)
{
    static const int ones[] = {12, 13, 21, 22, 23, 24, 33, 34, 36, 38, 41, 42};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(ones); k++)
        if (ones[k] == which) return 1;
    return 0;
}

static void compare(int which, mri_scratch *s, const mr_value *value, const mr_image *decoded,
                    mri_sample_key key, bool training)
{
    mr_augment *a;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_augment_create(&a, specs[which], training, &err), &err);
    const size_t whole = (size_t)decoded->width * decoded->height * decoded->channels;
    ref r = {.p = *decoded, .key = key};
    r.p.pixels = malloc(whole);
    memcpy(r.p.pixels, decoded->pixels, whole);
    run_case(which, &r, training);
    uint32_t h, w;
    MRT_OK(mr_augment_output(a, decoded->height, decoded->width, &h, &w, &err), &err);
    MRT_EQ(h, r.p.height);
    MRT_EQ(w, r.p.width);
    const size_t bytes = (size_t)h * w * decoded->channels;
    uint8_t *dst = malloc(bytes + 4);
    memset(dst + bytes, 0x5a, 4);
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.pixels = MR_PIXELS_LIBJPEG; /* whose results are libjpeg's for the whole picture */
    float affine[2];
    MRT_OK(mri_augment_run(a, s, value, &cfg, decoded->channels, key, h, w, dst, affine, NULL, NULL, &err),
           &err);
    MRT_TRUE(memcmp(dst + bytes, "ZZZZ", 4) == 0);
    const int slack = slack_of(which);
    for (size_t k = 0; k < bytes; k++)
        if (abs(dst[k] - r.p.pixels[k]) > slack)
            fail_msg("%s (%s) of %u x %u: value %zu is %u, expected %u", specs[which],
                     training ? "training" : "evaluation", decoded->width, decoded->height, k, dst[k],
                     r.p.pixels[k]);
    free(dst);
    mr_image_free(&r.p);
    mr_augment_destroy(a);
}

static void equals_the_reference(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{32, 32}, {1, 1},   {1, 7},   {61, 40},  {40, 61},
                                        {33, 17}, {120, 7}, {7, 120}, {200, 150}};
    mri_scratch *s;
    MRT_EQ(mri_scratch_create(&s), MR_OK);
    for (size_t n = 0; n < MRI_ARRAY_COUNT(sizes); n++) {
        const uint32_t w = sizes[n][0], h = sizes[n][1];
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            mr_image p = {w, h, channels, mrt_picture(w, h, channels, n)};
            uint8_t *planes = malloc((size_t)w * h * channels);
            for (size_t k = 0; k < (size_t)w * h; k++)
                for (size_t c = 0; c < channels; c++) planes[c * w * h + k] = p.pixels[k * channels + c];
            for (int which = 0; which < (int)MRI_ARRAY_COUNT(specs); which++)
                for (uint64_t epoch = 0; epoch < (MRT_SANITIZED ? 1 : 6); epoch++) {
                    const mri_sample_key key = {4 + epoch / 3, epoch, 17 * n};
                    const mr_value hwc = mrt_pixels(p.pixels, w, h, channels, MR_HWC),
                                   chw = mrt_pixels(planes, w, h, channels, MR_CHW);
                    compare(which, s, &hwc, &p, key, true);
                    compare(which, s, &chw, &p, key, true);
                    if (epoch == 0) compare(which, s, &chw, &p, key, false);
                }
            free(planes);
            mr_image_free(&p);
            /* the same from JPEG, where parts are decoded, also turned */
            for (int o = 0; o < 3; o++) {
                static const int turns[3] = {0, 6, 3};
                size_t bytes;
                uint8_t *file =
                    mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .orientation = turns[o]}, w, h, n, &bytes);
                const mr_value v = mrt_encoded(file, bytes);
                mr_decode_config cfg;
                mr_decode_defaults(&cfg);
                cfg.channels = channels;
                cfg.pixels = MR_PIXELS_LIBJPEG;
                MRT_EQ(mr_image_decode(&v, &cfg, &p, NULL), MR_OK);
                for (int which = 0; which < (int)MRI_ARRAY_COUNT(specs); which++) {
                    compare(which, s, &v, &p, (mri_sample_key){9, 1, n}, true);
                    compare(which, s, &v, &p, (mri_sample_key){9, 2, n}, false);
                }
                mr_image_free(&p);
                free(file);
            }
        }
    }
    mri_scratch_destroy(s);
}

/* Whatever works on pixels is compared with the reference above, and its text means the same again. */
static void every_operation_has_a_case(void **state)
{
    (void)state;
    const mri_op_type *type;
    for (size_t k = 0; (type = mri_op_type_at(k)) != NULL; k++) {
        bool found = type->fix || type->mix || type->evaluates; /* of these test_mix.c and test_views.c know
                                                                 */
        for (size_t n = 0; n < MRI_ARRAY_COUNT(specs); n++) found |= strstr(specs[n], type->name) != NULL;
        if (!found) fail_msg("%s: no line of specs[] has it", type->name);
    }
    for (size_t n = 0; n < MRI_ARRAY_COUNT(specs); n++) {
        mr_augment *a, *again;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_augment_create(&a, specs[n], true, &err), &err);
        MRT_OK(mr_augment_create(&again, mr_augment_text(a), true, &err), &err);
        MRT_STR(mr_augment_text(again), mr_augment_text(a));
        mr_augment_destroy(again);
        mr_augment_destroy(a);
    }
}

/* Exact: the bits of every specification, on every machine. The references above allow a step, and
 * mathematical libraries round differently. Another value here changes the data that people have trained on:
 * it must be intended, and be in the changelog. */
static void bits_are_those_recorded(void **state)
{
    (void)state;
    enum { WIDE = 61, HIGH = 47 };
    static uint8_t p[WIDE * HIGH * 3], dst[300 * 300 * 3];
    uint64_t hash = 0;
    mri_scratch *s;
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    MRT_EQ(mri_scratch_create(&s), MR_OK);
    for (uint32_t k = 0; k < sizeof p; k++)
        p[k] = (uint8_t)(k % 3 * 40 + k / 3 % WIDE + k / 3 / WIDE * 2 + mri_mix64(k) % 32);
    for (uint32_t n = 0; n < MRI_ARRAY_COUNT(specs); n++) {
        mr_augment *a;
        uint32_t h, w;
        float affine[2];
        MRT_EQ(mr_augment_create(&a, specs[n], true, NULL), MR_OK);
        MRT_EQ(mr_augment_output(a, HIGH, WIDE, &h, &w, NULL), MR_OK);
        const mr_value v = mrt_pixels(p, WIDE, HIGH, 3, MR_HWC);
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
            MRT_EQ(mri_augment_run(a, s, &v, &cfg, 3, (mri_sample_key){2, epoch, n}, h, w, dst, affine, NULL,
                                   NULL, NULL),
                   MR_OK);
            for (size_t k = 0; k < (size_t)h * w * 3; k++) hash = mri_mix64(hash ^ dst[k]);
        }
        mr_augment_destroy(a);
    }
    mri_scratch_destroy(s);
    if (hash != RECORDED) fail_msg("%016llx, recorded %016llx", (unsigned long long)hash, RECORDED);
}

/* ---- draws ---- */

static uint32_t flips_of(const char *spec, int what, uint32_t count, uint32_t *equal_to_next)
{
    uint8_t pixels[6] = {0, 0, 0, 255, 255, 255}, dst[6];
    const mr_value v = mrt_pixels(pixels, 2, 1, 3, MR_HWC);
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    mr_augment *a;
    mri_scratch *s;
    MRT_EQ(mr_augment_create(&a, spec, true, NULL), MR_OK);
    MRT_EQ(mri_scratch_create(&s), MR_OK);
    uint32_t flipped = 0, same = 0, last = 0;
    for (uint32_t k = 0; k < count; k++) {
        const mri_sample_key key = {what == 0 ? k : 1, what == 1 ? k : 1, what == 2 ? k : 1};
        MRT_EQ(mri_augment_run(a, s, &v, &cfg, 3, key, 1, 2, dst, NULL, NULL, NULL, NULL), MR_OK);
        const uint32_t now = dst[0] == 255;
        flipped += now;
        same += now == last;
        last = now;
    }
    *equal_to_next = same;
    mri_scratch_destroy(s);
    mr_augment_destroy(a);
    return flipped;
}

static void draws_depend_on_seed_epoch_sample_operation(void **state)
{
    (void)state;
    uint32_t same;
    for (int what = 0; what < 3; what++) { /* about half, and not in step: 20000 coins, six standard
                                              deviations are 424 */
        const uint32_t flipped = flips_of("flip", what, 20000, &same);
        MRT_TRUE(flipped > 10000 - 424 && flipped < 10000 + 424);
        MRT_TRUE(same > 10000 - 424 && same < 10000 + 424);
    }
    /* two flips draw apart: else they would cancel always */
    const uint32_t flipped = flips_of("flip,flip", 2, 20000, &same);
    MRT_TRUE(flipped > 10000 - 424 && flipped < 10000 + 424);
}

/* ---- same bytes for any scratch, thread and history ---- */

struct worker {
    uint8_t **file;
    size_t *bytes;
    uint32_t from, step;
    uint8_t (*out)[32 * 32 * 3];
    float (*affine)[2];
    int rc;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    mr_augment *a;
    mri_scratch *s;
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    w->rc = mr_augment_create(
        &a,
        "rrc(32),contrast(0.5:1.5),saturation(0.5:1.5),jitter(0.4,0.4,0.4,0.1),erase(0.5,value=random),"
        "flip,equalize(0.3),cutout(9),flip,rotate(20),blur(5,1:2),randaugment(2,9),trivial,brightness(10),"
        "standardise",
        true, NULL);
    if (w->rc) return NULL;
    w->rc = mri_scratch_create(&s);
    for (uint32_t k = w->from; k < 60 && w->rc == MR_OK; k += w->step) {
        const mr_value v = mrt_encoded(w->file[k % 6], w->bytes[k % 6]);
        w->rc = mri_augment_run(a, s, &v, &cfg, 3, (mri_sample_key){1, 2, k}, 32, 32, w->out[k], w->affine[k],
                                NULL, NULL, NULL);
    }
    mri_scratch_destroy(s);
    mr_augment_destroy(a);
    return NULL;
}

static void same_bytes_on_any_thread(void **state)
{
    (void)state;
    uint8_t *file[6];
    size_t bytes[6];
    static uint8_t out[2][60][32 * 32 * 3];
    static float affine[2][60][2];
    for (int k = 0; k < 6; k++)
        file[k] = mrt_jpeg(
            &(mrt_jpeg_kind){
                .h = 1 + k % 2, .v = 1 + k / 3, .progressive = k == 4, .orientation = k == 5 ? 8 : 0},
            90 + 9 * (uint32_t)k, 70, (uint64_t)k, &bytes[k]);
    struct worker one = {file, bytes, 0, 1, out[0], affine[0], 0}, many[3];
    work(&one);
    MRT_EQ(one.rc, MR_OK);
    pthread_t thread[3];
    for (uint32_t k = 0; k < 3; k++) {
        many[k] = (struct worker){file, bytes, k, 3, out[1], affine[1], 0};
        MRT_EQ(pthread_create(&thread[k], NULL, work, &many[k]), 0);
    }
    for (int k = 0; k < 3; k++) {
        pthread_join(thread[k], NULL);
        MRT_EQ(many[k].rc, MR_OK);
    }
    MRT_TRUE(memcmp(out[0], out[1], sizeof out[0]) == 0);
    MRT_TRUE(memcmp(affine[0], affine[1], sizeof affine[0]) == 0);
    for (int k = 0; k < 6; k++) free(file[k]);
}

/* ---- standardise ---- */

static void standardises(void **state)
{
    (void)state;
    mr_augment *a;
    mri_scratch *s;
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    MRT_EQ(mr_augment_create(&a, "standardise", false, NULL), MR_OK);
    MRT_EQ(mri_scratch_create(&s), MR_OK);
    for (int flat = 0; flat < 2; flat++) {
        uint8_t *p = mrt_picture(31, 17, 3, 2), dst[31 * 17 * 3];
        const double n = sizeof dst;
        if (flat) memset(p, 200, sizeof dst);
        const mr_value v = mrt_pixels(p, 31, 17, 3, MR_HWC);
        float affine[2];
        MRT_EQ(mri_augment_run(a, s, &v, &cfg, 3, (mri_sample_key){0, 0, 0}, 17, 31, dst, affine, NULL, NULL,
                               NULL),
               MR_OK);
        double mean = 0, variance = 0;
        for (size_t k = 0; k < sizeof dst; k++) mean += p[k] / n;
        for (size_t k = 0; k < sizeof dst; k++) variance += (p[k] - mean) * (p[k] - mean) / n;
        const double deviation = fmax(sqrt(variance), 1 / sqrt(n));
        MRT_TRUE(fabs(affine[0] * deviation - 1) < 1e-6);
        MRT_TRUE(fabs(affine[1] * deviation / -mean - 1) < 1e-6);
        free(p);
    }
    mri_scratch_destroy(s);
    mr_augment_destroy(a);
}

/* ---- what does not fit ---- */

static void sizes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    uint8_t *p = mrt_picture(20, 10, 3, 1), dst[32 * 32 * 3];
    mri_scratch *s;
    mr_augment *a;
    mr_error err = MR_ERROR_INIT;
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    const mr_value v = mrt_pixels(p, 20, 10, 3, MR_HWC);
    MRT_EQ(mri_scratch_create(&s), MR_OK);
    MRT_EQ(mr_augment_create(&a, "flip", true, NULL), MR_OK);
    MRT_EQ(mri_augment_run(a, s, &v, &cfg, 3, (mri_sample_key){0, 0, 0}, 32, 32, dst, NULL, NULL, NULL, &err),
           MR_EINVAL); /* no fault of the picture */
    MRT_HAS(err.text, "20 x 10");
    MRT_HAS(err.text, "32 x 32");
    mr_augment_destroy(a);
    MRT_EQ(mr_augment_create(&a, "resize(20000x20000),center(32)", true, NULL), MR_OK); /* a window of it:
                                                                                           fine */
    MRT_OK(mri_augment_run(a, s, &v, &cfg, 3, (mri_sample_key){0, 0, 0}, 32, 32, dst, NULL, NULL, NULL, &err),
           &err);
    mr_augment_destroy(a);
    /* all of it: not */
    MRT_EQ(mr_augment_create(&a, "resize(20000x20000),flip,center(32)", true, NULL), MR_OK);
    MRT_EQ(mri_augment_run(a, s, &v, &cfg, 3, (mri_sample_key){0, 0, 0}, 32, 32, dst, NULL, NULL, NULL, &err),
           MR_ELIMIT);
    mr_augment_destroy(a);
    /* a large result is fine by itself; to turn it takes another picture of its size, in between */
    uint8_t *large = malloc((size_t)2100 * 2100 * 3);
    for (int turned = 0; turned < 2; turned++) {
        MRT_EQ(
            mr_augment_create(&a, turned ? "resize(2100x2100),rotate(3)" : "resize(2100x2100)", true, NULL),
            MR_OK);
        MRT_EQ(mri_augment_run(a, s, &v, &cfg, 3, (mri_sample_key){0, 0, 0}, 2100, 2100, large, NULL, NULL,
                               NULL, &err),
               turned ? MR_ELIMIT : MR_OK);
        mr_augment_destroy(a);
    }
    MRT_HAS(err.text, "2100 x 2100 in between; the limit is 4194304 pixels");
    /* places on a side that is longer than any that is resampled have no room in 64 bits */
    enum { LONG = (1 << 20) + 1 };
    memset(large, 0, LONG);
    const mr_value line = mrt_pixels(large, LONG, 1, 1, MR_HWC);
    MRT_EQ(mr_augment_create(&a, "affine(0,shear=80),center(8x1)", true, NULL), MR_OK);
    MRT_EQ(
        mri_augment_run(a, s, &line, &cfg, 1, (mri_sample_key){0, 0, 0}, 1, 8, dst, NULL, NULL, NULL, &err),
        MR_ELIMIT);
    MRT_HAS(err.text, "1048577 x 1 pixels are to be turned or sheared: sides go up to");
    mr_augment_destroy(a);
    free(large);
    mri_scratch_destroy(s);
    free(p);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *file = mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .orientation = 6}, 90, 70, 1, &bytes),
            dst[32 * 32 * 3];
    const mr_value v = mrt_encoded(file, bytes);
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    for (int n = 0;; n += MRT_TURN) {
        mr_augment *a = NULL;
        mri_scratch *s = NULL;
        mrt_fail_alloc_at(n);
        int rc =
            mr_augment_create(&a, "padcrop(4),rotate(9),rrc(48),center(32),flip,sharpness(1:2)", true, NULL);
        if (rc == MR_OK) rc = mri_scratch_create(&s);
        if (rc == MR_OK)
            rc = mri_augment_run(a, s, &v, &cfg, 3, (mri_sample_key){0, 0, 0}, 32, 32, dst, NULL, NULL, NULL,
                                 NULL);
        mrt_fail_alloc_at(-1);
        mri_scratch_destroy(s);
        mr_augment_destroy(a);
        if (rc == MR_OK) {
            MRT_TRUE(n >= 8);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
    }
    free(file);
}

/* In the steady state a sample allocates nothing of ours. */
static void steady_state_allocates_nothing(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *file = mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2}, 90, 70, 1, &bytes), dst[32 * 32 * 3];
    const mr_value v = mrt_encoded(file, bytes);
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    mr_augment *a;
    mri_scratch *s;
    MRT_EQ(
        mr_augment_create(&a,
                          "rrc(48,scale=1:1,ratio=1:1),padcrop(2),center(32),flip,contrast(0:2),rotate(10),"
                          "blur(3,1:1),randaugment(3,9)",
                          true, NULL),
        MR_OK);
    MRT_EQ(mri_scratch_create(&s), MR_OK);
    for (uint64_t k = 0; k < 20; k++) {
        if (k == 1) mrt_fail_alloc_at(0);
        MRT_EQ(mri_augment_run(a, s, &v, &cfg, 3, (mri_sample_key){0, 0, 0}, 32, 32, dst, NULL, NULL, NULL,
                               NULL),
               MR_OK);
    }
    MRT_TRUE(!mrt_alloc_failed());
    mrt_fail_alloc_at(-1);
    mri_scratch_destroy(s);
    mr_augment_destroy(a);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_reference),
        cmocka_unit_test(every_operation_has_a_case),
        cmocka_unit_test(bits_are_those_recorded),
        cmocka_unit_test(draws_depend_on_seed_epoch_sample_operation),
        cmocka_unit_test(same_bytes_on_any_thread),
        cmocka_unit_test(standardises),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(steady_state_allocates_nothing),
    };
    return mrt_run(tests);
}
