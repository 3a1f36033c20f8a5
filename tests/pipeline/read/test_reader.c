/* Readers: the same bytes by io_uring and pread, with and without O_DIRECT, across short, interrupted and
 * refused reads; early ends and failures are reported with their place. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/util.h"
#include "pipeline/read/reader.h"
#include "tests/pipeline/sets.h"

/* The kernel's answers are made up here: rings that are refused, submissions that fail after a while. */
static int rings_refused; /* with this errno; 0: they are made */
static int rings_left;    /* atomic: number of rings that are still made */
static int submit_error = EFAULT;
static int submits_left = -1; /* then each fails; -1: none does */
static int waits_fail;

int __real_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int __real_io_uring_submit_and_get_events(struct io_uring *ring);
int __wrap_io_uring_submit_and_get_events(struct io_uring *ring);
int __real___io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **out, unsigned submit,
                              unsigned wait, sigset_t *mask);
int __wrap___io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **out, unsigned submit,
                              unsigned wait, sigset_t *mask);

static bool submit_fails(void)
{
    if (submits_left > 0) submits_left--;
    return submits_left == 0;
}

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
    const bool made = !rings_refused || __atomic_sub_fetch(&rings_left, 1, __ATOMIC_RELAXED) >= 0;
    return !made ? -rings_refused : __real_io_uring_queue_init(entries, ring, flags);
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned count)
{
    return submit_fails() ? -submit_error : __real_io_uring_submit_and_wait(ring, count);
}

int __wrap_io_uring_submit_and_get_events(struct io_uring *ring)
{
    return submit_fails() ? -submit_error : __real_io_uring_submit_and_get_events(ring);
}

int __wrap___io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **out, unsigned submit,
                              unsigned wait, sigset_t *mask)
{
    return waits_fail ? -EFAULT : __real___io_uring_get_cqe(ring, out, submit, wait, mask);
}

#define SIZE     (64 * 64)
#define COUNT    300
#define REQUESTS 500

static uint8_t *whole;
static size_t whole_bytes;
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
    uint64_t calls = 1;
    const mri_reader_config cfg = {.source = source,
                                   .depth = depth,
                                   .direct = direct,
                                   .filter = trouble ? troubled : NULL,
                                   .filter_context = &calls};
    mr_error err = MR_ERROR_INIT;
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

/* Files in memory are read at once, bypassing the ring: the same bytes. */
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
    void *copy = mrt_read_file(mrt_path("reader-labels-idx1-ubyte"), &bytes);
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
    mr_error err = MR_ERROR_INIT;
    mri_reader *r;
    mri_read *done;
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

