/* train/run/ranks.h: a trainer among the trainers of other processes: the owners of the parts of a batch, and
 * the values on which all must agree. Private to train/ and its tests.
 *
 * All processes make the same calls in the same order; their questions to each other go over channel
 * MRI_RANKS_HOST, one thread a process. Sums of gradients go over the other one, from the exchange streams.
 */
#ifndef MRI_RANKS_H
#define MRI_RANKS_H

#include "millrace/ranks.h"
#include "millrace/train.h"
#include "train/run/lateness.h"
#include "train/run/link_speed.h"

enum { MRI_RANKS_SUMS = 0, MRI_RANKS_HOST = 1 }; /* channels */

/* The message of every rank before a batch. */
typedef struct mri_beat {
    uint64_t batch;        /* global step */
    uint64_t steps;        /* of training that are over here, */
    uint64_t compute_ns;   /* how long this rank's devices were at work for its own parts in them, the slowest
                              each, */
    uint64_t idle_ns;      /* and how long they waited for data, on average, */
    uint64_t network_ns;   /* and for other ranks and their gradients, on average */
    uint64_t bucket_bytes; /* of rank 0: buckets from this batch on */
    uint32_t counted;      /* samples of this rank's parts that count */
    uint32_t training : 1, wants_to_stop : 1, wants_to_keep : 1;
} mri_beat;

typedef struct mri_ranks {
    mr_world *world;     /* NULL: one process */
    uint32_t rank, size; /* 0 of 1 */
    uint32_t most_parts; /* of any rank */
    bool wants_to_stop;  /* this one does */
    bool stop;           /* one does, and all know since the same batch */
    bool wants_to_keep;  /* this one would have the state kept; rank 0's wish counts, */
    bool keep;           /* which all know since the newest batch */
    mri_beat *beats;     /* the newest of all ranks */
    mr_metrics *sums;    /* of more than one rank: of all, most_parts each, and room for one more */
    mri_lateness late;   /* from their beats */
    uint64_t *gathered;  /* room for mri_lateness_compare() */
} mri_ranks;

/* world may be NULL. On failure mri_ranks_fini() is still to be called. */
int mri_ranks_init(mri_ranks *r, mr_world *world, const mr_parts *parts, mr_error *err);
void mri_ranks_fini(mri_ranks *r); /* accepts a zeroed one */

/* mr_world_abort() for an error while steps run: MR_EINVAL of it refuses no setting, so other ranks do not
 * receive it as their mr_error.host. */
void mri_abort_run(mr_world *world, const mr_error *why);

/* Where texts differ, all processes end and report the first line that differs: those with rank 0's text
 * with MR_EPEER, the others with MR_EINVAL; mr_error.host is MR_EINVAL. */
int mri_ranks_agree(const mri_ranks *r, const char *text, mr_error *err);
/* Tell mine, hear all; *counted: the sum over ranks. */
int mri_ranks_beat(mri_ranks *r, const mri_beat *mine, uint32_t *counted, mr_error *err);
/* mine: of this rank's parts, in order; *out: the sum over the parts of all ranks, always added in their
 * order. */
int mri_ranks_sum(const mri_ranks *r, const mr_metrics *mine, uint32_t count, mr_metrics *out, mr_error *err);
/* Compares who has waited how long for the network until now. steps, network_ns: as in mri_beat. */
int mri_ranks_compare(mri_ranks *r, uint64_t steps, uint64_t network_ns, mr_error *err);
/* Rank 0's bytes to all. */
int mri_ranks_tell(const mri_ranks *r, void *data, size_t bytes, mr_error *err);
/* What went wrong with rank 0 goes wrong with all: rc and *err are its. */
int mri_ranks_share_error(const mri_ranks *r, int rc, mr_error *err);
/* The others need not wait for this one. */
void mri_ranks_fail(const mri_ranks *r, const mr_error *why);

#endif
