/* kernels/host/host_wire.h: a sum whose leaves lie in several processes, in the memory of their hosts. Of
 * kernels/, for groups of any kind of device. */
#ifndef MRI_HOST_WIRE_H
#define MRI_HOST_WIRE_H

#include "kernels/backend/backend.h"
#include "kernels/backend/sum_tree.h"

typedef struct mri_host_wire {
    mr_wire wire;
    uint32_t *cover_at; /* size + 1: the nodes that rank r makes are cover[cover_at[r] ... cover_at[r + 1]) */
    mr_sum_node *cover;
    mri_sum_program root; /* of all of these */
    mri_sum_program *own; /* of this rank's devices' nodes, one for each of its cover */
    uint32_t own_count;
    bool direct;       /* the one node of the one device is what this rank sends */
    uint32_t per_host; /* ranks of a host that add first; 1: none. With them: */
    uint32_t *host_at; /* hosts + 1: the nodes that host h makes are host_cover[host_at[h] ...) */
    mr_sum_node *host_cover;
    mri_sum_program host_root; /* of all of these */
    mri_sum_program *host_own; /* of this host's ranks' nodes, one for each of its cover */
    uint32_t host_own_count;
    float **host_arrays;
    float **arrays;
    mr_piece *send, *receive;
    float *memory; /* grows with the largest sum */
    uint64_t memory_floats;
} mri_host_wire;

/* Learns who holds what; blocks until every rank has come so far. On failure fini is still to be called. */
int mri_host_wire_init(mri_host_wire *w, const struct mri_group_plan *plan, mr_error *err);
void mri_host_wire_fini(mri_host_wire *w); /* accepts a zeroed one */

/* From one thread at a time. values: of all nodes of the plan, as mr_group_sum_async() takes them; out: one
 * array of each device, which may be among the values. */
int mri_host_wire_sum(mri_host_wire *w, float *const *values, float *const *out, uint32_t devices,
                      uint64_t count, mr_error *err);
/* Rank 0's values to all. */
int mri_host_wire_broadcast(mri_host_wire *w, float *values, uint64_t count, mr_error *err);

#endif
