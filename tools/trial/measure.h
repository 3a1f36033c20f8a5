/* tools/trial/measure.h: the rates of millrace/measure.h for a session, with messages and exit status.
 *
 * The room trial/
 *   takes      a session whose data, devices and settings are chosen, and seconds
 *   gives      the results of short runs: rates (measure.h), the number of accelerators that are fed
 *              (storage.h); only errors are printed
 *   callers    commands/ */
#ifndef TRIAL_MEASURE_H
#define TRIAL_MEASURE_H

#include "millrace/measure.h"
#include "tools/session/session.h"

/* The exit status of a measurement of millrace/measure.h; one that was interrupted says nothing. */
int measure_status(int rc, const mr_error *err);

/* s->loader is open, with epochs enough (endless) and devices or none. Takes batches for about so long, in
 * rounds. */
int measure_loader(tool_session *s, double seconds, uint32_t rounds, mr_rate *out);

/* Of a batch of all processes, the samples that this process computes, at most. */
uint32_t measure_own_batch(const tool_session *s, uint32_t batch);
/* rate is of this process's shares of a batch: it becomes that of whole batches, at the speed of the slowest
 * process. All processes call it. An exit status. */
int measure_slowest(const tool_session *s, mr_rate *rate);

typedef struct synthetic_batch {
    uint32_t batch, h, w, c, classes; /* h 0: sequences of w numbers below classes; 0: labels mean nothing */
    float mean[4], std[4];
    bool uses_affine;
    uint64_t seed;
} synthetic_batch;

/* Called with the trainer at rest, behind its steps. */
typedef int measure_then(void *context, const tool_session *s, const mr_trainer *t);
/* s->net, s->devices and s->rule are set. A trainer of its own, without other processes; one resident batch
 * of noise. then: NULL, or a function for further work with the trainer; its exit status is returned. */
int measure_trainer(tool_session *s, const synthetic_batch *in, double seconds, mr_rate *out,
                    measure_then *then, void *context);

#endif
