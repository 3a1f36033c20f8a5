/* Outlying workers and files: by made-up counts, and by a loader's counts. */
#include <time.h>

#include "mrt.h"
#include "pipeline/observe/odd.h"
#include "tests/pipeline/sets.h"

#define MS 1000000u

/* items of `ms` each, half of it on a core unless the last two arguments say more. */
static mri_toll toll(uint64_t items, double ms, double delayed_ms, double blocked_ms)
{
    const double ran = ms - delayed_ms - blocked_ms;
    return (mri_toll){.items = items,
                      .ns = (uint64_t)((double)items * ms * MS),
                      .bytes = items * 100000,
                      .long_items = ms * MS > MRI_LONG_READ_NS ? items : 0,
                      .ran_ns = (uint64_t)((double)items * ran * MS),
                      .delayed_ns = (uint64_t)((double)items * delayed_ms * MS)};
}

static void a_slow_worker_is_named(void **state)
{
    (void)state;
    mr_odd o[MR_LOADER_ODD];
    mri_toll w[4] = {toll(400, 1, 0, 0), toll(390, 1.1, 0.1, 0), toll(100, 4, 3, 0), toll(410, 1, 0, 0.1)};
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, w, 4, o, MR_LOADER_ODD), 1);
    MRT_EQ(o[0].kind, MR_ODD_WORKER);
    MRT_EQ(o[0].number, 2);
    MRT_EQ(o[0].items, 100);
    MRT_EQ(o[0].cause, MR_CAUSE_CORES);
    MRT_TRUE(o[0].ms > 3.99 && o[0].ms < 4.01 && o[0].others_ms < 1.11 && o[0].times > 3.6);
    w[2] = toll(100, 4, 0, 3);
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, w, 4, o, MR_LOADER_ODD), 1);
    MRT_EQ(o[0].cause, MR_CAUSE_BLOCKED);
    w[2] = toll(100, 4, 0, 0);
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, w, 4, o, MR_LOADER_ODD), 1);
    MRT_EQ(o[0].cause, MR_CAUSE_DECODE);
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, w, 4, o, 0), 0);
}

/* Of two the slower one is compared with the faster one. */
static void one_of_two_is_named(void **state)
{
    (void)state;
    mr_odd o[2];
    const mri_toll w[2] = {toll(100, 3, 2, 0), toll(300, 1, 0, 0)};
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, w, 2, o, 2), 1);
    MRT_EQ(o[0].number, 0);
    MRT_TRUE(o[0].times > 2.99 && o[0].times < 3.01);
}

static void likes_are_not_named(void **state)
{
    (void)state;
    mr_odd o[MR_LOADER_ODD];
    const mri_toll all_slow[3] = {toll(100, 9, 8, 0), toll(100, 9, 8, 0), toll(100, 9, 8, 0)};
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, all_slow, 3, o, 8), 0);
    const mri_toll few[2] = {toll(300, 1, 0, 0), toll(15, 30, 0, 0)}; /* large samples, by chance */
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, few, 2, o, 8), 0);
    const mri_toll little[2] = {toll(300, 0.001, 0, 0), toll(300, 0.15, 0, 0)}; /* 45 ms in all */
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, little, 2, o, 8), 0);
    const mri_toll none[3] = {{0}};
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, none, 3, o, 8), 0);
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, NULL, 0, o, 8), 0);
    MRT_EQ(mri_odd_find(MR_ODD_WORKER, all_slow, 1, o, 8), 0);
}

static void slow_files_are_named_in_order(void **state)
{
    (void)state;
    mr_odd o[3];
    mri_toll f[20];
    for (int i = 0; i < 20; i++) f[i] = toll(50, 1, 0, 0);
    f[3] = toll(50, 5, 0, 0);
    f[7] = toll(50, 20, 0, 0);
    f[9] = toll(50, 10, 0, 0);
    f[12] = toll(50, 4, 0, 0);
    f[15] = toll(50, 10, 0, 0); /* large samples: no slower by the byte */
    f[15].bytes *= 10;
    f[16] = toll(7, 90, 0, 0); /* too few to tell */
    MRT_EQ(mri_odd_find(MR_ODD_FILE, f, 20, o, 3), 3);
    MRT_EQ(o[0].number, 7);
    MRT_EQ(o[1].number, 9);
    MRT_EQ(o[2].number, 3);
    MRT_EQ(o[0].cause, MR_CAUSE_READ);
    MRT_TRUE(o[0].times > 19.9 && o[0].times < 20.1 && o[0].others_ms > 0.99 && o[0].others_ms < 1.01);
}

