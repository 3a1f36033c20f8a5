/* tests/cuda_emu/emu.h: an emulated CUDA, for tests only: the parts of the driver, cuBLAS, cuDNN and NCCL
 * that millrace calls, answered on the processor. One shared library under the four names the program opens;
 * a test that wants it puts its folder in LD_LIBRARY_PATH and names the device cuda:0. It computes (plain C
 * references; our own kernels compiled as C++), it checks (rules of the documentation, order of accesses),
 * and it is never fast: every name it reports holds the word "emulated".
 *
 *   devices.c  memory.c  streams.c  graphs.c  modules.c    the driver: the cu... calls
 *   cublas.c  cudnn*.c  nccl.c                             the libraries, one subject each
 *   blocks.cc    our kernels' device code run on the processor: blocks, threads, barriers
 *   remote.c  when.c  communicators of several processes; operations that wait for other processes
 *   schedule.c   queued operations, the order in which they run, and which accesses are allowed when
 *
 * No operation runs when it is queued. Each stream is a list; an operation may run when the operations before
 * it in its stream have run and the events it waits for are over. Which runnable operation runs next, and
 * when, is drawn from a seed (emu_settings): eagerly, as late as anything can notice, one stream starved, or
 * at random. A call that synchronises makes just enough of it run.
 *
 * Every operation declares which memory it reads and writes. From the same order that real streams keep
 * (stream order, events, synchronising host calls; nothing else) the scheduler knows whether two accesses are
 * ordered; when they overlap, one writes and they are not ordered, that is a violation, whether or not this
 * run happened to get it right. Further violations: host memory that changed between the queueing of a copy
 * from it and its running, memory freed while queued work uses it, and use of destroyed objects. */
#ifndef EMU_H
#define EMU_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Read from the environment once, at the first call of any library:
 *   MILLRACE_EMU_DEVICES  how many (default 1)
 *   MILLRACE_EMU_SEED     of the schedule (default 1)
 *   MILLRACE_EMU_MEMORY   bytes of each (default 4 GiB)
 *   MILLRACE_EMU_ORDER    eager | late | starve | random (default: by the seed)
 *   MILLRACE_EMU_FAIL_AT  the call of this number, counted from 1 over all libraries, fails once with an
 *                         error of its kind
 *   MILLRACE_EMU_HANG     name of an operation that never ends ("ncclAllReduce"), to test watchdogs
 *   MILLRACE_EMU_PEER_LOST  report: NCCL reports a process that has died; by default whoever needs its values
 *                         waits for ever
 *   MILLRACE_EMU_LOG      a file: number, name and result of every call
 *   MILLRACE_EMU_VIOLATION  abort (default) | count: go on, and let emu_violations() tell */
struct emu_settings {
    int devices;
    uint64_t seed, memory_bytes, fail_at;
};
const struct emu_settings *emu_settings(void);

/* One access of an operation. */
typedef struct emu_span {
    const void *at;
    size_t bytes;
    bool write; /* or only read */
} emu_span;

#define EMU_MAX_SPANS 16

/* Queue an operation on a stream: run(args) later, args copied now (bytes of them, at most EMU_MAX_ARGS).
 * drop(args) follows once the operation can never run again (it ran and is in no graph), may be NULL. While
 * the stream records, the operation goes into the graph. name is a literal. A span that is no live memory of
 * the stream's device, or of pinned host memory, is a violation. */
#define EMU_MAX_ARGS 1024
CUresult emu_queue(CUstream s, const char *name, const emu_span *spans, int span_count,
                   void (*run)(void *args), void (*drop)(void *args), const void *args, size_t bytes);
/* The same for an operation of several streams (one device each) that runs once, when it is at the head of
 * all of them. spans of all. */
CUresult emu_queue_together(const CUstream *streams, int stream_count, const char *name,
                            const emu_span *spans, int span_count, void (*run)(void *args),
                            void (*drop)(void *args), const void *args, size_t bytes);

/* Begin of every entry point: counts the call, logs it, true when this is the one that must fail. Holds no
 * lock. */
bool emu_fails(const char *call);
/* Is this the name that MILLRACE_EMU_HANG gives? */
bool emu_hangs(const char *operation);
/* A rule was broken. Text names both operations, or the call and the rule. Prints "emulated CUDA: ..." and
 * aborts, or counts. */
void emu_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t emu_violations(void);

/* Operations queued on these streams whose names begin with `name` ("nccl") end without running; one that
 * hangs ends, too. */
void emu_cancel(const CUstream *streams, int stream_count, const char *name);

/* The device (ordinal) a stream, or an address of device memory, belongs to; -1 for none (host, or freed). */
int emu_device_of_stream(CUstream s);
int emu_device_of_address(const void *at, size_t bytes);
/* Device of the calling thread's current context, -1 without one. */
int emu_current_device(void);

/* One of our kernels, compiled for the processor (blocks.cc): run a whole grid. spans: the memory it will
 * touch, derived from args alone (kernels.cc has one such function per kernel). */
struct emu_kernel {
    const char *name; /* "mrk_cast" */
    size_t args_bytes;
    void (*run)(const void *args, unsigned grid_x, unsigned grid_y, unsigned threads, unsigned shared_bytes);
    int (*spans)(const void *args, unsigned grid_x, unsigned grid_y, emu_span *out); /* how many, at most
                                                                                        EMU_MAX_SPANS */
};
const struct emu_kernel *emu_kernel_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
