/* tests/fuzz/pictures/fuzz_coef.c: any bytes offered as a coefficient payload, and any coefficients through
 * pack and back.
 *
 * The first byte says which:
 *   0, mod 3   the rest is a payload
 *   1          size, sampling and window, then the content of the rows: head, index and slack are made around
 *              them, so that the loops see every kind of block without the head having to be guessed
 *   2          the same numbers, then coefficients: packed and read again they are the same
 * In all of them every variant must say the same, write the same blocks, and write nothing else. */
#include <stdlib.h>
#include <string.h>

#include "base/simd.h"
#include "base/util.h"
#include "formats/image/coef_layout.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_BLOCKS = 64, NUMBERS = 10, LEVELS = 3 };

static const mri_simd_level levels[LEVELS] = {MRI_SIMD_PLAIN, MRI_SIMD_AVX2, MRI_SIMD_AVX512};

typedef struct reading {
    int rc;
    int16_t *coef;
    uint8_t *last;
    size_t blocks;
} reading;

/* What one variant reads of one component's window; memory of exactly the size that may be written. */
static reading read_window(const mri_coef *c, uint32_t component, mri_block_window w, mri_simd_level level)
{
    reading r = {.blocks = (size_t)(w.x1 - w.x0) * c->frame.component[component].v};
    mri_block_window windows[MRI_JPEG_MAX_COMPONENTS] = {{0}};
    mri_block_rows out[MRI_JPEG_MAX_COMPONENTS] = {{0}};
    mr_error err = MR_ERROR_INIT;
    r.coef = mri_alloc_aligned(64, r.blocks * 2 * MRI_JPEG_BLOCK + 64);
    r.last = malloc(r.blocks + 1);
    if (!r.coef || !r.last) abort();
    memset(r.coef, 0x5a, r.blocks * 2 * MRI_JPEG_BLOCK + 64);
    memset(r.last, 0x5a, r.blocks + 1);
    windows[component] = w;
    out[component] = (mri_block_rows){(int16_t(*)[MRI_JPEG_BLOCK])(void *)r.coef, r.last, w.x1 - w.x0};
    mri_simd_use(level);
    for (uint32_t y = 0; y < c->frame.mcus_high && r.rc == MR_OK; y++)
        r.rc = mri_coef_rows(c, y, windows, out, &err);
    if (r.rc != MR_OK && (r.rc != MR_EFORMAT || !err.text[0])) abort();
    if (r.last[r.blocks] != 0x5a || ((uint8_t *)r.coef)[r.blocks * 2 * MRI_JPEG_BLOCK] != 0x5a) abort();
    for (size_t b = 0; b < r.blocks; b++) /* last is a promise that the transform trusts */
        for (unsigned j = r.last[b] + 1u; r.rc == MR_OK && r.last[b] != 0x5a && j < MRI_JPEG_BLOCK; j++)
            if (r.coef[b * MRI_JPEG_BLOCK + mri_jpeg_natural[j]]) abort();
    return r;
}

static void reading_free(reading *r)
{
    free(r->coef);
    free(r->last);
}

static void read_everywhere(const mri_coef *c, const uint8_t numbers[NUMBERS])
{
    for (uint32_t k = 0; k < c->frame.component_count; k++) {
        const mri_jpeg_component *m = &c->frame.component[k];
        mri_block_window w = {numbers[4] % m->blocks_wide, 0, numbers[6] % m->blocks_high, 0};
        w.x1 = w.x0 + numbers[5] % (m->blocks_wide - w.x0 + 1);
        w.y1 = w.y0 + numbers[7] % (m->blocks_high - w.y0 + 1);
        if (numbers[8] & 1) w = (mri_block_window){0, m->blocks_wide, 0, m->blocks_high};
        if ((uint64_t)(w.x1 - w.x0) * m->v > 1 << 16) continue;
        reading want = read_window(c, k, w, levels[0]);
        for (int l = 1; l < LEVELS; l++) {
            if (!mri_simd_available(levels[l])) continue;
            reading got = read_window(c, k, w, levels[l]);
            if (got.rc != want.rc) abort();
            if (got.rc == MR_OK && (memcmp(got.coef, want.coef, want.blocks * 2 * MRI_JPEG_BLOCK) != 0 ||
                                    memcmp(got.last, want.last, want.blocks) != 0))
                abort();
            reading_free(&got);
        }
        reading_free(&want);
    }
}

static void open_and_read(const uint8_t *data, size_t bytes, const uint8_t numbers[NUMBERS])
{
    uint8_t *copy = malloc(bytes ? bytes : 1); /* ends where its memory ends */
    mri_coef c;
    mr_error err = MR_ERROR_INIT;
    mr_image_header header;
    memcpy(copy, data, bytes);
    mri_coef_header(copy, bytes, &header, NULL);
    if (mri_coef_open(&c, copy, bytes, &err) == MR_OK) read_everywhere(&c, numbers);
    else if (!err.text[0]) abort();
    free(copy);
}

/* Sides below 65, one or three components, any sampling. */
static void frame_make(mri_jpeg_frame *f, const uint8_t numbers[NUMBERS])
{
    *f = (mri_jpeg_frame){.width = numbers[0] % 64 + 1u, .height = numbers[1] % 64 + 1u, .orientation = 1};
    f->component_count = numbers[2] & 1 ? 3 : 1;
    f->colour = f->component_count == 1 ? MRI_JPEG_GRAY : numbers[2] & 2 ? MRI_JPEG_RGB : MRI_JPEG_YCC;
    for (uint32_t k = 0; k < f->component_count; k++) {
        mri_jpeg_component *c = &f->component[k];
        c->h = f->component_count == 1 ? 1 : (uint8_t)((numbers[3] >> 2 * k & 3) + 1);
        c->v = f->component_count == 1 ? 1 : (uint8_t)((numbers[9] >> 2 * k & 3) + 1);
        c->quant[0] = (uint16_t)(1 + (numbers[2] >> 2) * k);
        f->h_max = f->h_max < c->h ? c->h : f->h_max;
        f->v_max = f->v_max < c->v ? c->v : f->v_max;
    }
    for (uint32_t k = 0; k < f->component_count; k++) {
        mri_jpeg_component *c = &f->component[k];
        c->blocks_wide = ((f->width * c->h + f->h_max - 1) / f->h_max + 7) / 8;
        c->blocks_high = ((f->height * c->v + f->v_max - 1) / f->v_max + 7) / 8;
    }
}

