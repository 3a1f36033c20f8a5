/* bench/bench_pixels.c: the arithmetic of the pixel path, every variant this processor has, in turn:
 * nanoseconds per block or pixel, and the ratio to the widest variant; and augmentations of a picture of 224
 * x 224, compared with rrc(224) of JPEG files. One JSON line per result.
 *
 *   bench_pixels [JPEG ...]
 *
 * Blocks: of one kind each, and, where JPEG files are given, as they come in those: luma and chroma, at most
 * LIMIT blocks each, in rows of ROW blocks, as much as stays in the second cache. Each round measures all
 * variants one after the other; a result is the median over rounds, a ratio the median of the rounds' ratios.
 *
 * Not measured: memory beyond the cache; entropy decoding and resampling by themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/simd.h"
#include "base/util.h"
#include "pipeline/augment/augment.h"
#include "pipeline/decode/jpeg/idct.h"

#define ROUNDS 25
#define ROW    40
#define LIMIT  (ROW * 100)
#define SIDE   224
#define PIXELS (SIDE * SIDE)
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

/* ---- measured functions ---- */

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

/* work(state) handles units at a time. all: in every variant, else in the widest alone. */
static void measure_in(bool all, const char *what, const char *unit, void (*work)(void *), void *state,
                       double units)
{
    static double ns[LEVELS][ROUNDS], ratio[ROUNDS];
    int widest = 0;
    for (int level = 0; level < LEVELS; level++)
        if (mri_simd_available((mri_simd_level)level)) widest = level;
    for (int round = 0; round < ROUNDS; round++)
        for (int level = all ? 0 : widest; level <= widest; level++) {
            if (!mri_simd_use((mri_simd_level)level)) continue;
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
    for (int level = all ? 0 : widest; level <= widest; level++) {
        if (!mri_simd_available((mri_simd_level)level)) continue;
        for (int round = 0; round < ROUNDS; round++) ratio[round] = ns[level][round] / ns[widest][round];
        printf("{\"event\":\"pixels\",\"what\":\"%s\",\"variant\":\"%s\",\"ns_per_%s\":%.3f,\"times_widest\":"
               "%.2f}\n",
               what, mri_simd_name((mri_simd_level)level), unit, median(ns[level]), median(ratio));
    }
    fflush(stdout);
}

static void measure(const char *what, const char *unit, void (*work)(void *), void *state, double units)
{
    measure_in(true, what, unit, work, state, units);
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

/* ---- augmentations ---- */

struct augmenting {
    mr_augment *a;
    mri_scratch *s;
    mr_decode_config cfg;
    const mr_value *value; /* `count` of them, in turn */
    uint32_t count;
    uint64_t sample;
    uint8_t out[3 * PIXELS];
};

static void must(int rc, const mr_error *err)
{
    if (rc == MR_OK) return;
    fprintf(stderr, "bench_pixels: %s\n", err->text[0] ? err->text : mr_status_text(rc));
    exit(1);
}

static void augment(void *state)
{
    struct augmenting *g = state;
    mr_error err = MR_ERROR_INIT;
    float affine[2];
    g->sample++;
    must(mri_augment_run(g->a, g->s, &g->value[g->sample % g->count], &g->cfg, 3,
                         (mri_sample_key){1, 0, g->sample}, SIDE, SIDE, g->out, affine, NULL, NULL, &err),
         &err);
}

static void measure_augment(const char *spec, const mr_value *value, uint32_t count)
{
    static struct augmenting g;
    mr_error err = MR_ERROR_INIT;
    char what[256];
    g = (struct augmenting){.value = value, .count = count};
    mr_decode_defaults(&g.cfg);
    must(mr_augment_create(&g.a, spec, true, &err), &err);
    must(mri_scratch_create(&g.s), &err);
    snprintf(what, sizeof what, "%s%s", spec, value->type == MR_TYPE_PIXELS ? "" : " of JPEG");
    measure_in(false, what, "pixel", augment, &g, PIXELS);
    mri_scratch_destroy(g.s);
    mr_augment_destroy(g.a);
}

static mr_value read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    long bytes = -1;
    if (f && fseek(f, 0, SEEK_END) == 0) bytes = ftell(f);
    uint8_t *data = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (!data || fseek(f, 0, SEEK_SET) || fread(data, (size_t)bytes, 1, f) != 1) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return (mr_value){.type = MR_TYPE_JPEG, .data = data, .bytes = (size_t)bytes};
}

/* Smooth colours with some noise. */
static void make_picture(uint8_t *rgb)
{
    for (uint32_t i = 0; i < PIXELS; i++) {
        const uint32_t x = i % SIDE, y = i / SIDE, noise = mri_philox4x32(3, i, 0).v[0];
        rgb[3 * i] = (uint8_t)(x / 2 + y / 4 + noise % 16);
        rgb[3 * i + 1] = (uint8_t)(200 - y / 2 - noise / 16 % 16);
        rgb[3 * i + 2] = (uint8_t)((x * y) / 400 + noise / 256 % 16);
    }
}

/* Each operation alone, always done, on a picture as it is: "none" is the copy that is in all of them. */
static void measure_augmentations(int files, char **paths)
{
    static uint8_t picture[3 * PIXELS];
    static const char *const specs[] = {
        "none",
        "brightness(63)",
        "contrast(0.6:1.4)",
        "saturation(0.6:1.4)",
        "hue(0.1)",
        "jitter(0.4,0.4,0.4,0.1)",
        "gray(1)",
        "invert(1)",
        "solarize(128,1)",
        "posterize(4,1)",
        "autocontrast(1)",
        "equalize(1)",
        "sharpness(0:2)",
        "blur(5,0.1:2)",
        "blur(23,0.1:2)",
        "rotate(30)",
        "rotate(30,filter=nearest)",
        "affine(10,scale=0.8:1.2,shear=10)",
        "erase(1)",
        "erase(1,value=random)",
        "cutout(112)",
        "randaugment(2,9)",
        "trivial",
    };
    const mr_value pixels = {.type = MR_TYPE_PIXELS,
                             .data = picture,
                             .bytes = sizeof picture,
                             .dtype = MR_U8,
                             .planes = MR_HWC,
                             .ndim = 3,
                             .dim = {SIDE, SIDE, 3}};
    make_picture(picture);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(specs); k++) measure_augment(specs[k], &pixels, 1);
    if (files == 0) return;
    mr_value *value = calloc((size_t)files, sizeof *value);
    if (!value) exit(1);
    for (int k = 0; k < files; k++) value[k] = read_file(paths[k]);
    measure_augment("rrc(224)", value, (uint32_t)files);
    for (int k = 0; k < files; k++) free((void *)value[k].data);
    free(value);
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
    measure_augmentations(argc - 1, argv + 1);
    return 0;
}
