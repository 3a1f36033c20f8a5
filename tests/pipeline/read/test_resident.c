/* A set of small samples that lies in memory: the same batches as from requests, the same bad samples, read
 * exactly once, and only where it is small enough. The program's pread() goes through here: reads that touch
 * [poison_from, poison_to) find the end of the file. */
#include <unistd.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "pipeline/read/reader.h"
#include "pipeline/read/resident.h"
#include "tests/pipeline/sets.h"

#define SIDE   64
#define HEADER 16
#define BYTES  (SIDE * SIDE)
#define COUNT  700 /* 2.7 MiB: three runs */

static uint64_t poison_from, poison_to; /* set before any thread starts */

ssize_t __real_pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset);

ssize_t __wrap_pread(int fd, void *data, size_t bytes, off_t offset)
{
    if ((uint64_t)offset < poison_to && (uint64_t)offset + bytes > poison_from) {
        return 0; /* the file ends */
    }
    return __real_pread(fd, data, bytes, offset);
}

static mr_loader_config settings(bool resident)
{
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 48;
    cfg.seed = 5;
    cfg.epochs = 3;
    cfg.workers = 2;
    cfg.training = true;
    cfg.augment = "padcrop(2),flip";
    if (!resident) cfg.resident_bytes = 0;
    return cfg;
}

static void same(mr_digest a, mr_digest b) { MRT_TRUE(a.lo == b.lo && a.hi == b.hi); }

/* The pixels of a set as a record file. */
static const char *record_file(const char *name, const char *from, uint64_t shard_bytes)
{
    mr_error err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result result;
    mr_source *src = mrt_source(from);
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_RAW;
    cfg.force = true;
    cfg.shard_bytes = shard_bytes;
    MRT_OK(mr_convert(src, mrt_path("%s.mrec", name), &cfg, &result, &err), &err);
    mr_source_close(src);
    return mrt_path("%s.mrec", name);
}

static uint64_t resident_bytes_of(const mr_source *src, const mr_loader_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    MRT_OK(mr_loader_open(&l, src, cfg, &err), &err);
    const uint64_t bytes = mr_loader_info_of(l)->resident_bytes;
    mr_loader_close(l);
    return bytes;
}

/* ------------------------------------------------------------------------------ the same batches */

static void check_same_batches(const char *path)
{
    mr_source *src = mrt_source(path);
    mr_loader_config cfg = settings(false);
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    const uint32_t workers[] = {1, 2, 5}, readers[] = {1, 2, 6}, prefetch[] = {4, 1, 0};
    cfg = settings(true);
    MRT_TRUE(resident_bytes_of(src, &cfg) > 0);
    const uint32_t step = MRT_SANITIZED ? 7 : 1; /* each number of workers, readers, slots and parts at least
                                                  */
    for (uint32_t k = 0; k < 27; k += step) {
        cfg.workers = workers[k % 3];
        cfg.readers = readers[k / 3 % 3];
        cfg.prefetch = prefetch[k / 9];
        cfg.parts = 1 + k % 4;
        cfg.direct = k % 5 == 0;
        cfg.io = k % 2 ? MR_IO_PREAD : MR_IO_AUTO;
        same(expected, mrt_digest(src, &cfg, NULL, NULL));
    }
    mr_source_close(src);
}

static void batches_are_the_same(void **state)
{
    (void)state;
    char idx[4096];
    snprintf(idx, sizeof idx, "%s", mrt_idx_set("batches", COUNT, SIDE, SIDE));
    check_same_batches(idx);
    check_same_batches(record_file("one", idx, 0));
    check_same_batches(record_file("shards", idx, 1 << 20));
}

static void resume_in_the_middle(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("resume", COUNT, SIDE, SIDE));
    mr_digester *d;
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = settings(false);
    const mr_digest expected = mrt_digest(src, &cfg, NULL, NULL);
    MRT_EQ(mr_digester_create(&d), MR_OK);
    for (int part = 0; part < 2; part++) { /* the second half on other threads */
        mr_loader *l;
        uint64_t batches, samples;
        cfg = settings(true);
        cfg.start_epoch = part;
        cfg.start_step = part ? 7 : 0;
        cfg.prefetch = part ? 0 : 4;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        MRT_OK(mr_digester_run(d, l, NULL, part ? UINT64_MAX : (COUNT - 1) / 48 + 1 + 7, &batches, &samples,
                               &err),
               &err);
        mr_loader_close(l);
    }
    same(expected, mr_digester_result(d));
    mr_digester_destroy(d);
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ read once */

