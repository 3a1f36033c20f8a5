/* tools/trial/pass_times.h: each pass of each convolution of a trainer timed alone, on operations made like
 * the trainer's. */
#ifndef TRIAL_PASS_TIMES_H
#define TRIAL_PASS_TIMES_H

#include "tools/session/session.h"

typedef struct pass_time {
    const mr_trainer_op *op;
    uint32_t number;  /* of the convolution, from 1 in the order of a forward pass */
    uint32_t samples; /* of one call */
    mr_op_pass pass;
    double ms, ms_mad;  /* of one call */
    double gflop_per_s; /* of the direct algorithm's operations */
    uint32_t rounds;
} pass_time;

typedef void pass_time_take(void *context, const pass_time *t);

/* On the first device, medians of about `seconds` in all; take is called for each pass, never where the
 * device does not tell passes apart. The trainer is at rest. Returns an exit status. */
int pass_times_measure(const tool_session *s, const mr_trainer *t, uint32_t batch, double seconds,
                       pass_time_take *take, void *context);

#endif
