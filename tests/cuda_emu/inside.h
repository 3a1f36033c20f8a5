/* tests/cuda_emu/inside.h: shared by the files of the emulated driver. The libraries see only emu.h.
 *
 * Handles are addresses of the structs below. They are marked when destroyed and never given back, so use
 * after destruction is distinguished from an invalid address, and an address never comes back as another
 * handle.
 *
 * Time is counted in operations. Every stream has a slot; the n-th operation queued on it is (slot, n). A
 * clock records, slot by slot, how many operations are known to be over: a stream's clock the operations that
 * will be over when its last one is, an event's clock the ones that are over when the event is, the host's
 * clock the ones that some thread of the program knows to be over. Threads of the program exchange knowledge
 * in ways that are not seen here, so they share one clock: an order they keep among themselves is never
 * doubted.
 *
 * One lock guards everything below; operations run while it is held. */
#ifndef EMU_INSIDE_H
#define EMU_INSIDE_H

#include <pthread.h>

#include "base/util.h"
#include "tests/cuda_emu/emu.h"

#define EMU_MAX_DEVICES 64
#define EMU_SLOTS       512
#define EMU_MAX_LANES   16 /* streams of one recording */

/* ---- settings.c ---- */

enum emu_order { EMU_EAGER, EMU_LATE, EMU_STARVE, EMU_RANDOM };
enum emu_order emu_order(void);
/* A line of the log. */
void emu_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Number of calls so far. */
uint64_t emu_calls(void);

/* ---- handles ---- */

enum emu_kind {
    EMU_CONTEXT = 0x7c01,
    EMU_POOL,
    EMU_STREAM,
    EMU_EVENT,
    EMU_MODULE,
    EMU_FUNCTION,
    EMU_GRAPH,
    EMU_GRAPH_EXEC
};

typedef struct emu_handle {
    enum emu_kind kind;
    bool destroyed;
    uint64_t number; /* of its kind, from 1 */
    int device;
    struct emu_handle *buried; /* the one destroyed before: kept, so that use after destruction is
                                * distinguished from use of an invalid address */
} emu_handle;

typedef struct emu_clock {
    uint64_t at[EMU_SLOTS];
} emu_clock;

struct CUctx_st {
    emu_handle head;
    unsigned retained;
    CUresult dead; /* sticky error, 0 while well */
    uint64_t used_bytes;
    uint64_t live; /* handles and allocations that are not destroyed */
};
struct CUmemPoolHandle_st {
    emu_handle head;
    uint64_t allocations, bytes, high_bytes;
    bool peers[EMU_MAX_DEVICES]; /* that may touch its memory, too */
};
struct emu_capture;
struct CUstream_st {
    emu_handle head;
    int slot;
    emu_clock clock;
    struct emu_capture *capture; /* while it records */
    int lane;
    uint64_t lane_clock[EMU_MAX_LANES];
};
struct CUevent_st {
    emu_handle head;
    bool timed, recorded, stamped;
    int slot; /* the marker's operation */
    uint64_t seq;
    uint64_t stamp_ns;
    emu_clock clock;
    uint64_t capture; /* number of the recording it was recorded in last, 0: none */
    uint64_t lane_clock[EMU_MAX_LANES];
};
struct CUmod_st {
    emu_handle head;
    emu_clock used; /* launches of its kernels */
    CUfunction functions;
};
struct CUfunc_st {
    emu_handle head;
    CUmodule module;
    const struct emu_kernel *kernel;
    unsigned max_shared_bytes;
    struct CUfunc_st *next;
};

/* NULL is CUDA_ERROR_INVALID_VALUE, the rest CUDA_ERROR_INVALID_HANDLE; use of a destroyed handle is a
 * violation. */
CUresult emu_check(const void *handle, enum emu_kind kind, const char *call);
/* Zeroed, counted as live in its device's context; NULL: no memory. */
void *emu_handle_new(size_t bytes, enum emu_kind kind, int device);
void emu_handle_end(emu_handle *h);

/* ---- devices.c ---- */

