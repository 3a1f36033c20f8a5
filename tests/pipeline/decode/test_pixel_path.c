/* pixel_path: a JPEG's pixels are the same for every source of its coefficients and every instruction set,
 * and close to libjpeg's; parts, boxes, flips and orientations mean the same as for any picture. */
#include <stdio.h>

#include <jpeglib.h>

#include "base/simd.h"
#include "base/util.h"
#include "formats/image/coef.h"
#include "mrt.h"
#include "pipeline/decode/decoders.h"
#include "pipeline/decode/jpeg/entropy.h"
#include "pipeline/decode/jpeg/libjpeg_coef.h"
#include "tests/pipeline/pictures.h"

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    return mri_below((uint32_t)((*state = mri_mix64(*state)) >> 32), n);
}

static mr_decode_config config_of(mr_pixels pixels)
{
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.pixels = pixels;
    return cfg;
}

typedef struct job {
    mri_axis x, y;
    mri_filter filter;
    bool flip;
    uint32_t channels;
} job;

static mri_axis random_axis(uint64_t *seed, uint32_t side)
{
    const uint32_t size = 1 + random_below(seed, side);
    mri_axis a = mri_axis_of(side, random_below(seed, side - size + 1), size, 1 + random_below(seed, 60));
    a.count = 1 + random_below(seed, a.out);
    a.first = random_below(seed, a.out - a.count + 1);
    return a;
}

static job random_job(uint64_t *seed, uint32_t width, uint32_t height)
{
    return (job){random_axis(seed, width), random_axis(seed, height),
                 random_below(seed, 2) ? MRI_FILTER_BICUBIC : MRI_FILTER_BILINEAR, random_below(seed, 2),
                 random_below(seed, 3) ? 3 : 1};
}

/* The same, reduced to an eighth or less in both directions where the picture has 8 pixels. */
static job reduced_job(uint64_t *seed, uint32_t width, uint32_t height)
{
    job j = random_job(seed, width, height);
    mri_axis *const axis[2] = {&j.x, &j.y};
    for (int k = 0; k < 2; k++) {
        const uint32_t side = k ? height : width, least = side < 8 ? side : 8;
        const uint32_t size = least + random_below(seed, side - least + 1);
        *axis[k] = mri_axis_of(side, random_below(seed, side - size + 1), size,
                               size < 8 ? 1 : 1 + random_below(seed, size / 8));
    }
    return j;
}

/* The job's result; malloc'd. */
static uint8_t *run(mri_decoder *d, const mr_value *value, mr_pixels pixels, const job *j,
                    mri_decode_method decode_method)
{
    const mr_decode_config cfg = config_of(pixels);
    mri_picture p;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_picture_open(&p, d, value, &cfg, &err), &err);
    MRT_EQ(p.decode_method, decode_method);
    uint8_t *out = malloc((size_t)j->x.count * j->y.count * j->channels);
    MRT_OK(mri_picture_resample(d, &p, &cfg, j->channels, &j->x, &j->y, j->filter, j->flip, out, &err), &err);
    return out;
}

static job whole_job(uint32_t width, uint32_t height, uint32_t channels)
{
    return (job){mri_axis_of(width, 0, width, width), mri_axis_of(height, 0, height, height),
                 MRI_FILTER_BILINEAR, false, channels};
}

static size_t job_bytes(const job *j) { return (size_t)j->x.count * j->y.count * j->channels; }

static double mean_difference(const uint8_t *a, const uint8_t *b, size_t bytes, int *most)
{
    uint64_t sum = 0;
    *most = 0;
    for (size_t k = 0; k < bytes; k++) {
        const int d = abs(a[k] - b[k]);
        sum += (uint64_t)d;
        if (d > *most) *most = d;
    }
    return (double)sum / (double)bytes;
}

/* ---- the same coefficients, brought in other ways ---- */

/* The picture as another kind of JPEG file with the same coefficients; malloc'd by libjpeg. */
static uint8_t *recode(const uint8_t *data, size_t bytes, bool progressive, bool arithmetic,
                       unsigned long *out_bytes)
{
    struct jpeg_decompress_struct d;
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    uint8_t *out = NULL;
    *out_bytes = 0;
    d.err = c.err = jpeg_std_error(&e);
    jpeg_create_decompress(&d);
    jpeg_create_compress(&c);
    jpeg_mem_src(&d, data, bytes);
    jpeg_read_header(&d, TRUE);
    jvirt_barray_ptr *coef = jpeg_read_coefficients(&d);
    jpeg_copy_critical_parameters(&d, &c);
    jpeg_mem_dest(&c, &out, out_bytes);
    if (progressive) jpeg_simple_progression(&c);
    c.arith_code = arithmetic;
    c.optimize_coding = !arithmetic;
    jpeg_write_coefficients(&c, coef);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    jpeg_destroy_decompress(&d);
    return out;
}

