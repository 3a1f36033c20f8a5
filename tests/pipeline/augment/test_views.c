/* views: in evaluation each epoch shows another view of a picture, cut out of the whole as it would be by
 * hand; from pixels and from JPEG, where a crop is taken along by a resize. */
#include "mrt.h"
#include "pipeline/augment/augment.h"
#include "tests/pipeline/pictures.h"

static mr_image window_of(const mr_image *p, long x0, long y0, uint32_t w, uint32_t h)
{
    mr_image out = {w, h, p->channels, calloc((size_t)w * h, p->channels)};
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            const long sx = x0 + x, sy = y0 + y;
            if (sx < 0 || sy < 0 || sx >= (long)p->width || sy >= (long)p->height) continue;
            memcpy(out.pixels + ((size_t)y * w + x) * p->channels,
                   p->pixels + ((size_t)sy * p->width + (size_t)sx) * p->channels, p->channels);
        }
    return out;
}

static void mirror(mr_image *p)
{
    const uint32_t c = p->channels;
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width / 2; x++)
            for (uint32_t k = 0; k < c; k++) {
                uint8_t *row = p->pixels + (size_t)y * p->width * c, *a = row + x * c + k,
                        *b = row + (p->width - 1 - x) * c + k, kept = *a;
                *a = *b;
                *b = kept;
            }
}

static long half_below(long v) { return v < 0 ? -((1 - v) / 2) : v / 2; }

/* View v of a picture whose corners are taken: 0 the middle, then upper left, upper right, lower left, lower
 * right. Of a side that is shorter the middle. */
static mr_image corner_of(const mr_image *p, uint32_t v, uint32_t w, uint32_t h)
{
    const long room_x = (long)p->width - w, room_y = (long)p->height - h;
    const long mid_x = half_below(room_x), mid_y = half_below(room_y);
    const bool far_x = v == 2 || v == 4, far_y = v == 3 || v == 4;
    return window_of(p,
                     v == 0 || room_x < 0 ? mid_x
                     : far_x              ? room_x
                                          : 0,
                     v == 0 || room_y < 0 ? mid_y
                     : far_y              ? room_y
                                          : 0,
                     w, h);
}

static const struct {
    const char *spec;
    uint32_t views, shorter, w, h; /* shorter 0: no resize before; w 0: no crop */
    uint32_t mirrored_from;
    bool corners;
} cases[] = {
    {"none,views(flip)", 2, 0, 0, 0, 1, false},
    {"center(12x20),views(flip)", 2, 0, 20, 12, 1, false},
    {"center(12x20),views(five)", 5, 0, 20, 12, 5, true},
    {"center(9),views(ten)", 10, 0, 9, 9, 5, true},
    {"resize(40),center(32),views(ten)", 10, 40, 32, 32, 5, true},
    {"resize(40),flip,center(21x32),brightness(20),views(ten),normalise(imagenet)", 10, 40, 32, 21, 5, true},
    {"padcrop(4,20),views(five)", 5, 0, 20, 20, 5, true},
    {"rrc(35),views(ten)", 10, 40, 35, 35, 5, true},
};

static mr_image expected_of(size_t which, const mr_image *decoded, uint32_t view)
{
    const uint32_t n = cases[which].shorter, w = decoded->width, h = decoded->height;
    mr_image whole = window_of(decoded, 0, 0, w, h), out;
    if (n) {
        mr_image resized;
        MRT_EQ(mr_image_resize(&whole, h <= w ? n * w / h : n, h <= w ? n : n * h / w, &resized, NULL),
               MR_OK);
        mr_image_free(&whole);
        whole = resized;
    }
    if (cases[which].w) {
        out = corner_of(&whole, cases[which].corners ? view % 5 : 0, cases[which].w, cases[which].h);
        mr_image_free(&whole);
    } else out = whole;
    if (view >= cases[which].mirrored_from) mirror(&out);
    return out;
}

