/* tests/cuda_emu/remote.h: what communicators of several processes say to each other: local sockets between
 * every two ranks of a communicator, and transfers over them. Callers: nccl.c.
 *
 * The sockets' names follow from the unique id, so nothing but the id must reach the other processes. Nothing
 * here waits. A rank whose process has died is not reported: what needs its bytes never ends, as on GPUs that
 * wait for each other's memory; MILLRACE_EMU_PEER_LOST=report has it known, as over a network. */
#ifndef EMU_REMOTE_H
#define EMU_REMOTE_H

#include "tests/cuda_emu/emu.h"

#define EMU_MAX_RANKS   16
#define EMU_REMOTE_NAME 32 /* bytes of a unique id that count */

struct emu_remote;

/* Listens. NULL: no memory, or no socket. identity: of the GPU; two ranks with the same one are a violation.
 */
struct emu_remote *emu_remote_new(const void *name, int ranks, int rank, int identity);
/* Goes on connecting; true when all ranks are connected. One thread at a time. */
bool emu_remote_is_connected(struct emu_remote *r);
bool emu_remote_is_lost(const struct emu_remote *r); /* a rank has gone, and that is to be reported */
void emu_remote_cut(struct emu_remote *r);           /* the others hear nothing more */
void emu_remote_drop(struct emu_remote *r);          /* transfers under way keep it */

/* Bytes of the device to or from another rank. */
struct emu_piece {
    bool sends;
    int peer;
    void *at;
    size_t bytes;
};
/* Memory of the device that becomes `own` plus all that comes: the sum of floats, in the order of ranks from
 * rank 1 on. */
struct emu_sum {
    const void *own;
    void *out;
    size_t bytes;
};

/* Queue one transfer after the stream's operations; its pieces run in parallel: copies out of the
 * device's memory, then a wait for the other ranks, then copies into it. sum: or NULL; then every piece that
 * comes has at NULL. label: equal on both ends. `over` is called when nothing of it can run any more. */
CUresult emu_remote_queue(struct emu_remote *r, CUstream s, const char *name, uint64_t label,
                          const struct emu_piece *pieces, int count, const struct emu_sum *sum,
                          void (*over)(void *), void *context);

#endif
