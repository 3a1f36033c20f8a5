/* bench/bench_pixels.c: the arithmetic of the road of pixels, every variant this processor has, in turn:
 * nanoseconds per block or pixel, and times the widest variant's. One JSON line per result.
 *
 *   bench_pixels [JPEG ...]
 *
 * Blocks: of one kind each, and, where JPEG files are given, as they come in those: luma and chroma, at most
 * LIMIT blocks each, in rows of ROW blocks, as much as stays in the second cache. Each round measures all
 * variants one after the other; a result is the median over rounds, a ratio the median of the rounds' ratios.
 *
 * What it does not measure: entropy decoding, resampling, memory beyond the cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/simd.h"
#include "base/util.h"
#include "pipeline/decode/jpeg/idct.h"

#define ROUNDS 25
#define ROW    40
#define LIMIT  (ROW * 100)
#define PIXELS (224 * 224)
#define LEVELS (MRI_SIMD_NEON + 1)

struct blocks {
    _Alignas(64) int16_t coef[LIMIT][MRI_JPEG_BLOCK];
    _Alignas(64) uint16_t quant[MRI_JPEG_BLOCK];
    uint8_t last[LIMIT];
    uint32_t count;
    uint8_t samples[8 * 8 * ROW];
};

struct planes {
    uint8_t in[3][PIXELS], rgb[3 * PIXELS];
};

static struct blocks dc, low, full, luma, chroma;
static struct planes planes;

/* ---- what is measured ---- */

static void idct(void *state)
{
    struct blocks *b = state;
    for (uint32_t at = 0; at + ROW <= b->count; at += ROW)
        mri_idct_row((const int16_t(*)[MRI_JPEG_BLOCK])b->coef + at, b->last + at, b->quant, ROW, b->samples,
                     8 * ROW);
}

static void ycc(void *state)
{
    struct planes *p = state;
    mri_ycc_to_rgb(p->in[0], p->in[1], p->in[2], PIXELS, p->rgb);
}

static void interleave(void *state)
{
    struct planes *p = state;
    mri_planes_to_rgb(p->in[0], p->in[1], p->in[2], PIXELS, p->rgb);
}

static void gray(void *state)
{
    struct planes *p = state;
    mri_gray_to_rgb(p->in[0], PIXELS, p->rgb);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *v)
{
    double sorted[ROUNDS];
    memcpy(sorted, v, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, by_value);
    return sorted[ROUNDS / 2];
}

/* work(state) handles units at a time. */
static void measure(const char *what, const char *unit, void (*work)(void *), void *state, double units)
{
    static double ns[LEVELS][ROUNDS], ratio[ROUNDS];
    int widest = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int level = 0; level < LEVELS; level++) {
            if (!mri_simd_use((mri_simd_level)level)) continue;
            widest = level;
            work(state);
            uint64_t repeats = 0;
            const uint64_t begin = mri_now_ns();
            uint64_t end;
            do {
                work(state);
                repeats++;
                end = mri_now_ns();
            } while (end - begin < 2000000);
            ns[level][round] = (double)(end - begin) / (double)repeats / units;
        }
    for (int level = 0; level < LEVELS; level++) {
        if (!mri_simd_available((mri_simd_level)level)) continue;
        for (int round = 0; round < ROUNDS; round++) ratio[round] = ns[level][round] / ns[widest][round];
        printf("{\"event\":\"pixels\",\"what\":\"%s\",\"variant\":\"%s\",\"ns_per_%s\":%.3f,\"times_widest\":"
               "%.2f}\n",
               what, mri_simd_name((mri_simd_level)level), unit, median(ns[level]), median(ratio));
    }
    fflush(stdout);
}

/* ---- blocks ---- */

static void make_kind(struct blocks *b, uint32_t span)
{
    b->count = LIMIT;
    for (uint32_t k = 0; k < MRI_JPEG_BLOCK; k++) b->quant[k] = (uint16_t)(3 + k / 8 + k % 8);
    for (uint32_t i = 0; i < LIMIT; i++) {
        const mri_philox r = mri_philox4x32(1, i, span);
        b->coef[i][0] = (int16_t)(r.v[0] % 200);
        if (span > 1) b->coef[i][8] = (int16_t)(r.v[1] % 20);
        if (span > 10) b->coef[i][60] = (int16_t)(r.v[2] % 9);
        b->last[i] = (uint8_t)(span - 1);
    }
}

/* Zigzag position of the last coefficient that is not zero. */
static uint8_t last_of(const int16_t coef[MRI_JPEG_BLOCK])
{
    int at = 0, last = 0;
    for (int sum = 0; sum < 15; sum++)
        for (int i = 0; i <= sum; i++) {
            const int v = sum % 2 ? i : sum - i, u = sum - v;
            if (u > 7 || v > 7) continue;
            if (coef[8 * v + u]) last = at;
            at++;
        }
    return (uint8_t)last;
}

static void take_row(struct blocks *b, JBLOCKROW row, uint32_t count)
{
    for (uint32_t i = 0; i < count && b->count < LIMIT; i++, b->count++) {
        memcpy(b->coef[b->count], row[i], sizeof b->coef[0]);
        b->last[b->count] = last_of(b->coef[b->count]);
    }
}

/* Some rows from the middle of each file's components. An unreadable file ends the program: libjpeg says
 * why. */
static void take_file(const char *path)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr e;
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    c.err = jpeg_std_error(&e);
    jpeg_create_decompress(&c);
    jpeg_stdio_src(&c, f);
    jpeg_read_header(&c, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&c);
    for (int k = 0; k < c.num_components && k < 3; k++) {
        const jpeg_component_info *info = &c.comp_info[k];
        struct blocks *b = k == 0 ? &luma : &chroma;
        for (int j = 0; j < MRI_JPEG_BLOCK; j++) b->quant[j] = info->quant_table->quantval[j];
        for (JDIMENSION y = info->height_in_blocks / 3;
             y < info->height_in_blocks / 3 + 4 && y < info->height_in_blocks; y++)
            take_row(b, c.mem->access_virt_barray((j_common_ptr)&c, arrays[k], y, 1, FALSE)[0],
                     info->width_in_blocks);
    }
    jpeg_destroy_decompress(&c);
    fclose(f);
}

int main(int argc, char **argv)
{
    make_kind(&dc, 1);
    make_kind(&low, 10);
    make_kind(&full, MRI_JPEG_BLOCK);
    for (int i = 1; i < argc; i++) take_file(argv[i]);
    for (size_t i = 0; i < sizeof planes.in; i++)
        planes.in[i / PIXELS][i % PIXELS] = (uint8_t)mri_philox4x32(2, i, 0).v[0];

    measure("idct dc", "block", idct, &dc, LIMIT);
    measure("idct low", "block", idct, &low, LIMIT);
    measure("idct full", "block", idct, &full, LIMIT);
    if (luma.count >= ROW) measure("idct luma", "block", idct, &luma, luma.count / ROW * ROW);
    if (chroma.count >= ROW) measure("idct chroma", "block", idct, &chroma, chroma.count / ROW * ROW);
    measure("ycc to rgb", "pixel", ycc, &planes, PIXELS);
    measure("planes to rgb", "pixel", interleave, &planes, PIXELS);
    measure("gray to rgb", "pixel", gray, &planes, PIXELS);
    return 0;
}
