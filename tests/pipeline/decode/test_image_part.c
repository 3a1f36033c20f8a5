/* mr_image_decode_part(): the pixels of the whole picture, no more of it than is needed, and nothing taken on
 * trust. */
#include "mrt.h"
#include "tests/pipeline/pictures.h"

static mr_image_part part_of(uint32_t x, uint32_t y, uint32_t width, uint32_t height)
{
    mr_image_part p;
    mr_image_part_defaults(&p);
    p.x = x;
    p.y = y;
    p.width = width;
    p.height = height;
    return p;
}

/* Unresized, a part is a window of the whole; flipped, from right to left. */
static void check_window(const mr_value *v, const mr_image *whole, mr_image_part p)
{
    mr_error err = MR_ERROR_INIT;
    mr_image out;
    MRT_OK(mr_image_decode_part(v, &p, NULL, &out, &err), &err);
    const uint32_t w = p.width ? p.width : whole->width - p.x, h = p.height ? p.height : whole->height - p.y,
                   c = whole->channels;
    MRT_EQ(out.width, w);
    MRT_EQ(out.height, h);
    MRT_EQ(out.channels, c);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            const size_t from = ((size_t)(p.y + y) * whole->width + p.x + (p.flip ? w - 1 - x : x)) * c;
            MRT_TRUE(memcmp(out.pixels + ((size_t)y * w + x) * c, whole->pixels + from, c) == 0);
        }
    mr_image_free(&out);
}

static void windows(void **state)
{
    (void)state;
    const mrt_jpeg_kind kinds[] = {{.h = 2, .v = 2, .components = 3, .quality = 90},
                                   {.h = 1, .v = 1, .components = 1, .quality = 80},
                                   {.h = 2, .v = 1, .components = 3, .quality = 90, .progressive = true},
                                   {.h = 2, .v = 2, .components = 3, .quality = 90, .orientation = 6},
                                   {.h = 1, .v = 1, .components = 4, .quality = 90, .adobe = true}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t bytes;
        uint8_t *jpeg = mrt_jpeg(&kinds[k], 97, 61, k + 1, &bytes);
        const mr_value v = mrt_encoded(jpeg, bytes);
        mr_error err = MR_ERROR_INIT;
        mr_image whole;
        MRT_OK(mr_image_decode(&v, NULL, &whole, &err), &err);
        check_window(&v, &whole, part_of(0, 0, 0, 0));
        check_window(&v, &whole, part_of(5, 7, 20, 30));
        check_window(&v, &whole, part_of(whole.width - 1, whole.height - 1, 1, 1));
        check_window(&v, &whole, part_of(17, 3, 0, 9));
        mr_image_part flipped = part_of(10, 10, 31, 11);
        flipped.flip = true;
        check_window(&v, &whole, flipped);
        mr_image_free(&whole);
        free(jpeg);
    }
}

/* Of raw pixels: one colour stays that colour at any size. */
static void sizes(void **state)
{
    (void)state;
    uint8_t pixels[40 * 30 * 3];
    memset(pixels, 77, sizeof pixels);
    const mr_value v = mrt_pixels(pixels, 40, 30, 3, MR_HWC);
    mr_image_part p = part_of(2, 3, 20, 10);
    p.out_width = 55;
    p.out_height = 7;
    mr_error err = MR_ERROR_INIT;
    mr_image out;
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.channels = 1;
    MRT_OK(mr_image_decode_part(&v, &p, &cfg, &out, &err), &err);
    MRT_EQ(out.width, 55);
    MRT_EQ(out.height, 7);
    MRT_EQ(out.channels, 1);
    for (size_t i = 0; i < 55 * 7; i++) MRT_EQ(out.pixels[i], 77);
    mr_image_free(&out);
}

static void refused(const mr_value *v, const mr_image_part *p, const mr_decode_config *cfg, int code,
                    const char *text)
{
    mr_error err = MR_ERROR_INIT;
    mr_image out;
    MRT_EQ(mr_image_decode_part(v, p, cfg, &out, &err), code);
    MRT_HAS(err.text, text);
    MRT_TRUE(!out.pixels);
}

static void hostile(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *jpeg =
        mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .components = 3, .quality = 90}, 64, 64, 3, &bytes);
    const mr_value v = mrt_encoded(jpeg, bytes), none = mrt_encoded("GIF89a", 6), empty = mrt_encoded("", 0);
    mr_image_part p = part_of(64, 0, 0, 0);
    refused(&v, &p, NULL, MR_EINVAL, "64 x 64");
    p = part_of(1, 0, 64, 1);
    refused(&v, &p, NULL, MR_EINVAL, "not inside");
    p = part_of(UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX);
    refused(&v, &p, NULL, MR_EINVAL, "not inside");
    p = part_of(1, 1, UINT32_MAX, 1); /* its end would wrap */
    refused(&v, &p, NULL, MR_EINVAL, "not inside");
    p = part_of(0, 0, 0, 0);
    p.out_width = UINT32_MAX;
    refused(&v, &p, NULL, MR_EINVAL, "sides go up to");
    p.out_width = p.out_height = 20000; /* 400 million */
    refused(&v, &p, NULL, MR_ELIMIT, "pixels");
    p = part_of(0, 0, 0, 0);
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.channels = 2;
    refused(&v, &p, &cfg, MR_EINVAL, "channels");
    p.struct_size = 0;
    refused(&v, &p, NULL, MR_EINVAL, "struct_size");
    p = part_of(0, 0, 8, 8);
    mr_image out;
    MRT_TRUE(mr_image_decode_part(&none, &p, NULL, &out, NULL) < 0);
    MRT_TRUE(mr_image_decode_part(&empty, &p, NULL, &out, NULL) < 0);
    for (size_t cut = 0; cut < bytes; cut += 7) { /* the rest is decoded, or reported, without touching other
                                                   * memory */
        uint8_t *half = malloc(cut ? cut : 1);
        memcpy(half, jpeg, cut);
        const mr_value damaged = mrt_encoded(half, cut);
        p = part_of(40, 40, 24, 24); /* the end of the file is needed */
        MRT_TRUE(cut + 2 >= bytes || mr_image_decode_part(&damaged, &p, NULL, &out, NULL) < 0);
        free(half);
    }
    free(jpeg);
}

static void memory_that_is_refused(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *jpeg =
        mrt_jpeg(&(mrt_jpeg_kind){.h = 2, .v = 2, .components = 3, .quality = 90}, 64, 64, 3, &bytes);
    const mr_value v = mrt_encoded(jpeg, bytes);
    const mr_image_part p = part_of(3, 3, 20, 20);
    int rc = MR_ENOMEM, turn = 0;
    while (rc == MR_ENOMEM) {
        mr_image out;
        mrt_fail_alloc_at(turn++);
        rc = mr_image_decode_part(&v, &p, NULL, &out, NULL);
        mrt_fail_alloc_at(-1);
        MRT_TRUE((rc == MR_OK) == (out.pixels != NULL));
        mr_image_free(&out);
    }
    MRT_OK(rc, NULL);
    MRT_TRUE(turn > 3);
    free(jpeg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(sizes),
        cmocka_unit_test(hostile),
        cmocka_unit_test(memory_that_is_refused),
    };
    return mrt_run(tests);
}
