/* tests/pipeline/decode/test_jpeg_progressive.c: our progressive decoder against libjpeg's coefficients, on
 * every layout, script of scans, window and instruction set; and damage, where libjpeg decides. */
#include <stdio.h>

#include <jpeglib.h>

#include "base/simd.h"
#include "mrt.h"
#include "pipeline/decode/decoders.h"
#include "pipeline/decode/jpeg/entropy.h"
#include "pipeline/decode/jpeg/libjpeg_coef.h"
#include "pipeline/decode/jpeg/progressive.h"
#include "tests/pipeline/pictures.h"

#define SCANS 100

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = mri_mix64(*seed);
    return mri_below((uint32_t)*seed, below);
}

/* ---- scripts ---- */

/* clang-format off */
static const jpeg_scan_info spectral[] = {
    {3, {0, 1, 2}, 0, 0, 0, 0}, {1, {0}, 1, 5, 0, 0}, {1, {2}, 1, 63, 0, 0}, {1, {1}, 1, 1, 0, 0},
    {1, {1}, 2, 63, 0, 0}, {1, {0}, 6, 63, 0, 0}};
static const jpeg_scan_info three_bits[] = {
    {3, {0, 1, 2}, 0, 0, 0, 3}, {1, {0}, 1, 63, 0, 3}, {1, {1}, 1, 63, 0, 3}, {1, {2}, 1, 63, 0, 1},
    {3, {0, 1, 2}, 0, 0, 3, 2}, {1, {0}, 1, 63, 3, 2}, {1, {1}, 1, 63, 3, 2}, {1, {0}, 1, 63, 2, 1},
    {3, {0, 1, 2}, 0, 0, 2, 1}, {1, {1}, 1, 63, 2, 1}, {1, {2}, 1, 63, 1, 0}, {1, {0}, 1, 63, 1, 0},
    {3, {0, 1, 2}, 0, 0, 1, 0}, {1, {1}, 1, 63, 1, 0}};
static const jpeg_scan_info alone[] = {
    {1, {0}, 0, 0, 0, 1}, {2, {1, 2}, 0, 0, 0, 0}, {1, {0}, 0, 0, 1, 0}, {1, {0}, 1, 20, 0, 1},
    {1, {0}, 21, 63, 0, 1}, {1, {0}, 1, 30, 1, 0}, {1, {0}, 31, 63, 1, 0}, {1, {1}, 1, 63, 0, 0},
    {1, {2}, 1, 63, 0, 0}};
static const jpeg_scan_info unfinished[] = {
    {3, {0, 1, 2}, 0, 0, 0, 1}, {1, {0}, 1, 9, 0, 2}, {1, {0}, 1, 9, 2, 1}};
static const jpeg_scan_info gray[] = {
    {1, {0}, 0, 0, 0, 2}, {1, {0}, 1, 63, 0, 2}, {1, {0}, 0, 0, 2, 1}, {1, {0}, 1, 63, 2, 1},
    {1, {0}, 0, 0, 1, 0}, {1, {0}, 1, 63, 1, 0}};
/* clang-format on */

static int with_script, with_restart;

static void tune(void *compressor)
{
    static const struct {
        const jpeg_scan_info *scan;
        int count;
    } scripts[] = {{NULL, 0}, /* jpeg_simple_progression() */
                   {spectral, MRI_ARRAY_COUNT(spectral)},
                   {three_bits, MRI_ARRAY_COUNT(three_bits)},
                   {alone, MRI_ARRAY_COUNT(alone)},
                   {unfinished, MRI_ARRAY_COUNT(unfinished)},
                   {gray, MRI_ARRAY_COUNT(gray)}};
    struct jpeg_compress_struct *c = compressor;
    if (with_script) {
        c->scan_info = scripts[with_script].scan;
        c->num_scans = scripts[with_script].count;
    }
    if (with_restart) c->restart_interval = (unsigned)with_restart;
}

static uint8_t *make(mrt_jpeg_kind kind, int script, int restart, uint32_t width, uint32_t height,
                     uint64_t seed, size_t *bytes)
{
    kind.progressive = true;
    kind.tune = tune;
    with_script = script;
    with_restart = restart;
    return mrt_jpeg(&kind, width, height, seed, bytes);
}

static const mrt_jpeg_kind kinds[] = {
    {.h = 1, .v = 1, .components = 3, .quality = 95}, {.h = 2, .v = 1, .components = 3, .quality = 90},
    {.h = 1, .v = 2, .components = 3, .quality = 60}, {.h = 2, .v = 2, .components = 3, .quality = 85},
    {.h = 4, .v = 1, .components = 3, .quality = 99}, {.components = 1, .quality = 90},
    {.h = 2, .v = 2, .components = 1, .quality = 100}};

