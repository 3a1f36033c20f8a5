/* tests/fuzz/pictures/fuzz_entropy.c: any bytes as a JPEG for our entropy decoder, with libjpeg as the judge.
 *
 *   flags | window, 4 bytes | [length of entry points | entry points] | JPEG
 *
 * Flags: 1 plain C; 2 entry points made for the picture; 4 entry points out of the input; 8 all levels,
 * without entry points. Where libjpeg reads all without a warning, we give the same coefficients (or leave it
 * to libjpeg); where it does not, we refuse. A window of a good picture is part of the whole. Anything at all
 * may be offered as entry points; the widest instruction set, whose lanes read them, and plain C then give
 * the same coefficients and verdict. So they do without entry points, where lanes read ahead, and make the
 * same entry points. Decoding DC alone gives the same verdict, and the same DC. */
#include <stdlib.h>
#include <string.h>

#include "base/simd.h"
#include "pipeline/decode/jpeg/entropy.h"
#include "tests/fuzz/fuzz.h"
#include "tests/pipeline/decode/coefs.h"

#define MAX_BLOCKS 3000

typedef struct input {
    uint8_t flags, window[4];
    const uint8_t *entries, *jpeg;
    size_t entries_bytes, jpeg_bytes;
} input;

static mri_entropy *entropy;
static _Alignas(64) int16_t block[MAX_BLOCKS][MRI_JPEG_BLOCK];
static uint8_t last[MAX_BLOCKS];
static uint32_t decoded_crc; /* of what decode() decoded last */

static uint32_t dc_crc; /* of the DC coefficients that decode() or decode_dc() decoded last */

static void add_dc(const mri_block_rows *out, uint32_t rows)
{
    for (size_t n = 0; n < (size_t)rows * out->pitch; n++)
        dc_crc = mr_crc32c(dc_crc, out->coef[n], sizeof out->coef[n][0]);
}

/* What decode() would return, with DC alone. */
static int decode_dc(const mri_jpeg_frame *f, const mri_block_window *w)
{
    if (mri_entropy_window(entropy, w, NULL)) abort();
    mri_entropy_only_dc(entropy);
    dc_crc = 0;
    for (uint32_t row = 0; row < f->mcus_high; row++) {
        mri_block_rows out[4] = {0};
        size_t at = 0;
        for (uint32_t k = 0; k < f->component_count; k++) {
            const size_t blocks = (size_t)(w[k].x1 - w[k].x0) * f->component[k].v;
            if (at + blocks > MAX_BLOCKS) return MR_ELIMIT;
            out[k] = (mri_block_rows){block + at, last + at, w[k].x1 - w[k].x0};
            at += blocks;
        }
        const int rc = mri_entropy_rows(entropy, row, out, NULL);
        if (rc) return rc;
        for (uint32_t k = 0; k < f->component_count; k++) {
            const uint32_t v = f->component[k].v, first = row * v > w[k].y0 ? row * v : w[k].y0,
                           past = row * v + v < w[k].y1 ? row * v + v : w[k].y1;
            if (first < past) add_dc(&out[k], past - first);
        }
    }
    return mri_entropy_end(entropy, NULL);
}

/* Row after row into one place, each compared where it is to be. */
static int decode(const mri_jpeg_frame *f, const mri_block_window *w, const mrt_coefs *theirs)
{
    if (mri_entropy_window(entropy, w, NULL)) abort();
    decoded_crc = dc_crc = 0;
    for (uint32_t row = 0; row < f->mcus_high; row++) {
        mri_block_rows out[4] = {0};
        size_t at = 0;
        for (uint32_t k = 0; k < f->component_count; k++) {
            const size_t blocks = (size_t)(w[k].x1 - w[k].x0) * f->component[k].v;
            if (at + blocks > MAX_BLOCKS) return MR_ELIMIT;
            out[k] = (mri_block_rows){block + at, last + at, w[k].x1 - w[k].x0};
            at += blocks;
        }
        const int rc = mri_entropy_rows(entropy, row, out, NULL);
        if (rc) return rc;
        for (uint32_t k = 0; k < f->component_count; k++) {
            const uint32_t v = f->component[k].v, first = row * v > w[k].y0 ? row * v : w[k].y0,
                           past = row * v + v < w[k].y1 ? row * v + v : w[k].y1;
            if (first >= past) continue;
            decoded_crc = mr_crc32c(decoded_crc, out[k].coef, 128 * (size_t)(past - first) * out[k].pitch);
            add_dc(&out[k], past - first);
        }
        if (!theirs || !theirs->clean) continue;
        for (uint32_t k = 0; k < f->component_count; k++) {
            const uint32_t v = f->component[k].v, first = row * v > w[k].y0 ? row * v : w[k].y0;
            for (uint32_t y = first; y < row * v + v && y < w[k].y1; y++)
                if (memcmp(out[k].coef[(size_t)(y - first) * out[k].pitch],
                           theirs->block[k][(size_t)y * theirs->wide[k] + w[k].x0],
                           128 * (size_t)out[k].pitch))
                    abort();
        }
    }
    return mri_entropy_end(entropy, NULL);
}

/* The picture again, DC alone: decode() returned rc. */
static void check_dc(const uint8_t *jpeg, size_t bytes, const void *entries, size_t entries_bytes,
                     const mri_block_window *w, int rc)
{
    const mri_jpeg_frame *f;
    const uint32_t expected = dc_crc;
    if (mri_entropy_open(entropy, jpeg, bytes, entries, entries_bytes, &f, NULL)) abort();
    if (decode_dc(f, w) != rc || (rc == MR_OK && dc_crc != expected)) abort();
}