/* A few reads took very long: the reader was not run, which says nothing of the file. */
static void a_file_with_a_few_late_reads_is_not_named(void **state)
{
    (void)state;
    mr_odd o[3];
    mri_toll f[4];
    for (int i = 0; i < 4; i++) f[i] = toll(50, 0.02, 0, 0);
    f[1] = toll(50, 20, 0, 0);
    f[1].long_items = 10;
    MRT_EQ(mri_odd_find(MR_ODD_FILE, f, 4, o, 3), 0);
    f[1].long_items = 25;
    MRT_EQ(mri_odd_find(MR_ODD_FILE, f, 4, o, 3), 1);
    MRT_EQ(o[0].number, 1);
}

/* ------------------------------------------------------------------------------ loaders */

static int slow_fd = -1; /* set before any thread starts */

ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset);

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
    const struct timespec t = {0, 20 * MS};
    if (fd == slow_fd) nanosleep(&t, NULL);
    return __real_pread(fd, data, bytes, offset);
}

static mr_source *shards(void)
{
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result done;
    char to[4096];
    mr_source *src = mrt_source(mrt_folder_set("pictures", 2, 30, 40, false));
    mr_convert_defaults(&cfg);
    snprintf(to, sizeof to, "%s", mrt_path("pictures.shards"));
    cfg.shard_bytes = 80000;
    MRT_OK(mr_convert(src, to, &cfg, &done, &err), &err);
    mr_source_close(src);
    return mrt_source(to);
}

/* Does a loader name file 1 and nothing else of the source? */
static bool names_file_1(const mr_source *src, uint32_t prefetch)
{
    mr_odd o[MR_LOADER_ODD];
    mr_loader *l;
    mr_batch b;
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = mrt_training(6, 1, "resize(24x24)", NULL, 0);
    cfg.io = MR_IO_PREAD;
    cfg.prefetch = prefetch;
    cfg.resident_bytes = 0;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_EQ(mr_loader_odd(l, o, MR_LOADER_ODD), 0);
    while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
    const uint32_t n = mr_loader_odd(l, o, MR_LOADER_ODD);
    mr_loader_close(l);
    uint32_t files = 0, first = 0;
    for (uint32_t i = 0; i < n; i++)
        if (o[i].kind == MR_ODD_FILE && files++ == 0) first = i;
    return files == 1 && o[first].number == 1 && o[first].ms >= 20 && o[first].times >= 3;
}

/* Reads of one file take 20 ms more. A busy machine may delay all others by as much: then it is asked again.
 */
static void a_loader_names_its_slow_file(void **state)
{
    (void)state;
    mr_source_file file;
    mr_source *src = shards();
    MRT_TRUE(mr_source_info_of(src)->file_count >= 2);
    MRT_EQ(mr_source_file_at(src, 1, &file), MR_OK);
    slow_fd = file.fd;
    for (uint32_t prefetch = 0; prefetch < 4; prefetch += 2) {
        bool named = false;
        for (int i = 0; i < 10 && !named; i++) named = names_file_1(src, prefetch);
        MRT_TRUE(named);
    }
    slow_fd = -1;
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_worker_is_named),
        cmocka_unit_test(one_of_two_is_named),
        cmocka_unit_test(likes_are_not_named),
        cmocka_unit_test(slow_files_are_named_in_order),
        cmocka_unit_test(a_file_with_a_few_late_reads_is_not_named),
        cmocka_unit_test(a_loader_names_its_slow_file),
    };
    return mrt_run(tests);
}
