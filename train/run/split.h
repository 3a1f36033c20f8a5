/* train/run/split.h: a network whose layers are computed by several devices, one after the other, if it does
 * not fit the memory of one. Private to train/ and its tests.
 *
 *   device 0   forward ─┐                      ┌─ backward ─ update
 *   device 1            └─ forward ─ backward ─┘  update
 *
 * Each stage is a network of its own (train/net/cut.h) with replicas, plan, memory and exchange of its own.
 * The first one's are the trainer's; here are the others, and what goes between them, through pinned memory.
 * A step is queued between two joints of the first stage's streams, so whoever waits for those waits for all.
 */
#ifndef MRI_SPLIT_H
#define MRI_SPLIT_H

#include "train/net/cut.h"
#include "train/run/exchange.h"
#include "train/run/flight.h"

/* What goes through a pair of ports, of one replica. */
typedef struct mri_passage {
    const mri_node *out, *in;
    uint32_t from; /* stage */
    void *host;    /* pinned, a batch of it: forward one way, the gradient back */
    bool gradient;
} mri_passage;

/* What comes with samples for the losses of the last stage: labels, labels2, share2. */
enum { MRI_CARRIED = 3 };
typedef struct mri_carried {
    void *device, *host; /* a batch of it, and on its way */
} mri_carried;

/* A replica's part of a stage. */
typedef struct mri_leg {
    mri_replica *replica;
    mri_passage *passages; /* that come in */
    uint32_t passage_count;
    mri_carried carried[MRI_CARRIED];
    mr_event *reached; /* what its stream has queued */
} mri_leg;

typedef struct mri_stage {
    mri_piece piece;
    mri_port_in *ports;
    mri_team own, *team;            /* own: but of the first stage */
    mri_exchange others, *exchange; /* likewise */
    mri_leg *legs;                  /* one a replica */
} mri_stage;

typedef struct mri_split {
    uint32_t count; /* stages; 0: the network is on one device */
    uint32_t replicas;
    mri_stage *stages;
} mri_split;

/* The stages of a network. On failure mri_split_fini() is still to be called. */
int mri_split_cut(mri_split *s, const mr_net *net, const uint32_t *place, uint32_t count, mr_error *err);
/* All but the first, which is open: team, with its exchange. devices: count of each replica, replica after
 * replica. cfg: the first one's. On failure mri_split_fini() is still to be called. */
int mri_split_open(mri_split *s, mri_team *team, mri_exchange *exchange, mr_device *const *devices,
                   const mri_replica_config *cfg, mr_error *err);
void mri_split_settle(const mri_split *s); /* wait for queued work, whether it fails or not */
void mri_split_fini(mri_split *s);         /* before the first team's; accepts a zeroed one */

/* The team whose replicas compute losses. */
mri_team *mri_split_last(const mri_split *s);

/* Queue, after the queued work of a replica of the first stage: a step's values for the others, and that they
 * wait. slot: as of mri_replica_values(). */
int mri_split_begin(mri_split *s, uint32_t replica, uint32_t slot, const mr_step_values *values,
                    mr_error *err);
/* Queue a training step of all replicas: forward, backward, exchange, update. */
int mri_split_step(mri_split *s, const mri_flight *f, const mr_batch *b, mr_error *err);
/* Queue what follows an update (mri_replica_behind_update), but for the first stage's; then the first stage's
 * streams wait for all. */
int mri_split_end(mri_split *s, uint64_t updates, mr_error *err);
/* Queue an evaluation of a replica's parts. */
int mri_split_forward(mri_split *s, uint32_t replica, const mr_batch *b, mr_error *err);

/* As the functions of exchange.h, for the stages after the first. */
void mri_split_mark_stats_stale(mri_split *s);
int mri_split_exchange_stats(mri_split *s, mr_error *err);
int mri_split_exchange_all(mri_split *s, mr_error *err);
int mri_split_init_weights(mri_split *s, mr_error *err);

#endif
