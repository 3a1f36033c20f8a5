/* I10, measured: the peak of resident memory of a process that only runs a loader, over sets of very
 * different sizes and kinds, stays below its memory before plus mr_loader_info.memory_bytes, and does not
 * grow with the number of samples.
 * Each run is a process of its own (this program again, with arguments): a peak cannot be reset. */
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "pipeline/augment/augment.h"
#include "tests/pipeline/pictures.h"
#include "tests/pipeline/sets.h"

/* Sanitizers are slow on large pictures: they run one case of four, on pictures with a quarter of the pixels
 * and correspondingly less memory. They check synchronization; nothing is measured there. */
enum { STRIDE = MRT_SANITIZED ? 2 : 1, SHRINK = MRT_SANITIZED ? 2 : 1, HUGE = 8 };

#define SLACK_BYTES ((UINT64_C(4) << 20) + count_error_bytes()) /* the allocator's own pages */
#define NOISE_BYTES ((UINT64_C(1) << 20) + count_error_bytes()) /* between two runs of the same thing */

typedef struct measured {
    uint64_t before, peak, claimed, scratch; /* scratch: the part of claimed that is the decoders' */
} measured;

extern char **environ;

/* Kernels count resident pages per processor, and add a processor's count only in batches: the total is off
 * by up to a batch for each processor. */
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
    cfg.readers = 1; /* pread has four, each with buffers */
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
    const mr_source_info *data = mr_source_info_of(src);
    const uint64_t side = data->height ? mri_max_u64(data->height, data->width) : info->max_pixels;
    mr_augment *a;
    if (mr_augment_create(&a, cfg.augment, cfg.training, &err) != MR_OK) return 4;
    m.scratch = cfg.workers * mri_scratch_bound_bytes(a, &cfg.decode, (mri_extremes){info->max_pixels, side},
                                                      (uint64_t)info->height * info->width);
    mr_augment_destroy(a);
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &b, NULL);
    mr_loader_close(l);
    mr_source_close(src);
    m.peak = mri_peak_rss_bytes();
    FILE *f = fopen(argv[1], "wbe");
    if (rc != MR_EEND || !f || fwrite(&m, sizeof m, 1, f) != 1 || fclose(f) != 0) return 4;
    return 0;
}

typedef struct budgeted {
    uint64_t before, peak, claimed, bad, samples;
    int opened, ended;
    mr_digest digest;
    char text[768];
} budgeted;

/* argv: path result workers budget(MiB) shared(0, 1). Damaged samples are left out without a word: what is
 * missing shows in the digest alone. */
static int run_in_budget(char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg;
    mr_source *src;
    mr_loader *l = NULL, *second = NULL;
    mr_digester *d;
    mr_budget *budget = NULL;
    budgeted m = {0};
    mr_loader_defaults(&cfg);
    cfg.batch = 8;
    cfg.prefetch = 2;
    cfg.depth = 2;
    cfg.workers = (uint32_t)atoi(argv[2]);
    cfg.memory_bytes = (uint64_t)atoll(argv[3]) << 20;
    cfg.augment = "resize(32x32)";
    cfg.bad = MR_BAD_SKIP;
    if (atoi(argv[4]) && mr_budget_create(&budget, cfg.memory_bytes) != MR_OK) return 2;
    cfg.budget = budget;
    if (mr_source_open(&src, argv[0], NULL, &err) != MR_OK || mr_digester_create(&d) != MR_OK) return 2;
    m.before = resident_bytes();
    m.opened = mr_loader_open(&l, src, &cfg, &err);
    if (m.opened == MR_OK && budget) /* fills its slots and waits, as that of validation does */
        m.opened = mr_loader_open(&second, src, &cfg, &err);
    m.ended = m.opened;
    if (m.opened == MR_OK) {
        mr_loader_stats stats;
        uint64_t batches;
        m.claimed = mr_loader_info_of(l)->memory_bytes;
        m.ended = mr_digester_run(d, l, NULL, UINT64_MAX, &batches, &m.samples, &err);
        mr_loader_stats_read(l, &stats);
        m.bad = stats.bad_samples;
        m.digest = mr_digester_result(d);
    }
    memcpy(m.text, err.text, sizeof m.text);
    mr_loader_close(second);
    mr_loader_close(l);
    mr_budget_destroy(budget);
    mr_digester_destroy(d);
    mr_source_close(src);
    m.peak = mri_peak_rss_bytes();
    FILE *f = fopen(argv[1], "wbe");
    return f && fwrite(&m, sizeof m, 1, f) == 1 && fclose(f) == 0 ? 0 : 4;
}

