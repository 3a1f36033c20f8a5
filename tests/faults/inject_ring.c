/* tests/faults/inject_ring.c: io_uring, by the functions of liburing that the program calls, and by the
 * requests it queues. A request that is to fail is made one that does nothing before it is submitted, so that
 * the kernel completes it at once and its result can be changed before the program sees it. */
#include "inject.h"

#include <errno.h>
#include <liburing.h>
#include <pthread.h>

enum { MARK = 32 }; /* requests with the fault that are not completed yet */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned long long id;
    int result;
} marked[MARK];
static unsigned marked_count;

static int ring_fault(const void *caller)
{
    const int error = mrt_fault(MRT_FAULT_RING, caller);
    return error < MRT_FAULT_SHORT ? error : 0;
}

static void change_request(struct io_uring_sqe *sqe, const void *caller)
{
    const int error = mrt_fault(MRT_FAULT_REQUEST, caller);
    if (error == MRT_FAULT_SHORT && sqe->opcode != IORING_OP_OPENAT) sqe->len = sqe->len / 2 + (sqe->len & 1);
    if (error == 0 || error >= MRT_FAULT_SHORT) return;
    pthread_mutex_lock(&lock);
    if (marked_count < MARK) {
        marked[marked_count].id = sqe->user_data;
        marked[marked_count++].result = -error;
        const unsigned long long id = sqe->user_data;
        io_uring_prep_nop(sqe);
        sqe->flags = 0;
        sqe->user_data = id;
    }
    pthread_mutex_unlock(&lock);
}

/* Requests that are queued and not submitted yet. */
static void change_requests(struct io_uring *ring, const void *caller)
{
    struct io_uring_sq *sq = &ring->sq;
    for (unsigned at = sq->sqe_head; at != sq->sqe_tail; at++)
        change_request(&sq->sqes[at & sq->ring_mask], caller);
}

static void change_results(struct io_uring *ring)
{
    struct io_uring_cqe *cqe;
    unsigned head;
    pthread_mutex_lock(&lock);
    if (marked_count) {
        io_uring_for_each_cqe (ring, head, cqe) {
            for (unsigned i = 0; i < marked_count; i++) {
                if (marked[i].id != cqe->user_data) continue;
                cqe->res = marked[i].result;
                marked[i] = marked[--marked_count];
                break;
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
    MRT_REAL(io_uring_queue_init)
    const int error = ring_fault(MRT_CALLER);
    return error ? -error : real(entries, ring, flags);
}

int io_uring_queue_init_params(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
    MRT_REAL(io_uring_queue_init_params)
    const int error = ring_fault(MRT_CALLER);
    return error ? -error : real(entries, ring, params);
}

int io_uring_register_files(struct io_uring *ring, const int *files, unsigned count)
{
    MRT_REAL(io_uring_register_files)
    const int error = ring_fault(MRT_CALLER);
    return error ? -error : real(ring, files, count);
}

int io_uring_register_buffers(struct io_uring *ring, const struct iovec *v, unsigned count)
{
    MRT_REAL(io_uring_register_buffers)
    const int error = ring_fault(MRT_CALLER);
    return error ? -error : real(ring, v, count);
}

int io_uring_register_sync_cancel(struct io_uring *ring, struct io_uring_sync_cancel_reg *what)
{
    MRT_REAL(io_uring_register_sync_cancel)
    const int error = ring_fault(MRT_CALLER);
    return error ? -error : real(ring, what);
}

int io_uring_submit(struct io_uring *ring)
{
    MRT_REAL(io_uring_submit)
    const int error = ring_fault(MRT_CALLER);
    if (error) return -error;
    change_requests(ring, MRT_CALLER);
    const int rc = real(ring);
    change_results(ring);
    return rc;
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned count)
{
    MRT_REAL(io_uring_submit_and_wait)
    const int error = ring_fault(MRT_CALLER);
    if (error) return -error;
    change_requests(ring, MRT_CALLER);
    const int rc = real(ring, count);
    change_results(ring);
    return rc;
}

int io_uring_submit_and_get_events(struct io_uring *ring)
{
    MRT_REAL(io_uring_submit_and_get_events)
    const int error = ring_fault(MRT_CALLER);
    if (error) return -error;
    change_requests(ring, MRT_CALLER);
    const int rc = real(ring);
    change_results(ring);
    return rc;
}

/* what io_uring_wait_cqe() and io_uring_peek_cqe() come to */
int __io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **out, unsigned submit, unsigned count,
                       sigset_t *mask)
{
    MRT_REAL(__io_uring_get_cqe)
    const int error = ring_fault(MRT_CALLER);
    if (error) return -error;
    const int rc = real(ring, out, submit, count, mask);
    change_results(ring);
    return rc;
}
