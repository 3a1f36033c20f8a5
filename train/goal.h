/* train/goal.h: an accuracy at which a run ends, and the cost of reaching it. Private to train/ and its
 * tests.
 *
 * The state is the run's (mri_run_state), so that it goes into checkpoints; time is stored only while a goal
 * is set, because checkpoints of a run without a goal must have the same bytes whenever they are made. */
#ifndef MRI_GOAL_H
#define MRI_GOAL_H

#include "millrace/train.h"

/* Seconds of training and of evaluation, one after the other. */
typedef struct mri_goal_time {
    double training, evaluation;
} mri_goal_time;

typedef struct mri_goal {
    double accuracy;       /* to be reached; 0: none */
    mri_goal_time time;    /* so far, over all calls that had a goal */
    uint64_t timed_from;   /* updates before the first of them */
    uint64_t updates;      /* behind which it was reached; 0: it was not */
    double found;          /* the accuracy then */
    mri_goal_time reached; /* the cost */
} mri_goal;

/* The time of one call. */
typedef struct mri_goal_clock {
    uint64_t begun_ns, evaluated_ns; /* evaluated_ns: of the time since then, so much was evaluation */
    mri_goal_time before;            /* of other calls */
} mri_goal_clock;

/* Begin a call after `updates` updates; accuracy: its goal, or 0. A reached goal stays reached unless
 * `accuracy` is above the accuracy found. */
void mri_goal_begin(mri_goal *g, mri_goal_clock *clock, double accuracy, uint64_t updates, uint64_t now_ns);
/* g->time is of this moment. */
void mri_goal_tick(mri_goal *g, const mri_goal_clock *clock, uint64_t now_ns);
/* This accuracy was found: is it reached? */
bool mri_goal_look(mri_goal *g, const mri_goal_clock *clock, double accuracy, uint64_t updates,
                   uint64_t now_ns);
void mri_goal_forget(mri_goal *g); /* that it was reached */
static inline bool mri_goal_is_reached(const mri_goal *g) { return g->accuracy > 0 && g->updates > 0; }

#endif