static void *pack(const uint8_t *data, size_t bytes, size_t *out_bytes)
{
    mri_entropy *e;
    const mri_jpeg_frame *f;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_entropy_create(&e), MR_OK);
    MRT_OK(mri_entropy_open(e, data, bytes, NULL, 0, &f, &err), &err);
    mri_block_window window[MRI_JPEG_MAX_COMPONENTS] = {{0}};
    int16_t(*all[MRI_JPEG_MAX_COMPONENTS])[MRI_JPEG_BLOCK] = {0};
    uint8_t *last = malloc(1 << 16);
    for (uint32_t c = 0; c < f->component_count; c++) {
        const mri_jpeg_component *k = &f->component[c];
        window[c] = (mri_block_window){0, k->blocks_wide, 0, k->blocks_high};
        all[c] = mri_alloc_aligned(64, (size_t)k->blocks_wide * (k->blocks_high + 4) * sizeof **all);
    }
    MRT_OK(mri_entropy_window(e, window, &err), &err);
    for (uint32_t m = 0; m < f->mcus_high; m++) {
        mri_block_rows rows[MRI_JPEG_MAX_COMPONENTS] = {{0}};
        for (uint32_t c = 0; c < f->component_count; c++) {
            const mri_jpeg_component *k = &f->component[c];
            rows[c] = (mri_block_rows){all[c] + (size_t)m * k->v * k->blocks_wide, last, k->blocks_wide};
        }
        MRT_OK(mri_entropy_rows(e, m, rows, &err), &err);
    }
    MRT_OK(mri_entropy_end(e, &err), &err);
    void *out;
    MRT_OK(mri_coef_pack(f, (const int16_t(*const *)[MRI_JPEG_BLOCK])all, &out, out_bytes, &err), &err);
    for (uint32_t c = 0; c < f->component_count; c++) free(all[c]);
    free(last);
    mri_entropy_destroy(e);
    return out;
}

static void compare_sources(const mrt_jpeg_kind *kind, uint32_t width, uint32_t height, uint64_t seed)
{
    enum { BASE, ENTRIES, PROGRESSIVE, ARITHMETIC, RECORD, SOURCES };
    size_t bytes, entries_bytes, record_bytes;
    unsigned long progressive_bytes, arithmetic_bytes;
    uint8_t *base = mrt_jpeg(kind, width, height, seed, &bytes);
    uint8_t *progressive = recode(base, bytes, true, false, &progressive_bytes);
    uint8_t *arithmetic = recode(base, bytes, false, true, &arithmetic_bytes);
    void *record = pack(base, bytes, &record_bytes), *entries;
    mri_entropy *e;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_entropy_create(&e), MR_OK);
    MRT_OK(mri_jpeg_entries_build(e, base, bytes, &entries, &entries_bytes, &err), &err);
    mri_entropy_destroy(e);

    mr_value value[SOURCES] = {[BASE] = mrt_encoded(base, bytes),
                               [ENTRIES] = mrt_encoded(base, bytes),
                               [PROGRESSIVE] = mrt_encoded(progressive, progressive_bytes),
                               [ARITHMETIC] = mrt_encoded(arithmetic, arithmetic_bytes),
                               [RECORD] = {.type = MR_TYPE_COEF, .data = record, .bytes = record_bytes}};
    value[ENTRIES].entries = entries;
    value[ENTRIES].entries_bytes = entries_bytes;
    mri_decoder d = {0};
    for (int n = 0; n < 30; n++) {
        const mr_pixels pixels = n < 20 ? MR_PIXELS_OWN : MR_PIXELS_REDUCED;
        const job j = n == 0   ? whole_job(width, height, 3)
                      : n < 20 ? random_job(&seed, width, height)
                               : reduced_job(&seed, width, height);
        uint8_t *first = run(&d, &value[BASE], pixels, &j, MRI_DECODE_PIXEL_PATH);
        for (int s = 1; s < SOURCES; s++) {
            uint8_t *other = run(&d, &value[s], pixels, &j, MRI_DECODE_PIXEL_PATH);
            if (memcmp(first, other, job_bytes(&j)) != 0)
                fail_msg("%u x %u, sampling %d x %d, source %d, job %d: pixels differ", width, height,
                         kind->h, kind->v, s, n);
            free(other);
        }
        free(first);
    }
    mri_decoder_free(&d);
    free(base);
    free(progressive);
    free(arithmetic);
    free(record);
    free(entries);
}

