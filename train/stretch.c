/* train/stretch.c: see stretch.h. */
#include "train/stretch.h"

#include <math.h>

void mri_stretches_begin(mri_stretches *s, const mr_trainer *t, uint64_t steps_per_epoch, uint64_t now_ns)
{
    *s = (mri_stretches){
        .call_begun_ns = now_ns, .call_steps = t->flights.steps, .steps_per_epoch = steps_per_epoch};
}

void mri_stretches_begin_epoch(mri_stretches *s, const mr_trainer *t, uint64_t now_ns)
{
    s->at = t->run.at;
    s->updates = t->updates;
    s->steps = t->flights.steps;
    s->last = s->due = (mri_peek){.steps = t->flights.steps,
                                  .samples = t->flights.samples,
                                  .end_ns = now_ns,
                                  .network_ns = t->flights.network_ns};
}

/* At the pace of this call, with all that it waited for. */
static double seconds_left(const mri_stretches *s, const mr_fit_config *cfg, uint64_t step, uint64_t done)
{
    const double per_epoch = (double)s->steps_per_epoch;
    double left = INFINITY;
    if (cfg->epochs) left = fmax(0, ((double)cfg->epochs - (double)s->at.epoch) * per_epoch - (double)step);
    if (cfg->max_steps)
        left = fmin(left, fmax(0, (double)cfg->max_steps - (double)cfg->steps_before - (double)done));
    if (isinf(left) || done == 0) return -1;
    return left * 1e-9 * (double)(mri_now_ns() - s->call_begun_ns) / (double)done;
}

void mri_stretches_report(mri_stretches *s, const mr_trainer *t, const mr_fit_config *cfg,
                          const mri_peek *now, mr_step_report *out)
{
    const uint64_t step = s->at.step + (now->steps - s->steps),
                   updates = s->updates + (now->steps - s->steps);
    const bool due = cfg->report_steps && updates % cfg->report_steps == 0;
    const mri_peek *from = due ? &s->due : &s->last;
    const uint64_t count = now->sums.count - from->sums.count, samples = now->samples - from->samples;
    const double seconds = 1e-9 * ((double)now->end_ns - (double)from->end_ns);
    *out = (mr_step_report){
        .struct_size = sizeof *out,
        .due = due,
        .epoch = s->at.epoch,
        .step = step,
        .steps_per_epoch = s->steps_per_epoch,
        .updates = updates,
        .steps = now->steps - from->steps,
        .samples = samples,
        .loss = mri_mean_of(now->sums.loss_sum - from->sums.loss_sum, count),
        .accuracy = mri_accuracy_of(t, now->sums.correct - from->sums.correct, count),
        .lr = mri_trainer_lr(t, updates - 1),
        .samples_per_s = seconds > 0 ? (double)samples / seconds : 0,
        .seconds_left = seconds_left(s, cfg, step, now->steps - s->call_steps),
        .simulated = mri_trainer_simulates(t),
        .network_fraction =
            seconds > 0 ? fmin(1, 1e-9 * (double)(now->network_ns - from->network_ns) / seconds) : 0,
    };
    if (due) s->due = *now;
}
