/* train/served/service.h: the messages between a worker and a server of parameters. Private to train/served/
 * and its callers in train/.
 *
 *   worker                          server
 *     request, then its floats  ──►
 *                               ◄──  reply, then its floats
 *
 *     BEGIN  weights, state          nothing                 of the first worker, before the first step
 *     STEP   gradients               weights after an update that has them
 *     READ   nothing                 weights, state
 *     END    nothing                 nothing; no reply */
#ifndef MRI_SERVICE_H
#define MRI_SERVICE_H

#include "millrace/ranks.h"
#include "millrace/train.h"

enum { MRI_SERVICE_CHANNEL = 0, MRI_SERVICE_STATES = 2 };

typedef enum mri_service_kind {
    MRI_SERVICE_BEGIN = 1,
    MRI_SERVICE_STEP,
    MRI_SERVICE_READ,
    MRI_SERVICE_END
} mri_service_kind;

typedef struct mri_request {
    uint32_t kind, async, wants_to_stop;
    uint32_t bound;        /* of staleness, in steps of a worker */
    uint64_t floats;       /* the server's parameters */
    uint64_t version;      /* STEP: of the weights that the gradients are of */
    mr_update_desc update; /* the rule; lr of this step; BEGIN: step is the number of updates before */
    float clip_value;
} mri_request;

typedef struct mri_reply {
    uint64_t version; /* updates since BEGIN */
    uint64_t stop_at; /* steps of each worker since BEGIN after which all stop; 0: no worker asked */
    uint64_t gradients, stale_sum, stale_most; /* received since BEGIN, and how many updates old they were */
    uint32_t asks_to_stop; /* the server's process was asked; the worker asks all others */
} mri_reply;

/* One exchange of the world of a server and a worker, whose other rank is `to`. */
static inline int mri_service_send(mr_world *w, uint32_t to, const void *data, size_t bytes, mr_error *err)
{
    mr_world_piece send[2] = {{0}}, receive[2] = {{0}};
    send[to] = (mr_world_piece){(void *)(uintptr_t)data, bytes};
    return mr_world_exchange(w, MRI_SERVICE_CHANNEL, send, receive, err);
}
static inline int mri_service_receive(mr_world *w, uint32_t from, void *data, size_t bytes, mr_error *err)
{
    mr_world_piece send[2] = {{0}}, receive[2] = {{0}};
    receive[from] = (mr_world_piece){data, bytes};
    return mr_world_exchange(w, MRI_SERVICE_CHANNEL, send, receive, err);
}

#endif