static const mrt_jpeg_kind kinds[] = {
    {.h = 1, .v = 1, .components = 3},
    {.h = 2, .v = 1, .components = 3},
    {.h = 1, .v = 2, .components = 3},
    {.h = 2, .v = 2, .components = 3},
    {.h = 4, .v = 1, .components = 3},
    {.h = 2, .v = 2, .components = 3, .restart_rows = 1},
    {.h = 2, .v = 2, .components = 3, .quality = 20},
    {.components = 1},
    {.h = 2, .v = 2, .components = 1},
};

static void sources_agree(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1}, {7, 9}, {16, 16}, {65, 33}, {150, 211}, {301, 90}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++)
        for (size_t s = 0; s < MRI_ARRAY_COUNT(sizes); s++)
            compare_sources(&kinds[k], sizes[s][0], sizes[s][1], 100 * k + s);
}

static void instruction_sets_agree(void **state)
{
    (void)state;
    const mri_simd_level before = mri_simd();
    uint64_t seed = 3;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        size_t bytes;
        uint8_t *file = mrt_jpeg(&kinds[k], 331, 270, k, &bytes);
        const mr_value value = mrt_encoded(file, bytes);
        for (int n = 0; n < 30; n++) {
            const mr_pixels pixels = n < 20 ? MR_PIXELS_OWN : MR_PIXELS_REDUCED;
            const job j = n < 20 ? random_job(&seed, 331, 270) : reduced_job(&seed, 331, 270);
            uint8_t *first = NULL;
            for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++) {
                if (!mri_simd_use((mri_simd_level)level)) continue;
                mri_decoder d = {0};
                uint8_t *out = run(&d, &value, pixels, &j, MRI_DECODE_PIXEL_PATH);
                mri_decoder_free(&d);
                if (first && memcmp(first, out, job_bytes(&j)) != 0)
                    fail_msg("%s differs from plain: kind %zu, job %d", mri_simd_name((mri_simd_level)level),
                             k, n);
                if (first) free(out);
                else first = out;
            }
            free(first);
        }
        free(file);
    }
    mri_simd_use(before);
}

/* ---- reduced ---- */

/* Means of blocks of 8 x 8 samples of plain libjpeg's picture, resampled as a picture of that size. */
static void reduced_gray_is_resampled_from_means(void **state)
{
    (void)state;
    enum { SIDE = 8 * 40 };
    const mrt_jpeg_kind kind = {.components = 1};
    size_t bytes;
    uint8_t *file = mrt_jpeg(&kind, SIDE, SIDE, 5, &bytes), *plain = mrt_plain_decode(file, bytes, 1);
    uint8_t means[40 * 40], expected[10 * 10];
    for (uint32_t k = 0; k < sizeof means; k++) {
        uint32_t sum = 32;
        for (uint32_t y = 0; y < 8; y++)
            for (uint32_t x = 0; x < 8; x++) sum += plain[(k / 40 * 8 + y) * SIDE + k % 40 * 8 + x];
        means[k] = (uint8_t)(sum / 64);
    }
    const mr_value value = mrt_encoded(file, bytes);
    const mri_view view = mri_view_packed(means, 40, 40, 1);
    const mri_axis axis = mri_axis_of(40, 8, 24, 10);
    const job j = {.x = mri_axis_of(SIDE, 64, 192, 10),
                   .y = mri_axis_of(SIDE, 64, 192, 10),
                   .filter = MRI_FILTER_BILINEAR,
                   .channels = 1};
    mri_decoder d = {0};
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_view_resample(&d, &view, 0, 0, &axis, &axis, j.filter, false, expected, &err), &err);
    uint8_t *ours = run(&d, &value, MR_PIXELS_REDUCED, &j, MRI_DECODE_PIXEL_PATH);
    int most;
    mean_difference(ours, expected, sizeof expected, &most);
    if (most > 1) fail_msg("a difference of %d from the means", most);
    free(ours);
    free(file);
    free(plain);
    mri_decoder_free(&d);
}

