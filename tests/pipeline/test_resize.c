/* resize: against the definition in double precision; plain and vector code agree bit for bit; windows and mirrors. */
#include "base/util.h"
#include "mrt.h"
#include "pictures.h"
#include "pipeline/resize.h"

#include <math.h>

/* One result pixel by the definition: a triangle as wide as the coarser grid's two pixels. */
static double pixel_of(const uint8_t *p, uint32_t w, uint32_t h, uint32_t channels, uint32_t out_w, uint32_t out_h, uint32_t x,
                       uint32_t y, uint32_t c)
{
    const double sx = (double)w / out_w, sy = (double)h / out_h, rx = sx > 1 ? sx : 1, ry = sy > 1 ? sy : 1;
    const double cx = (x + 0.5) * sx, cy = (y + 0.5) * sy;
    double sum = 0, weights = 0;
    for (long v = (long)(cy - ry) - 1; v <= (long)(cy + ry) + 1; v++)
        for (long u = (long)(cx - rx) - 1; u <= (long)(cx + rx) + 1; u++) {
            if (u < 0 || v < 0 || u >= (long)w || v >= (long)h) continue;
            const double a = 1 - fabs(u + 0.5 - cx) / rx, b = 1 - fabs(v + 0.5 - cy) / ry;
            if (a <= 0 || b <= 0) continue;
            sum += a * b * p[((size_t)v * w + (size_t)u) * channels + c];
            weights += a * b;
        }
    return sum / weights;
}

static void compare(uint32_t w, uint32_t h, uint32_t channels, uint32_t out_w, uint32_t out_h, uint32_t step)
{
    const mr_image in = {w, h, channels, mrt_picture(w, h, channels, w + h)};
    mr_image out;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_image_resize(&in, out_w, out_h, &out, &err), &err);
    for (uint32_t y = 0; y < out_h; y += step)
        for (uint32_t x = 0; x < out_w; x += step)
            for (uint32_t c = 0; c < channels; c++) {
                const double expected = pixel_of(in.pixels, w, h, channels, out_w, out_h, x, y, c);
                const int found = out.pixels[((size_t)y * out_w + x) * channels + c];
                if (fabs(found - expected) > 0.56) /* half by the last rounding, the rest by the row in between */
                    fail_msg("%ux%u to %ux%u at %u,%u: %d, expected %.3f", w, h, out_w, out_h, x, y, found, expected);
            }
    mr_image_free(&out);
    free(in.pixels);
}

static void equals_the_definition(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= 3; channels += 2) {
        compare(1, 1, channels, 1, 1, 1);
        compare(1, 1, channels, 5, 7, 1);
        compare(7, 5, channels, 1, 1, 1);
        compare(32, 32, channels, 32, 32, 1);
        compare(37, 53, channels, 24, 31, 1);
        compare(13, 200, channels, 29, 17, 1);
        compare(61, 47, channels, 120, 100, 3);
        compare(500, 375, channels, 224, 224, 17);
        compare(3000, 2, channels, 7, 2, 1);
    }
    compare(65535, 3, 1, 2, 3, 1);
    compare(2, 30000, 3, 2, 1, 1);
}

static void flat_stays_flat_and_same_size_stays(void **state)
{
    (void)state;
    uint8_t *flat = malloc(91 * 77 * 3);
    for (int level = 0; level < 256; level += 51) {
        memset(flat, level, 91 * 77 * 3);
        const mr_image in = {91, 77, 3, flat};
        mr_image out;
        MRT_EQ(mr_image_resize(&in, 40, 203, &out, NULL), MR_OK);
        for (size_t k = 0; k < 40 * 203 * 3; k++) MRT_EQ(out.pixels[k], level);
        mr_image_free(&out);
    }
    free(flat);
    const mr_image in = {33, 21, 3, mrt_picture(33, 21, 3, 4)};
    mr_image out;
    MRT_EQ(mr_image_resize(&in, 33, 21, &out, NULL), MR_OK);
    MRT_TRUE(memcmp(in.pixels, out.pixels, 33 * 21 * 3) == 0);
    mr_image_free(&out);
    free(in.pixels);
}

/* Windows of the result, from no more source than the support says, mirrored or not, by both variants, write exactly what the
 * whole resize has there and nothing around it. */
