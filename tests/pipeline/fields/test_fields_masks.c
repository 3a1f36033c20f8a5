/* Masks of every kind in batches, and the PNG samples that they may be stored as. */
#include <spng.h>

#include "base/util.h"
#include "pipeline/decode/decoders.h"
#include "tests/pipeline/fields/field_sets.h"

enum { W = MRT_FIELD_WIDE, H = MRT_FIELD_HIGH };

static void masks_of_every_kind_are_the_same(void **state)
{
    (void)state;
    static const mr_loader_field fields[] = {
        {.name = "mask", .role = MR_ROLE_MASK, .pad = 7},
        {.name = "mask_px", .role = MR_ROLE_MASK, .pad = 7},
        {.name = "mask_u8", .role = MR_ROLE_MASK, .pad = 7},
        {.name = "pixel_boxes", .role = MR_ROLE_BOXES, .in_pixels = true}};
    mr_source *src = mrt_field_set("masks", MRT_FINE);
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_field_settings(fields, 4);
    mr_loader *l;
    mr_batch b;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    const mr_loader_field_info *info = mr_loader_info_of(l)->field;
    MRT_TRUE(info[0].ndim == 2 && info[0].dim[0] == H && info[0].dim[1] == W && info[0].dtype == MR_U8);
    MRT_TRUE(info[3].varies && info[3].ndim == 1 && info[3].dim[0] == 4 && info[3].dtype == MR_F32 &&
             info[3].most == 4096);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++) {
            for (int k = 0; k < 3; k++) mrt_check_mask(&b, i, &b.field[k], 7);
            double e[4][4];
            uint32_t which[4];
            const float *row = (const float *)b.field[3].data + (size_t)i * b.field[3].width * 4;
            MRT_EQ(b.field[3].length[i],
                   mrt_expected_boxes(b.pixels + (size_t)i * H * W * 3, b.ids[i], e, which));
            for (int32_t k = 0; k < b.field[3].length[i]; k++)
                for (int c = 0; c < 4; c++) mrt_near(row[4 * k + c], e[k][c]);
        }
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    mr_source_close(src);
}

static void a_sample_without_a_mask_has_the_filler(void **state)
{
    (void)state;
    static const mr_loader_field fields[] = {{.name = "mask", .role = MR_ROLE_MASK, .pad = 7}};
    static const uint8_t filler[H * W] = {[0 ... H * W - 1] = 7};
    mr_source *src = mrt_field_set("masks", MRT_NO_MASK);
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_field_settings(fields, 1);
    mr_loader *l;
    mr_batch b;
    int without = 0;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) {
        for (uint32_t i = 0; i < b.count; i++) {
            const bool none = b.ids[i] == MRT_TWISTED;
            without += none;
            if (none)
                assert_memory_equal((const uint8_t *)b.field[0].data + i * sizeof filler, filler,
                                    sizeof filler);
            else mrt_check_mask(&b, i, &b.field[0], 7);
        }
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    MRT_EQ(without, 2);
    mr_loader_close(l);
    mr_source_close(src);
}

/* ---- PNG samples ---- */

static void *write_png(uint8_t colour, uint8_t depth, bool interlaced, uint32_t w, uint32_t h,
                       const uint8_t *packed, size_t bytes, size_t *out)
{
    struct spng_ihdr ihdr = {
        .width = w, .height = h, .bit_depth = depth, .color_type = colour, .interlace_method = interlaced};
    struct spng_plte plte = {.n_entries = 1u << (depth < 8 ? depth : 8)};
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    int rc;
    for (uint32_t k = 0; k < plte.n_entries; k++)
        plte.entries[k] = (struct spng_plte_entry){(uint8_t)(200 - k), (uint8_t)k, 7, 0};
    MRT_EQ(spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1), 0);
    MRT_EQ(spng_set_ihdr(ctx, &ihdr), 0);
    if (colour == SPNG_COLOR_TYPE_INDEXED) MRT_EQ(spng_set_plte(ctx, &plte), 0);
    MRT_EQ(spng_encode_image(ctx, packed, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    void *png = spng_get_png_buffer(ctx, out, &rc);
    MRT_EQ(rc, 0);
    spng_ctx_free(ctx);
    return png;
}

static void stored_numbers_of_every_depth(void **state)
{
    (void)state;
    static const uint8_t colours[] = {SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_INDEXED};
    static const uint32_t sizes[][2] = {{1, 1}, {7, 5}, {13, 9}, {1, 9}, {16, 3}};
    mri_buffer buffer = {0};
    for (size_t c = 0; c < 2; c++)
        for (uint8_t depth = 1; depth <= 8; depth = (uint8_t)(2 * depth))
            for (size_t s = 0; s < MRI_ARRAY_COUNT(sizes); s++)
                for (int interlaced = 0; interlaced < 2; interlaced++) {
                    const uint32_t w = sizes[s][0], h = sizes[s][1];
                    const size_t row = (w * depth + 7) / 8;
                    uint8_t packed[256] = {0}, expected[256];
                    for (uint32_t y = 0; y < h; y++)
                        for (uint32_t x = 0; x < w; x++) {
                            expected[y * w + x] = (uint8_t)((x * 5 + y * 3 + 1) & ((1u << depth) - 1));
                            packed[y * row + x * depth / 8] |=
                                (uint8_t)(expected[y * w + x] << (8 - depth - x * depth % 8));
                        }
                    size_t bytes;
                    mr_image_header header;
                    mr_error err = MR_ERROR_INIT;
                    void *png = write_png(colours[c], depth, interlaced, w, h, packed, row * h, &bytes);
                    MRT_OK(mr_image_header_parse(png, bytes, &header, &err), &err);
                    MRT_OK(mri_png_samples(png, bytes, &header, &buffer, &err), &err);
                    assert_memory_equal(buffer.data, expected, (size_t)w * h);
                    MRT_EQ(mri_png_samples(png, bytes - 20, &header, &buffer, &err), MR_EFORMAT);
                    free(png);
                }
    static const struct {
        uint8_t colour, depth;
        const char *name;
    } others[] = {{SPNG_COLOR_TYPE_GRAYSCALE, 16, "gray of 16 bits"},
                  {SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 8, "gray with alpha"},
                  {SPNG_COLOR_TYPE_TRUECOLOR, 8, "true colour"},
                  {SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 16, "true colour with alpha"}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(others); k++) {
        static const uint8_t zeros[4 * 4 * 8] = {0};
        static const size_t each[] = {2, 2, 3, 8};
        size_t bytes;
        mr_image_header header;
        mr_error err = MR_ERROR_INIT;
        void *png = write_png(others[k].colour, others[k].depth, false, 4, 4, zeros, 16 * each[k], &bytes);
        MRT_OK(mr_image_header_parse(png, bytes, &header, &err), &err);
        MRT_EQ(mri_png_samples(png, bytes, &header, &buffer, &err), MR_EUNSUPPORTED);
        MRT_HAS(err.text, others[k].name);
        free(png);
    }
    mri_buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_of_every_kind_are_the_same),
        cmocka_unit_test(a_sample_without_a_mask_has_the_filler),
        cmocka_unit_test(stored_numbers_of_every_depth),
    };
    return mrt_run(tests);
}
