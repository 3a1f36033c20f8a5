/* tests/pipeline/decode/test_png_rows.c: rows of our own PNG decoder: parts of pictures that need many rounds
 * of inflating are parts of the whole; filters are undone alike with every instruction set; nothing after the
 * last needed row is read. */
#include "base/util.h"
#include "mrt.h"
#include "pipeline/decode/decoders.h"
#include "pipeline/decode/png_rows.h"
#include "tests/pipeline/pictures.h"

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = mri_mix64(*seed);
    return mri_below((uint32_t)*seed, below);
}

static void filters_are_undone_alike(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 3, 5, 8, 15, 16, 17, 64, 131, 1000};
    uint8_t before[1008], row[1008], other[1008];
    for (unsigned pixel = 1; pixel <= 8; pixel++)
        for (size_t k = 0; k < MRI_ARRAY_COUNT(lengths); k++)
            for (unsigned filter = 0; filter <= 5; filter++) {
                const size_t bytes = lengths[k] * pixel > 1000 ? 1000 / pixel * pixel : lengths[k] * pixel;
                mrt_noise(before, sizeof before, pixel + 100 * k);
                mrt_noise(row, sizeof row, pixel + 100 * k + 50);
                memcpy(other, row, sizeof row);
                const bool known = mri_png_unfilter(row, before, bytes, pixel, filter);
                assert_int_equal(known, mri_png_unfilter_plain(other, before, bytes, pixel, filter));
                assert_int_equal(known, filter <= 4);
                assert_memory_equal(row, other, sizeof row); /* nothing after the row either */
            }
}

/* ---- parts ---- */

static void *png_of(const uint8_t *pixels, uint32_t width, uint32_t height, uint32_t channels, size_t *bytes)
{
    const mr_image image = {
        .width = width, .height = height, .channels = channels, .pixels = (uint8_t *)(uintptr_t)pixels};
    mr_error err = MR_ERROR_INIT;
    void *file;
    MRT_OK(mr_image_encode_png(&image, &file, bytes, &err), &err);
    return file;
}

static int decode_part(mri_png_rows *r, const void *file, size_t bytes, uint32_t channels, mri_rect part,
                       uint8_t *dst)
{
    mr_image_header header;
    mri_png_chunks chunks;
    MRT_EQ(mr_image_header_parse(file, bytes, &header, NULL), MR_OK);
    MRT_EQ(mri_png_chunks_open(&chunks, file, bytes, &header, NULL), MR_OK);
    return mri_png_rows_decode(r, &chunks, &header, channels, part, dst);
}

static uint8_t expected_at(const uint8_t *pixel, uint32_t stored, uint32_t channels, uint32_t c)
{
    if (stored == 1) return pixel[0];
    return channels == 1 ? mri_gray(pixel[0], pixel[1], pixel[2]) : pixel[c];
}

static void check_part(mri_png_rows *r, const uint8_t *pixels, uint32_t width, uint32_t stored,
                       const void *file, size_t bytes, mri_rect part, uint32_t channels)
{
    const size_t out_bytes = (size_t)part.width * part.height * channels;
    uint8_t *out = malloc(out_bytes); /* exact */
    MRT_EQ(decode_part(r, file, bytes, channels, part, out), MR_OK);
    for (size_t k = 0; k < out_bytes; k++) {
        const size_t x = part.x + k / channels % part.width, y = part.y + k / channels / part.width;
        const uint8_t want =
            expected_at(pixels + (y * width + x) * stored, stored, channels, (uint32_t)(k % channels));
        if (out[k] != want)
            fail_msg("%u channels, pixel %zu, %zu: expected %u, found %u", channels, x, y, want, out[k]);
    }
    free(out);
}

static void parts_are_of_the_whole(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1}, {5, 300}, {611, 407}, {3000, 200}};
    mri_png_rows *r;
    uint64_t seed = 5;
    MRT_EQ(mri_png_rows_create(&r), MR_OK);
    for (size_t s = 0; s < MRI_ARRAY_COUNT(sizes); s++)
        for (uint32_t stored = 1; stored <= 3; stored += 2) {
            const uint32_t w = sizes[s][0], h = sizes[s][1];
            size_t bytes;
            uint8_t *pixels = mrt_picture(w, h, stored, s);
            void *file = png_of(pixels, w, h, stored, &bytes);
            for (int n = 0; n < 6; n++) {
                mri_rect part = {0, 0, w, h};
                if (n > 1) {
                    part.x = draw(&seed, w);
                    part.y = draw(&seed, h);
                    part.width = 1 + draw(&seed, w - part.x);
                    part.height = 1 + draw(&seed, h - part.y);
                }
                check_part(r, pixels, w, stored, file, bytes, part, n % 2 ? 1 : 3);
            }
            free(pixels);
            free(file);
        }
    mri_png_rows_destroy(r);
}

/* ---- unread data ---- */

/* The compressed data end early: that matters to parts that need them. */
static void nothing_behind_the_part_is_read(void **state)
{
    (void)state;
    enum { W = 200, H = 300 };
    mri_png_rows *r;
    mr_image_header header;
    mri_png_chunks chunks;
    size_t bytes;
    uint8_t *pixels = mrt_picture(W, H, 3, 1), *out = malloc((size_t)W * H * 3);
    uint8_t *file = png_of(pixels, W, H, 3, &bytes);
    MRT_EQ(mri_png_rows_create(&r), MR_OK);
    MRT_EQ(mr_image_header_parse(file, bytes, &header, NULL), MR_OK);
    MRT_EQ(mri_png_chunks_open(&chunks, file, bytes, &header, NULL), MR_OK);
    memset(file + bytes - bytes / 3, 0xff, bytes / 3 - 20); /* checksums have been compared before */
    MRT_EQ(mri_png_rows_decode(r, &chunks, &header, 3, (mri_rect){0, 0, W, H}, out), MR_EUNSUPPORTED);
    MRT_EQ(mri_png_rows_decode(r, &chunks, &header, 3, (mri_rect){0, 0, W, H / 3}, out), MR_OK);
    assert_memory_equal(out, pixels, (size_t)W * (H / 3) * 3);
    mri_png_rows_destroy(r);
    free(pixels);
    free(file);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_undone_alike),
        cmocka_unit_test(parts_are_of_the_whole),
        cmocka_unit_test(nothing_behind_the_part_is_read),
    };
    return mrt_run(tests);
}
