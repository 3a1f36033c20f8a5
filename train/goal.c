/* train/goal.c: see goal.h. */
#include "train/goal.h"

#include "base/abi.h"
#include "train/trainer.h"

void mri_goal_forget(mri_goal *g)
{
    g->updates = 0;
    g->found = 0;
    g->reached = (mri_goal_time){0, 0};
}

void mri_goal_begin(mri_goal *g, mri_goal_clock *clock, double accuracy, uint64_t updates, uint64_t now_ns)
{
    if (accuracy <= 0) *g = (mri_goal){0};
    else if (g->accuracy <= 0) *g = (mri_goal){.timed_from = updates};
    g->accuracy = accuracy;
    if (g->updates && accuracy > g->found) mri_goal_forget(g);
    *clock = (mri_goal_clock){.begun_ns = now_ns, .before = g->time};
}

void mri_goal_tick(mri_goal *g, const mri_goal_clock *clock, uint64_t now_ns)
{
    if (g->accuracy <= 0) return;
    g->time.training =
        clock->before.training + 1e-9 * (double)(now_ns - clock->begun_ns - clock->evaluated_ns);
    g->time.evaluation = clock->before.evaluation + 1e-9 * (double)clock->evaluated_ns;
}

bool mri_goal_look(mri_goal *g, const mri_goal_clock *clock, double accuracy, uint64_t updates,
                   uint64_t now_ns)
{
    if (g->accuracy <= 0 || !(accuracy >= g->accuracy)) return false;
    mri_goal_tick(g, clock, now_ns);
    g->updates = updates;
    g->found = accuracy;
    g->reached = g->time;
    return true;
}

void mr_trainer_goal_sized(const mr_trainer *t, mr_goal *out)
{
    const mri_goal none = {0}, *g = t ? &t->run.goal : &none;
    const double per_epoch = t ? (double)t->cfg.steps_per_epoch : 0;
    const mr_goal all = {.accuracy = g->accuracy,
                         .seconds = g->time.training,
                         .eval_seconds = g->time.evaluation,
                         .timed_from = g->timed_from,
                         .updates = g->updates,
                         .epochs = per_epoch > 0 ? (double)g->updates / per_epoch : 0,
                         .found = g->found,
                         .reached_seconds = g->reached.training,
                         .reached_eval_seconds = g->reached.evaluation};
    mri_result_give(out, &all, sizeof all);
}
