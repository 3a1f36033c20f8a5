/* ranks/meet.h: how ranks find each other. Private.
 *
 * Takes a place (meet_place.h) and who this rank is. Gives, by a meeting at rank 0 and then between all, one
 * socket for each other rank and lane. All or nobody: a rank has them only when rank 0 said that all do. In a
 * run with a secret nothing is taken from a connection that has not proved it, on any lane.
 * Blocks; one thread. Callers: world.c. */
#ifndef MRI_MEET_H
#define MRI_MEET_H

#include "ranks/door.h"
#include "ranks/link.h"
#include "ranks/meet_place.h"

enum {
    MRI_LANE_PULSE = MR_WORLD_CHANNELS, /* below it the lanes of the channels */
    MRI_LANES,
};

typedef struct mri_meeting {
    const mr_world_config *cfg;
    mri_place place;
    mri_secret secret;
    bool tls;      /* on the lanes of calls */
    mri_door door; /* who was turned away */
    uint64_t token;
    char host[MRI_WIRE_HOST_BYTES]; /* this one */
    int listener;
    uint16_t port;
    mri_link *star;       /* by rank: rank 0's links to all, the others' to rank 0 */
    mri_wire_seat *seats; /* by rank, once all have come */
    uint8_t nonce[MRI_WIRE_KEY_BYTES];
} mri_meeting;

int mri_meeting_init(mri_meeting *m, const mr_world_config *cfg, mr_error *err);
void mri_meeting_fini(mri_meeting *m);

/* The steps of rank 0, and of the others, until all have the roster. */
int mri_meet_as_host(mri_meeting *m, mr_error *err);
int mri_meet_as_guest(mri_meeting *m, mr_error *err);

/* fds[lane * size + rank]; -1 for the own rank. On failure none is open. seals[rank]: of the pulse's lane,
 * whose messages go on. */
int mri_mesh_join(mri_meeting *m, int *fds, mri_seal *seals, mr_error *err);

/* "rank 3 (host b)" into one of a few rotating buffers of the thread. */
const char *mri_meet_name(uint32_t rank, const char *host);
/* Bytes that nobody else draws. */
void mri_meet_draw(void *out, size_t bytes);
/* For poll(): ms until `due` of mri_clock_ns(), at most a minute. */
int mri_meet_wait_ms(uint64_t due);
/* Send what waits in these links, `limit_ns` at most. */
void mri_meet_flush(mri_link *links, uint32_t count, uint64_t limit_ns);

#endif
