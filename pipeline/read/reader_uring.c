/* pipeline/read/reader_uring.c: the io_uring kind of reader: one ring per reader thread, up to `depth`
 * requests in the kernel.
 *
 * Every active request has exactly one operation in the ring (open, then reads until it is whole), one more
 * waits for mri_reader_wake(), and the completion queue holds at least twice as many, so it cannot overflow.
 * Requests go in batches: one system call submits all queued requests and collects finished ones. Files
 * shared by many samples and the loader's buffers are registered where the kernel allows it (RLIMIT_MEMLOCK
 * may not): then a read costs no reference counting and no page pinning.
 *
 * A ring that cannot be made where it is first needed (the thread has another policy than the one that
 * asked), or takes nothing from the start, is replaced by pread(). A ring that breaks while reads are in
 * flight ends the reader, but not before the kernel has let go of every buffer. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/util.h"
#include "pipeline/read/reader_kind.h"

enum { STAGE_OPEN, STAGE_READ };

typedef struct uring {
    struct io_uring ring;
    bool ready; /* made in the thread that submits: SINGLE_ISSUER binds the ring to it */
    bool fixed_files;
    bool fixed_buffers;
    bool listening;      /* the ring looks at wake_fd */
    mri_read_list again; /* active requests whose next operation is to be queued */
    bool entered;        /* the kernel has taken something from it */
    uint32_t put_off;    /* times that it said "later" before that */
    int broken;          /* errno that ended the ring; 0 while it works */
} uring;

/* A ring may be mapped where one lay that another thread destroyed. The kernel keeps their order, but
 * liburing calls it past libc, where a detector of races sees nothing: writes to the old ring would look like
 * a race with the new one. The order it can see is this count, raised before a ring is destroyed and read
 * after one is made. */
static uint64_t rings_ended;

static void destroy_ring(struct io_uring *ring)
{
    __atomic_fetch_add(&rings_ended, 1, __ATOMIC_RELEASE);
    io_uring_queue_exit(ring);
}

/* For `depth` requests, and for being woken. any_thread: more than one submits, which SINGLE_ISSUER refuses.
 */
static int make_ring(struct io_uring *ring, uint32_t depth, bool any_thread)
{
    /* newest first: completions run in our own wait, on our own core (kernel 6.1); then what any io_uring
     * kernel knows */
    const unsigned flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                              IORING_SETUP_COOP_TASKRUN, 0};
    int rc = -EINVAL;
    for (size_t i = any_thread ? 1 : 0; i < MRI_ARRAY_COUNT(flags) && rc == -EINVAL; i++)
        rc = io_uring_queue_init(depth + 1, ring, flags[i]);
    __atomic_load_n(&rings_ended, __ATOMIC_ACQUIRE);
    return rc;
}

bool mri_uring_usable(uint32_t depth, char *note, size_t note_bytes)
{
    struct io_uring ring;
    const int rc = make_ring(&ring, depth, false);
    if (note_bytes) note[0] = '\0';
    if (rc == 0) {
        destroy_ring(&ring);
        return true;
    }
    char text[128];
    const char *why = strerror_r(-rc, text, sizeof text);
    snprintf(note, note_bytes, "io_uring is not usable here (%s); reading with pread threads", why);
    return false;
}

static int uring_open(mri_reader *r, mr_error *err)
{
    r->ring = calloc(1, sizeof(uring));
    if (!r->ring) return mr_error_set(err, MR_ENOMEM, "no memory for a ring");
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); /* -1: only a finished read wakes it */
    return MR_OK;
}

static void uring_close(mri_reader *r)
{
    uring *u = r->ring;
    if (u && u->ready) destroy_ring(&u->ring);
    free(u);
}

static void register_files(mri_reader *r, uring *u)
{
    if (r->fd_count == 0 || r->fd_count > 1024 || r->bounded || r->direct_pool) return;
    int fds[1024];
    for (uint32_t i = 0; i < r->fd_count; i++) {
        const mri_read probe = {.file = i < r->file_count ? i : MRI_FILE_OF_CACHE};
        fds[i] = mri_read_fd(r, &probe);
    }
    u->fixed_files = io_uring_register_files(&u->ring, fds, r->fd_count) == 0;
}

static void register_buffers(mri_reader *r, uring *u)
{
    if (r->cfg.buffer_count == 0 || r->cfg.buffer_count > 1024) return;
    struct iovec v[1024];
    for (uint32_t i = 0; i < r->cfg.buffer_count; i++)
        v[i] = (struct iovec){r->cfg.buffers[i], r->cfg.buffer_bytes};
    u->fixed_buffers = io_uring_register_buffers(&u->ring, v, r->cfg.buffer_count) == 0;
}

static int make_ready(mri_reader *r, uring *u, mr_error *err)
{
    const int rc = make_ring(&u->ring, r->cfg.depth, r->cfg.any_thread);
    if (rc != 0) return mr_error_sys(err, -rc, "cannot make an io_uring of %u entries", r->cfg.depth);
    u->ready = true;
    register_files(r, u);
    register_buffers(r, u);
    return MR_OK;
}