static void everything_is_read_once(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("once", COUNT, SIDE, SIDE));
    for (uint32_t prefetch = 0; prefetch < 5; prefetch += 4) {
        mr_loader_config cfg = settings(true);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        mr_loader_stats s;
        cfg.readers = 2;
        cfg.prefetch = prefetch;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        while (mr_loader_next(l, &b, MR_FOREVER, &err) == MR_OK) mr_loader_release(l, &b, NULL);
        mr_loader_stats_read(l, &s);
        MRT_EQ(s.bytes_read, HEADER + COUNT * BYTES);
        MRT_TRUE(s.reads >= 3 && s.reads < 30); /* the kernel may bring less than was asked for */
        MRT_EQ(s.read.items, 3 * COUNT);
        MRT_EQ(s.decode.items, 3 * COUNT);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ bad samples */

typedef struct reported {
    uint32_t count;
    uint64_t sample[8];
} reported;

static void remember(void *context, const mr_error *what, uint64_t substitute)
{
    (void)substitute;
    reported *t = context;
    if (t->count < 8) t->sample[t->count] = what->sample;
    t->count++;
}

static mr_digest digest_with_bad(const mr_source *src, bool resident, uint32_t prefetch, reported *t)
{
    mr_loader_config cfg = settings(resident);
    *t = (reported){0};
    cfg.io = MR_IO_PREAD;
    cfg.prefetch = prefetch;
    cfg.bad = MR_BAD_REPLACE;
    cfg.on_bad = remember;
    cfg.bad_context = t;
    return mrt_digest(src, &cfg, NULL, NULL);
}

/* A run that cannot be read leaves a hole of 256 samples, and one of them is bad. */
static void a_hole_costs_only_what_cannot_be_read(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("hole", COUNT, SIDE, SIDE));
    reported t;
    poison_from = HEADER + 300 * BYTES + 10, poison_to = poison_from + 1;
    const mr_digest expected = digest_with_bad(src, false, 4, &t);
    MRT_EQ(t.count, 1);
    for (uint32_t prefetch = 0; prefetch < 5; prefetch += 2) {
        same(expected, digest_with_bad(src, true, prefetch, &t));
        MRT_EQ(t.count, 1);
        MRT_EQ(t.sample[0], 300);
    }
    poison_to = 0;
    mr_source_close(src);
}

static void flip_bit(const char *path, uint64_t at)
{
    FILE *f = fopen(path, "r+b");
    uint8_t byte;
    assert_non_null(f);
    MRT_EQ(fseek(f, (long)at, SEEK_SET), 0);
    MRT_EQ(fread(&byte, 1, 1, f), 1);
    byte ^= 4;
    MRT_EQ(fseek(f, (long)at, SEEK_SET), 0);
    MRT_EQ(fwrite(&byte, 1, 1, f), 1);
    fclose(f);
}

/* Found when it is first used, and again in every epoch: a bad sample never passes for a known good one. */
static void a_damaged_record_stays_bad(void **state)
{
    (void)state;
    char idx[4096], path[4096];
    snprintf(idx, sizeof idx, "%s", mrt_idx_set("damaged", COUNT, SIDE, SIDE));
    snprintf(path, sizeof path, "%s", record_file("damaged", idx, 0));
    mr_source *src = mrt_source(path);
    mr_extent e;
    reported t;
    MRT_EQ(mr_source_extent(src, 123, &e, NULL), MR_OK);
    flip_bit(path, e.offset + 1000);
    const mr_digest expected = digest_with_bad(src, false, 4, &t);
    MRT_EQ(t.count, 1);
    same(expected, digest_with_bad(src, true, 4, &t));
    MRT_EQ(t.count, 1);
    MRT_EQ(t.sample[0], 123);
    same(expected, digest_with_bad(src, true, 0, &t));

    mr_loader_config cfg = settings(true); /* without checks it is delivered as it is */
    mr_error err = MR_ERROR_INIT;
    cfg.no_checks = true;
    cfg.bad = MR_BAD_STOP;
    const mr_digest unchecked = mrt_digest(src, &cfg, NULL, NULL);
    MRT_TRUE(unchecked.lo != expected.lo);
    cfg.no_checks = false;
    mr_loader *l;
    mr_batch b;
    int rc;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &b, NULL);
    MRT_EQ(rc, MR_EBADSAMPLE);
    MRT_EQ(err.sample, 123);
    mr_loader_close(l);
    mr_source_close(src);
}

/* Checksums are computed once: from then on the bytes are taken for good, but never for longer than they
 * are. */
