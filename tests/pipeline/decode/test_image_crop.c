/* images, libjpeg pixels: a decoded part equals the same part of the whole picture, bit for bit, over
 * layouts, sizes and places. */
#include "base/util.h"
#include "mrt.h"
#include "pipeline/decode/decoders.h"
#include "tests/pipeline/pictures.h"

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    return mri_below((uint32_t)((*state = mri_mix64(*state)) >> 32), n);
}

static void compare_part(mri_decoder *d, const uint8_t *file, size_t bytes, const uint8_t *whole,
                         uint32_t channels, mri_rect r)
{
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.pixels = MR_PIXELS_LIBJPEG;
    mr_error err = MR_ERROR_INIT;
    const mr_value value = mrt_encoded(file, bytes);
    mri_picture picture;
    mri_view v;
    MRT_OK(mri_picture_open(&picture, d, &value, &cfg, &err), &err);
    MRT_OK(mri_picture_decode(d, &picture, &cfg, channels, r, &v, &err), &err);
    MRT_EQ(v.width, r.width);
    MRT_EQ(v.height, r.height);
    for (uint32_t y = 0; y < r.height; y++) {
        const uint8_t *expected = whole + ((size_t)(r.y + y) * picture.width + r.x) * channels;
        if (memcmp(v.pixels + y * v.stride, expected, (size_t)r.width * channels) != 0)
            fail_msg("row %u of part %u,%u %ux%u of %ux%u differs", y, r.x, r.y, r.width, r.height,
                     picture.width, picture.height);
    }
}

static void parts_of(const mrt_jpeg_kind *kind, uint64_t seed)
{
    mri_decoder d = {0};
    for (int n = 0; n < 12; n++) {
        const uint32_t w = 1 + random_below(&seed, 150), h = 1 + random_below(&seed, 150);
        size_t bytes;
        uint8_t *file = mrt_jpeg(kind, w, h, seed, &bytes);
        for (uint32_t channels = 1; channels <= 3; channels += 2) {
            uint8_t *whole = mrt_plain_decode(file, bytes, (int)channels);
            for (int k = 0; k < 40; k++) {
                mri_rect r = {.width = 1 + random_below(&seed, w), .height = 1 + random_below(&seed, h)};
                r.x = random_below(&seed, w - r.width + 1);
                r.y = random_below(&seed, h - r.height + 1);
                compare_part(&d, file, bytes, whole, channels, r);
            }
            free(whole);
        }
        free(file);
    }
    mri_decoder_free(&d);
}

static void parts_equal_the_whole(void **state)
{
    (void)state;
    static const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}};
    for (size_t s = 0; s < MRI_ARRAY_COUNT(samplings); s++) {
        mrt_jpeg_kind kind = {.h = samplings[s][0], .v = samplings[s][1], .components = 3};
        parts_of(&kind, 10 * s + 1);
        kind.restart_rows = 1;
        parts_of(&kind, 10 * s + 2);
        kind.progressive = true;
        parts_of(&kind, 10 * s + 3);
    }
    static const mrt_jpeg_kind others[] = {
        {.components = 1},
        {.components = 1, .h = 2, .v = 2},
        {.components = 1, .progressive = true},
        {.h = 2, .v = 2, .arithmetic = true},
        {.h = 2, .v = 1, .arithmetic = true, .progressive = true},
        {.h = 2, .v = 2, .multi_scan = true},
    };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(others); k++) parts_of(&others[k], 1000 + k);
}

/* Large real-life dimensions: the margins in blocks are the same, the tables of columns are not. */
static void parts_of_large_pictures(void **state)
{
    (void)state;
    mri_decoder d = {0};
    uint64_t seed = 77;
    for (int s = 0; s < 4; s++) {
        const mrt_jpeg_kind kind = {.h = 1 + s % 2, .v = 1 + s / 2, .components = 3};
        size_t bytes;
        uint8_t *file = mrt_jpeg(&kind, 611, 457, 5, &bytes), *whole = mrt_plain_decode(file, bytes, 3);
        for (int k = 0; k < 60; k++) {
            mri_rect r = {.width = 1 + random_below(&seed, 611), .height = 1 + random_below(&seed, 457)};
            r.x = random_below(&seed, 611 - r.width + 1);
            r.y = random_below(&seed, 457 - r.height + 1);
            compare_part(&d, file, bytes, whole, 3, r);
        }
        free(whole);
        free(file);
    }
    mri_decoder_free(&d);
}

static void real_photographs(void **state)
{
    (void)state;
    const char *list = getenv("MRT_JPEGS"); /* a text file with names, one a line: by hand, over any
                                               collection */
    if (!list) skip();
    FILE *f = fopen(list, "r");
    char name[1024];
    uint64_t seed = 5;
    mri_decoder d = {0};
    while (f && fgets(name, sizeof name, f)) {
        name[strcspn(name, "\n")] = 0;
        size_t bytes;
        uint8_t *file = mrt_read_file(name, &bytes);
        mr_image_header h;
        MRT_EQ(mr_image_header_parse(file, bytes, &h, NULL), MR_OK);
        if (h.orientation == 1 && h.channels == 3 && h.type == MR_TYPE_JPEG) {
            uint8_t *whole = mrt_plain_decode(file, bytes, 3);
            for (int k = 0; k < 3; k++) {
                mri_rect r = {.width = 1 + random_below(&seed, h.width),
                              .height = 1 + random_below(&seed, h.height)};
                r.x = random_below(&seed, h.width - r.width + 1);
                r.y = random_below(&seed, h.height - r.height + 1);
                compare_part(&d, file, bytes, whole, 3, r);
            }
            free(whole);
        }
        free(file);
    }
    if (f) fclose(f);
    mri_decoder_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_equal_the_whole),
        cmocka_unit_test(parts_of_large_pictures),
        cmocka_unit_test(real_photographs),
    };
    return mrt_run(tests);
}
