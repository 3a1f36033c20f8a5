/* tests/cuda_emu/when.c: operations that may run when something outside of this process has happened. A
 * thread of the driver asks for it again and again, and runs what comes before them: on GPUs such an
 * operation goes on while nobody waits for it. */
#include <time.h>

#include "tests/cuda_emu/inside.h"

struct pending {
    int slot;
    uint64_t seq;
    struct pending *next;
};

static struct pending *list; /* the emulator's lock */
static uint64_t added;       /* gate */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool started;

/* True: some are left, and none has gone on. */
static bool advance_all(bool *left)
{
    bool ran = false;
    emu_lock();
    for (struct pending **at = &list; *at;) {
        struct pending *p = *at;
        ran = emu_advance(p->slot, p->seq) || ran;
        if (emu_slot_over(p->slot, p->seq)) {
            *at = p->next;
            free(p);
        } else {
            at = &p->next;
        }
    }
    *left = list != NULL;
    emu_unlock();
    return *left && !ran;
}

static void *drive(void *unused)
{
    const struct timespec moment = {.tv_nsec = 100000};
    for (uint64_t seen = 0;;) {
        bool left;
        pthread_mutex_lock(&gate);
        while (added == seen) pthread_cond_wait(&more, &gate);
        seen = added;
        pthread_mutex_unlock(&gate);
        do {
            if (advance_all(&left)) nanosleep(&moment, NULL);
        } while (left);
    }
    return unused;
}

static void start(void)
{
    pthread_t thread;
    started = pthread_create(&thread, NULL, drive, NULL) == 0 && pthread_detach(thread) == 0;
}

static CUresult add(CUstream s)
{
    struct pending *p = malloc(sizeof *p);
    if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
    *p = (struct pending){s->slot, emu_slot_queued(s->slot), list};
    list = p;
    pthread_mutex_lock(&gate);
    added++;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&gate);
    return CUDA_SUCCESS;
}

static CUresult queue(CUstream s, const char *name, const emu_span *spans, int span_count,
                      struct emu_payload *payload)
{
    CUresult rc = emu_check(s, EMU_STREAM, name);
    if (rc == CUDA_SUCCESS) rc = emu_context(s->head.device)->dead;
    if (rc == CUDA_SUCCESS && s->capture) {
        emu_violation("%s is recorded: a limit of the emulation", name);
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (rc == CUDA_SUCCESS && !payload) rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (rc != CUDA_SUCCESS) return rc;
    rc = emu_submit(&(struct emu_submission){.streams = &s,
                                             .stream_count = 1,
                                             .name = name,
                                             .spans = spans,
                                             .span_count = span_count,
                                             .payload = payload});
    return rc == CUDA_SUCCESS && payload->ready ? add(s) : rc;
}

CUresult emu_queue_when(CUstream s, const char *name, const emu_span *spans, int span_count,
                        bool (*ready)(void *args), void (*run)(void *args), void (*drop)(void *args),
                        const void *args, size_t bytes)
{
    pthread_once(&once, start);
    emu_lock();
    struct emu_payload *payload = started ? emu_payload_new(run, drop, args, bytes) : NULL;
    if (payload) payload->ready = ready;
    const CUresult rc = queue(s, name, spans, span_count, payload);
    if (rc != CUDA_SUCCESS && payload) payload->drop = NULL; /* the caller's */
    emu_payload_drop(payload);
    emu_unlock();
    return rc;
}