void emu_lock(void);
void emu_unlock(void);
CUcontext emu_current(void);
CUcontext emu_context(int device);
int emu_device_count(void); /* visible ones */
/* cuInit was called and the current context, if any, is well. */
CUresult emu_ready(void);
/* The same, and there is a current context. */
CUresult emu_ready_here(void);
/* A live stream of the current context, which is well. */
CUresult emu_stream_here(CUstream s, const char *call);
/* The error that a call is set to fail with; kills the context if no GPU recovers from that error. */
CUresult emu_inject(CUresult code);
CUresult emu_told(const char *call, CUresult code);
bool emu_is_sticky(CUresult code);

/* An entry point: counted, failed when it is its turn, `ready` asked, then body, under the lock. */
#define EMU_CALL(call, injected, ready, body)                                                                \
    do {                                                                                                     \
        const bool fails_ = emu_fails(call);                                                                 \
        emu_lock();                                                                                          \
        CUresult rc_ = fails_ ? emu_inject(injected) : (ready);                                              \
        if (rc_ == CUDA_SUCCESS) rc_ = (body);                                                               \
        emu_unlock();                                                                                        \
        return emu_told(call, rc_);                                                                          \
    } while (0)
/* One that gives something up: it does so whatever it returns. */
#define EMU_END_CALL(call, body)                                                                             \
    do {                                                                                                     \
        const bool fails_ = emu_fails(call);                                                                 \
        emu_lock();                                                                                          \
        const CUresult ready_ = fails_ ? emu_inject(CUDA_ERROR_ILLEGAL_ADDRESS) : emu_ready();               \
        const CUresult body_ = (body);                                                                       \
        emu_unlock();                                                                                        \
        return emu_told(call, ready_ != CUDA_SUCCESS ? ready_ : body_);                                      \
    } while (0)

/* ---- access.c: memory and who touched it ---- */

struct emu_access {
    uintptr_t from, to;
    bool write;
    int slot;
    uint64_t seq;
    const char *name;
    uint64_t number, stream;
    int device;
};
struct emu_block {
    uintptr_t at;
    size_t bytes;
    int device; /* -1: pinned host memory */
    CUcontext context;
    CUmemoryPool pool;
    const char *freed_by; /* a free is queued: the name and number of its call */
    uint64_t freed_number;
    void *raw;
    bool mapped; /* from the file of poison, and no memory of the heap */
    struct emu_access *list;
    size_t count, cap;
};

/* Poisoned memory with an owner; NULL: out of memory. */
struct emu_block *emu_block_new(size_t bytes, int device);
void emu_block_free(struct emu_block *b);
struct emu_block *emu_block_at(const void *at, size_t bytes); /* the block that holds all of it, or NULL */
void emu_block_check_ends(const struct emu_block *b, const char *name, uint64_t number);
uint64_t emu_blocks(int device);
/* All spans of an operation lie in memory that its devices may touch; false (and a violation) when not. */
bool emu_spans_live(const emu_span *spans, int count, const int *devices, int device_count, const char *name,
                    uint64_t number);
/* Note the accesses of an operation that comes after all that `clock` says; a violation for each that is not
 * ordered. */
void emu_spans_note(const emu_span *spans, int count, const struct emu_access *who, const emu_clock *clock);
/* Is an access queued that `clock` does not know to be over? writes: only writing accesses. NULL: no
 * access. */
const struct emu_access *emu_block_busy(const struct emu_block *b, const void *at, size_t bytes, bool writes,
                                        const emu_clock *clock);
/* Run an operation that touches nothing but its spans: where the address sanitizer watches, it stops at the
 * first other byte. */
void emu_run_confined(const emu_span *spans, int count, const char *name, uint64_t number,
                      void (*run)(void *), void *args);
uint64_t emu_sum(const void *at, size_t bytes);
bool emu_spans_conflict(const emu_span *a, int a_count, const emu_span *b, int b_count);

/* ---- schedule.c ---- */

/* What an operation does; shared by the graphs it is in and the times it is queued. */
struct emu_payload {
    unsigned refs;
    void (*run)(void *args);
    void (*drop)(void *args);
    bool (*ready)(void *args); /* NULL, or whether it may run; asked often, when all before it is over */
    _Alignas(16) unsigned char args[EMU_MAX_ARGS];
};
struct emu_payload *emu_payload_new(void (*run)(void *), void (*drop)(void *), const void *args,
                                    size_t bytes);
void emu_payload_drop(struct emu_payload *p);