/* A file system that refuses an O_DIRECT read after a last, short sector, even where nothing is left to
 * read. */
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
        mri_read q = {
            .offset = whole_bytes - 100, .bytes = 200, .buffer = buffer, .buffer_idx = -1, .sample = 9};
        q = read_one(kind, source, (mri_reader_config){0}, q);
        MRT_EQ(q.status, MR_EFORMAT);
        MRT_EQ(q.got, 100);
        MRT_EQ(mri_read_error(&q, source, &err), MR_EFORMAT);
        MRT_HAS(err.text, "expected 200 bytes, found 100");
        MRT_EQ(err.offset, whole_bytes - 100);
        MRT_EQ(err.sample, 9);

        for (uint32_t direct = 0; direct < 2; direct++) { /* the file ends inside a sector, and a whole window
                                                             is missing */
            static _Alignas(4096) uint8_t window[64 * 1024];
            mri_read far = {.offset = whole_bytes - 5000,
                            .bytes = 40000,
                            .buffer = window,
                            .buffer_idx = -1,
                            .sample = 9};
            bool last = false;
            far = read_one(kind, source,
                           (mri_reader_config){
                               .direct = direct, .filter = direct ? strict : NULL, .filter_context = &last},
                           far);
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

static int never_now(void *context, int result, size_t asked)
{
    (void)result, (void)asked;
    ++*(uint32_t *)context;
    return -EAGAIN;
}

static int not_now(void *context, int result, size_t asked)
{
    (void)asked;
    return ++*(uint32_t *)context == 1 ? -EAGAIN : result;
}

/* A descriptor that was opened without waiting: a regular file is waited for after the first refusal, and
 * nothing is asked for ever. */
static void refusals_to_wait_have_an_end(void **state)
{
    (void)state;
    static uint8_t buffer[4096];
    mr_source_file file;
    MRT_EQ(mr_source_file_at(source, 0, &file), MR_OK);
    for (int k = 0; k < 2; k++) {
        const mr_io kind = k ? MR_IO_PREAD : MR_IO_URING;
        if (!k && !have_uring()) continue;
        uint32_t asked = 0;
        mr_error err = MR_ERROR_INIT;
        const mri_read q = {.bytes = 4096, .buffer = buffer, .buffer_idx = -1, .sample = 1};
        MRT_EQ(fcntl(file.fd, F_SETFL, O_NONBLOCK), 0);
        mri_read one =
            read_one(kind, source, (mri_reader_config){.filter = not_now, .filter_context = &asked}, q);
        MRT_EQ(one.status, MR_OK);
        MRT_EQ(asked, 2);
        MRT_TRUE(!(fcntl(file.fd, F_GETFL) & O_NONBLOCK));
        asked = 0;
        one = read_one(kind, source, (mri_reader_config){.filter = never_now, .filter_context = &asked}, q);
        MRT_EQ(mri_read_error(&one, source, &err), MR_EIO);
        MRT_EQ(err.sys_errno, EAGAIN);
        MRT_TRUE(asked > 100 && asked < 10000);
    }
}

/* A pipe in the place of a picture, held open by somebody who writes nothing, is a bad sample and no wait. */
static void a_pipe_is_not_waited_for(void **state)
{
    (void)state;
    mr_source *folder = mrt_source(mrt_folder_set("pipes", 1, 2, 16, true));
    static uint8_t buffer[100];
    char path[4096];
    unlink(mr_source_sample_path(folder, 1, path, sizeof path));
    MRT_EQ(mkfifo(path, 0600), 0);
    const int writer = open(path, O_RDWR);
    MRT_TRUE(writer >= 0);
    for (int k = 0; k < 2; k++) {
        if (!k && !have_uring()) continue;
        mr_error err = MR_ERROR_INIT;
        mri_read q = {
            .file = MR_FILE_OF_SAMPLE, .sample = 1, .bytes = 10, .buffer = buffer, .buffer_idx = -1};
        q = read_one(k ? MR_IO_PREAD : MR_IO_URING, folder, (mri_reader_config){0}, q);
        MRT_EQ(mri_read_error(&q, folder, &err), MR_EFORMAT);
    }
    close(writer);
    mr_source_close(folder);
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
            size_t bytes;
            MRT_EQ(mr_source_extent(folder, i, &e, NULL), MR_OK);
            mri_read q = {
                .file = e.file, .sample = i, .bytes = (size_t)e.bytes, .buffer = buffer, .buffer_idx = -1};
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
        mri_read q = {
            .file = MR_FILE_OF_SAMPLE, .sample = 4, .bytes = 10, .buffer = buffer, .buffer_idx = -1};
        q = read_one(k ? MR_IO_PREAD : MR_IO_URING, folder, (mri_reader_config){0}, q);
        MRT_EQ(mri_read_error(&q, folder, &err), MR_ENOENT);
        MRT_HAS(err.file, ".jpg");
    }
    mr_source_close(folder);
}

/* ------------------------------------------------------------------------------ rings that fail */

static void count_note(void *context, const char *text)
{
    uint32_t *n = context;
    (*n)++;
    MRT_HAS(text, "reading with pread");
}

static void a_refused_ring_is_done_without(void **state)
{
    (void)state;
    uint32_t notes = 0;
    const mri_reader_config cfg = {.source = source, .depth = 8, .note = count_note, .note_context = &notes};
    mr_error err = MR_ERROR_INIT;
    mri_reader *r;
    static uint8_t buffer[20][1000];
    mri_read q[20];
    rings_refused = EPERM;
    rings_left = 0;
    MRT_OK(mri_reader_create(&r, MR_IO_URING, &cfg, &err), &err);
    for (uint32_t i = 0; i < 20; i++) {
        q[i] = (mri_read){.offset = i * 1001, .bytes = 1000, .buffer = buffer[i], .buffer_idx = -1};
        mri_reader_submit(r, &q[i]);
    }
    for (uint32_t i = 0; i < 20; i++) {
        mri_read *done;
        MRT_OK(mri_reader_reap(r, i % 2, &done, &err), &err);
        assert_non_null(done);
        assert_memory_equal(done->data, whole + done->offset, 1000);
    }
    rings_refused = 0;
    MRT_EQ(notes, 1);
    mri_reader_destroy(r);
}

static void *read_in_thread(void *reader)
{
    static uint8_t buffer[1000];
    mr_error err = MR_ERROR_INIT;
    mri_read *done;
    mri_read q = {.bytes = sizeof buffer, .buffer = buffer, .buffer_idx = -1};
    mri_reader_submit(reader, &q);
    return mri_reader_reap(reader, true, &done, &err) == MR_OK && done == &q ? reader : NULL;
}

