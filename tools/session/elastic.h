/* tools/session/elastic.h: a run that goes on when one of its processes is lost, and takes in new ones.
 *
 * The run is a chain of worlds. Between two of them the processes find each other again (mr_muster), and the
 * one whose state is farthest gives it to all (mr_snapshot). */
#ifndef TOOLS_ELASTIC_H
#define TOOLS_ELASTIC_H

#include "millrace/train.h"
#include "tools/session/world.h"

typedef struct elastic {
    uint32_t min, max;
    const rank_args *rank;
    mr_muster *muster; /* NULL: the run is not elastic */
    mr_snapshot *snapshot;
    void *net; /* of its own, that no name stands for, as mr_net_encode() gives it; NULL: it has a name */
    uint32_t net_bytes;
    uint64_t begun_epoch, begun_step; /* where the first world began: --max-steps counts from there */
    uint32_t worlds;                  /* so far */
    uint64_t reached;  /* steps of the run when this process left its world; 0: it was in none */
    uint32_t expected; /* of the next one; 0: not known */
    char why[600];     /* the newest world was left; empty: it is the first */
    uint64_t left_ns;  /* when */
    bool wanted;       /* it was left for a process that has come */
    bool lost_folder;  /* while this process was stopped, say, another one went on with the checkpoints */
} elastic;

/* An exit status. */
int elastic_open(elastic *e, const elastic_args *a, const rank_args *rank);
void elastic_close(elastic *e);

/* The next world, as world_join(). */
int elastic_join(elastic *e, tool_world *w);

/* During training, now and then: a process that waits to take part stops it (interrupt_flag). */
void elastic_look(const elastic *e);
/* Training has ended with MR_ECANCELED. False: somebody wants to stop. True: it was for a process that has
 * come, as all processes of the world agree, or one of them was lost meanwhile; *status is what train() ends
 * with. */
bool elastic_takes_stop(elastic *e, const tool_world *w, int *status);
/* A world was used, and status came of it: is there another one? Closes w then. */
bool elastic_goes_on(elastic *e, tool_world *w, int status);

/* The last world. The others may have ended already: nobody waits for them. */
int elastic_leave(tool_world *w, int status);

#endif