/* False when the submission queue is full: submit first. */
static bool queue_operation(mri_reader *r, uring *u, mri_read *q)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    if (!sqe) return false;
    if (q->stage == STAGE_OPEN) {
        io_uring_prep_openat(sqe, AT_FDCWD, q->path, MRI_READ_OPEN_FLAGS, 0);
    } else {
        const bool fixed_file = u->fixed_files && q->file != MR_FILE_OF_SAMPLE;
        const int fd = fixed_file ? (int)mri_read_file_index(r, q) : mri_read_fd(r, q);
        const size_t left = q->window - q->done;
        const unsigned length = left > 1u << 30 ? 1u << 30 : (unsigned)left;
        if (u->fixed_buffers && q->buffer_idx >= 0)
            io_uring_prep_read_fixed(sqe, fd, q->buffer + q->done, length, q->at + q->done, q->buffer_idx);
        else io_uring_prep_read(sqe, fd, q->buffer + q->done, length, q->at + q->done);
        if (fixed_file) sqe->flags |= IOSQE_FIXED_FILE;
    }
    io_uring_sqe_set_data(sqe, q);
    return true;
}

static void queue_all(mri_reader *r, uring *u)
{
    while (u->again.head) {
        if (!queue_operation(r, u, u->again.head)) return;
        mri_read_pop(&u->again);
    }
    while (r->pending.head && r->active < r->cfg.depth) {
        mri_read *q = mri_read_pop(&r->pending);
        const mri_started how = mri_read_start(r, q, r->active == 0);
        if (how == MRI_NOT_NOW) { /* those in flight give files back */
            mri_read_push_front(&r->pending, q);
            return;
        }
        if (how == MRI_FINISHED) continue;
        if (!q->path && r->in_memory && q->file != MRI_FILE_OF_CACHE && r->in_memory[q->file]) {
            mri_read_now(r, q);
            continue;
        }
        q->stage = q->path ? STAGE_OPEN : STAGE_READ;
        r->active++;
        if (!queue_operation(r, u, q)) {
            mri_read_push(&u->again, q);
            return;
        }
    }
}

static void uring_wake(mri_reader *r)
{
    const uint64_t one = 1;
    if (r->wake_fd >= 0 && write(r->wake_fd, &one, sizeof one) < 0) return; /* full: it is awake */
}

/* Before it waits: look at wake_fd, too. Its completion has no request. */
static void listen_for_wake(mri_reader *r, uring *u)
{
    struct io_uring_sqe *sqe = u->listening || r->wake_fd < 0 ? NULL : io_uring_get_sqe(&u->ring);
    if (!sqe) return;
    io_uring_prep_poll_add(sqe, r->wake_fd, POLLIN);
    io_uring_sqe_set_data(sqe, NULL);
    u->listening = true;
}

static void was_woken(mri_reader *r, uring *u)
{
    uint64_t times;
    u->listening = false;
    if (read(r->wake_fd, &times, sizeof times) < 0) return; /* the ring took it back */
}

static void take_completion(mri_reader *r, uring *u, mri_read *q, int result)
{
    if (q->stage == STAGE_OPEN) {
        if (result == -EINTR || (result == -EAGAIN && mri_read_asks_again(r, q))) {
            mri_read_push(&u->again, q);
        } else if (result < 0) {
            r->active--;
            mri_read_finish(r, q, MR_EIO, -result);
        } else {
            q->fd = result;
            q->refusals = 0;
            q->stage = STAGE_READ;
            if (mri_read_opened(r, q)) mri_read_push(&u->again, q);
            else r->active--;
        }
        return;
    }
    if (mri_read_took(r, q, result)) r->active--;
    else mri_read_push(&u->again, q);
}

static unsigned take_completions(mri_reader *r, uring *u)
{
    struct io_uring_cqe *cqe;
    unsigned head, seen = 0;
    io_uring_for_each_cqe (&u->ring, head, cqe) {
        mri_read *q = io_uring_cqe_get_data(cqe);
        if (q) take_completion(r, u, q, cqe->res);
        else was_woken(r, u);
        seen++;
    }
    io_uring_cq_advance(&u->ring, seen);
    return seen;
}

/* ---- a ring that breaks ---- */

static void give_up(mri_reader *r, mri_read *q)
{
    r->active--;
    mri_read_finish(r, q, MR_EIO, ECANCELED);
}

/* Requests in the submission queue that the kernel has not taken: it never will. */
static void forget_unsubmitted(mri_reader *r, uring *u)
{
    const struct io_uring_sq *sq = &u->ring.sq;
    const unsigned count = io_uring_sq_ready(&u->ring);
    for (unsigned i = 0; i < count; i++) {
        mri_read *q = (mri_read *)(uintptr_t)sq->sqes[(sq->sqe_tail - count + i) & sq->ring_mask].user_data;
        if (q) give_up(r, q);
    }
}

/* Wait for the completions of cancelled requests, and of requests too far along to cancel. False: the kernel
 * does not answer any more. */