/* The reader becomes another kind in its thread while a second thread asks it to stop: the thread sanitizer
 * sees whether the two share something. */
static void a_reader_is_stopped_while_its_ring_is_refused(void **state)
{
    (void)state;
    uint32_t notes = 0;
    const mri_reader_config cfg = {.source = source, .depth = 8, .note = count_note, .note_context = &notes};
    mr_error err = MR_ERROR_INIT;
    mri_reader *r;
    pthread_t thread;
    void *result;
    rings_refused = EPERM;
    rings_left = 0;
    MRT_OK(mri_reader_create(&r, MR_IO_URING, &cfg, &err), &err);
    MRT_EQ(pthread_create(&thread, NULL, read_in_thread, r), 0);
    mri_reader_stop(r);
    MRT_EQ(pthread_join(thread, &result), 0);
    rings_refused = 0;
    MRT_TRUE(result == r); /* a kind that waits for nobody reads on */
    MRT_EQ(notes, 1);
    mri_reader_destroy(r);
}

/* The thread that opens may have a ring, the threads that read may not: reported once, and the run goes
 * on. */
static void a_loader_goes_on_without_rings(void **state)
{
    (void)state;
    if (!have_uring()) return;
    uint32_t notes = 0;
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.io = MR_IO_PREAD;
    const mr_digest expected = mrt_digest(source, &cfg, NULL, NULL);
    cfg.io = MR_IO_URING;
    cfg.readers = 3;
    cfg.on_note = count_note;
    cfg.note_context = &notes;
    for (uint32_t k = 0; k < 4; k++) {
        cfg.resident_bytes = k % 2 ? (uint64_t)1 << 30 : 0;
        cfg.prefetch = k / 2;
        notes = 0;
        rings_refused = EPERM;
        rings_left = 1; /* the one that looks whether there are any */
        const mr_digest d = mrt_digest(source, &cfg, NULL, NULL);
        rings_refused = 0;
        MRT_TRUE(d.lo == expected.lo && d.hi == expected.hi);
        MRT_EQ(notes, 1);
    }
}

/* A ring is made, and the system lets nobody enter it: pread() reads, and a note says so. */
static void a_ring_that_takes_nothing_is_replaced(void **state)
{
    (void)state;
    static const int errors[] = {EPERM, ENOSYS, EACCES, EAGAIN};
    if (!have_uring()) return;
    for (size_t k = 0; k < 2 * MRI_ARRAY_COUNT(errors); k++) {
        mr_loader_config cfg;
        mr_loader_defaults(&cfg);
        cfg.resident_bytes = 0;
        uint32_t notes = 0;
        cfg.on_note = count_note;
        cfg.note_context = &notes;
        cfg.readers = 1;
        cfg.prefetch = k < MRI_ARRAY_COUNT(errors) ? 2 : 0;
        const mr_digest expected = mrt_digest(source, &cfg, NULL, NULL);
        notes = 0;
        submit_error = errors[k % MRI_ARRAY_COUNT(errors)];
        submits_left = 1;
        const mr_digest d = mrt_digest(source, &cfg, NULL, NULL);
        const bool asked = submits_left == 0;
        submits_left = -1;
        submit_error = EFAULT;
        MRT_TRUE(d.lo == expected.lo && d.hi == expected.hi);
        MRT_EQ(notes, asked);
    }
}

/* With either reader: the error is reported, and reads in flight end before the loader does. */
static void a_loader_ends_with_its_ring(void **state)
{
    (void)state;
    struct statfs fs;
    MRT_EQ(statfs(mr_source_info_of(source)->path, &fs), 0);
    if (!have_uring() || fs.f_type == TMPFS_MAGIC) return; /* files in memory need no ring */
    for (uint32_t k = 0; k < 8; k++) {
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        mr_loader_config cfg;
        mr_loader_defaults(&cfg);
        cfg.io = MR_IO_URING;
        cfg.readers = 1;
        cfg.resident_bytes = k % 2 ? (uint64_t)1 << 30 : 0;
        cfg.prefetch = k / 2 % 2;
        submits_left = 1 + (int)(k / 4);
        int rc = mr_loader_open(&l, source, &cfg, &err);
        MRT_OK(rc, &err);
        while ((rc = mr_loader_next(l, &b, MR_FOREVER, &err)) == MR_OK) mr_loader_release(l, &b, NULL);
        mr_loader_close(l);
        const bool failed = submits_left == 0;
        submits_left = -1;
        MRT_TRUE(failed || k / 4 == 1); /* one submission may have been enough */
        MRT_EQ(rc, failed ? MR_EIO : MR_EEND);
        if (failed) MRT_EQ(err.sys_errno, EFAULT);
    }
}

