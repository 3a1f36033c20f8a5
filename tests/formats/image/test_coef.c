/* Coefficient payloads: they round-trip in every variant and window; damage is reported, and no read passes
 * the end. */
#include "base/simd.h"
#include "base/util.h"
#include "formats/image/coef_layout.h"
#include "mrt.h"

static uint32_t ceil_div(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

/* ---- pictures of coefficients ---- */

typedef struct picture {
    mri_jpeg_frame frame;
    int16_t (*coef[3])[MRI_JPEG_BLOCK];
} picture;

static void frame_make(mri_jpeg_frame *f, uint32_t width, uint32_t height, mri_jpeg_colour colour,
                       const uint8_t (*sampling)[2])
{
    memset(f, 0, sizeof *f);
    f->width = width;
    f->height = height;
    f->colour = colour;
    f->orientation = 6;
    f->component_count = colour == MRI_JPEG_GRAY ? 1 : 3;
    for (uint32_t k = 0; k < f->component_count; k++) {
        f->component[k].h = sampling[k][0];
        f->component[k].v = sampling[k][1];
        f->h_max = f->h_max < sampling[k][0] ? sampling[k][0] : f->h_max;
        f->v_max = f->v_max < sampling[k][1] ? sampling[k][1] : f->v_max;
    }
    f->mcus_wide = ceil_div(width, 8 * f->h_max);
    f->mcus_high = ceil_div(height, 8 * f->v_max);
    for (uint32_t k = 0; k < f->component_count; k++) {
        mri_jpeg_component *c = &f->component[k];
        c->id = (uint8_t)(k + 1);
        c->width = ceil_div(width * c->h, f->h_max);
        c->height = ceil_div(height * c->v, f->v_max);
        c->blocks_wide = ceil_div(c->width, 8);
        c->blocks_high = ceil_div(c->height, 8);
        for (int j = 0; j < MRI_JPEG_BLOCK; j++) c->quant[j] = (uint16_t)((k ? 3 : 2) * j + 1);
    }
}

static int16_t coefficient(uint32_t r, unsigned kind)
{
    const int value = (int)(r >> 8 & 0xffff);
    switch (kind) {
    case 0: return 0;
    case 1: return (int16_t)(r % 4 ? 0 : value % 3 - 1);
    case 2: return (int16_t)(value % 17 - 8);
    case 3: return (int16_t)(value % 257 - 128);
    case 4: return (int16_t)(r % 5 ? value % 3 : value - 32768);
    default: return (int16_t)(r % 2 ? 32767 : -32768);
    }
}

/* Blocks of every kind: nothing but DC, thin, dense, larger than a nibble or a byte, all extremes; cut at any
 * position. */
static void coefficients_make(picture *p, uint64_t seed)
{
    for (uint32_t k = 0; k < p->frame.component_count; k++) {
        const mri_jpeg_component *c = &p->frame.component[k];
        const size_t blocks = (size_t)c->blocks_wide * c->blocks_high;
        p->coef[k] = mri_alloc_aligned(64, blocks * sizeof *p->coef[k]);
        assert_non_null(p->coef[k]);
        mrt_noise(p->coef[k], blocks * sizeof *p->coef[k], seed + k);
        for (size_t b = 0; b < blocks; b++) {
            uint32_t noise[MRI_JPEG_BLOCK + 1];
            mrt_noise(noise, sizeof noise, seed * 1000003 + k * 65537 + b);
            const unsigned kind = noise[64] % 6, end = noise[64] / 6 % 65;
            for (unsigned j = 1; j < MRI_JPEG_BLOCK; j++)
                p->coef[k][b][mri_jpeg_natural[j]] = j < end ? coefficient(noise[j], kind) : 0;
        }
    }
}

static void picture_free(picture *p)
{
    for (int k = 0; k < 3; k++) free(p->coef[k]);
    memset(p, 0, sizeof *p);
}

static void picture_pack(const picture *p, void **data, size_t *bytes)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_coef_pack(&p->frame, (const int16_t(*const *)[MRI_JPEG_BLOCK])p->coef, data, bytes, &err),
           &err);
}