static void windows_and_variants(void **state)
{
    (void)state;
    uint64_t seed = 3;
    mri_resizer r = {0};
    for (int n = 0; n < 300; n++) {
        uint32_t d[10];
        for (int k = 0; k < 10; k++) d[k] = (uint32_t)((seed = mri_mix64(seed)) >> 40);
        const uint32_t channels = d[0] % 2 ? 3 : 1, w = 1 + d[1] % 90, h = 1 + d[2] % 90, W = 1 + d[3] % 70, H = 1 + d[4] % 70;
        mri_axis x = {w, W, d[5] % W, 0}, y = {h, H, d[6] % H, 0};
        x.count = 1 + d[7] % (W - x.first);
        y.count = 1 + d[8] % (H - y.first);
        const mr_image in = {w, h, channels, mrt_picture(w, h, channels, (uint64_t)n)};
        mr_image whole;
        MRT_EQ(mr_image_resize(&in, W, H, &whole, NULL), MR_OK);
        uint32_t lo_x, hi_x, lo_y, hi_y;
        mri_axis_support(x, &lo_x, &hi_x);
        mri_axis_support(y, &lo_y, &hi_y);
        MRT_TRUE(hi_x <= w && hi_y <= h);
        /* only the support exists: anything else read is seen by the sanitizer */
        const uint32_t pw = hi_x - lo_x, ph = hi_y - lo_y;
        uint8_t *part = malloc((size_t)pw * ph * channels);
        for (uint32_t row = 0; row < ph; row++)
            memcpy(part + (size_t)row * pw * channels, in.pixels + ((size_t)(lo_y + row) * w + lo_x) * channels, (size_t)pw * channels);
        const mri_view v = {part, pw, ph, channels, (size_t)pw * channels, 0};
        const size_t bytes = (size_t)x.count * y.count * channels;
        for (int variant = 0; variant < 4; variant++) {
            const bool flip = variant & 1;
            uint8_t *to = malloc(bytes + 2);
            to[bytes] = 0xa5;
            MRT_EQ(mri_resize(&r, &v, lo_x, lo_y, x, y, flip, to, variant < 2 ? MRI_RESIZE_BEST : MRI_RESIZE_PLAIN), MR_OK);
            MRT_EQ(to[bytes], 0xa5);
            for (uint32_t row = 0; row < y.count; row++)
                for (uint32_t col = 0; col < x.count; col++) {
                    const uint32_t from = x.first + (flip ? x.count - 1 - col : col);
                    MRT_TRUE(memcmp(to + ((size_t)row * x.count + col) * channels,
                                    whole.pixels + ((size_t)(y.first + row) * W + from) * channels, channels) == 0);
                }
            free(to);
        }
        free(part);
        mr_image_free(&whole);
        free(in.pixels);
    }
    mri_resizer_free(&r);
}

static void refuses_what_it_cannot(void **state)
{
    (void)state;
    uint8_t pixel[3] = {1, 2, 3};
    const mr_image in = {1, 1, 3, pixel}, two = {1, 1, 2, pixel};
    mr_image out;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_image_resize(&in, 0, 4, &out, &err), MR_EINVAL);
    MRT_EQ(mr_image_resize(&in, 4, (1u << 20) + 1, &out, &err), MR_EINVAL);
    MRT_EQ(mr_image_resize(&two, 4, 4, &out, &err), MR_EINVAL);
    MRT_TRUE(out.pixels == NULL);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    const mr_image in = {40, 30, 3, mrt_picture(40, 30, 3, 1)};
    for (int n = 0;; n++) {
        mr_image out = {1, 1, 1, (uint8_t *)1};
        mrt_fail_alloc_at(n);
        const int rc = mr_image_resize(&in, 20, 20, &out, NULL);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            MRT_TRUE(n >= 3);
            mr_image_free(&out);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(out.pixels == NULL);
    }
    free(in.pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_definition), cmocka_unit_test(flat_stays_flat_and_same_size_stays),
        cmocka_unit_test(windows_and_variants),  cmocka_unit_test(refuses_what_it_cannot),
        cmocka_unit_test(survives_failing_allocations),
    };
    return mrt_run(tests);
}