/* Two reads of a pipe that nobody writes to, one of the set; then the ring breaks. Bytes written to the pipe
 * afterwards must not reach a buffer. */
static void a_broken_ring_lets_go_of_buffers(void **state)
{
    (void)state;
    if (!have_uring()) return;
    for (int after = 1; after < 4; after++) {
        int pipes[2];
        MRT_EQ(pipe(pipes), 0);
        const mri_reader_config cfg = {
            .source = source, .depth = 8, .extra_fd = pipes[0], .extra_path = "a pipe"};
        mr_error err = MR_ERROR_INIT;
        mri_reader *r;
        mri_read *done, q[4];
        static uint8_t buffer[4][100];
        memset(buffer, 7, sizeof buffer);
        MRT_OK(mri_reader_create(&r, MR_IO_URING, &cfg, &err), &err);
        for (uint32_t i = 0; i < 4; i++) {
            q[i] = (mri_read){
                .file = i % 2 ? 0 : MRI_FILE_OF_CACHE, .bytes = 100, .buffer = buffer[i], .buffer_idx = -1};
            mri_reader_submit(r, &q[i]);
        }
        submits_left = after; /* 1: nothing was submitted; later: the pipe's reads wait in the kernel */
        uint32_t reaped = 0;
        int rc = MR_OK;
        for (uint32_t n = 0; n < 100 && rc == MR_OK; n++) {
            rc = mri_reader_reap(r, false, &done, &err);
            reaped += rc == MR_OK && done;
        }
        submits_left = -1;
        MRT_EQ(rc, MR_EIO);
        MRT_EQ(err.sys_errno, EFAULT);
        MRT_TRUE(!mri_reader_keeps_buffers(r));
        MRT_EQ(write(pipes[1], buffer[0] + 1, 99), 99);
        for (; reaped < 4; reaped++) {
            MRT_OK(mri_reader_reap(r, true, &done, &err), &err);
            assert_non_null(done);
            if (done->file == MRI_FILE_OF_CACHE) MRT_EQ(done->sys_errno, ECANCELED);
        }
        MRT_EQ(mri_reader_in_flight(r), 0);
        mri_reader_submit(r, &q[1]); /* it stays broken */
        MRT_EQ(mri_reader_reap(r, true, &done, &err), MR_EIO);
        for (size_t k = 0; k < 100; k++) MRT_TRUE(buffer[0][k] == 7 && buffer[2][k] == 7);
        uint8_t text[200];
        MRT_EQ(read(pipes[0], text, sizeof text), 99); /* it is all still there */
        mri_reader_destroy(r);
        close(pipes[0]);
        close(pipes[1]);
    }
}

static void *wakes(void *arg)
{
    const struct timespec nap = {.tv_nsec = 20000000}; /* mostly: the reader waits by then */
    nanosleep(&nap, NULL);
    mri_reader_wake(arg);
    return NULL;
}

/* One read is under way and may take long: whoever could submit another one is not kept. */
static void a_reader_that_waits_can_be_woken(void **state)
{
    (void)state;
    if (!have_uring()) return;
    int pipes[2];
    MRT_EQ(pipe(pipes), 0);
    const mri_reader_config cfg = {
        .source = source, .depth = 1, .extra_fd = pipes[0], .extra_path = "a pipe"};
    mr_error err = MR_ERROR_INIT;
    mri_reader *r;
    mri_read *done;
    pthread_t thread;
    uint8_t buffer[100];
    mri_read q = {.file = MRI_FILE_OF_CACHE, .bytes = 100, .buffer = buffer, .buffer_idx = -1};
    MRT_OK(mri_reader_create(&r, MR_IO_URING, &cfg, &err), &err);
    for (int round = 0; round < 3; round++) {
        mri_reader_submit(r, &q);
        for (int turn = 0; turn < 3; turn++) {
            if (turn == 1) { /* before it waits; twice counts once */
                mri_reader_wake(r);
                mri_reader_wake(r);
            } else MRT_EQ(pthread_create(&thread, NULL, wakes, r), 0);
            MRT_OK(mri_reader_reap(r, true, &done, &err), &err);
            assert_null(done);
            MRT_EQ(mri_reader_in_flight(r), 1);
            if (turn != 1) pthread_join(thread, NULL);
        }
        memset(buffer, 0, sizeof buffer);
        static const uint8_t sent[100] = {1, 2, 3};
        MRT_EQ(write(pipes[1], sent, sizeof sent), 100);
        MRT_OK(mri_reader_reap(r, true, &done, &err), &err);
        MRT_TRUE(done == &q && q.status == MR_OK && memcmp(buffer, sent, 100) == 0);
    }
    mri_reader_wake(r); /* nobody waits */
    MRT_OK(mri_reader_reap(r, true, &done, &err), &err);
    assert_null(done);
    mri_reader_destroy(r);
    close(pipes[0]);
    close(pipes[1]);
}

