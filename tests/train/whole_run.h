/* tests/train/whole_run.h: whole trainings, from files to weights. Each runs in a process of its own, because
 * the emulated CUDA reads its environment once, and several run at a time, because a training on emulated
 * GPUs mostly waits. */
#ifndef MRT_WHOLE_RUN_H
#define MRT_WHOLE_RUN_H

#include "tests/train/rig.h"

typedef struct mrt_run {
    mr_net *(*net)(void);
    const char *devices;
    uint64_t seed; /* seeds the schedule of the emulated GPUs, the largest possible number */
    uint32_t samples, batch, epochs, prefetch;
    mr_tail tail;
    mr_update_kind update;
    float lr;
    bool no_graph;
    uint64_t bucket_bytes;
    uint32_t dtype; /* default f32 */
    float clip_value, clip_norm, weight_decay;
    mr_decay_on decay_on;
    float average;
    uint32_t lookahead;
} mrt_run;

typedef struct mrt_outcome {
    int status; /* of the process: 0, 1 for an error (see text), 128 + the signal that ended it */
    char text[512];
    uint64_t steps, samples, correct, val_correct; /* over all epochs */
    double loss, val_loss;                         /* of the last one */
    mrt_hash weights;                              /* the same on every replica, or it is an error */
} mrt_outcome;

/* Always deterministic, as `train --deterministic` is. */
void mrt_run_all(const mrt_run *runs, mrt_outcome *outcomes, size_t count);

/* End the program as skipped (exit 77) without emulated GPUs: this build lacks them, or a real
 * driver is found first. */
void mrt_emulated_or_skip(void);

#endif