static uint8_t last_of(const int16_t *coef)
{
    uint8_t last = 0;
    for (uint8_t j = 1; j < MRI_JPEG_BLOCK; j++)
        if (coef[mri_jpeg_natural[j]]) last = j;
    return last;
}

/* ---- reading windows ---- */

enum { GUARD_BLOCKS = 2 };

typedef struct rows {
    mri_block_rows out[MRI_JPEG_MAX_COMPONENTS];
    uint32_t blocks[MRI_JPEG_MAX_COMPONENTS];
} rows;

/* Space for v rows of the window's width, and guard blocks after it that must not change. */
static void rows_make(rows *r, const mri_jpeg_frame *f, const mri_block_window *w)
{
    memset(r, 0, sizeof *r);
    for (uint32_t k = 0; k < f->component_count; k++) {
        r->out[k].pitch = w[k].x1 - w[k].x0;
        r->blocks[k] = r->out[k].pitch * f->component[k].v;
        r->out[k].coef = mri_alloc_aligned(64, (r->blocks[k] + GUARD_BLOCKS) * sizeof *r->out[k].coef);
        r->out[k].last = malloc(r->blocks[k] + GUARD_BLOCKS);
        assert_non_null(r->out[k].coef);
        assert_non_null(r->out[k].last);
    }
}

static void rows_poison(rows *r)
{
    for (int k = 0; k < MRI_JPEG_MAX_COMPONENTS && r->out[k].coef; k++) {
        memset(r->out[k].coef, 0xa5, (r->blocks[k] + GUARD_BLOCKS) * sizeof *r->out[k].coef);
        memset(r->out[k].last, 0xa5, r->blocks[k] + GUARD_BLOCKS);
    }
}

static void rows_free(rows *r)
{
    for (int k = 0; k < MRI_JPEG_MAX_COMPONENTS; k++) {
        free(r->out[k].coef);
        free(r->out[k].last);
    }
}

static bool is_poison(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const uint8_t *)data)[i] != 0xa5) return false;
    return true;
}

/* Everything one call wrote against the picture, and that it wrote nothing else. */
static void rows_compare(const picture *p, const rows *r, const mri_block_window *w, uint32_t mcu_row)
{
    for (uint32_t k = 0; k < p->frame.component_count; k++) {
        const mri_jpeg_component *c = &p->frame.component[k];
        uint32_t written = 0;
        for (uint32_t y = mcu_row * c->v; y < (mcu_row + 1) * c->v; y++) {
            if (y < w[k].y0 || y >= w[k].y1) continue;
            for (uint32_t x = w[k].x0; x < w[k].x1; x++, written++) {
                const int16_t *want = p->coef[k][(size_t)y * c->blocks_wide + x];
                assert_memory_equal(r->out[k].coef[written], want, sizeof *p->coef[k]);
                MRT_EQ(r->out[k].last[written], last_of(want));
            }
        }
        MRT_TRUE(is_poison(r->out[k].coef[written],
                           (r->blocks[k] + GUARD_BLOCKS - written) * sizeof *r->out[k].coef));
        MRT_TRUE(is_poison(r->out[k].last + written, r->blocks[k] + GUARD_BLOCKS - written));
    }
}

static void window_check(const picture *p, const mri_coef *c, const mri_block_window *w)
{
    rows r;
    mr_error err = MR_ERROR_INIT;
    rows_make(&r, &c->frame, w);
    for (uint32_t y = 0; y < c->frame.mcus_high; y++) {
        rows_poison(&r);
        MRT_OK(mri_coef_rows(c, y, w, r.out, &err), &err);
        rows_compare(p, &r, w, y);
    }
    rows_free(&r);
}

static void windows_check(const picture *p, const mri_coef *c, uint64_t seed)
{
    for (uint64_t n = 0; n < 6; n++) {
        mri_block_window w[MRI_JPEG_MAX_COMPONENTS] = {{0}};
        for (uint32_t k = 0; k < c->frame.component_count; k++) {
            const uint32_t wide = c->frame.component[k].blocks_wide, high = c->frame.component[k].blocks_high;
            const mri_philox d = mri_philox4x32(seed, n, k);
            const uint32_t x = mri_below(d.v[0], wide), y = mri_below(d.v[1], high);
            w[k] = n == 0 ? (mri_block_window){0, wide, 0, high}
                          : (mri_block_window){x, x + mri_below(d.v[2], wide - x + 1), y,
                                               y + mri_below(d.v[3], high - y + 1)};
        }
        window_check(p, c, w);
    }
}