struct emu_submission {
    const CUstream *streams;
    int stream_count;
    const char *name;
    const emu_span *spans;
    int span_count;
    struct emu_payload *payload; /* NULL: does nothing */
    bool wait;                   /* on (wait_slot, wait_seq) */
    int wait_slot;
    uint64_t wait_seq;
    CUevent mark;        /* stamped when this runs */
    const void *watched; /* host memory that must not change before this runs */
    size_t watched_bytes;
    struct emu_block *frees;         /* given back when this runs */
    struct emu_host_call *host_call; /* over when this may be */
};
/* Queue for real, whether or not the stream records. */
CUresult emu_submit(const struct emu_submission *what);

int emu_slot_take(CUstream s); /* -1: too many streams */
bool emu_slot_over(int slot, uint64_t seq);
uint64_t emu_slot_queued(int slot);
void emu_clock_join(emu_clock *into, const emu_clock *from);
bool emu_clock_covers(const emu_clock *clock, const emu_clock *what);
/* The operations that the program knows to be over. */
extern emu_clock emu_host;
/* A thread learnt that this is over. */
void emu_host_learns(const emu_clock *what);
/* Make (slot, seq) run; the lock is let go while something hangs. */
CUresult emu_wait_for(int slot, uint64_t seq, const char *call, CUcontext context);
/* Some work may run now; true when (slot, seq) is over. */
bool emu_poll(int slot, uint64_t seq);
/* Run what (slot, seq) needs, as far as it can; true when something ran. */
bool emu_advance(int slot, uint64_t seq);
/* Run all that can. */
void emu_drain(void);
/* Run the operations that the order allows now. */
void emu_move_on(void);
uint64_t emu_random(void);

/* ---- hostfn.c ---- */

struct emu_host_call;
bool emu_in_host_function(void); /* this thread */
bool emu_host_call_is_over(const struct emu_host_call *call);
/* One is queued, which may write any memory of the host. */
bool emu_host_calls_pending(void);
void emu_host_call_drop(struct emu_host_call *call); /* accepts NULL */

/* ---- when.c ---- */

/* As emu_queue(), for an operation that may run once ready(args) says so. It goes on while nobody waits for
 * it. ready holds the lock and touches no memory of a device. Takes args only on success; ready NULL: as soon
 * as it is its turn. */
CUresult emu_queue_when(CUstream s, const char *name, const emu_span *spans, int span_count,
                        bool (*ready)(void *args), void (*run)(void *args), void (*drop)(void *args),
                        const void *args, size_t bytes);

/* ---- streams.c, graphs.c: recording ---- */

struct emu_node {
    const char *name;
    struct emu_payload *payload;
    emu_span spans[EMU_MAX_SPANS];
    int span_count;
    const void *watched;
    size_t watched_bytes;
    CUmodule module;
    int lane;
    uint64_t seq;
};
struct CUgraph_st {
    emu_handle head;
    struct emu_node *nodes;
    size_t count, cap;
};
struct CUgraphExec_st {
    emu_handle head;
    struct emu_node *nodes;
    size_t count;
    bool launched;
    int slot; /* of the last launch */
    uint64_t seq;
    emu_clock clock;
};
struct emu_capture {
    uint64_t number;
    CUgraph graph;
    CUstream lanes[EMU_MAX_LANES]; /* 0: where it began */
    uint64_t last[EMU_MAX_LANES];  /* operations of each */
    int lane_count;
    CUstreamCaptureMode mode;
    pthread_t thread;
    CUresult broken;
    struct emu_capture *next; /* of all that are open */
};
/* Put an operation into the graph that the stream records. */
CUresult emu_record(CUstream s, const struct emu_submission *what, CUmodule module);
/* A call that must not happen while someone records (see cuThreadExchangeStreamCaptureMode): breaks those
 * recordings. */
CUresult emu_capture_forbids(const char *call);
void emu_capture_break(struct emu_capture *c, CUresult why);
void emu_capture_break_number(uint64_t number);
CUresult emu_capture_wait(CUstream s, CUevent e);
void emu_nodes_drop(struct emu_node *nodes, size_t count);
/* One stream's operation, recorded or queued; the module is used by it. */
CUresult emu_put(CUstream s, const struct emu_submission *what, CUmodule module);

#endif