static bool script_fits(int script, const mrt_jpeg_kind *kind)
{
    return script == 0 || (script == 5) == (kind->components == 1);
}

/* ---- windows ---- */

static void whole_window(const mri_jpeg_frame *f, mri_block_window *w)
{
    for (uint32_t k = 0; k < f->component_count; k++)
        w[k] = (mri_block_window){0, f->component[k].blocks_wide, 0, f->component[k].blocks_high};
}

static void random_window(const mri_jpeg_frame *f, uint64_t *seed, mri_block_window *w)
{
    for (uint32_t k = 0; k < f->component_count; k++) {
        const mri_jpeg_component *c = &f->component[k];
        w[k].x0 = draw(seed, c->blocks_wide + 1);
        w[k].x1 = w[k].x0 + draw(seed, c->blocks_wide - w[k].x0 + 1);
        w[k].y0 = draw(seed, c->blocks_high + 1);
        w[k].y1 = w[k].y0 + draw(seed, c->blocks_high - w[k].y0 + 1);
    }
}

/* All blocks of the window equal libjpeg's, and after `last` there is nothing. */
static void same_blocks(const mri_progressive *p, mri_libjpeg *j, const mri_jpeg_frame *f,
                        const mri_block_window *w)
{
    for (uint32_t row = 0; row < f->mcus_high; row++) {
        mri_block_rows ours[4] = {0}, theirs[4] = {0};
        for (uint32_t k = 0; k < f->component_count; k++) {
            const size_t blocks = (size_t)(w[k].x1 - w[k].x0) * f->component[k].v;
            ours[k] = (mri_block_rows){mri_alloc_aligned(64, (blocks + 1) * 128), malloc(blocks + 1),
                                       w[k].x1 - w[k].x0};
            theirs[k] = (mri_block_rows){mri_alloc_aligned(64, (blocks + 1) * 128), malloc(blocks + 1),
                                         w[k].x1 - w[k].x0};
            memset(ours[k].coef, 0x5a, (blocks + 1) * 128);
            memset(theirs[k].coef, 0x5a, (blocks + 1) * 128);
            memset(ours[k].last, 0x5a, blocks + 1);
            memset(theirs[k].last, 0x5a, blocks + 1);
        }
        mri_progressive_rows(p, row, ours);
        MRT_EQ(mri_libjpeg_rows(j, row, w, theirs, NULL), MR_OK);
        for (uint32_t k = 0; k < f->component_count; k++) {
            const size_t blocks = (size_t)(w[k].x1 - w[k].x0) * f->component[k].v;
            if (memcmp(ours[k].coef, theirs[k].coef, (blocks + 1) * 128) != 0)
                fail_msg("row %u of MCUs, component %u: coefficients differ", row, k);
            for (size_t b = 0; b <= blocks; b++) assert_true(ours[k].last[b] >= theirs[k].last[b]);
            free(ours[k].coef);
            free(ours[k].last);
            free(theirs[k].coef);
            free(theirs[k].last);
        }
    }
}

static void compare_windows(mri_progressive *p, mri_libjpeg *j, const uint8_t *file, size_t bytes,
                            uint64_t seed)
{
    const mri_jpeg_frame *f, *theirs;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_progressive_open(p, file, bytes, SCANS, &f, &err), &err);
    MRT_OK(mri_libjpeg_open(j, file, bytes, 1 << 24, SCANS, &theirs, &err), &err);
    for (int n = 0; n < 8; n++) {
        mri_block_window w[4] = {{0}};
        if (n == 0) whole_window(f, w);
        else random_window(f, &seed, w);
        MRT_OK(mri_progressive_window(p, w, &err), &err);
        same_blocks(p, j, f, w);
    }
    for (uint32_t k = 0; k < f->component_count; k++)
        assert_memory_equal(f->component[k].quant, theirs->component[k].quant, sizeof f->component[k].quant);
    assert_int_equal(f->colour, theirs->colour);
    mri_libjpeg_close(j);
}