static const mri_simd_level levels[] = {MRI_SIMD_PLAIN, MRI_SIMD_AVX2, MRI_SIMD_AVX512, MRI_SIMD_NEON};

static const struct {
    uint32_t width, height;
    mri_jpeg_colour colour;
    uint8_t sampling[3][2];
} shapes[] = {
    {1, 1, MRI_JPEG_GRAY, {{1, 1}}},
    {8, 8, MRI_JPEG_GRAY, {{1, 1}}},
    {517, 30, MRI_JPEG_GRAY, {{1, 1}}},
    {100, 75, MRI_JPEG_YCC, {{2, 2}, {1, 1}, {1, 1}}},
    {33, 17, MRI_JPEG_YCC, {{2, 1}, {1, 1}, {1, 1}}},
    {130, 66, MRI_JPEG_YCC, {{1, 2}, {1, 1}, {1, 1}}},
    {90, 90, MRI_JPEG_RGB, {{1, 1}, {1, 1}, {1, 1}}},
    {200, 50, MRI_JPEG_YCC, {{4, 1}, {1, 1}, {2, 1}}},
    {61, 129, MRI_JPEG_YCC, {{3, 4}, {1, 2}, {3, 1}}},
};

/* Every level packs to these bytes. */
static void packs_alike(const picture *p, const void *want, size_t want_bytes)
{
    for (size_t l = 0; l < MRI_ARRAY_COUNT(levels); l++) {
        void *data;
        size_t bytes;
        if (!mri_simd_use(levels[l])) continue;
        picture_pack(p, &data, &bytes);
        MRT_EQ(bytes, want_bytes);
        assert_memory_equal(data, want, bytes);
        free(data);
    }
}

static void what_goes_in_comes_out(void **state)
{
    (void)state;
    for (size_t s = 0; s < MRI_ARRAY_COUNT(shapes); s++) {
        picture p = {0};
        void *data;
        size_t bytes;
        mri_coef c;
        mr_error err = MR_ERROR_INIT;
        frame_make(&p.frame, shapes[s].width, shapes[s].height, shapes[s].colour, shapes[s].sampling);
        coefficients_make(&p, 7 * s);
        MRT_TRUE(mri_simd_use(MRI_SIMD_PLAIN));
        picture_pack(&p, &data, &bytes);
        packs_alike(&p, data, bytes);
        MRT_OK(mri_coef_open(&c, data, bytes, &err), &err);
        for (uint32_t k = 0; k < p.frame.component_count; k++)
            c.frame.component[k].quant_table = 0; /* numbered anew */
        assert_memory_equal(&c.frame, &p.frame, sizeof p.frame);
        for (size_t l = 0; l < MRI_ARRAY_COUNT(levels); l++)
            if (mri_simd_use(levels[l])) windows_check(&p, &c, s);
        free(data);
        picture_free(&p);
    }
}

