/* tests/gate.h: a gate in a stream of a host device (cpu, sim): work queued after it is not over until
 * the test opens it, however long the test takes to look; on a simulated device's clock neither. A gate may
 * be used once at a time; a static one outlives a test that failed and left its stream waiting. */
#ifndef MRT_GATE_H
#define MRT_GATE_H

#include <pthread.h>

#include "kernels/host/host.h"
#include "mrt.h"

typedef struct mrt_gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open; /* lock */
} mrt_gate;

static inline int mrt_gate_wait(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)err;
    mrt_gate *g = *(mrt_gate *const *)args;
    pthread_mutex_lock(&g->lock);
    while (!g->is_open) pthread_cond_wait(&g->opened, &g->lock);
    pthread_mutex_unlock(&g->lock);
    mri_host_stream_advance(s, mri_now_ns());
    return MR_OK;
}

/* Queue it, closed. */
static inline void mrt_gate_push(mrt_gate *g, mr_stream *s)
{
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->opened, NULL);
    g->is_open = false;
    MRT_OK(mri_host_push((mri_host_stream *)s, mrt_gate_wait, &g, sizeof g, 0, NULL), NULL);
}

static inline void mrt_gate_open(mrt_gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->is_open = true;
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
}

#endif