static void coefficients_are_those_of_libjpeg(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1}, {8, 17}, {65, 33}, {150, 211}};
    mri_progressive *p;
    mri_libjpeg *j;
    MRT_EQ(mri_progressive_create(&p), MR_OK);
    MRT_EQ(mri_libjpeg_create(&j), MR_OK);
    const mri_simd_level before = mri_simd();
    for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++)
            for (int script = 0; script <= 5; script++)
                for (size_t s = 0; s < MRI_ARRAY_COUNT(sizes); s++)
                    for (int restart = 0; restart < 6; restart += 5) {
                        size_t bytes;
                        if (!script_fits(script, &kinds[k])) continue;
                        uint8_t *file =
                            make(kinds[k], script, restart, sizes[s][0], sizes[s][1], 10 * k + s, &bytes);
                        compare_windows(p, j, file, bytes, k + s);
                        free(file);
                    }
    }
    mri_simd_use(before);
    mri_progressive_destroy(p);
    mri_libjpeg_destroy(j);
}

/* ---- pictures left to libjpeg ---- */

static int read_whole(mri_progressive *p, const uint8_t *file, size_t bytes, uint32_t scans,
                      const mri_jpeg_frame **f)
{
    mri_block_window w[4] = {{0}};
    const int rc = mri_progressive_open(p, file, bytes, scans, f, NULL);
    if (rc) return rc;
    whole_window(*f, w);
    return mri_progressive_window(p, w, NULL);
}

static void other_kinds_are_left_to_libjpeg(void **state)
{
    (void)state;
    mri_progressive *p;
    const mri_jpeg_frame *f;
    size_t bytes;
    MRT_EQ(mri_progressive_create(&p), MR_OK);
    const mrt_jpeg_kind others[] = {
        {.h = 2, .v = 2, .components = 3},
        {.h = 2, .v = 2, .components = 3, .progressive = true, .arithmetic = true},
        {.h = 1, .v = 1, .components = 4, .adobe = true, .progressive = true}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(others); k++) {
        uint8_t *file = mrt_jpeg(&others[k], 40, 30, 1, &bytes);
        MRT_EQ(read_whole(p, file, bytes, SCANS, &f), MR_EUNSUPPORTED);
        free(file);
    }
    uint8_t *file = make(kinds[3], 0, 0, 40, 30, 1, &bytes);
    MRT_EQ(read_whole(p, file, bytes, 10, &f), MR_OK);
    MRT_EQ(read_whole(p, file, bytes, 9, &f), MR_EUNSUPPORTED);
    MRT_EQ(read_whole(p, file, bytes - 2, SCANS, &f), MR_EUNSUPPORTED);
    free(file);
    mri_progressive_destroy(p);
}

/* ---- damage ---- */

/* The whole picture as every caller decodes it: the verdict, and its words. */
static int decode_picture(mri_decoder *d, const uint8_t *file, size_t bytes, mr_error *err)
{
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    const mr_value value = mrt_encoded(file, bytes);
    mri_picture p;
    mri_view view;
    const int rc = mri_picture_open(&p, d, &value, &cfg, err);
    return rc ? rc : mri_picture_decode(d, &p, &cfg, 3, (mri_rect){0, 0, p.width, p.height}, &view, err);
}

static uint8_t *damaged(const uint8_t *file, size_t *bytes, uint64_t *seed)
{
    uint8_t *bad = malloc(*bytes);
    memcpy(bad, file, *bytes);
    switch (draw(seed, 4)) {
    case 0: *bytes = 1 + draw(seed, (uint32_t)*bytes); break;
    case 1: {
        const uint32_t from = draw(seed, (uint32_t)*bytes), gone = 1 + draw(seed, 9);
        if (from + gone >= *bytes) break;
        memmove(bad + from, bad + from + gone, *bytes - from - gone);
        *bytes -= gone;
        break;
    }
    default:
        for (uint32_t count = 1 + draw(seed, 2); count > 0; count--)
            bad[draw(seed, (uint32_t)*bytes)] ^= (uint8_t)(1u << draw(seed, 8));
    }
    return bad;
}

