/* train/stretch.h: figures of a stretch of steps while their epoch goes on, from the sums that the trainer
 * has learned behind some of them. Asks the devices nothing. Private to train/ and its tests. */
#ifndef MRI_STRETCH_H
#define MRI_STRETCH_H

#include <math.h>

#include "train/trainer.h"

static inline double mri_mean_of(double sum, uint64_t count) { return count ? sum / (double)count : 0; }

/* Of classes, or of all labels of all samples; NaN where the network predicts neither. */
static inline double mri_accuracy_of(const mr_trainer *t, uint64_t correct, uint64_t count)
{
    const uint32_t answers = mri_net_answers(t->cfg.net);
    return answers ? mri_mean_of((double)correct, count * answers) : NAN;
}

/* One call of mr_fit(). */
typedef struct mri_stretches {
    mri_peek last, due;      /* where stretches begin: after the last look, or after the last due one */
    mri_position at;         /* where the epoch began for this call */
    uint64_t updates, steps; /* the same: of the run, and of flights */
    uint64_t call_begun_ns, call_steps; /* of flights then */
    uint64_t steps_per_epoch;
} mri_stretches;

void mri_stretches_begin(mri_stretches *s, const mr_trainer *t, uint64_t steps_per_epoch, uint64_t now_ns);
/* Nothing is in flight. */
void mri_stretches_begin_epoch(mri_stretches *s, const mr_trainer *t, uint64_t now_ns);
/* So much time was spent on something else than steps since the newest one. */
static inline void mri_stretches_skip(mri_stretches *s, uint64_t ns)
{
    s->last.end_ns += ns, s->due.end_ns += ns;
}
/* The stretch that ends at `now`; s->last is the caller's to move. */
void mri_stretches_report(mri_stretches *s, const mr_trainer *t, const mr_fit_config *cfg,
                          const mri_peek *now, mr_step_report *out);

#endif