static void header_tells_what_is_stored(void **state)
{
    (void)state;
    picture p = {0};
    void *data;
    size_t bytes;
    mr_image_header h;
    mr_error err = MR_ERROR_INIT;
    frame_make(&p.frame, 200, 50, MRI_JPEG_YCC, shapes[3].sampling);
    coefficients_make(&p, 1);
    picture_pack(&p, &data, &bytes);
    MRT_OK(mri_coef_header(data, bytes, &h, &err), &err);
    MRT_EQ(h.type, MR_TYPE_COEF);
    MRT_EQ(h.width, 200);
    MRT_EQ(h.height, 50);
    MRT_EQ(h.channels, 3);
    MRT_EQ(h.bit_depth, 8);
    MRT_EQ(h.orientation, 6);
    MRT_EQ(mri_coef_header(data, 31, &h, &err), MR_EFORMAT);
    MRT_EQ(mri_coef_header("\xff\xd8\xff\xe0", 4, &h, &err), MR_EFORMAT);
    ((uint8_t *)data)[4] = 2;
    MRT_EQ(mri_coef_header(data, bytes, &h, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "layout 2");
    free(data);
    picture_free(&p);
}

static void other_kinds_are_refused(void **state)
{
    (void)state;
    picture p = {0};
    void *data;
    size_t bytes;
    mr_error err = MR_ERROR_INIT;
    frame_make(&p.frame, 16, 16, MRI_JPEG_YCC, shapes[6].sampling);
    coefficients_make(&p, 1);
    p.frame.colour = MRI_JPEG_OTHER;
    MRT_EQ(mri_coef_pack(&p.frame, (const int16_t(*const *)[MRI_JPEG_BLOCK])p.coef, &data, &bytes, &err),
           MR_EUNSUPPORTED);
    MRT_TRUE(data == NULL && bytes == 0);
    p.frame.colour = MRI_JPEG_CMYK;
    p.frame.component_count = 4;
    MRT_EQ(mri_coef_pack(&p.frame, (const int16_t(*const *)[MRI_JPEG_BLOCK])p.coef, &data, &bytes, &err),
           MR_EUNSUPPORTED);
    picture_free(&p);
}

/* The example of formats/record/FORMAT.md: lines "OFFSET  16 bytes" of four and two digits, the table of
 * ones, zeros behind. */
enum { EXAMPLE_BYTES = 307 };

static void example_read(uint8_t out[EXAMPLE_BYTES])
{
    char path[1024], line[512];
    int lines = 0;
    memset(out, 0, EXAMPLE_BYTES);
    for (int j = 0; j < MRI_JPEG_BLOCK; j++) out[MRI_COEF_HEAD + 2 * j] = 1;
    snprintf(path, sizeof path, "%s/formats/record/FORMAT.md", getenv("MRT_SOURCE_DIR"));
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        char *end;
        const unsigned long at = strtoul(line, &end, 16);
        if (end != line + 4 || strncmp(end, "  ", 2) != 0 || at % 16 != 0 || at + 16 > EXAMPLE_BYTES)
            continue;
        for (unsigned long k = 0; k < 16 && *end != '\n'; k++) out[at + k] = (uint8_t)strtoul(end, &end, 16);
        lines++;
    }
    fclose(f);
    MRT_EQ(lines, 4);
}

static void example_is_what_we_write_and_read(void **state)
{
    (void)state;
    uint8_t example[EXAMPLE_BYTES];
    picture p = {0};
    void *data;
    size_t bytes;
    mri_coef c;
    mr_error err = MR_ERROR_INIT;
    example_read(example);
    frame_make(&p.frame, 8, 8, MRI_JPEG_GRAY, shapes[0].sampling);
    p.frame.orientation = 1;
    for (int j = 0; j < MRI_JPEG_BLOCK; j++) p.frame.component[0].quant[j] = 1;
    p.coef[0] = mri_alloc_aligned(64, sizeof *p.coef[0]);
    memset(p.coef[0], 0, sizeof *p.coef[0]);
    p.coef[0][0][0] = -3;
    p.coef[0][0][mri_jpeg_natural[1]] = 100;
    p.coef[0][0][mri_jpeg_natural[2]] = 300;
    p.coef[0][0][mri_jpeg_natural[3]] = -2;
    picture_pack(&p, &data, &bytes);
    MRT_EQ(bytes, EXAMPLE_BYTES);
    assert_memory_equal(data, example, bytes);
    MRT_OK(mri_coef_open(&c, example, bytes, &err), &err);
    windows_check(&p, &c, 1);
    free(data);
    picture_free(&p);
}

/* ---- damage ---- */

/* Open and read everything of a copy that ends where its memory ends; returns the result of the first failing
 * step. */
static int read_all(const uint8_t *data, size_t bytes, mri_simd_level level)
{
    uint8_t *copy = malloc(bytes ? bytes : 1);
    mri_coef c;
    mr_error err = MR_ERROR_INIT;
    rows r = {0};
    mri_simd_use(level);
    memcpy(copy, data, bytes);
    int rc = mri_coef_open(&c, copy, bytes, &err);
    if (rc == MR_OK && (uint64_t)c.frame.width * c.frame.height < 1 << 20) {
        mri_block_window w[MRI_JPEG_MAX_COMPONENTS] = {{0}};
        for (uint32_t k = 0; k < c.frame.component_count; k++)
            w[k] =
                (mri_block_window){0, c.frame.component[k].blocks_wide, 0, c.frame.component[k].blocks_high};
        rows_make(&r, &c.frame, w);
        for (uint32_t y = 0; rc == MR_OK && y < c.frame.mcus_high; y++)
            rc = mri_coef_rows(&c, y, w, r.out, &err);
        rows_free(&r);
    }
    MRT_TRUE(rc == MR_OK || err.text[0]);
    free(copy);
    return rc;
}

