/* pipeline/tune/tuner.h: looks for the settings that deliver most batches, while they are delivered. Private.
 *
 *   batches:  now  then  now  then  now …      then: one setting changed
 *             └turn┘                           batches prepared before a turn do not count
 *
 * A machine's speed varies by more than the expected gain, so a change is never compared with an old
 * measurement: it alternates with the present settings, and is accepted when it wins nearly every pair of
 * turns, and some per cent in total. At the end all accepted changes are compared with the initial settings,
 * and dropped if they are not faster. Where the next batch is nearly always ready nothing can be gained, and
 * nothing is tried. The consumer's waits (causes.h) decide which change is tried first.
 *
 * Knows no loader: the caller reports each taken batch, and the tuner returns the limits to use. It belongs
 * to one thread. */
#ifndef MRI_TUNER_H
#define MRI_TUNER_H

#include "millrace/pipeline.h"

typedef enum mri_tune_what {
    MRI_TUNE_WORKERS,
    MRI_TUNE_PREFETCH,
    MRI_TUNE_DEPTH,
    MRI_TUNE_READERS,
    MRI_TUNED
} mri_tune_what;

typedef struct mri_tuner_config {
    uint32_t start[MRI_TUNED];
    uint32_t least[MRI_TUNED], most[MRI_TUNED]; /* both the same as start: it stays */
    uint64_t turn_ns;                           /* that a turn takes at least; 0: TUNE_TURN_NS */
    uint64_t all_ns;                            /* after which nothing new is tried; 0: TUNE_ALL_NS */
    uint32_t batch;                             /* samples, for the notes */
    void (*note)(void *context, const char *text);
    void *context;
} mri_tuner_config;

typedef struct mri_tuner mri_tuner;

int mri_tuner_create(mri_tuner **out, const mri_tuner_config *cfg); /* MR_OK or MR_ENOMEM */
void mri_tuner_destroy(mri_tuner *t);                               /* accepts NULL */

/* A batch was handed out at now_ns; waits: of the consumer, so far; ahead: the next one is ready, too. True:
 * mri_tuner_in_use() has changed. */
bool mri_tuner_batch(mri_tuner *t, uint64_t now_ns, const mr_causes *waits, bool ahead);
const uint32_t *mri_tuner_in_use(const mri_tuner *t); /* MRI_TUNED numbers */
bool mri_tuner_is_done(const mri_tuner *t);
/* Batches were not ready when they were asked for, mostly for what readers and workers do. */
bool mri_tuner_is_late(const mri_tuner *t);
void mri_tuner_result(const mri_tuner *t, mr_tuning *out);

#endif