/* Near our usual pixels; and the same where one direction is reduced to more than an eighth. */
static void reduced_pixels_are_close_to_ours(void **state)
{
    (void)state;
    uint64_t seed = 17;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        size_t bytes;
        uint8_t *file = mrt_jpeg(&kinds[k], 613, 404, 31 + k, &bytes);
        const mr_value value = mrt_encoded(file, bytes);
        mri_decoder d = {0};
        double sum = 0, values = 0;
        for (int n = 0; n < 20; n++) {
            job j = reduced_job(&seed, 613, 404);
            j.filter = MRI_FILTER_BILINEAR;
            if (n % 2) { /* one more result pixel than an eighth */
                mri_axis *a = n % 4 == 1 ? &j.x : &j.y;
                *a = mri_axis_of(a->samples, a->start, a->size, a->size / 8 + 1);
            }
            uint8_t *reduced = run(&d, &value, MR_PIXELS_REDUCED, &j, MRI_DECODE_PIXEL_PATH),
                    *ours = run(&d, &value, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH);
            int most;
            const double mean = mean_difference(reduced, ours, job_bytes(&j), &most);
            if (n % 2 && most > 0) fail_msg("kind %zu, job %d: a difference of %d", k, n, most);
            sum += n % 2 ? 0 : mean * (double)job_bytes(&j);
            values += n % 2 ? 0 : (double)job_bytes(&j);
            free(reduced);
            free(ours);
        }
        print_message("kind %zu: mean difference %.2f\n", k, sum / values);
        const bool coarse = kinds[k].components != 1 && kinds[k].h * kinds[k].v > 1; /* chroma */
        if (sum > (coarse ? 10 : 4) * values) fail_msg("kind %zu: too far from our usual pixels", k);
        mri_decoder_free(&d);
        free(file);
    }
}

/* ---- against libjpeg ---- */

static void whole_pictures_are_close_to_libjpeg(void **state)
{
    (void)state;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        mrt_jpeg_kind kind = kinds[k];
        if (!kind.quality) kind.quality = 90;
        size_t bytes;
        uint8_t *file = mrt_jpeg(&kind, 211, 155, 7 + k, &bytes), *theirs = mrt_plain_decode(file, bytes, 3);
        const mr_value value = mrt_encoded(file, bytes);
        const job j = whole_job(211, 155, 3);
        mri_decoder d = {0};
        uint8_t *ours = run(&d, &value, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH);
        int most;
        const double mean = mean_difference(ours, theirs, job_bytes(&j), &most);
        print_message("sampling %d x %d, %d components: mean difference %.3f, most %d\n", kind.h, kind.v,
                      kind.components, mean, most);
        const bool full = kind.components == 1 || (kind.h <= 1 && kind.v <= 1);
        const bool smooth = kind.h <= 2 && kind.v <= 2; /* libjpeg repeats chroma that is coarser */
        if (smooth && (mean > (full ? 0.1 : 0.4) || most > 3)) fail_msg("too far from libjpeg");
        free(ours);
        free(theirs);
        mri_decoder_free(&d);
        free(file);
    }
}

static void boxes_are_close_to_libjpeg(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        size_t bytes;
        uint8_t *file = mrt_jpeg(&kinds[k], 320, 240, 70 + k, &bytes);
        const mr_value value = mrt_encoded(file, bytes);
        mri_decoder d = {0};
        double worst = 0;
        for (int n = 0; n < 10; n++) {
            job j = random_job(&seed, 320, 240);
            j.x.size = j.y.size = 100; /* a box small enough for chroma's own grid to show would differ at its
                                          rim */
            j.x.start = random_below(&seed, 110) * 2;
            j.y.start = random_below(&seed, 70) * 2;
            uint8_t *ours = run(&d, &value, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH);
            uint8_t *theirs = run(&d, &value, MR_PIXELS_LIBJPEG, &j, MRI_DECODE_LIBJPEG);
            int most;
            const double mean = mean_difference(ours, theirs, job_bytes(&j), &most);
            if (mean > worst) worst = mean;
            if (mean > 8) fail_msg("kind %zu, job %d: mean difference %.3f", k, n, mean);
            free(ours);
            free(theirs);
        }
        print_message("sampling %d x %d, %d components: worst mean difference %.3f\n", kinds[k].h, kinds[k].v,
                      kinds[k].components, worst);
        mri_decoder_free(&d);
        free(file);
    }
}

