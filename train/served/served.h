/* train/served/served.h: a worker's side of parameters that servers update. Private to train/ and its tests.
 *
 * Parameters are dealt round robin in the order of the network: parameter i belongs to server i modulo their
 * number. Each step sends every server the gradients of its parameters and takes its weights back. All calls
 * wait. */
#ifndef MRI_SERVED_H
#define MRI_SERVED_H

#include "train/run/team.h"
#include "train/served/service.h"

typedef struct mri_served_range { /* floats of a parameter */
    uint64_t at, count;
    uint32_t server;
} mri_served_range;

typedef struct mri_served {
    mr_crew *crew; /* NULL: no servers */
    mri_team *team;
    mri_request request; /* what all have in common */
    mri_served_range *ranges;
    uint32_t range_count;
    uint64_t *floats, *versions; /* by server */
    uint32_t talks_to;           /* the server of the newest message; MRI_NONE: workers talk */
    float *host, *pack;          /* all parameters as the device has them; one server's */
    bool begun;                  /* the servers have the weights */
    bool newer;                  /* and changed them since they were last read */
    uint64_t steps, stop_at;     /* since they have */
    mri_reply counts;            /* gradients and their staleness, of all servers */
    uint64_t from_ns, to_ns;     /* the newest wait for servers */
} mri_served;

/* crew: or NULL. On failure mri_served_fini() is still to be called. */
int mri_served_init(mri_served *s, mr_crew *crew, mri_team *team, bool async, uint32_t bound, mr_error *err);
/* The servers end when every worker has come here. */
void mri_served_fini(mri_served *s); /* accepts a zeroed one */

/* Gradients are queued: an update by the servers, whose weights are queued. updates: of the run, before this
 * one. */
int mri_served_step(mri_served *s, const mr_update_desc *update, uint64_t updates, mr_error *err);
/* Weights and optimizer state as the servers have them, once every worker has come here. */
int mri_served_read(mri_served *s, mr_error *err);
/* Workers have other weights, which the servers take before the next step. */
static inline void mri_served_restart(mri_served *s) { s->begun = s->newer = false; }

#endif