/* Not even asking works: the buffers are given up. */
static void a_silent_kernel_keeps_the_buffers(void **state)
{
    (void)state;
    if (!have_uring()) return;
    int pipes[2];
    MRT_EQ(pipe(pipes), 0);
    const mri_reader_config cfg = {
        .source = source, .depth = 8, .extra_fd = pipes[0], .extra_path = "a pipe"};
    mr_error err = MR_ERROR_INIT;
    mri_reader *r;
    mri_read *done;
    static uint8_t buffer[100];
    mri_read q = {.file = MRI_FILE_OF_CACHE, .bytes = 100, .buffer = buffer, .buffer_idx = -1};
    MRT_OK(mri_reader_create(&r, MR_IO_URING, &cfg, &err), &err);
    mri_reader_submit(r, &q);
    MRT_OK(mri_reader_reap(r, false, &done, &err), &err);
    assert_null(done);
    submits_left = 1;
    waits_fail = 1;
    MRT_EQ(mri_reader_reap(r, true, &done, &err), MR_EIO);
    MRT_TRUE(mri_reader_keeps_buffers(r));
    submits_left = -1;
    waits_fail = 0;
    mri_reader_destroy(r);
    close(pipes[0]);
    close(pipes[1]);
}

/* Waits for `go` without learning anything else of the thread that set it: as a reader that only begins to
 * run after another loader has gone. */
typedef struct late_reader {
    mri_reader *reader;
    mri_read read;
    bool go; /* relaxed */
    bool read_all;
} late_reader;

static void *read_late(void *arg)
{
    late_reader *l = arg;
    mri_read *done = NULL;
    while (!__atomic_load_n(&l->go, __ATOMIC_RELAXED)) sched_yield();
    mri_reader_submit(l->reader, &l->read);
    l->read_all = mri_reader_reap(l->reader, true, &done, NULL) == MR_OK && done == &l->read;
    return NULL;
}

/* The kernel may map a ring at the address of one that another thread made and a third destroyed. It orders
 * these calls; a race detector that does not see liburing's system calls needs an annotation. */
static void a_ring_may_lie_where_another_lay(void **state)
{
    (void)state;
    const mri_reader_config cfg = {.source = source, .depth = 4};
    late_reader l[2] = {0};
    pthread_t threads[2];
    mr_error err = MR_ERROR_INIT;
    if (!have_uring()) return;
    for (int i = 0; i < 2; i++) {
        MRT_OK(mri_reader_create(&l[i].reader, MR_IO_URING, &cfg, &err), &err);
        l[i].read = (mri_read){.bytes = 64, .buffer_idx = -1, .buffer = mri_alloc_aligned(4096, 4096)};
        MRT_EQ(pthread_create(&threads[i], NULL, read_late, &l[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        __atomic_store_n(&l[i].go, true, __ATOMIC_RELAXED);
        pthread_join(threads[i], NULL);
        MRT_TRUE(l[i].read_all);
        assert_memory_equal(l[i].read.data, whole, 64);
        mri_reader_destroy(l[i].reader);
        free(l[i].read.buffer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pread_reads),
        cmocka_unit_test(uring_reads),
        cmocka_unit_test(files_in_memory),
        cmocka_unit_test(failures_tell_their_place),
        cmocka_unit_test(own_files_are_opened_and_closed),
        cmocka_unit_test(refusals_to_wait_have_an_end),
        cmocka_unit_test(a_pipe_is_not_waited_for),
        cmocka_unit_test(a_refused_ring_is_done_without),
        cmocka_unit_test(a_ring_that_takes_nothing_is_replaced),
        cmocka_unit_test(a_loader_ends_with_its_ring),
        cmocka_unit_test(a_reader_is_stopped_while_its_ring_is_refused),
        cmocka_unit_test(a_loader_goes_on_without_rings),
        cmocka_unit_test(a_broken_ring_lets_go_of_buffers),
        cmocka_unit_test(a_silent_kernel_keeps_the_buffers),
        cmocka_unit_test(a_reader_that_waits_can_be_woken),
        cmocka_unit_test(a_ring_may_lie_where_another_lay),
    };
    return cmocka_run_group_tests(tests, open_set, close_set);
}