/* ---- geometry ---- */

static void parts_are_parts_of_the_whole(void **state)
{
    (void)state;
    uint64_t seed = 21;
    const mr_decode_config cfg = config_of(MR_PIXELS_OWN);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        size_t bytes;
        uint8_t *file = mrt_jpeg(&kinds[k], 130, 97, 40 + k, &bytes);
        const mr_value value = mrt_encoded(file, bytes);
        const job j = whole_job(130, 97, 3);
        mri_decoder d = {0};
        uint8_t *whole = run(&d, &value, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH);
        for (int n = 0; n < 30; n++) {
            mri_rect r = {.width = 1 + random_below(&seed, 130), .height = 1 + random_below(&seed, 97)};
            r.x = random_below(&seed, 130 - r.width + 1);
            r.y = random_below(&seed, 97 - r.height + 1);
            mri_picture p;
            mri_view v;
            mr_error err = MR_ERROR_INIT;
            MRT_OK(mri_picture_open(&p, &d, &value, &cfg, &err), &err);
            MRT_OK(mri_picture_decode(&d, &p, &cfg, 3, r, &v, &err), &err);
            for (uint32_t y = 0; y < r.height; y++)
                assert_memory_equal(v.pixels + y * v.stride, whole + ((size_t)(r.y + y) * 130 + r.x) * 3,
                                    3 * (size_t)r.width);
        }
        free(whole);
        mri_decoder_free(&d);
        free(file);
    }
}

static void flip_is_the_mirror_image(void **state)
{
    (void)state;
    uint64_t seed = 31;
    size_t bytes;
    uint8_t *file = mrt_jpeg(&kinds[3], 130, 97, 3, &bytes);
    const mr_value value = mrt_encoded(file, bytes);
    mri_decoder d = {0};
    for (int n = 0; n < 20; n++) {
        job j = random_job(&seed, 130, 97);
        j.flip = false;
        uint8_t *straight = run(&d, &value, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH);
        j.flip = true;
        uint8_t *flipped = run(&d, &value, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH);
        for (uint32_t y = 0; y < j.y.count; y++)
            for (uint32_t x = 0; x < j.x.count; x++)
                assert_memory_equal(straight + (y * j.x.count + x) * j.channels,
                                    flipped + (y * j.x.count + j.x.count - 1 - x) * j.channels, j.channels);
        free(straight);
        free(flipped);
    }
    mri_decoder_free(&d);
    free(file);
}

/* A box of the upright picture is the turned box of the stored one. */
static void orientations_turn_the_result(void **state)
{
    (void)state;
    uint64_t seed = 41;
    for (int orientation = 1; orientation <= 8; orientation++) {
        const mrt_jpeg_kind kind = {
            .h = 2, .v = 1, .components = 3, .orientation = orientation, .quality = 90};
        const uint32_t stored_w = 90, stored_h = 61;
        const bool swap = orientation >= 5;
        const uint32_t w = swap ? stored_h : stored_w, h = swap ? stored_w : stored_h;
        size_t bytes;
        uint8_t *file = mrt_jpeg(&kind, stored_w, stored_h, 9, &bytes);
        const mr_value value = mrt_encoded(file, bytes);
        mr_decode_config as_stored = config_of(MR_PIXELS_OWN);
        as_stored.ignore_exif = true;
        mri_decoder d = {0};
        for (int n = 0; n < 20; n++) {
            job j = random_job(&seed, w, h);
            j.flip = false;
            j.x.first = j.y.first = 0;
            j.x.count = j.x.out;
            j.y.count = j.y.out;
            uint8_t *upright = run(&d, &value, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH);

            const mri_rect r = mri_orient_rect((mri_rect){j.x.start, j.y.start, j.x.size, j.y.size},
                                               (uint32_t)orientation, stored_w, stored_h);
            const mri_axis x = mri_axis_of(stored_w, r.x, r.width, swap ? j.y.out : j.x.out);
            const mri_axis y = mri_axis_of(stored_h, r.y, r.height, swap ? j.x.out : j.y.out);
            uint8_t *stored = malloc(job_bytes(&j)), *turned = malloc(job_bytes(&j));
            mri_picture p;
            mr_error err = MR_ERROR_INIT;
            MRT_OK(mri_picture_open(&p, &d, &value, &as_stored, &err), &err);
            MRT_OK(
                mri_picture_resample(&d, &p, &as_stored, j.channels, &x, &y, j.filter, false, stored, &err),
                &err);
            const mri_view view = {.pixels = stored,
                                   .width = x.count,
                                   .height = y.count,
                                   .channels = j.channels,
                                   .stride = (size_t)x.count * j.channels};
            mri_orient(&view, (uint32_t)orientation, turned);
            if (memcmp(upright, turned, job_bytes(&j)) != 0)
                fail_msg("orientation %d, job %d", orientation, n);
            j.flip = true;
            uint8_t *flipped = run(&d, &value, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH);
            for (uint32_t row = 0; row < j.y.count; row++)
                for (uint32_t k = 0; k < j.x.count; k++)
                    assert_memory_equal(flipped + (row * j.x.count + k) * j.channels,
                                        upright + (row * j.x.count + j.x.count - 1 - k) * j.channels,
                                        j.channels);
            free(flipped);
            free(upright);
            free(stored);
            free(turned);
        }
        mri_decoder_free(&d);
        free(file);
    }
}