static void whole_window(const mri_jpeg_frame *f, mri_block_window *w)
{
    for (uint32_t k = 0; k < f->component_count; k++)
        w[k] = (mri_block_window){0, f->component[k].blocks_wide, 0, f->component[k].blocks_high};
}

static void part_window(const mri_jpeg_frame *f, const uint8_t *by, mri_block_window *w)
{
    for (uint32_t k = 0; k < f->component_count; k++) {
        const mri_jpeg_component *c = &f->component[k];
        w[k].x0 = by[0] * c->blocks_wide / 256;
        w[k].x1 = w[k].x0 + (by[1] + k) * (c->blocks_wide - w[k].x0) / 258;
        w[k].y0 = by[2] * c->blocks_high / 256;
        w[k].y1 = w[k].y0 + (by[3] + 1) * (c->blocks_high - w[k].y0) / 256;
    }
}

static void differ(const input *in)
{
    const mri_jpeg_frame *f;
    mri_block_window w[4];
    mrt_coefs theirs;
    mr_error err = MR_ERROR_INIT;
    mrt_coefs_read(&theirs, in->jpeg, in->jpeg_bytes, MAX_BLOCKS);
    int rc = mri_entropy_open(entropy, in->jpeg, in->jpeg_bytes, NULL, 0, &f, &err);
    const bool small = rc || (uint64_t)f->mcus_wide * f->mcus_high < MAX_BLOCKS;
    if (rc == MR_OK && small) {
        whole_window(f, w);
        rc = decode(f, w, &theirs);
        check_dc(in->jpeg, in->jpeg_bytes, NULL, 0, w, rc);
    }
    if (small && rc == MR_OK && !theirs.clean && !strstr(theirs.text, "too many")) abort();
    if (rc == MR_EFORMAT && theirs.clean) abort();
    if (small && rc == MR_OK && theirs.clean) {
        void *entries = NULL;
        size_t entries_bytes = 0;
        if (in->flags & 2) {
            const int built = mri_jpeg_entries_build_gap(
                entropy, in->jpeg, in->jpeg_bytes, 1 + in->window[0] % 20u, &entries, &entries_bytes, NULL);
            if (built && built != MR_EUNSUPPORTED) abort();
        }
        if (mri_entropy_open(entropy, in->jpeg, in->jpeg_bytes, entries, entries_bytes, &f, NULL)) abort();
        part_window(f, in->window, w);
        if (decode(f, w, &theirs)) abort();
        check_dc(in->jpeg, in->jpeg_bytes, entries, entries_bytes, w, MR_OK);
        free(entries);
    }
    mrt_coefs_free(&theirs);
}

/* With the entry points of the input, if any: verdict and coefficients equal plain C's. */
static void offer(const input *in, mri_simd_level level)
{
    const mri_jpeg_frame *f;
    mri_block_window w[4];
    int rc[2] = {MR_OK, MR_OK};
    uint32_t crc[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        mri_simd_use(k ? level : MRI_SIMD_PLAIN);
        rc[k] = mri_entropy_open(entropy, in->jpeg, in->jpeg_bytes, in->entries, in->entries_bytes, &f, NULL);
        if (rc[k] || (uint64_t)f->mcus_wide * f->mcus_high >= MAX_BLOCKS) continue;
        part_window(f, in->window, w);
        rc[k] = decode(f, w, NULL);
        crc[k] = decoded_crc;
        check_dc(in->jpeg, in->jpeg_bytes, in->entries, in->entries_bytes, w, rc[k]);
    }
    if (rc[0] != rc[1] || (rc[0] == MR_OK && crc[0] != crc[1])) abort();
}

/* Entry points, or the verdict, equal the ones of plain C. */
static void make_entries(const input *in, mri_simd_level level)
{
    int rc[2] = {MR_OK, MR_OK};
    void *made[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        mri_simd_use(k ? level : MRI_SIMD_PLAIN);
        rc[k] = mri_jpeg_entries_build_gap(entropy, in->jpeg, in->jpeg_bytes, 1 + in->window[0] % 20u,
                                           &made[k], &bytes[k], NULL);
    }
    if (rc[0] != rc[1] || (rc[0] == MR_OK && (bytes[0] != bytes[1] || memcmp(made[0], made[1], bytes[0]))))
        abort();
    free(made[0]);
    free(made[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!entropy && mri_entropy_create(&entropy)) abort();
    input in = {.entries = NULL};
    if (bytes < 7) return 0;
    in.flags = data[0];
    memcpy(in.window, data + 1, 4);
    data += 5;
    bytes -= 5;
    if (in.flags & 4) {
        in.entries_bytes = data[0] < bytes - 1 ? data[0] : bytes - 1;
        in.entries = data + 1;
        data += 1 + in.entries_bytes;
        bytes -= 1 + in.entries_bytes;
    }
    in.jpeg = data;
    in.jpeg_bytes = bytes;
    const mri_simd_level level = mri_simd();
    if (in.flags & 1) mri_simd_use(MRI_SIMD_PLAIN);
    if (in.flags & (4 | 8)) {
        offer(&in, level);
        make_entries(&in, level);
    } else {
        differ(&in);
    }
    mri_simd_use(level);
    return 0;
}
