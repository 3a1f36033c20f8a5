/* bench/bench_resample.c: one crop to one result, every instruction set in turn: time of a plan, of a run, of
 * both. One JSON line per result.
 *
 *   bench_resample [crop width] [crop height] [result side] [channels] [unit] [rounds]
 *
 * unit 2 takes the crop from a plane of half width and height, as JPEG chroma. Not measured: cold caches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/simd.h"
#include "base/util.h"
#include "pipeline/pixels/resample.h"

#define LEVELS 4
#define REPEAT 20

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void ok(int rc)
{
    if (rc == MR_OK) return;
    fprintf(stderr, "bench_resample: %s\n", mr_status_text(rc));
    exit(1);
}

struct work {
    mri_axis x, y;
    mri_view src;
    uint8_t *dst;
    mri_resample_plan *plan;
};

static double microseconds_plan(struct work *w)
{
    const uint64_t from = mri_now_ns();
    for (int k = 0; k < REPEAT; k++)
        ok(mri_resample_plan_set(w->plan, &w->x, &w->y, MRI_FILTER_BILINEAR, k % 2, w->src.channels));
    return (double)(mri_now_ns() - from) / 1e3 / REPEAT;
}

static double microseconds_run(struct work *w)
{
    const uint64_t from = mri_now_ns();
    for (int k = 0; k < REPEAT; k++)
        ok(mri_resample_run(w->plan, &w->src, 0, 0, w->dst, (size_t)w->x.count * w->src.channels));
    return (double)(mri_now_ns() - from) / 1e3 / REPEAT;
}

int main(int argc, char **argv)
{
    uint32_t arg[6] = {350, 350, 224, 1, 1, 200};
    for (int k = 1; k < argc && k <= 6; k++) arg[k - 1] = (uint32_t)strtoul(argv[k], NULL, 10);
    const uint32_t unit = arg[4], channels = arg[3], rounds = arg[5];
    if (!arg[0] || !arg[1] || !arg[2] || (channels != 1 && channels != 3) || !unit || !rounds) {
        fprintf(
            stderr,
            "usage: bench_resample [crop width] [crop height] [result side] [channels] [unit] [rounds]\n");
        return 2;
    }
    struct work w = {.x = mri_axis_of(arg[0], 0, arg[0], arg[2]),
                     .y = mri_axis_of(arg[1], 0, arg[1], arg[2])};
    w.x.unit_num = w.y.unit_num = unit;
    w.x.samples = (arg[0] + unit - 1) / unit;
    w.y.samples = (arg[1] + unit - 1) / unit;
    const size_t stride = (size_t)w.x.samples * channels;
    uint8_t *pixels = malloc(stride * w.y.samples);
    w.dst = malloc((size_t)arg[2] * arg[2] * channels);
    double *times[2][LEVELS];
    for (int k = 0; k < 2 * LEVELS; k++) times[k / LEVELS][k % LEVELS] = malloc(rounds * sizeof(double));
    for (int k = 0; k < 2 * LEVELS; k++) ok(times[k / LEVELS][k % LEVELS] ? MR_OK : MR_ENOMEM);
    ok(pixels && w.dst ? MR_OK : MR_ENOMEM);
    for (size_t k = 0; k < stride * w.y.samples; k++) pixels[k] = (uint8_t)(mri_mix64(k) >> 56);
    w.src = (mri_view){pixels, w.x.samples, w.y.samples, channels, stride, 0};
    ok(mri_resample_plan_create(&w.plan));
    for (uint32_t round = 0; round < rounds; round++)
        for (int level = 0; level < LEVELS; level++) {
            if (!mri_simd_use((mri_simd_level)level)) continue;
            times[0][level][round] = microseconds_plan(&w);
            times[1][level][round] = microseconds_run(&w);
        }
    for (int level = 0; level < LEVELS; level++) {
        if (!mri_simd_available((mri_simd_level)level)) continue;
        for (int k = 0; k < 2; k++) qsort(times[k][level], rounds, sizeof(double), by_value);
        const double plan = times[0][level][rounds / 2], run = times[1][level][rounds / 2];
        printf("{\"bench\":\"resample\",\"simd\":\"%s\",\"crop\":\"%ux%u\",\"out\":%u,\"channels\":%u,"
               "\"unit\":%u,"
               "\"plan_us\":%.2f,\"run_us\":%.2f,\"both_us\":%.2f}\n",
               mri_simd_name((mri_simd_level)level), arg[0], arg[1], arg[2], channels, unit, plan, run,
               plan + run);
    }
    mri_resample_plan_destroy(w.plan);
    for (int k = 0; k < 2 * LEVELS; k++) free(times[k / LEVELS][k % LEVELS]);
    free(pixels);
    free(w.dst);
    return 0;
}