static void trusted_bytes_are_not_summed_again(void **state)
{
    (void)state;
    char idx[4096];
    snprintf(idx, sizeof idx, "%s", mrt_idx_set("trusted", 20, SIDE, SIDE));
    mr_source *src = mrt_source(record_file("trusted", idx, 0));
    mr_error err = MR_ERROR_INIT;
    mr_sample sample;
    void *buffer = NULL;
    size_t room = 0;
    mr_extent e;
    MRT_OK(mr_source_read(src, 3, &buffer, &room, &sample, &err), &err);
    MRT_EQ(mr_source_extent(src, 3, &e, NULL), MR_OK);
    ((uint8_t *)buffer)[1000] ^= 1;
    MRT_EQ(mr_source_parse(src, 3, buffer, (size_t)e.bytes, &sample, &err), MR_ECHECKSUM);
    MRT_OK(mri_source_parse_trusted(src, 3, buffer, (size_t)e.bytes, &sample, &err), &err);
    MRT_EQ(sample.value_count, 2);
    MRT_EQ(mri_source_parse_trusted(src, 3, buffer, (size_t)e.bytes - 1, &sample, &err), MR_EFORMAT);
    MRT_EQ(mri_source_parse_trusted(src, 20, buffer, (size_t)e.bytes, &sample, &err), MR_EINVAL);
    free(buffer);
    mr_source_close(src);
}

/* ------------------------------------------------------------------------------ when */

static void only_small_sets_are_resident(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("when", COUNT, SIDE, SIDE));
    mr_loader_config cfg = settings(true);
    const uint64_t bytes = resident_bytes_of(src, &cfg);
    MRT_TRUE(bytes >= COUNT * BYTES && bytes <= COUNT * BYTES + (5u << 20)); /* huge pages round up */
    cfg.resident_bytes = bytes;
    MRT_EQ(resident_bytes_of(src, &cfg), bytes);
    cfg.resident_bytes = bytes - 1;
    MRT_EQ(resident_bytes_of(src, &cfg), 0);
    mr_source_close(src);

    src = mrt_source(mrt_idx_set("quarter", 5000, SIDE, SIDE));
    cfg = settings(true);
    cfg.prefetch = 0;
    cfg.memory_bytes = 4 * mri_resident_bytes(src);
    MRT_EQ(resident_bytes_of(src, &cfg), mri_resident_bytes(src));
    cfg.memory_bytes--; /* more than a quarter of the budget */
    MRT_EQ(resident_bytes_of(src, &cfg), 0);
    mr_source_close(src);

    /* a file each: nothing to read in runs */
    src = mrt_source(mrt_folder_set("whenfolder", 2, 5, 16, false));
    cfg = settings(true);
    MRT_EQ(resident_bytes_of(src, &cfg), 0);
    mr_source_close(src);
    src = mrt_source(mrt_idx_set("whenlarge", 4, 300, 300)); /* a request is nothing beside 90 KB */
    MRT_EQ(resident_bytes_of(src, &cfg), 0);
    mr_source_close(src);
}

static void stops_while_the_set_is_read(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("stop", COUNT, SIDE, SIDE));
    for (uint32_t round = 0; round < 60; round++) {
        mr_loader_config cfg = settings(true);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        cfg.readers = 1 + round % 3;
        cfg.direct = true;
        cfg.io = round % 2 ? MR_IO_PREAD : MR_IO_AUTO;
        MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
        const struct timespec nap = {.tv_nsec = (long)(round * 20000)};
        nanosleep(&nap, NULL);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("alloc", 60, 8, 8));
    for (long n = 0;; n += MRT_TURN) {
        mr_loader_config cfg = settings(true);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l = (mr_loader *)&cfg;
        mr_batch b;
        cfg.prefetch = 0;
        mrt_fail_alloc_at(n);
        int rc = mr_loader_open(&l, src, &cfg, &err);
        if (rc == MR_OK)
            while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &b, NULL);
        const int failed = mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        if (!failed) {
            MRT_EQ(rc, MR_EEND);
            mr_loader_close(l);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_the_same),
        cmocka_unit_test(resume_in_the_middle),
        cmocka_unit_test(everything_is_read_once),
        cmocka_unit_test(a_hole_costs_only_what_cannot_be_read),
        cmocka_unit_test(a_damaged_record_stays_bad),
        cmocka_unit_test(trusted_bytes_are_not_summed_again),
        cmocka_unit_test(only_small_sets_are_resident),
        cmocka_unit_test(stops_while_the_set_is_read),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return mrt_run(tests);
}
