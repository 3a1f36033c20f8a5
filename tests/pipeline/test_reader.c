/* Readers: the same bytes by io_uring and pread, with and without O_DIRECT, whatever short, interrupted and refused reads
 * come between; early ends and failures are told with their place. */
#include <errno.h>
#include <unistd.h>

#include "base/util.h"
#include "pipeline/reader.h"
#include "sets.h"

#define SIZE (64 * 64)
#define COUNT 300
#define REQUESTS 500

static uint8_t *whole;
static size_t   whole_bytes;
static mr_source *source;

static int open_set(void **state)
{
    (void)state;
    const char *path = mrt_idx_set("reader", COUNT, 64, 64);
    whole = mrt_read_file(path, &whole_bytes);
    source = mrt_source(path);
    return 0;
}

static int close_set(void **state)
{
    (void)state;
    mr_source_close(source);
    free(whole);
    return 0;
}

/* Anything that a kernel may answer for a read that will succeed in the end. */
static int troubled(void *context, int result, size_t asked)
{
    uint64_t *at = context;
    const uint64_t draw = mri_mix64((*at)++);
    (void)asked;
    if (draw % 5 == 0) return -EINTR;
    if (draw % 5 == 1) return -EAGAIN;
    if (draw % 5 == 2 && result > 1) return 1 + (int)(draw / 5 % (uint64_t)result);
    return result;
}

static void check_reads(mr_io kind, bool direct, bool trouble, uint32_t depth)
{
    uint64_t                calls = 1;
    const mri_reader_config cfg = {.source = source, .depth = depth, .direct = direct, .filter = trouble ? troubled : NULL,
                                   .filter_context = &calls};
    mr_error    err = MR_ERROR_INIT;
    mri_reader *r;
    MRT_OK(mri_reader_create(&r, kind, &cfg, &err), &err);
    mri_read *q = calloc(REQUESTS, sizeof *q);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        const uint64_t draw = mri_mix64(i);
        q[i] = (mri_read){.file = 0, .sample = i, .offset = draw % (whole_bytes - 1), .buffer_idx = -1};
        q[i].bytes = (size_t)mri_min_u64(1 + (draw >> 32) % 20000, whole_bytes - q[i].offset);
        q[i].buffer = mri_alloc_aligned(4096, mri_reader_room(direct, q[i].offset, q[i].bytes));
        mri_reader_submit(r, &q[i]);
    }
    for (uint32_t n = 0; n < REQUESTS; n++) {
        mri_read *done;
        MRT_OK(mri_reader_reap(r, true, &done, &err), &err);
        assert_non_null(done);
        MRT_EQ(done->status, MR_OK);
        assert_memory_equal(done->data, whole + done->offset, done->bytes);
    }
    MRT_EQ(mri_reader_in_flight(r), 0);
    if (trouble) MRT_TRUE(mri_reader_counts_of(r).again > 0 && mri_reader_counts_of(r).shorts > 0);
    for (uint32_t i = 0; i < REQUESTS; i++) free(q[i].buffer);
    free(q);
    mri_reader_destroy(r);
}

static bool have_uring(void)
{
    char note[160];
    if (mri_uring_usable(32, note, sizeof note)) return true;
    print_message("not run: %s\n", note);
    return false;
}

static void pread_reads(void **state)
{
    (void)state;
    check_reads(MR_IO_PREAD, false, false, 1);
    check_reads(MR_IO_PREAD, true, false, 4);
    check_reads(MR_IO_PREAD, false, true, 4);
}

static void uring_reads(void **state)
{
    (void)state;
    if (!have_uring()) return;
    const uint32_t depths[] = {1, 2, 32, 600};
    for (size_t d = 0; d < MRI_ARRAY_COUNT(depths); d++) {
        check_reads(MR_IO_URING, false, false, depths[d]);
        check_reads(MR_IO_URING, true, false, depths[d]);
        check_reads(MR_IO_URING, false, true, depths[d]);
    }
}

/* Files in memory are read at once, beside the ring: the same bytes. */
static void files_in_memory(void **state)
{
    (void)state;
    char folder[] = "/dev/shm/millrace-test-XXXXXX", images[64], labels[64];
    if (!mkdtemp(folder)) {
        print_message("not run: /dev/shm is not writable\n");
        return;
    }
    snprintf(images, sizeof images, "%s/x-images-idx3-ubyte", folder);
    snprintf(labels, sizeof labels, "%s/x-labels-idx1-ubyte", folder);
    size_t bytes;
    void  *copy = mrt_read_file(mrt_path("reader-labels-idx1-ubyte"), &bytes);
    mrt_write_file(labels, copy, bytes);
    mrt_write_file(images, whole, whole_bytes);
    free(copy);
    mr_source *on_disk = source;
    source = mrt_source(images);
    for (uint32_t depth = 1; depth < 40; depth += 38) {
        if (have_uring()) check_reads(MR_IO_URING, false, false, depth);
        if (have_uring()) check_reads(MR_IO_URING, false, true, depth);
        check_reads(MR_IO_PREAD, false, true, depth);
    }
    mr_source_close(source);
    source = on_disk;
    unlink(images);
    unlink(labels);
    rmdir(folder);
}

