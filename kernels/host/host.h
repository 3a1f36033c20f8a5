/* kernels/host/host.h: the room of devices whose memory is the host's own: device record, memory, streams,
 * events and groups of cpu and sim.
 *
 * Takes device settings and work to queue. Gives tables for struct mri_backend, and streams that run tasks.
 * Callers: cpu/, sim/ and ops/. It stands on kernels/backend/.
 *
 * A stream is one worker thread and a ring of tasks. The caller copies a task into the ring; the thread takes
 * them out in order, runs each without a lock, and counts it done:
 *
 *      push ──► [ task | task | task ] ──► thread: run ──► done++  ──► whoever waits for that count
 *               ring, doubles when full
 *
 * Task number k (from 1) is over when done >= k. An event is (stream, number), so "wait for what e marks"
 * captures both when it is called, and recording e anew changes nothing for those who wait already.
 *
 * Errors: a task that fails makes its stream fail; later tasks are skipped, except those marked
 * MRI_TASK_ALWAYS, which must tell others that they were reached (time stamps, waits, groups). The first
 * failure of a device is kept and reported by all its streams. */
#ifndef MRI_HOST_H
#define MRI_HOST_H

#include <stdatomic.h>

#include "kernels/backend/backend.h"

struct mri_op_code;

struct mri_host_stream;

typedef struct mri_host_device {
    mr_device base;
    uint64_t memory_limit_bytes;
    _Atomic size_t used_bytes;
    double link_ns_per_byte[2]; /* by MRI_COPY_H2D, _D2H; 0: as fast as memcpy */
    uint64_t step_ns;           /* sim: length of one training step */
    bool reference;             /* cpu: plain C operations only */
    mr_convolution convolution; /* cpu: what convolutions may be computed by */
    const struct mri_op_code *(*code_for)(const mr_op *head); /* how an operation runs here */
    pthread_mutex_t lock;
    uint64_t link_free_ns[2]; /* lock: when the link has carried all queued bytes */
    _Atomic int failed;       /* first error of any stream, 0 while well */
    mr_error error;           /* lock */
    void (*thread_begin)(struct mri_host_device *dev, mr_stream_role role); /* in each stream's thread; may be
                                                                               NULL */
    struct mri_host_stream *maker; /* where mri_host_make() works; NULL: in the thread that calls it */
} mri_host_device;

static inline mri_host_device *mri_host_device_of(mr_device *dev) { return (mri_host_device *)dev; }

/* Opens devices[0..count) with the heads filled in; on failure none is left open. */
int mri_host_devices_create(mr_device **devices, uint32_t count, const struct mri_backend *backend,
                            mr_error *err);
void mri_host_device_close(mr_device *dev);
/* Keep the first error; any thread. */
void mri_host_device_fail(mri_host_device *dev, const mr_error *error);

typedef struct mri_host_stream mri_host_stream;

/* The device's own thread for work that callers wait for: it creates operations and converts parameters
 * between layouts. OpenMP is then asked in threads of this library only: it keeps threads for each thread
 * that asks, and in a child of fork() the threads kept for its one thread are missing. Begun when the device
 * is opened, ended with it. MR_ENOMEM: the system refused a thread. */
int mri_host_maker_start(mri_host_device *dev, mr_error *err);
void mri_host_maker_stop(mri_host_device *dev); /* accepts a device without one */
/* Call work(context) in that thread, wait, and return its result and its err. From a thread of a stream it is
 * called at once. */
typedef int mri_host_work(void *context, mr_error *err);
int mri_host_make(mri_host_device *dev, mri_host_work *work, void *context, mr_error *err);

#define MRI_TASK_ARGS_BYTES 304
enum { MRI_TASK_ALWAYS = 1 }; /* run after a failure too; look at mri_host_stream_failed() */

/* Runs in the stream's thread; args is the thread's own copy. An error is written to err and returned. */
typedef int mri_host_run(mri_host_stream *s, const void *args, mr_error *err);

/* Queue run(args). number, when not NULL, receives the task's number. MR_ENOMEM, or the error the stream died
 * of. */
int mri_host_push(mri_host_stream *s, mri_host_run *run, const void *args, size_t args_bytes, unsigned flags,
                  uint64_t *number);
/* From the stream's own thread: the code this stream failed with, or MR_OK. */
int mri_host_stream_failed(const mri_host_stream *s);
mri_host_device *mri_host_stream_device(const mri_host_stream *s);

mri_host_stream *mri_host_stream_ref(mri_host_stream *s);
void mri_host_stream_unref(mri_host_stream *s);
/* Is task `number` over? MR_OK, MR_EAGAIN, or the error of it or of a task before it. */
int mri_host_stream_query(mri_host_stream *s, uint64_t number);
/* MR_EAGAIN after timeout_ns (MR_FOREVER: never). */
int mri_host_stream_wait(mri_host_stream *s, uint64_t number, uint64_t timeout_ns, mr_error *err);

/* From the stream's own thread, like the three below. The time it is on the device: of CLOCK_MONOTONIC, or of
 * a simulated device's own clock, which is never ahead of that, and lags it where the thread came late. */
uint64_t mri_host_stream_now(const mri_host_stream *s);
/* What comes next on a simulated device begins no earlier. */
void mri_host_stream_advance(mri_host_stream *s, uint64_t to_ns);
/* The simulated device is busy until then. */
void mri_host_stream_pass_until(mri_host_stream *s, uint64_t to_ns);
/* Wait for a task of another stream. */
int mri_host_stream_join(mri_host_stream *s, mri_host_stream *other, uint64_t number, mr_error *err);

extern const struct mri_memory_calls mri_host_memory;
extern const struct mri_copy_calls mri_host_copies;
extern const struct mri_stream_calls mri_host_streams;
extern const struct mri_event_calls mri_host_events;
extern const struct mri_group_calls mri_host_groups;
extern const struct mri_group_calls mri_host_groups_idle; /* sums only meet: the values stay, unless they go
                                                             to other processes */

/* host_sum.c: additions on the processor, in the order that is asked for. */
struct mri_sum_program;
/* Floats [at, at + count) of the program's result for `arrays`, to out (count floats, may be one of them).
 */
void mri_host_sum(const struct mri_sum_program *p, float *const *arrays, uint64_t at, uint64_t count,
                  float *out);
int mri_host_add_async(mr_stream *s, float *to, const float *from, uint64_t count);

/* Sleep, then spin the last few microseconds, until CLOCK_MONOTONIC shows deadline_ns. */
void mri_host_sleep_until(uint64_t deadline_ns);

#endif