static void damage_is_reported_and_never_followed(void **state)
{
    (void)state;
    picture p = {0};
    uint8_t *data;
    size_t bytes, reported = 0;
    frame_make(&p.frame, 40, 24, MRI_JPEG_YCC, shapes[3].sampling);
    coefficients_make(&p, 3);
    picture_pack(&p, (void **)&data, &bytes);
    for (size_t at = 0; at < bytes; at++) {
        for (int bit = 0; bit < 8; bit += 1 + (at > 400)) {
            data[at] ^= (uint8_t)(1u << bit);
            const int want = read_all(data, bytes, MRI_SIMD_PLAIN);
            MRT_TRUE(want == MR_OK || want == MR_EFORMAT || want == MR_EUNSUPPORTED);
            for (size_t l = 1; l < MRI_ARRAY_COUNT(levels); l++)
                if (mri_simd_available(levels[l])) MRT_EQ(read_all(data, bytes, levels[l]), want);
            reported += want != MR_OK;
            data[at] ^= (uint8_t)(1u << bit);
        }
    }
    MRT_TRUE(reported > bytes / 2); /* values may change unnoticed, lengths and maps may not */
    for (size_t cut = 0; cut < bytes; cut++) MRT_EQ(read_all(data, cut, levels[cut % 3]), MR_EFORMAT);
    MRT_EQ(read_all(data, bytes, MRI_SIMD_PLAIN), MR_OK);
    free(data);
    picture_free(&p);
}

static void changed_length_is_reported(void **state)
{
    (void)state;
    picture p = {0};
    uint8_t *data;
    size_t bytes;
    frame_make(&p.frame, 64, 8, MRI_JPEG_GRAY, shapes[0].sampling);
    coefficients_make(&p, 11);
    picture_pack(&p, (void **)&data, &bytes);
    uint8_t *lengths = data + MRI_COEF_HEAD + MRI_COEF_TABLE_BYTES + 8;
    for (int x = 0; x + 1 < 8; x++) { /* the sum stays: only the blocks themselves can tell */
        if (lengths[x] == lengths[x + 1] || lengths[x] == 0) continue;
        lengths[x]--, lengths[x + 1]++;
        for (size_t l = 0; l < MRI_ARRAY_COUNT(levels); l++)
            if (mri_simd_available(levels[l])) MRT_EQ(read_all(data, bytes, levels[l]), MR_EFORMAT);
        lengths[x]++, lengths[x + 1]--;
    }
    free(data);
    picture_free(&p);
}

static void no_memory_is_reported(void **state)
{
    (void)state;
    picture p = {0};
    frame_make(&p.frame, 300, 200, MRI_JPEG_RGB, shapes[6].sampling);
    coefficients_make(&p, 5);
    int failed = 0;
    for (int n = 0;; n++) {
        void *data = &p;
        size_t bytes;
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        const int rc =
            mri_coef_pack(&p.frame, (const int16_t(*const *)[MRI_JPEG_BLOCK])p.coef, &data, &bytes, &err);
        const bool refused = mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        if (!refused) {
            MRT_OK(rc, &err);
            free(data);
            break;
        }
        failed++;
        if (rc == MR_OK) free(data); /* shrinking the buffer may fail without harm */
        else MRT_TRUE(rc == MR_ENOMEM && data == NULL);
    }
    MRT_TRUE(failed >= 2);
    picture_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out),
        cmocka_unit_test(header_tells_what_is_stored),
        cmocka_unit_test(example_is_what_we_write_and_read),
        cmocka_unit_test(other_kinds_are_refused),
        cmocka_unit_test(damage_is_reported_and_never_followed),
        cmocka_unit_test(changed_length_is_reported),
        cmocka_unit_test(no_memory_is_reported),
    };
    return mrt_run(tests);
}