static bool wait_for_kernel(mri_reader *r, uring *u)
{
    enum { FAILURES = 1000 };
    for (uint32_t failed = 0; r->active > 0 && failed < FAILURES;) {
        struct io_uring_cqe *cqe;
        const int rc = io_uring_wait_cqe(&u->ring, &cqe);
        if (rc == 0) {
            mri_read *q = io_uring_cqe_get_data(cqe);
            if (q && q->stage == STAGE_OPEN && cqe->res >= 0) close(cqe->res);
            io_uring_cqe_seen(&u->ring, cqe);
            if (q) give_up(r, q);
        } else if (rc != -EINTR) {
            const struct timespec nap = {.tv_nsec = 1000000};
            failed++;
            nanosleep(&nap, NULL);
        }
    }
    return r->active == 0;
}

/* Nothing is in flight afterwards: the caller may free the buffers after the failure. Where the kernel cannot
 * be asked any more, they stay allocated for good (mri_reader_keeps_buffers): it might still write to
 * them. */
static int break_ring(mri_reader *r, uring *u, int error, mr_error *err)
{
    if (!u->broken) {
        struct io_uring_sync_cancel_reg all = {.fd = -1,
                                               .flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
                                               .timeout = {.tv_sec = -1, .tv_nsec = -1}};
        u->broken = error;
        forget_unsubmitted(r, u);
        for (mri_read *q = mri_read_pop(&u->again); q; q = mri_read_pop(&u->again)) give_up(r, q);
        if (r->active > 0)
            io_uring_register_sync_cancel(&u->ring, &all); /* older kernels refuse: then the reads run to
                                                              their end */
        r->lost = !wait_for_kernel(r, u);
    }
    return mr_error_sys(err, u->broken,
                        "io_uring cannot submit (reading with pread instead is a setting: io)");
}

static int fall_back(mri_reader *r, bool block, const mr_error *why)
{
    char text[900];
    snprintf(text, sizeof text, "%s; reading with pread", why->text);
    uring_close(r);
    r->ring = NULL;
    r->kind = &mri_reader_pread;
    if (r->cfg.note) r->cfg.note(r->cfg.note_context, text);
    return r->kind->advance(r, block, NULL);
}

#define PUT_OFF_MOST 1000u

/* The system does not let this process enter a ring. A filter of system calls may say so by any of these; one
 * that says "later" for ever is known by that. */
static bool is_refusal(uring *u, int error)
{
    if (error == EAGAIN || error == EBUSY) return ++u->put_off > PUT_OFF_MOST;
    return error == EPERM || error == EACCES || error == ENOSYS || error == EOPNOTSUPP;
}

/* The kernel has accepted no request yet: queued requests are read here, and all later ones with pread. */
static int do_without(mri_reader *r, uring *u, bool block, int error)
{
    const struct io_uring_sq *sq = &u->ring.sq;
    const unsigned count = io_uring_sq_ready(&u->ring);
    mr_error why = MR_ERROR_INIT;
    for (unsigned i = 0; i < count; i++) {
        mri_read *q = (mri_read *)(uintptr_t)sq->sqes[(sq->sqe_tail - count + i) & sq->ring_mask].user_data;
        if (q) mri_read_push(&u->again, q);
    }
    for (mri_read *q = mri_read_pop(&u->again); q; q = mri_read_pop(&u->again)) {
        r->active--;
        mri_read_now(r, q);
    }
    mr_error_sys(&why, error, "the kernel takes nothing from an io_uring");
    return fall_back(r, block && !r->done.head, &why);
}

static int uring_advance(mri_reader *r, bool block, mr_error *err)
{
    uring *u = r->ring;
    mr_error why = MR_ERROR_INIT;
    if (u->broken) return break_ring(r, u, u->broken, err);
    if (!u->ready && make_ready(r, u, &why) != MR_OK) return fall_back(r, block, &why);
    for (;;) {
        queue_all(r, u);
        if (r->active == 0) return MR_OK; /* all of it was in memory */
        const bool wait = block && !r->done.head;
        if (wait) listen_for_wake(r, u);
        const bool listening = u->listening;
        const int rc =
            wait ? io_uring_submit_and_wait(&u->ring, 1) : io_uring_submit_and_get_events(&u->ring);
        if (!u->entered && is_refusal(u, -rc)) return do_without(r, u, block, -rc);
        u->entered = u->entered || rc > 0;
        const unsigned seen = take_completions(r, u);
        /* EBUSY, EAGAIN: the kernel wants completions taken first; EINTR: a signal */
        if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) return break_ring(r, u, -rc, err);
        const bool more = u->again.head || (r->pending.head && r->active < r->cfg.depth);
        if (r->done.head || (!block && !(more && seen))) return MR_OK;
        if (wait && listening && !u->listening) return MR_OK; /* woken */
    }
}

const mri_reader_kind mri_reader_uring = {"io_uring",    uring_open, uring_close,
                                          uring_advance, NULL,       uring_wake};