/* argv: path result workers memory(MiB) output and the side to resize to, 0: pictures stay as they are */
static int run_pool(char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    budgeted m = {0};
    const uint32_t workers = (uint32_t)atoi(argv[2]);
    const uint64_t memory = (uint64_t)atoll(argv[3]) << 20;
    if (mr_source_open(&src, argv[0], NULL, &err) != MR_OK) return 2;
    m.before = resident_bytes();
    mr_convert_config cfg;
    mr_convert_result result = {0};
    mr_convert_defaults(&cfg);
    cfg.workers = workers;
    cfg.memory_bytes = memory;
    cfg.resize = (uint32_t)atoi(argv[5]);
    cfg.verify = false;
    cfg.force = true;
    m.ended = mr_convert(src, argv[4], &cfg, &result, &err);
    m.bad = result.bad;
    m.samples = result.records;
    memcpy(m.text, err.text, sizeof m.text);
    mr_source_close(src);
    m.peak = mri_peak_rss_bytes();
    FILE *f = fopen(argv[1], "wbe");
    return f && fwrite(&m, sizeof m, 1, f) == 1 && fclose(f) == 0 ? 0 : 4;
}

/* ---- the parent ---- */

/* Run this program again with argv; it writes out_bytes to the file result, which are read into out. */
static void run_child(char *const *argv, const char *result, void *out, size_t out_bytes)
{
    pid_t child;
    int status;
    MRT_EQ(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    MRT_EQ(waitpid(child, &status, 0), child);
    MRT_EQ(status, 0);
    size_t bytes;
    void *found = mrt_read_file(result, &bytes);
    MRT_EQ(bytes, out_bytes);
    memcpy(out, found, out_bytes);
    free(found);
}

static measured run_with(const char *path, const char *batch, const char *prefetch, const char *workers,
                         const char *augment, const char *resident, const char *cache)
{
    char set[4096], result[4096];
    char *const argv[] = {(char *)"loader", set,
                          result,           (char *)batch,
                          (char *)prefetch, (char *)workers,
                          (char *)augment,  (char *)resident,
                          (char *)cache,    NULL};
    snprintf(set, sizeof set, "%s", path);
    snprintf(result, sizeof result, "%s", mrt_path("result"));
    measured out;
    run_child(argv, result, &out, sizeof out);
    print_message("%-8s batch %s, prefetch %s: before %.1f, peak %.1f, claimed %.1f MiB\n",
                  strrchr(path, '/') + 1, batch, prefetch, (double)out.before / 1048576,
                  (double)out.peak / 1048576, (double)out.claimed / 1048576);
    MRT_TRUE(out.before > 0 && out.peak >= out.before);
    MRT_TRUE(out.peak <= out.before + out.claimed + SLACK_BYTES);
    return out;
}

static measured run(const char *path, const char *batch, const char *prefetch, const char *workers,
                    const char *augment)
{
    return run_with(path, batch, prefetch, workers, augment, "0", "0");
}

/* The claimed memory is not far above the used memory: slots, buffers, set and cache at most 1.3 times,
 * without the decoders. */
static void is_close(const measured *m)
{
    MRT_TRUE(m->claimed - m->scratch <= (m->peak - m->before) * 13 / 10 + SLACK_BYTES);
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
    MRT_TRUE(many.peak - many.before <= few.peak - few.before + NOISE_BYTES);
}

/* The set itself and what little a loader of small pictures takes besides: the plan is close, not only
 * safe. */
static void a_resident_set_takes_its_own_size(void **state)
{
    (void)state;
    const char *path = black_set("resident", 400000, 12);
    const uint64_t set = 400000 * 144;
    const measured on = run_with(path, "128", "4", "2", "padcrop(2),flip", "1073741824", "0");
    MRT_TRUE(on.peak - on.before >= set);
    MRT_TRUE(on.peak - on.before <= set + set / 8 + SLACK_BYTES);
    const measured off = run_with(path, "128", "0", "1", "padcrop(2),flip", "1073741824", "0");
    MRT_TRUE(off.peak - off.before >= set);
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
    MRT_TRUE(all.peak - all.before >= whole + index);
    is_close(&all);
    const measured part = run_with(path, "128", "4", "2", "padcrop(2),flip", "0", "20971520");
    MRT_TRUE(part.peak - part.before <= (20u << 20) + index + SLACK_BYTES);
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
    MRT_TRUE(on.peak - on.before >= 6 * batch); /* the measure itself works */
    MRT_TRUE(on.peak - on.before <= 7 * batch + 40 * picture + SLACK_BYTES);
    MRT_TRUE(off.peak - off.before <= batch + 2 * picture + SLACK_BYTES);
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

static budgeted in_budget(const char *path, uint32_t workers, uint32_t mib, bool shared)
{
    char set[4096], result[4096], threads[16], room[16];
    char *const argv[] = {(char *)"loader", set, result, threads, room, (char *)(shared ? "1" : "0"), NULL};
    snprintf(set, sizeof set, "%s", path);
    snprintf(result, sizeof result, "%s", mrt_path("result"));
    snprintf(threads, sizeof threads, "%u", workers);
    snprintf(room, sizeof room, "%u", mib);
    budgeted out;
    run_child(argv, result, &out, sizeof out);
    print_message("%u workers, %u MiB%s: before %.1f, peak %.1f, claimed %.1f MiB%s%s\n", workers, mib,
                  shared ? " for two loaders" : "", (double)out.before / 1048576, (double)out.peak / 1048576,
                  (double)out.claimed / 1048576, out.ended == MR_EEND || out.ended == MR_OK ? "" : ": ",
                  out.ended == MR_EEND || out.ended == MR_OK ? "" : out.text);
    MRT_TRUE(MRT_SANITIZED || out.peak <= out.before + ((uint64_t)mib << 20) + SLACK_BYTES);
    return out;
}

static void add_file(const char *root, const char *name, const void *data, size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/class00/%s", root, name);
    mrt_write_file(path, data, bytes);
}

/* 40 small pictures, and among them HUGE of up to 7.5 million pixels, of every kind that takes memory in its
 * own way. */
static const char *few_huge(const char *name)
{
    const char *root = strdup(mrt_folder_set(name, 1, 40, 60, true));
    const mrt_jpeg_kind kinds[] = {{.h = 2, .v = 2, .components = 3, .quality = 60},
                                   {.h = 2, .v = 1, .components = 3, .quality = 60, .progressive = true},
                                   {.h = 1, .v = 1, .components = 4, .quality = 60, .adobe = true}};
    const uint32_t w[] = {3000 / SHRINK, 2000 / SHRINK, 1200 / SHRINK},
                   h[] = {2500 / SHRINK, 1500 / SHRINK, 1000 / SHRINK};
    char file[64];
    size_t bytes;
    for (uint32_t k = 0; k < HUGE - 2; k++) {
        uint8_t *jpeg = mrt_jpeg(&kinds[k % 3], w[k % 3], h[k % 3], k, &bytes);
        snprintf(file, sizeof file, "%02u-huge.jpg", 4 * k);
        add_file(root, file, jpeg, bytes);
        free(jpeg);
    }
    mr_image image = {.width = 2600 / SHRINK, .height = 2000 / SHRINK, .channels = 3};
    image.pixels = malloc((size_t)image.width * image.height * 3);
    assert_non_null(image.pixels);
    for (size_t k = 0; k < (size_t)image.width * image.height * 3; k++) image.pixels[k] = (uint8_t)(k / 4096);
    void *png;
    MRT_EQ(mr_image_encode_png(&image, &png, &bytes, NULL), MR_OK);
    add_file(root, "09-huge.png", png, bytes);
    add_file(root, "29-huge.png", png, bytes);
    free(png);
    free(image.pixels);
    return root;
}

/* Any number of workers and any budget: the same pixels, or a clear end; never more memory than that. */
static void a_budget_decides_whether_never_what(void **state)
{
    (void)state;
    const char *root = few_huge("few-huge");
    const budgeted all = in_budget(root, 1, 8000, false);
    const uint32_t workers[] = {1, 3, 8},
                   budgets[] = {MRT_SANITIZED ? 60 : 150, 300, 500, 800, MRT_SANITIZED ? 800 : 1500};
    uint32_t whole = 0, waited = 0;
    MRT_EQ(all.ended, MR_OK);
    MRT_EQ(all.samples, 40 + HUGE);
    MRT_EQ(all.bad, 0);
    for (size_t w = 0; w < MRI_ARRAY_COUNT(workers); w += STRIDE)
        for (size_t b = 0; b < MRI_ARRAY_COUNT(budgets); b += STRIDE) {
            const budgeted m = in_budget(root, workers[w], budgets[b], false);
            MRT_EQ(m.bad, 0);
            if (m.ended == MR_OK) {
                MRT_TRUE(mrt_same_batches(m.digest, all.digest));
                whole++;
                waited += workers[w] > 1;
            } else {
                MRT_EQ(m.ended, MR_ELIMIT);
                MRT_HAS(m.text, "budget");
            }
        }
    MRT_TRUE(whole >= 8 / STRIDE / STRIDE && waited >= 4 / STRIDE / STRIDE);
    free((void *)(uintptr_t)root);
}

/* Two loaders of one budget: together they stay inside, and what one has borrowed does not keep the other
 * waiting. */
static void two_loaders_share_a_budget(void **state)
{
    (void)state;
    const char *root = few_huge("few-huge-shared");
    const budgeted all = in_budget(root, 1, 8000, false);
    const uint32_t workers[] = {1, 2, 4}, budgets[] = {500, 1000};
    uint32_t whole = 0;
    for (size_t w = 0; w < MRI_ARRAY_COUNT(workers); w += STRIDE)
        for (size_t b = 0; b < MRI_ARRAY_COUNT(budgets); b += STRIDE) {
            const budgeted m = in_budget(root, workers[w], budgets[b], true);
            if (m.ended == MR_OK) {
                MRT_TRUE(mrt_same_batches(m.digest, all.digest));
                whole++;
            } else {
                MRT_EQ(m.ended, MR_ELIMIT);
            }
        }
    MRT_TRUE(whole >= 4 / STRIDE / STRIDE);
    free((void *)(uintptr_t)root);
}

static budgeted converted_in(const char *path, uint32_t workers, uint32_t mib, const char *side,
                             const char *to)
{
    char set[4096], result[4096], threads[16], room[16];
    char *const argv[] = {(char *)"loader", set, result, threads, room, (char *)to, (char *)side, NULL};
    snprintf(set, sizeof set, "%s", path);
    snprintf(result, sizeof result, "%s", mrt_path("result"));
    snprintf(threads, sizeof threads, "%u", workers);
    snprintf(room, sizeof room, "%u", mib);
    budgeted out;
    run_child(argv, result, &out, sizeof out);
    print_message("convert, %u workers, %u MiB: before %.1f, peak %.1f MiB%s%s\n", workers, mib,
                  (double)out.before / 1048576, (double)out.peak / 1048576, out.ended == MR_OK ? "" : ": ",
                  out.ended == MR_OK ? "" : out.text);
    return out;
}

/* A conversion's workers wait for each other, too: the same bytes for any of them. What cannot fit is a bad
 * sample. */
static void a_conversion_waits_for_memory(void **state)
{
    (void)state;
    const char *root = few_huge("few-huge-convert");
    char to[4096], first[4096];
    snprintf(first, sizeof first, "%s", mrt_path("first.mrec"));
    snprintf(to, sizeof to, "%s", mrt_path("other.mrec"));
    const budgeted all = converted_in(root, 1, 8000, "100", first);
    MRT_EQ(all.ended, MR_OK);
    MRT_EQ(all.samples, 40 + HUGE);
    MRT_EQ(all.bad, 0);
    size_t bytes, other_bytes;
    uint8_t *expected = mrt_read_file(first, &bytes);
    const uint32_t workers[] = {1, 6}, enough = MRT_SANITIZED ? 150 : 450;
    for (size_t w = MRT_SANITIZED; w < MRI_ARRAY_COUNT(workers); w++) {
        const budgeted m = converted_in(root, workers[w], enough, "100", to);
        MRT_EQ(m.ended, MR_OK);
        MRT_TRUE(MRT_SANITIZED || m.peak <= m.before + ((uint64_t)enough << 20) + SLACK_BYTES);
        uint8_t *other = mrt_read_file(to, &other_bytes);
        MRT_EQ(other_bytes, bytes);
        assert_memory_equal(other, expected, bytes);
        free(other);
        const budgeted never = converted_in(root, workers[w], 60, "100", to);
        MRT_EQ(never.ended, MR_OK);
        MRT_EQ(never.samples + never.bad, 40 + HUGE);
        MRT_TRUE(never.bad > 0 && (MRT_SANITIZED || never.bad == HUGE)); /* pictures are smaller there */
        const budgeted streamed = converted_in(root, workers[w], 60, "0", to);
        MRT_EQ(streamed.ended, MR_OK);
        MRT_TRUE(streamed.samples > 40 && streamed.samples + streamed.bad == 40 + HUGE); /* PNG is decoded
                                                                                            whole */
        MRT_TRUE(MRT_SANITIZED || streamed.peak <= streamed.before + ((uint64_t)60 << 20) + SLACK_BYTES);
    }
    free(expected);
    free((void *)(uintptr_t)root);
}

typedef struct checking {
    mr_budget *budget;
    mr_value value;
    int rc;
    mr_error err;
    pthread_t thread;
} checking;

static void *check_main(void *arg)
{
    checking *c = arg;
    mr_checker *checker;
    c->rc = mr_checker_create(&checker);
    if (c->rc) return NULL;
    mr_checker_share(checker, c->budget);
    for (int k = 0; k < 3 && !c->rc; k++) c->rc = mr_checker_run(checker, &c->value, NULL, &c->err);
    mr_checker_destroy(checker);
    return NULL;
}

static void checkers_wait_for_memory(void **state)
{
    (void)state;
    const mrt_jpeg_kind kind = {.h = 2, .v = 2, .components = 3, .quality = 60, .progressive = true};
    size_t bytes;
    uint8_t *jpeg = mrt_jpeg(&kind, 1000, 800, 1, &bytes);
    const uint64_t budgets[] = {80 << 20, 30 << 20}; /* for one at a time; for none */
    for (int b = 0; b < 2; b++) {
        checking c[5];
        mr_budget *budget;
        MRT_EQ(mr_budget_create(&budget, budgets[b]), MR_OK);
        for (int k = 0; k < 5; k++) {
            c[k] = (checking){.budget = budget, .value = mrt_encoded(jpeg, bytes), .err = MR_ERROR_INIT};
            MRT_EQ(pthread_create(&c[k].thread, NULL, check_main, &c[k]), 0);
        }
        for (int k = 0; k < 5; k++) pthread_join(c[k].thread, NULL);
        for (int k = 0; k < 5; k++) {
            MRT_EQ(c[k].rc, b ? MR_ELIMIT : MR_OK);
            if (b) MRT_EQ(c[k].err.sys_errno, ENOMEM);
        }
        mr_budget_destroy(budget);
    }
    free(jpeg);
}

static void keep_note(void *context, const char *text) { snprintf(context, 512, "%s", text); }

typedef struct opened {
    int rc;
    mr_loader_info info;
    mr_digest digest;
    char note[512];
    mr_error err;
} opened;

static opened open_within(const mr_source *src, uint64_t bytes, uint32_t prefetch, uint32_t workers)
{
    opened o = {.err = MR_ERROR_INIT};
    mr_loader *l;
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 64;
    cfg.augment = "resize(224x224)";
    cfg.memory_bytes = bytes;
    cfg.on_note = keep_note;
    cfg.note_context = o.note;
    if (prefetch) cfg.prefetch = prefetch;
    cfg.workers = workers;
    o.rc = mr_loader_open(&l, src, &cfg, &o.err);
    if (o.rc != MR_OK) return o;
    o.info = *mr_loader_info_of(l);
    mr_loader_close(l);
    o.digest = mrt_digest(src, &cfg, NULL, NULL);
    return o;
}

/* Settings left at their defaults shrink, and a note reports it; settings of the program stay, or the loader
 * is refused. */
static void defaults_become_less_in_a_small_budget(void **state)
{
    (void)state;
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_source_open(&src, mrt_folder_set("small-budget", 2, 40, 60, true), NULL, &err), &err);
    const opened all = open_within(src, (uint64_t)8 << 30, 0, 0);
    MRT_OK(all.rc, &all.err);
    MRT_EQ(all.info.prefetch, 4);
    MRT_STR(all.note, "");

    /* the least that is enough; a slot takes 9.2 MiB */
    uint64_t small = (uint64_t)20 << 20;
    opened less = open_within(src, small, 0, 0);
    for (; less.rc == MR_ELIMIT && small < (uint64_t)300 << 20; less = open_within(src, small, 0, 0))
        small += (uint64_t)5 << 20;
    MRT_OK(less.rc, &less.err);
    MRT_TRUE(less.info.prefetch >= 1 && less.info.prefetch < 4);
    MRT_TRUE(less.info.workers >= 1);
    MRT_TRUE(less.info.memory_bytes <= small);
    MRT_HAS(less.note, "has room for prefetch");
    MRT_TRUE(mrt_same_batches(less.digest, all.digest));

    const opened chosen = open_within(src, small, 24, 1);
    MRT_EQ(chosen.rc, MR_ELIMIT);
    MRT_HAS(chosen.err.text, "25 slots");
    const opened never = open_within(src, (uint64_t)20 << 20, 0, 0);
    MRT_EQ(never.rc, MR_ELIMIT);
    MRT_HAS(never.err.text, "2 slots");
    mr_source_close(src);
}

int main(int argc, char **argv)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* only the touched pages of stacks and buffers; children inherit
                                            * it */
    if (argc == 7) return run_pool(argv + 1);
    if (argc == 6) return run_in_budget(argv + 1);
    if (argc == 9) return measure(argv + 1);
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(memory_does_not_grow_with_the_set),
        cmocka_unit_test(a_resident_set_takes_its_own_size),
        cmocka_unit_test(a_cache_takes_its_budget),
        cmocka_unit_test(slots_are_what_large_pictures_take),
        cmocka_unit_test(pictures_of_many_sizes_stay_within),
    };
    const struct CMUnitTest together[] = {
        cmocka_unit_test(a_budget_decides_whether_never_what),
        cmocka_unit_test(two_loaders_share_a_budget),
        cmocka_unit_test(a_conversion_waits_for_memory),
        cmocka_unit_test(checkers_wait_for_memory),
        cmocka_unit_test(defaults_become_less_in_a_small_budget),
    };
    if (MRT_SANITIZED) print_message("not run: what measures memory alone; a sanitizer's own counts\n");
    const int failed = MRT_SANITIZED ? 0 : mrt_run(alone);
    return failed + mrt_run(together);
}
