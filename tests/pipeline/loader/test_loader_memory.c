/* I10, measured: the peak of resident memory of a process that only runs a loader, over sets of very
 * different sizes and kinds, stays below what it held before plus what mr_loader_info.memory_bytes says, and
 * does not grow with the number of samples.
 *
 * Each run is a process of its own (this program again, with arguments): a peak cannot be taken back. */
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "pipeline/augment/augment.h"
#include "tests/pipeline/sets.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define SLACK_BYTES ((UINT64_C(4) << 20) + count_error_bytes()) /* the allocator's own pages */
#define NOISE_BYTES ((UINT64_C(1) << 20) + count_error_bytes()) /* between two runs of the same thing */

typedef struct measured {
    uint64_t before, peak, claimed, scratch; /* scratch: the part of claimed that is the decoders' */
} measured;

extern char **environ;

/* Kernels count resident pages per processor, and add what a processor has when it is a batch: what they tell
 * is off by as much on each. */
static uint64_t count_error_bytes(void)
{
    const uint64_t cores = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
    return cores * mri_max_u64(32, 2 * cores) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- the child ---- */

static uint64_t resident_bytes(void)
{
    unsigned long long size, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%llu %llu", &size, &resident) != 2) resident = 0;
    if (f) fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* argv: path result batch prefetch workers augment resident cache */
static int measure(char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg;
    mr_source *src;
    mr_loader *l;
    mr_batch b;
    int rc;
    mr_loader_defaults(&cfg);
    cfg.batch = (uint32_t)atoi(argv[2]);
    cfg.prefetch = (uint32_t)atoi(argv[3]);
    cfg.workers = (uint32_t)atoi(argv[4]);
    cfg.augment = argv[5];
    cfg.training = true;
    cfg.resident_bytes = (uint64_t)atoll(argv[6]);
    cfg.cache_bytes = (uint64_t)atoll(argv[7]);
    if (cfg.cache_bytes) cfg.cache = MR_CACHE_MEMORY, cfg.epochs = 2;
    if (mr_source_open(&src, argv[0], NULL, &err) != MR_OK) return 2;
    measured m = {.before = resident_bytes()};
    if (mr_loader_open(&l, src, &cfg, &err) != MR_OK) return 3;
    m.claimed = mr_loader_info_of(l)->memory_bytes;
    const mr_loader_info *info = mr_loader_info_of(l);
    m.scratch = cfg.workers *
                mri_scratch_bound_bytes(&cfg.decode, info->max_pixels, (uint64_t)info->height * info->width);
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &b, NULL);
    mr_loader_close(l);
    mr_source_close(src);
    m.peak = mri_peak_rss_bytes();
    FILE *f = fopen(argv[1], "wbe");
    if (rc != MR_EEND || !f || fwrite(&m, sizeof m, 1, f) != 1 || fclose(f) != 0) return 4;
    return 0;
}

/* ---- the parent ---- */

static measured run_with(const char *path, const char *batch, const char *prefetch, const char *workers,
                         const char *augment, const char *resident, const char *cache)
{
    char set[4096], result[4096];
    char *const argv[] = {(char *)"loader", set,
                          result,           (char *)batch,
                          (char *)prefetch, (char *)workers,
                          (char *)augment,  (char *)resident,
                          (char *)cache,    NULL};
    pid_t child;
    int status;
    snprintf(set, sizeof set, "%s", path);
    snprintf(result, sizeof result, "%s", mrt_path("result"));
    MRT_EQ(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    MRT_EQ(waitpid(child, &status, 0), child);
    MRT_EQ(status, 0);
    size_t bytes;
    measured *m = mrt_read_file(result, &bytes), out = *m;
    MRT_EQ(bytes, sizeof out);
    free(m);
    print_message("%-8s batch %s, prefetch %s: before %.1f, peak %.1f, claimed %.1f MiB\n",
                  strrchr(path, '/') + 1, batch, prefetch, (double)out.before / 1048576,
                  (double)out.peak / 1048576, (double)out.claimed / 1048576);
    MRT_TRUE(out.before > 0 && out.peak >= out.before);
    MRT_TRUE(SANITIZED || out.peak <= out.before + out.claimed + SLACK_BYTES);
    return out;
}

static measured run(const char *path, const char *batch, const char *prefetch, const char *workers,
                    const char *augment)
{
    return run_with(path, batch, prefetch, workers, augment, "0", "0");
}

/* What is promised is not far above what is taken: slots, buffers, set and cache at most 1.3 times, decoders
 * apart. */
static void is_close(const measured *m)
{
    MRT_TRUE(SANITIZED || m->claimed - m->scratch <= (m->peak - m->before) * 13 / 10 + SLACK_BYTES);
}

/* n black pictures, as files that take no room on disk. */
static const char *black_set(const char *name, uint32_t n, uint32_t side)
{
    const char *path = mrt_idx_set(name, 1, side, side), *labels = mrt_path("%s-labels-idx1-ubyte", name);
    const uint32_t count = __builtin_bswap32(n);
    const char *const files[] = {path, labels};
    const off_t bytes[] = {16 + (off_t)n * side * side, 8 + (off_t)n};
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(files[i], "r+b");
        assert_non_null(f);
        MRT_EQ(fseek(f, 4, SEEK_SET), 0);
        MRT_EQ(fwrite(&count, 4, 1, f), 1);
        MRT_EQ(fflush(f), 0);
        MRT_EQ(ftruncate(fileno(f), bytes[i]), 0);
        fclose(f);
    }
    return path;
}

static void memory_does_not_grow_with_the_set(void **state)
{
    (void)state;
    /* three bytes a sample would be more than the noise, where there are not very many processors */
    const uint32_t count = (uint32_t)mri_min_u64(4000000, 50000 + NOISE_BYTES / 3);
    const measured few = run(black_set("few", 4000, 12), "128", "4", "2", "padcrop(2),flip");
    const measured many = run(black_set("many", count, 12), "128", "4", "2", "padcrop(2),flip");
    MRT_EQ(few.claimed, many.claimed);
    MRT_TRUE(SANITIZED || many.peak - many.before <= few.peak - few.before + NOISE_BYTES);
}

/* The set itself and what little a loader of small pictures takes besides: the plan is close, not only
 * safe. */
static void a_resident_set_takes_its_own_size(void **state)
{
    (void)state;
    const char *path = black_set("resident", 400000, 12);
    const uint64_t set = 400000 * 144;
    const measured on = run_with(path, "128", "4", "2", "padcrop(2),flip", "1073741824", "0");
    MRT_TRUE(SANITIZED || on.peak - on.before >= set);
    MRT_TRUE(SANITIZED || on.peak - on.before <= set + set / 8 + SLACK_BYTES);
    const measured off = run_with(path, "128", "0", "1", "padcrop(2),flip", "1073741824", "0");
    MRT_TRUE(SANITIZED || off.peak - off.before >= set);
    is_close(&on);
    is_close(&off);
}

/* A whole cache, and one that is full before the end: its budget, and no more. */
static void a_cache_takes_its_budget(void **state)
{
    (void)state;
    const char *path = black_set("cached", 300000, 12);
    const uint64_t index = 300000 * 12, whole = 300000 * 216; /* 144 pixels in an entry of 216 bytes */
    const measured all = run_with(path, "128", "4", "2", "padcrop(2),flip", "0", "67108864");
    MRT_TRUE(SANITIZED || all.peak - all.before >= whole + index);
    is_close(&all);
    const measured part = run_with(path, "128", "4", "2", "padcrop(2),flip", "0", "20971520");
    MRT_TRUE(SANITIZED || part.peak - part.before <= (20u << 20) + index + SLACK_BYTES);
    is_close(&part);
}

/* Seven slots and some forty read buffers of one picture each, and nothing else that grows: a stage that took
 * more than its part would show. */
static void slots_are_what_large_pictures_take(void **state)
{
    (void)state;
    const char *path = black_set("large", 400, 512);
    const uint64_t picture = 512 * 512, batch = 32 * picture;
    const measured on = run(path, "32", "6", "2", "none"), off = run(path, "32", "0", "1", "none");
    MRT_TRUE(SANITIZED || on.peak - on.before >= 6 * batch); /* the measure itself works */
    MRT_TRUE(SANITIZED || on.peak - on.before <= 7 * batch + 40 * picture + SLACK_BYTES);
    MRT_TRUE(SANITIZED || off.peak - off.before <= batch + 2 * picture + SLACK_BYTES);
    is_close(&on);
    is_close(&off);
}

static void pictures_of_many_sizes_stay_within(void **state)
{
    (void)state;
    const char *root = mrt_folder_set("pictures", 2, 60, 200, true);
    run(root, "16", "4", "3", "rrc(64),flip,brightness(10),standardise");
    run(root, "16", "0", "1", "resize(32x48)");
}

int main(int argc, char **argv)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* of stacks and buffers what is touched; children inherit it */
    if (argc == 9) return measure(argv + 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_does_not_grow_with_the_set),
        cmocka_unit_test(a_resident_set_takes_its_own_size),
        cmocka_unit_test(a_cache_takes_its_budget),
        cmocka_unit_test(slots_are_what_large_pictures_take),
        cmocka_unit_test(pictures_of_many_sizes_stay_within),
    };
    return mrt_run(tests);
}