static void check(size_t which, mri_scratch *s, const mr_value *value, const mr_image *decoded)
{
    mr_augment *a;
    mr_error err = MR_ERROR_INIT;
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.pixels = MR_PIXELS_LIBJPEG;
    MRT_OK(mr_augment_create(&a, cases[which].spec, false, &err), &err);
    MRT_EQ(mr_augment_views(a), cases[which].views);
    for (uint32_t epoch = 0; epoch < cases[which].views + 1; epoch++) {
        const mri_sample_key key = {3, epoch, 8};
        mr_image expected = expected_of(which, decoded, epoch % cases[which].views);
        uint32_t h, w;
        MRT_OK(mr_augment_output(a, decoded->height, decoded->width, &h, &w, &err), &err);
        MRT_EQ(h, expected.height);
        MRT_EQ(w, expected.width);
        const size_t bytes = (size_t)h * w * decoded->channels;
        uint8_t *dst = malloc(bytes);
        MRT_OK(mri_augment_run(a, s, value, &cfg, decoded->channels, key, h, w, dst, NULL, NULL, NULL, &err),
               &err);
        for (size_t k = 0; k < bytes; k++)
            if (dst[k] != expected.pixels[k])
                fail_msg("%s, epoch %u, of %u x %u: value %zu is %u, expected %u", cases[which].spec, epoch,
                         decoded->width, decoded->height, k, dst[k], expected.pixels[k]);
        free(dst);
        mr_image_free(&expected);
    }
    mr_augment_destroy(a);
}

static void each_epoch_shows_another_view(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{64, 48}, {45, 67}, {40, 40}, {16, 11}, {7, 90}};
    mri_scratch *s;
    MRT_EQ(mri_scratch_create(&s), MR_OK);
    for (size_t n = 0; n < MRI_ARRAY_COUNT(sizes); n++)
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            const uint32_t w = sizes[n][0], h = sizes[n][1];
            mr_image p = {w, h, channels, mrt_picture(w, h, channels, n)};
            const mr_value pixels = mrt_pixels(p.pixels, w, h, channels, MR_HWC);
            for (size_t which = 0; which < MRI_ARRAY_COUNT(cases); which++) check(which, s, &pixels, &p);
            mr_image_free(&p);
            size_t bytes;
            uint8_t *file = mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .orientation = 6}, w, h, n, &bytes);
            const mr_value v = mrt_encoded(file, bytes);
            mr_decode_config cfg;
            mr_decode_defaults(&cfg);
            cfg.channels = channels;
            cfg.pixels = MR_PIXELS_LIBJPEG;
            MRT_EQ(mr_image_decode(&v, &cfg, &p, NULL), MR_OK);
            for (size_t which = 0; which < MRI_ARRAY_COUNT(cases); which++) check(which, s, &v, &p);
            mr_image_free(&p);
            free(file);
        }
    mri_scratch_destroy(s);
}

static void refused(const char *spec, bool training, const char *why)
{
    mr_augment *a;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_augment_create(&a, spec, training, &err), MR_EINVAL);
    MRT_HAS(err.text, why);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    mr_augment *a;
    refused("center(8),views(ten)", true, "views is of evaluations alone");
    refused("views(five)", false, "no crop stands before it");
    refused("flip,resize(9x9),views(ten)", false, "no crop stands before it");
    refused("views(six)", false, "expected views(flip|five|ten)");
    refused("views", false, "expected views(flip|five|ten)");
    refused("views(flip),views(flip)", false, "once is enough");
    MRT_EQ(mr_augment_create(&a, "center224", false, NULL), MR_OK);
    MRT_EQ(mr_augment_views(a), 1);
    mr_augment_destroy(a);
    MRT_EQ(mr_augment_create(&a, "center224,views(ten)", false, NULL), MR_OK);
    assert_string_equal(mr_augment_text(a), "resize(256),center(224),normalise(imagenet),views(ten)");
    mr_augment_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_epoch_shows_another_view),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return mrt_run(tests);
}
