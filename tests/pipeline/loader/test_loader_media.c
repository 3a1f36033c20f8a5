/* A file that ends early in one place, a medium that cannot be read there, and a system that runs out of
 * something: the first is a bad sample, always the same one however samples share reads (I2, I7); the others
 * are never taken for a bad sample.
 *
 * The program's pread() goes through here: reads that touch [poison_from, poison_to) find the end of the
 * file, or fail with poison_errno. */
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
static int poison_errno;

ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset);

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
    if ((uint64_t)offset < poison_to && (uint64_t)offset + bytes > poison_from) {
        errno = poison_errno;
        return poison_errno ? -1 : 0;
    }
    return __real_pread(fd, data, bytes, offset);
}

typedef struct reported {
    uint32_t count;
    uint64_t sample, offset;
} reported;

static void remember(void *context, const mr_error *what, uint64_t substitute)
{
    (void)substitute;
    reported *t = context;
    t->count++;
    t->sample = what->sample;
    t->offset = what->offset;
}

static mr_loader_config settings(reported *t)
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
        reported t = {0};
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
        reported t = {0};
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
    reported t = {0};
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

/* With any setting for bad samples: a failing disk is not a bad sample, and is named with its place. */
static void a_failing_disk_is_not_a_bad_sample(void **state)
{
    (void)state;
    static const int codes[] = {EIO, ENOMEM, ENFILE};
    static const int expected[] = {MR_EIO, MR_ENOMEM, MR_EIO};
    mr_source *src = poisoned(137);
    for (int k = 0; k < 6; k++) {
        reported t = {0};
        mr_loader_config cfg = settings(&t);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        int rc;
        poison_errno = codes[k / 2];
        cfg.bad = k % 2 ? MR_BAD_SKIP : MR_BAD_REPLACE;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &b, NULL);
        MRT_EQ(rc, expected[k / 2]);
        MRT_EQ(err.sys_errno, codes[k / 2]);
        MRT_HAS(err.file, "media-images");
        MRT_EQ(t.count, 0);
        mr_loader_close(l);
    }
    poison_to = 0;
    poison_errno = 0;
    mr_source_close(src);
}

/* Records are not dropped because the system fails, and verify passes over no read that came to nothing. */
static void convert_and_verify_say_so(void **state)
{
    (void)state;
    static const int codes[] = {EIO, ENOMEM, EMFILE};
    mr_source *src = poisoned(137);
    mr_convert_config cfg;
    mr_error err = MR_ERROR_INIT;
    mr_convert_defaults(&cfg);
    cfg.max_bad = 1000;
    cfg.store = MR_STORE_RAW;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(codes); k++) {
        mr_convert_result result = {0};
        poison_errno = codes[k];
        const int rc = mr_convert(src, mrt_path("failing%zu.mrec", k), &cfg, &result, &err);
        MRT_EQ(rc, codes[k] == ENOMEM ? MR_ENOMEM : MR_EIO);
        MRT_EQ(err.sys_errno, codes[k]);
        MRT_EQ(err.sample, 137);
        MRT_EQ(result.bad, 0);
    }
    poison_errno = 0;
    poison_to = 0;
    mr_convert_result result = {0};
    MRT_OK(mr_convert(src, mrt_path("whole.mrec"), &cfg, &result, &err), &err);
    mr_source_close(src);
    mr_verify_result found = {0};
    MRT_OK(mr_mrec_verify(mrt_path("whole.mrec"), NULL, NULL, &found, &err), &err);
    poison_from = 4096 + 60000;
    poison_to = poison_from + 1;
    MRT_EQ(mr_mrec_verify(mrt_path("whole.mrec"), NULL, NULL, &found, &err), MR_EFORMAT);
    MRT_EQ(found.wrong, 1);
    poison_errno = EIO;
    MRT_EQ(mr_mrec_verify(mrt_path("whole.mrec"), NULL, NULL, &found, &err), MR_EIO);
    MRT_EQ(found.wrong, 0);
    poison_errno = 0;
    poison_to = 0;
}

static void out_of_files_is_not_a_bad_sample(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("nofiles", 2, 10, 24, false));
    for (int io = MR_IO_AUTO; io <= MR_IO_PREAD; io += MR_IO_PREAD) {
        reported t = {0};
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
        cmocka_unit_test(a_failing_disk_is_not_a_bad_sample),
        cmocka_unit_test(convert_and_verify_say_so),
        cmocka_unit_test(out_of_files_is_not_a_bad_sample),
    };
    return mrt_run(tests);
}
