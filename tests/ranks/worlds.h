/* tests/ranks/worlds.h: worlds of forked processes on this host. Each rank runs one function and leaves what
 * came of it in memory that the test shares with it; the test waits for all, with a limit. */
#ifndef MRT_WORLDS_H
#define MRT_WORLDS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "millrace/ranks.h"
#include "mrt.h"

enum { MRT_RANKS_MOST = 8 };

typedef struct mrt_rank {
    int rc; /* of what failed, or MR_OK */
    char text[1024];
    atomic_int mark; /* how far it is; the test may wait for it */
    pid_t pid;
    int status;      /* of waitpid() */
    char wrong[512]; /* a check that failed */
} mrt_rank;

typedef struct mrt_worlds {
    mrt_rank ranks[MRT_RANKS_MOST];
    atomic_int flag;
    char meet[64];
} mrt_worlds;

/* A rank's whole life. what: as given to mrt_start(). Leaves its failure in worlds->ranks[slot]. */
typedef void mrt_life(mrt_worlds *worlds, uint32_t slot, uint32_t rank, uint32_t size, const void *what);

mrt_worlds *mrt_worlds_new(void); /* with a port that is free */
void mrt_worlds_free(mrt_worlds *w);
void mrt_start(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, mrt_life *life, const void *what);
void mrt_start_all(mrt_worlds *w, uint32_t size, mrt_life *life, const void *what);
/* Until all of [0, count) have ended; a rank that hangs fails the test. */
void mrt_wait_all(mrt_worlds *w, uint32_t count);
/* Until this one has ended. */
void mrt_wait_end(mrt_worlds *w, uint32_t slot);
void mrt_wait_mark(mrt_worlds *w, uint32_t slot, int mark);
/* It ended by exit(0), no check of its own failed. */
void mrt_ended_well(mrt_worlds *w, uint32_t slot);
void mrt_said(mrt_worlds *w, uint32_t slot, int rc, const char *part);

/* In a rank: keep rc and text; returns rc. */
int mrt_keep(mrt_rank *r, int rc, const mr_error *err);
int mrt_free_port(void);
/* In a rank: a world with settings of tests, meeting at w->meet; NULL, and kept, when it fails. */
mr_world *mrt_open(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, double silence_s);

/* What mr_world_wires() says of such a world. */
const char *mrt_wires(uint32_t size);

#define MRT_CHECK(r, x)                                                                                      \
    do {                                                                                                     \
        if (!(x) && !(r)->wrong[0])                                                                          \
            snprintf((r)->wrong, sizeof(r)->wrong, "%s:%d: %s", __FILE__, __LINE__, #x);                     \
    } while (0)

#endif