typedef struct made {
    mri_jpeg_frame frame;
    int16_t *coef[3]; /* from the data, repeated where it ends */
    void *payload;
    size_t bytes;
} made;

static void make(made *m, const uint8_t *data, size_t bytes, const uint8_t numbers[NUMBERS])
{
    mr_error err = MR_ERROR_INIT;
    frame_make(&m->frame, numbers);
    size_t at = 0;
    for (uint32_t k = 0; k < m->frame.component_count; k++) {
        const mri_jpeg_component *c = &m->frame.component[k];
        const size_t values = (size_t)c->blocks_wide * c->blocks_high * MRI_JPEG_BLOCK;
        m->coef[k] = malloc(values * 2);
        if (!m->coef[k]) abort();
        for (size_t i = 0; i < values; i++, at += 2) /* small values often, zeros beyond the data */
            m->coef[k][i] = at + 2 <= bytes
                                ? (int16_t)(data[at + 1] & 64 ? mri_le16(data + at)
                                                              : (int8_t)data[at] >> (data[at + 1] & 7))
                                : 0;
    }
    const int16_t(*const coef[3])[MRI_JPEG_BLOCK] = {(const void *)m->coef[0], (const void *)m->coef[1],
                                                     (const void *)m->coef[2]};
    m->payload = NULL;
    for (int l = 0; l < LEVELS; l++) { /* all levels pack to the same bytes */
        void *payload;
        size_t packed;
        if (!mri_simd_use(levels[l])) continue;
        if (mri_coef_pack(&m->frame, coef, &payload, &packed, &err) != MR_OK) abort();
        if (m->payload && (packed != m->bytes || memcmp(payload, m->payload, packed) != 0)) abort();
        free(m->payload);
        m->payload = payload;
        m->bytes = packed;
    }
}

static void made_free(made *m)
{
    for (int k = 0; k < 3; k++) free(m->coef[k]);
    free(m->payload);
}

/* Every block of a made payload is what went in. */
static void compare(const made *m)
{
    mri_coef c;
    if (mri_coef_open(&c, m->payload, m->bytes, NULL) != MR_OK) abort();
    for (uint32_t k = 0; k < c.frame.component_count; k++) {
        const mri_jpeg_component *p = &c.frame.component[k];
        if (p->blocks_wide != m->frame.component[k].blocks_wide ||
            p->blocks_high != m->frame.component[k].blocks_high)
            abort();
        for (uint32_t y = 0; y < p->blocks_high; y++) {
            reading r =
                read_window(&c, k, (mri_block_window){0, p->blocks_wide, y, y + 1}, levels[y % 2 ? 1 : 2]);
            if (r.rc != MR_OK) abort();
            if (memcmp(r.coef, m->coef[k] + (size_t)y * p->blocks_wide * MRI_JPEG_BLOCK,
                       (size_t)p->blocks_wide * 2 * MRI_JPEG_BLOCK) != 0)
                abort();
            reading_free(&r);
        }
    }
}

/* A payload whose rows hold the data: lengths whose sum is right more often than not, as the index is made
 * from them. */
static void rows_from(const uint8_t *data, size_t bytes, const uint8_t numbers[NUMBERS])
{
    made m = {0};
    size_t at = 0;
    make(&m, NULL, 0, numbers); /* head and index of an empty picture */
    size_t index = MRI_COEF_HEAD + (size_t)MRI_COEF_TABLE_BYTES * ((uint8_t *)m.payload)[12];
    size_t used = mri_le32((uint8_t *)m.payload + index);
    uint8_t *out = calloc(1, m.bytes + (size_t)MOST_BLOCKS * 3 * 16 * 256);
    if (!out) abort();
    memcpy(out, m.payload, used);
    for (uint32_t k = 0; k < m.frame.component_count; k++) {
        const mri_jpeg_component *c = &m.frame.component[k];
        for (uint32_t y = 0; y < c->blocks_high; y++, index += 4) {
            mri_put_le32(out + index, (uint32_t)used);
            const size_t head = used;
            used += 3 * (size_t)c->blocks_wide;
            for (uint32_t x = 0; x < c->blocks_wide; x++) {
                const uint8_t length = at < bytes ? data[at++] % 180 : 0;
                out[head + x] = length;
                for (uint8_t i = 0; i < length; i++) out[used++] = at < bytes ? data[at++] : 0;
            }
        }
    }
    mri_put_le32(out + index, (uint32_t)used);
    open_and_read(out, used + MRI_COEF_SLACK, numbers);
    free(out);
    made_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1 + NUMBERS) return 0;
    const uint8_t *numbers = data + 1, *rest = data + 1 + NUMBERS;
    const size_t left = bytes - 1 - NUMBERS;
    if (data[0] % 3 == 0) {
        open_and_read(rest, left, numbers);
    } else if (data[0] % 3 == 1) {
        rows_from(rest, left, numbers);
    } else {
        made m = {0};
        make(&m, rest, left, numbers);
        compare(&m);
        open_and_read(m.payload, m.bytes, numbers);
        made_free(&m);
    }
    return 0;
}
