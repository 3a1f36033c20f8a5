/* train/run/exchange.h: what replicas exchange. Everything here is queued and nothing waits. Private to
 * train/ and its tests. */
#ifndef MRI_EXCHANGE_H
#define MRI_EXCHANGE_H

#include "train/run/tap.h"
#include "train/run/team.h"

/* The connection of a replica to the others. */
typedef struct mri_exchange_link {
    mr_stream *stream;
    mr_event *ready, *done; /* compute has something for the exchange; the exchange for compute */
} mri_exchange_link;

typedef struct mri_exchange {
    mri_team *team;
    uint32_t exchange_link_count;
    mri_exchange_link *exchange_links;
    mr_stream **streams; /* theirs */
    float **arrays;      /* of every replica, as the group takes them */
    mr_group *group;     /* NULL for one replica of one process */
    mri_tap tap;         /* the group's exchange with other processes */
    bool by_nccl;        /* that goes from GPU to GPU; of it: */
    mri_sum_spans spans;
    uint64_t batch;       /* global step of the next queued work, as the tap reports it */
    bool late_on_the_way; /* the compute streams do not wait yet for the newest sum */
    bool stats_differ;    /* running statistics have changed since replica 0's were last sent to all */
} mri_exchange;

/* Whether sums with other processes go by NCCL. */
typedef enum mri_nccl_use {
    MRI_NCCL_NEVER,
    MRI_NCCL_IF_POSSIBLE, /* in all processes; else in none */
    MRI_NCCL_ALWAYS,
} mri_nccl_use;

/* how: sums travel between processes; trace: or NULL. On failure mri_exchange_fini() is still to be called.
 */
int mri_exchange_init(mri_exchange *x, mri_team *team, mr_exchange how, mri_nccl_use nccl, mr_trace *trace,
                      mr_error *err);
void mri_exchange_fini(mri_exchange *x); /* before the team's; accepts a zeroed one */
/* Of sums by NCCL, as mri_link_speed_measure(): of GPUs that do nothing else. */
int mri_exchange_measure(mri_exchange *x, uint64_t most_bytes, mri_link_speed *out, mr_error *err);

/* Sum a bucket of gradients over the replicas, after the queued work; after the last one the compute streams
 * wait. */
int mri_exchange_bucket(mri_exchange *x, uint32_t bucket, mr_error *err);
/* The gradients of the newest batch (mri_replica_keep_late()) are summed from here on, while the compute
 * streams go on. And: the compute streams wait for the sum of the batch before. */
int mri_exchange_send_late(mri_exchange *x, mr_error *err);
int mri_exchange_await_late(mri_exchange *x, mr_error *err);
/* Average the parts' own weights over all replicas; all continue from the average (worker.h).
 */
int mri_exchange_average(mri_exchange *x, mr_error *err);
/* A training step was queued: from now on the running statistics of the replicas differ. */
void mri_exchange_mark_stats_stale(mri_exchange *x);
/* The compute streams wait for sums on their way. Give every replica the running statistics of replica 0,
 * where they differ; of parts that are never averaged
 * the first one's weights, too. */
int mri_exchange_stats(mri_exchange *x, mr_error *err);
/* What sums in fewer bits have left out is forgotten. Nothing queued may be unfinished. */
void mri_exchange_forget(mri_exchange *x);
/* Give every replica everything of replica 0. */
int mri_exchange_all(mri_exchange *x, mr_error *err);

#endif