static mri_read read_one(mr_io kind, const mr_source *src, mri_reader_config cfg, mri_read q)
{
    mr_error    err = MR_ERROR_INIT;
    mri_reader *r;
    mri_read   *done;
    cfg.source = src;
    cfg.depth = 2;
    MRT_OK(mri_reader_create(&r, kind, &cfg, &err), &err);
    mri_reader_submit(r, &q);
    MRT_OK(mri_reader_reap(r, true, &done, &err), &err);
    assert_ptr_equal(done, &q);
    mri_reader_destroy(r);
    return q;
}

static int broken_disk(void *context, int result, size_t asked)
{
    (void)context, (void)result, (void)asked;
    return -EIO;
}

/* A file system that refuses an O_DIRECT read behind a last, short sector, even where there is nothing left to read. */
static int strict(void *context, int result, size_t asked)
{
    bool *last = context;
    (void)asked;
    if (*last) return -EINVAL;
    *last = result % 512 != 0;
    return result;
}

static void failures_tell_their_place(void **state)
{
    (void)state;
    static uint8_t buffer[8192];
    for (int k = 0; k < 2; k++) {
        const mr_io kind = k ? MR_IO_PREAD : MR_IO_URING;
        if (!k && !have_uring()) continue;
        mr_error err = MR_ERROR_INIT;
        mri_read q = {.offset = whole_bytes - 100, .bytes = 200, .buffer = buffer, .buffer_idx = -1, .sample = 9};
        q = read_one(kind, source, (mri_reader_config){0}, q);
        MRT_EQ(q.status, MR_EFORMAT);
        MRT_EQ(q.got, 100);
        MRT_EQ(mri_read_error(&q, source, &err), MR_EFORMAT);
        MRT_HAS(err.text, "expected 200 bytes, found 100");
        MRT_EQ(err.offset, whole_bytes - 100);
        MRT_EQ(err.sample, 9);

        for (uint32_t direct = 0; direct < 2; direct++) { /* the file ends inside a sector, and a whole window is missing */
            static _Alignas(4096) uint8_t window[64 * 1024];
            mri_read far = {.offset = whole_bytes - 5000, .bytes = 40000, .buffer = window, .buffer_idx = -1, .sample = 9};
            bool last = false;
            far = read_one(kind, source, (mri_reader_config){.direct = direct, .filter = direct ? strict : NULL,
                                                             .filter_context = &last}, far);
            MRT_EQ(far.status, MR_EFORMAT);
            MRT_EQ(far.got, 5000);
            assert_memory_equal(far.data, whole + whole_bytes - 5000, 5000);
        }

        mri_read e = {.offset = 0, .bytes = 200, .buffer = buffer, .buffer_idx = -1, .sample = 3};
        e = read_one(kind, source, (mri_reader_config){.filter = broken_disk}, e);
        MRT_EQ(mri_read_error(&e, source, &err), MR_EIO);
        MRT_EQ(err.sys_errno, EIO);
    }
}

static void own_files_are_opened_and_closed(void **state)
{
    (void)state;
    mr_source *folder = mrt_source(mrt_folder_set("own", 2, 3, 16, true));
    static uint8_t buffer[65536];
    char path[4096];
    for (int k = 0; k < 2; k++) {
        const mr_io kind = k ? MR_IO_PREAD : MR_IO_URING;
        if (!k && !have_uring()) continue;
        const int before = dup(0);
        close(before);
        for (uint64_t i = 0; i < 6; i++) {
            mr_extent e;
            size_t    bytes;
            MRT_EQ(mr_source_extent(folder, i, &e, NULL), MR_OK);
            mri_read q = {.file = e.file, .sample = i, .bytes = (size_t)e.bytes, .buffer = buffer, .buffer_idx = -1};
            q = read_one(kind, folder, (mri_reader_config){0}, q);
            MRT_EQ(q.status, MR_OK);
            uint8_t *file = mrt_read_file(mr_source_sample_path(folder, i, path, sizeof path), &bytes);
            MRT_EQ(bytes, e.bytes);
            assert_memory_equal(file, q.data, bytes);
            free(file);
        }
        const int after = dup(0); /* the lowest free descriptor: nothing was left open */
        close(after);
        MRT_EQ(before, after);
    }
    unlink(mr_source_sample_path(folder, 4, path, sizeof path));
    for (int k = 0; k < 2; k++) {
        if (!k && !have_uring()) continue;
        mr_error err = MR_ERROR_INIT;
        mri_read q = {.file = MR_FILE_OF_SAMPLE, .sample = 4, .bytes = 10, .buffer = buffer, .buffer_idx = -1};
        q = read_one(k ? MR_IO_PREAD : MR_IO_URING, folder, (mri_reader_config){0}, q);
        MRT_EQ(mri_read_error(&q, folder, &err), MR_ENOENT);
        MRT_HAS(err.file, ".jpg");
    }
    mr_source_close(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pread_reads),
        cmocka_unit_test(uring_reads),
        cmocka_unit_test(files_in_memory),
        cmocka_unit_test(failures_tell_their_place),
        cmocka_unit_test(own_files_are_opened_and_closed),
    };
    return cmocka_run_group_tests(tests, open_set, close_set);
}
