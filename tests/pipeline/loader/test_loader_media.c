/* A medium that cannot be read in one place, and a system that runs out of something: the first is a bad
 * sample, always the same one however samples share reads (I2, I7); the second is never taken for a bad
 * sample.
 *
 * The program's pread() goes through here: reads that touch [poison_from, poison_to) fail. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/util.h"
#include "tests/pipeline/sets.h"

#define SIDE   16
#define HEADER 16
#define BYTES  (SIDE * SIDE)

static uint64_t poison_from, poison_to; /* set before any thread starts */

ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset);

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
    if ((uint64_t)offset < poison_to && (uint64_t)offset + bytes > poison_from) {
        errno = EIO;
        return -1;
    }
    return __real_pread(fd, data, bytes, offset);
}

typedef struct told {
    uint32_t count;
    uint64_t sample, offset;
} told;

static void remember(void *context, const mr_error *what, uint64_t substitute)
{
    (void)substitute;
    told *t = context;
    t->count++;
    t->sample = what->sample;
    t->offset = what->offset;
}

static mr_loader_config settings(told *t)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.io = MR_IO_PREAD;
    cfg.order = MR_ORDER_SEQUENTIAL; /* neighbours share reads */
    cfg.batch = 64;
    cfg.resident_bytes = 0; /* samples in memory: test_resident.c */
    cfg.on_bad = remember;
    cfg.bad_context = t;
    return cfg;
}

static mr_source *poisoned(uint64_t sample)
{
    mr_source *src = mrt_source(mrt_idx_set("media", 300, SIDE, SIDE));
    poison_from = HEADER + sample * BYTES + 10;
    poison_to = poison_from + 1;
    return src;
}

static void one_bad_place_is_one_bad_sample(void **state)
{
    (void)state;
    mr_source *src = poisoned(137);
    mr_digest first = {0, 0};
    for (uint32_t round = 0; round < 8; round++) {
        told t = {0};
        mr_loader_config cfg = settings(&t);
        cfg.bad = MR_BAD_REPLACE;
        cfg.workers = 1 + 5 * (round % 4); /* chunks of 32, 6, 3 and 2 samples */
        cfg.prefetch = round / 2;
        const mr_digest d = mrt_digest(src, &cfg, NULL, NULL);
        MRT_EQ(t.count, 1);
        MRT_EQ(t.sample, 137);
        if (round == 0) first = d;
        MRT_TRUE(d.lo == first.lo && d.hi == first.hi);
    }
    poison_to = 0;
    mr_source_close(src);
}

static void the_right_sample_is_named(void **state)
{
    (void)state;
    mr_source *src = poisoned(40);
    for (uint32_t prefetch = 0; prefetch < 3; prefetch += 2) {
        told t = {0};
        mr_loader_config cfg = settings(&t);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        cfg.prefetch = prefetch;
        cfg.workers = 1;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        MRT_EQ(mr_loader_next(l, &b, MR_FOREVER, &err), MR_EBADSAMPLE);
        MRT_EQ(err.sample, 40);
        MRT_EQ(err.offset, HEADER + 40 * BYTES);
        MRT_HAS(err.file, "media-images");
        mr_loader_close(l);
    }
    poison_to = 0;
    mr_source_close(src);
}

static void bytes_of_substitutes_are_counted(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("media", 300, SIDE, SIDE));
    told t = {0};
    mr_loader_config cfg = settings(&t);
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_loader_stats s[2];
    mr_batch b;
    cfg.bad = MR_BAD_REPLACE;
    cfg.batch = 1; /* no two samples share a read */
    for (int round = 0; round < 2; round++) {
        if (round == 1) poison_from = HEADER + 137 * BYTES, poison_to = poison_from + 1;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) mr_loader_release(l, &b, NULL);
        mr_loader_stats_read(l, &s[round]);
        mr_loader_close(l);
    }
    MRT_EQ(s[0].bytes_read, 300 * BYTES);
    MRT_EQ(s[1].bytes_read, 300 * BYTES); /* one that failed brought nothing, its substitute did */
    MRT_EQ(s[1].replaced, 1);
    poison_to = 0;
    mr_source_close(src);
}

static void out_of_files_is_not_a_bad_sample(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("nofiles", 2, 10, 24, false));
    for (int io = MR_IO_AUTO; io <= MR_IO_PREAD; io += MR_IO_PREAD) {
        told t = {0};
        mr_loader_config cfg = settings(&t);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        struct rlimit before, none;
        cfg.io = (mr_io)io;
        cfg.bad = MR_BAD_SKIP;
        cfg.batch = 20;
        cfg.prefetch = 0;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        MRT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        none = before;
        none.rlim_cur = 3;
        MRT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        const int rc = mr_loader_next(l, &b, MR_FOREVER, &err);
        MRT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        MRT_EQ(rc, MR_EIO);
        MRT_EQ(err.sys_errno, EMFILE);
        MRT_EQ(t.count, 0);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_bad_place_is_one_bad_sample),
        cmocka_unit_test(the_right_sample_is_named),
        cmocka_unit_test(bytes_of_substitutes_are_counted),
        cmocka_unit_test(out_of_files_is_not_a_bad_sample),
    };
    return mrt_run(tests);
}
