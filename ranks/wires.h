/* ranks/wires.h: which pairs of ranks share memory, and which wire a world has. Private.
 *
 * Takes a world whose channels are TCP. Gives the channels carriers of shared memory to each rank with which
 * this one can share it. All ranks decide together, by calls of the world: both ends of a pair have the
 * memory, or neither. Who may attach: a process of the same user that knows a number which the world has sent
 * it. Callers: world.c. */
#ifndef MRI_WIRES_H
#define MRI_WIRES_H

#include "ranks/transfer.h"

typedef struct mri_wires {
    const char *name;               /* "tcp", "shm", "shm and tcp", "nccl", "mpi", "ucx" */
    uint32_t per_host;              /* as mr_world_ranks_per_host() */
    char note[MRI_WIRE_TEXT_BYTES]; /* why ranks of one host have TCP, or "" */
} mri_wires;

/* After the meeting, before the first call of the world. MR_EINVAL: the ranks have different wires set.
 * MR_EUNSUPPORTED: shared memory is required, and a pair cannot share any. All ranks fail with one text; the
 * ranks that fit rank 0 return MR_EPEER, so that a muster goes on without the others. */
int mri_wires_choose(mri_wires *out, mr_world *world, mri_channel *const *channels, mr_wire_choice wanted,
                     mr_error *err);

/* Opens the post of MR_WIRE_MPI or _UCX in all ranks, over calls of this channel (wires_post.c). All ranks
 * fail with one text, which names a rank that cannot use it; ranks that can return MR_EPEER. */
int mri_wires_open_post(mri_post **out, mr_world *world, uint32_t channel, mr_wire_choice wire,
                        mr_error *err);

#endif