/* libjpeg accepts a Huffman table after the scan, and our decoder cannot know of it before it gets there. */
static void what_is_odd_at_the_end_is_left_to_libjpeg(void **state)
{
    (void)state;
    static const uint8_t table[] = {0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    size_t bytes;
    uint8_t *file = mrt_jpeg(&kinds[3], 75, 51, 5, &bytes), *odd = malloc(bytes + sizeof table);
    memcpy(odd, file, bytes - 2);
    memcpy(odd + bytes - 2, table, sizeof table);
    memcpy(odd + bytes - 2 + sizeof table, file + bytes - 2, 2);
    const mr_value value = mrt_encoded(file, bytes), other = mrt_encoded(odd, bytes + sizeof table);

    mri_entropy *e;
    const mri_jpeg_frame *f;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_entropy_create(&e), MR_OK);
    MRT_OK(mri_entropy_open(e, odd, bytes + sizeof table, NULL, 0, &f, &err), &err);
    mri_entropy_destroy(e);

    mri_decoder d = {0};
    const job j = whole_job(75, 51, 3);
    uint8_t *a = run(&d, &value, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH),
            *b = run(&d, &other, MR_PIXELS_OWN, &j, MRI_DECODE_PIXEL_PATH);
    assert_memory_equal(a, b, job_bytes(&j));
    assert_non_null(d.libjpeg); /* it was asked */
    free(a);
    free(b);
    free(file);
    free(odd);
    mri_decoder_free(&d);
}

static void no_memory_is_reported_and_survived(void **state)
{
    (void)state;
    size_t bytes;
    uint8_t *file = mrt_jpeg(&kinds[3], 130, 97, 3, &bytes);
    const mr_value value = mrt_encoded(file, bytes);
    const mr_decode_config cfg = config_of(MR_PIXELS_OWN);
    const job j = whole_job(130, 97, 3);
    uint8_t *out = malloc(job_bytes(&j));
    int rc = MR_ENOMEM;
    for (int n = 0; rc == MR_ENOMEM; n++) {
        mri_decoder d = {0};
        mri_picture p;
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        rc = mri_picture_open(&p, &d, &value, &cfg, &err);
        if (rc == MR_OK) rc = mri_picture_resample(&d, &p, &cfg, 3, &j.x, &j.y, j.filter, false, out, &err);
        mrt_fail_alloc_at(-1);
        if (rc != MR_OK) MRT_EQ(rc, MR_ENOMEM);
        mri_decoder_free(&d);
        if (n > 100) fail_msg("never gets through");
    }
    MRT_EQ(rc, MR_OK);
    free(out);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_agree),
        cmocka_unit_test(reduced_gray_is_resampled_from_means),
        cmocka_unit_test(reduced_pixels_are_close_to_ours),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(whole_pictures_are_close_to_libjpeg),
        cmocka_unit_test(boxes_are_close_to_libjpeg),
        cmocka_unit_test(parts_are_parts_of_the_whole),
        cmocka_unit_test(flip_is_the_mirror_image),
        cmocka_unit_test(orientations_turn_the_result),
        cmocka_unit_test(what_is_odd_at_the_end_is_left_to_libjpeg),
        cmocka_unit_test(no_memory_is_reported_and_survived),
    };
    return mrt_run(tests);
}
