/* tests/cuda_emu/hostfn.c: functions of the host in streams. They run in a thread of the driver, one after
 * the other in the order in which they were queued, and without the lock: one may take its time, and wait for
 * another process, while other streams go on. As a real driver, this one runs what comes before without being
 * waited for. A function that calls the driver is a violation. */
#include "tests/cuda_emu/inside.h"

struct emu_host_call {
    CUhostFn fn;
    void *data;
    int slot, device;
    uint64_t before; /* operations of its slot */
    bool over;
    unsigned refs; /* its operation, and this list */
    struct emu_host_call *next;
};

static struct emu_host_call *first, **last = &first; /* the emulator's lock */
static uint64_t queued;                              /* asleep */
static pthread_mutex_t asleep = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool started;
static _Thread_local bool in_function;

bool emu_in_host_function(void) { return in_function; }

bool emu_host_call_is_over(const struct emu_host_call *call) { return call->over; }

bool emu_host_calls_pending(void) { return first != NULL; }

void emu_host_call_drop(struct emu_host_call *call)
{
    if (call && --call->refs == 0) free(call);
}

/* Of a context that has failed none is called. */
static void run_first(void)
{
    emu_lock();
    struct emu_host_call *call = first;
    const CUresult dead =
        emu_wait_for(call->slot, call->before, "cuLaunchHostFunc", emu_context(call->device));
    emu_unlock();
    in_function = true;
    if (dead == CUDA_SUCCESS) call->fn(call->data);
    in_function = false;
    emu_lock();
    call->over = true;
    first = call->next;
    if (!first) last = &first;
    emu_host_call_drop(call);
    emu_move_on();
    emu_unlock();
}

static void *drive(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&asleep);
        while (queued == 0) pthread_cond_wait(&more, &asleep);
        queued--;
        pthread_mutex_unlock(&asleep);
        run_first();
    }
    return unused;
}

static void start(void)
{
    pthread_t thread;
    started = pthread_create(&thread, NULL, drive, NULL) == 0 && pthread_detach(thread) == 0;
}

static CUresult launch(CUstream s, CUhostFn fn, void *data)
{
    if (!fn) return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* a limit of the emulation */
    pthread_once(&once, start);
    struct emu_host_call *call = started ? calloc(1, sizeof *call) : NULL;
    if (!call) return CUDA_ERROR_OUT_OF_MEMORY;
    *call = (struct emu_host_call){.fn = fn,
                                   .data = data,
                                   .slot = s->slot,
                                   .device = s->head.device,
                                   .before = emu_slot_queued(s->slot),
                                   .refs = 2};
    *last = call;
    last = &call->next;
    const CUresult rc = emu_submit(&(struct emu_submission){
        .streams = &s, .stream_count = 1, .name = "cuLaunchHostFunc", .host_call = call});
    if (rc != CUDA_SUCCESS) abort(); /* a test machine without memory */
    pthread_mutex_lock(&asleep);
    queued++;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&asleep);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    EMU_CALL("cuLaunchHostFunc", CUDA_ERROR_ILLEGAL_ADDRESS, emu_stream_here(hStream, "cuLaunchHostFunc"),
             launch(hStream, fn, userData));
}
