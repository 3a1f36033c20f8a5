/* tests/fuzz/pictures/fuzz_progressive.c: any bytes as a JPEG for our progressive decoder, with libjpeg as
 * the judge.
 *
 *   flags | window, 4 bytes | JPEG
 *
 * Flags: 1 plain C. Where we decode all blocks, libjpeg reads all without a warning and gives the same
 * coefficients. A window of what libjpeg reads without a warning is part of the whole, or left to it. */
#include <stdlib.h>
#include <string.h>

#include "base/simd.h"
#include "pipeline/decode/jpeg/progressive.h"
#include "tests/fuzz/fuzz.h"
#include "tests/pipeline/decode/coefs.h"

#define MAX_BLOCKS 3000

static mri_progressive *progressive;
static _Alignas(64) int16_t block[MAX_BLOCKS][MRI_JPEG_BLOCK];
static uint8_t last[MAX_BLOCKS];

static void compare_row(const mri_jpeg_frame *f, const mri_block_window *w, uint32_t row,
                        const mri_block_rows *out, const mrt_coefs *theirs)
{
    for (uint32_t k = 0; k < f->component_count; k++) {
        const uint32_t v = f->component[k].v, first = row * v > w[k].y0 ? row * v : w[k].y0;
        for (uint32_t y = first; y < row * v + v && y < w[k].y1; y++)
            for (uint32_t x = 0; x < out[k].pitch; x++) {
                const size_t at = (size_t)(y - first) * out[k].pitch + x;
                const int16_t *other = theirs->block[k][(size_t)y * theirs->wide[k] + w[k].x0 + x];
                if (memcmp(out[k].coef[at], other, 128)) abort();
                for (int z = out[k].last[at] + 1; z < MRI_JPEG_BLOCK; z++)
                    if (other[mri_jpeg_natural[z]]) abort();
            }
    }
}

static void compare(const mri_jpeg_frame *f, const mri_block_window *w, const mrt_coefs *theirs)
{
    for (uint32_t row = 0; row < f->mcus_high; row++) {
        mri_block_rows out[4] = {0};
        size_t at = 0;
        for (uint32_t k = 0; k < f->component_count; k++) {
            const size_t blocks = (size_t)(w[k].x1 - w[k].x0) * f->component[k].v;
            if (at + blocks > MAX_BLOCKS) return;
            out[k] = (mri_block_rows){block + at, last + at, w[k].x1 - w[k].x0};
            at += blocks;
        }
        mri_progressive_rows(progressive, row, out);
        compare_row(f, w, row, out, theirs);
    }
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

static void differ(const uint8_t *by, const uint8_t *jpeg, size_t bytes)
{
    const mri_jpeg_frame *f;
    mri_block_window w[4] = {{0}};
    mrt_coefs theirs;
    if (mri_progressive_open(progressive, jpeg, bytes, 100, &f, NULL)) return;
    if ((uint64_t)f->mcus_wide * f->mcus_high >= MAX_BLOCKS) return;
    mrt_coefs_read(&theirs, jpeg, bytes, MAX_BLOCKS);
    for (uint32_t k = 0; k < f->component_count; k++)
        w[k] = (mri_block_window){0, f->component[k].blocks_wide, 0, f->component[k].blocks_high};
    int rc = mri_progressive_window(progressive, w, NULL);
    if (rc && rc != MR_EUNSUPPORTED) abort();
    if (rc == MR_OK && !theirs.clean && !strstr(theirs.text, "too many")) abort();
    if (rc == MR_OK && theirs.clean) compare(f, w, &theirs);
    part_window(f, by, w);
    if (mri_progressive_open(progressive, jpeg, bytes, 100, &f, NULL)) abort();
    const int part = mri_progressive_window(progressive, w, NULL);
    if (part && part != MR_EUNSUPPORTED) abort();
    if (rc == MR_OK && part) abort(); /* a picture that is sound as a whole has all its parts */
    if (part == MR_OK && theirs.clean) compare(f, w, &theirs);
    mrt_coefs_free(&theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!progressive && mri_progressive_create(&progressive)) abort();
    if (bytes < 7) return 0;
    const mri_simd_level level = mri_simd();
    if (data[0] & 1) mri_simd_use(MRI_SIMD_PLAIN);
    uint8_t *jpeg = malloc(bytes - 5); /* exact */
    if (!jpeg) abort();
    memcpy(jpeg, data + 5, bytes - 5);
    differ(data + 1, jpeg, bytes - 5);
    free(jpeg);
    mri_simd_use(level);
    return 0;
}
