/* train/run/team.h: the replicas of a trainer together, and the first thing that went wrong with any of them.
 * Private to train/ and its tests. */
#ifndef MRI_TEAM_H
#define MRI_TEAM_H

#include "train/run/ranks.h"
#include "train/run/replica.h"

typedef struct mri_team {
    uint32_t count;      /* replicas that are open */
    mr_device **devices; /* own copy */
    mri_replica *replicas;
    mr_stream **streams; /* of the replicas: all compute */
    mr_parts parts;      /* which are whose */
    mri_ranks ranks;     /* the other processes */
    mr_group *group;     /* for their exchange; NULL for one replica of one process */
    int failed; /* a queued step went wrong: weights can no longer be trusted; error has the reason */
    mr_error error;
} mri_team;

/* One replica on each device, for its parts; world: of the other processes, or NULL. On failure
 * mri_team_fini() is still to be called. */
int mri_team_init(mri_team *team, mr_device *const *devices, const mr_parts *parts, uint32_t count,
                  mr_world *world, const mri_replica_config *cfg, mr_error *err);
/* Number of a replica's first part among the parts of this process. */
uint32_t mri_team_first_part(const mri_team *team, uint32_t replica);
/* Wait for the queued work of the replicas, whether it fails or not. Accepts a zeroed one, like fini. */
void mri_team_settle(mri_team *team);
void mri_team_fini(mri_team *team);

/* The group of the replicas, or NULL: given up with the first error, so that nobody waits for a replica
 * that will not come. */
void mri_team_set_group(mri_team *team, mr_group *group);

/* MR_OK, or the first error. */
int mri_team_error(const mri_team *team, mr_error *err);
/* Keep why, if it is the first error, and tell the first. */
int mri_team_fail(mri_team *team, const mr_error *why, mr_error *err);
/* Whether the replica's stream has failed, and why. Waits for it a moment at most. */
bool mri_team_stream_failed(const mri_team *team, uint32_t replica, mr_error *err);
/* Tell and keep the error of a call that only queues. */
int mri_team_queue_failed(mri_team *team, uint32_t replica, int rc, const char *what, mr_error *err);

#endif