static void damage_once(mri_progressive *p, mri_libjpeg *j, mri_decoder *d, const uint8_t *bad, size_t bytes,
                        uint64_t *seed)
{
    const mri_jpeg_frame *f, *theirs;
    mri_block_window w[4] = {{0}};
    mr_error err = MR_ERROR_INIT, their_err = MR_ERROR_INIT;
    const int verdict = mri_libjpeg_open(j, bad, bytes, 1 << 20, SCANS, &theirs, &their_err);
    const int rc = read_whole(p, bad, bytes, SCANS, &f);
    if (rc == MR_OK) {
        if (verdict) fail_msg("decoded, but libjpeg says: %s", their_err.text);
        whole_window(f, w);
        same_blocks(p, j, f, w);
    } else {
        MRT_EQ(rc, MR_EUNSUPPORTED);
    }
    if (verdict == MR_OK && mri_progressive_open(p, bad, bytes, SCANS, &f, NULL) == MR_OK) {
        random_window(f, seed, w);
        if (mri_progressive_window(p, w, NULL) == MR_OK) same_blocks(p, j, f, w);
    }
    if (verdict == MR_EFORMAT) {
        mr_image_header header;
        int before = mr_image_header_parse(bad, bytes, &header, &their_err);
        if (before == MR_OK) before = mri_entropy_open(d->entropy, bad, bytes, NULL, 0, &f, &their_err);
        if (before != MR_EFORMAT) mri_libjpeg_open(j, bad, bytes, 1 << 20, SCANS, &theirs, &their_err);
        MRT_EQ(decode_picture(d, bad, bytes, &err), MR_EFORMAT);
        assert_string_equal(err.text, their_err.text);
    }
    mri_libjpeg_close(j);
}

static void damage_is_judged_by_libjpeg(void **state)
{
    (void)state;
    mri_progressive *p;
    mri_libjpeg *j;
    mri_decoder d = {0};
    uint64_t seed = 11;
    MRT_EQ(mri_progressive_create(&p), MR_OK);
    MRT_EQ(mri_libjpeg_create(&j), MR_OK);
    MRT_EQ(mri_entropy_create(&d.entropy), MR_OK);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++)
        for (int restart = 0; restart < 4; restart += 3) {
            size_t bytes;
            const int script = kinds[k].components == 1 ? 5 : (int)(k % 4);
            uint8_t *file = make(kinds[k], script, restart, 65, 49, k, &bytes);
            for (int n = 0; n < (MRT_SANITIZED ? 60 : 600); n++) {
                size_t bad_bytes = bytes;
                uint8_t *bad = damaged(file, &bad_bytes, &seed);
                damage_once(p, j, &d, bad, bad_bytes, &seed);
                free(bad);
            }
            free(file);
        }
    mri_decoder_free(&d);
    mri_progressive_destroy(p);
    mri_libjpeg_destroy(j);
}

/* Rows below the window are not read: damage there is not seen. */
static void nothing_below_the_window_is_read(void **state)
{
    (void)state;
    mri_progressive *p;
    const mri_jpeg_frame *f;
    mri_block_window w[4] = {{0}};
    size_t bytes;
    MRT_EQ(mri_progressive_create(&p), MR_OK);
    uint8_t *file = make(kinds[5], 5, 0, 64, 4000, 3, &bytes);
    MRT_EQ(mri_progressive_open(p, file, bytes, SCANS, &f, NULL), MR_OK);
    for (size_t at = bytes - 8; at > bytes - 400; at--) /* of the last scan */
        if (file[at] != 0xff && file[at - 1] != 0xff) file[at] = 0x7f;
    w[0] = (mri_block_window){0, 8, 0, f->component[0].blocks_high};
    MRT_EQ(mri_progressive_window(p, w, NULL), MR_EUNSUPPORTED);
    w[0].y1 = 20;
    MRT_EQ(mri_progressive_window(p, w, NULL), MR_OK);
    free(file);
    mri_progressive_destroy(p);
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    mri_progressive *p;
    const mri_jpeg_frame *f;
    mri_block_window w[4] = {{0}};
    size_t bytes;
    uint8_t *file = make(kinds[3], 0, 0, 100, 80, 3, &bytes);
    mrt_fail_alloc_at(0);
    MRT_EQ(mri_progressive_create(&p), MR_ENOMEM);
    mrt_fail_alloc_at(-1);
    MRT_EQ(mri_progressive_create(&p), MR_OK);
    MRT_EQ(mri_progressive_open(p, file, bytes, SCANS, &f, NULL), MR_OK);
    whole_window(f, w);
    for (int k = 0; k < 6; k++) { /* two buffers for each component */
        mrt_fail_alloc_at(k);
        MRT_EQ(mri_progressive_window(p, w, NULL), MR_ENOMEM);
        mrt_fail_alloc_at(-1);
        mri_progressive_release(p);
    }
    MRT_EQ(mri_progressive_window(p, w, NULL), MR_OK);
    free(file);
    mri_progressive_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_are_those_of_libjpeg),
        cmocka_unit_test(other_kinds_are_left_to_libjpeg),
        cmocka_unit_test(damage_is_judged_by_libjpeg),
        cmocka_unit_test(nothing_below_the_window_is_read),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return mrt_run(tests);
}
