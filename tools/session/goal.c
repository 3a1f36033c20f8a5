/* tools/session/goal.c: see train_goal.h. */
#include "tools/session/goal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const opt goal_options[1] = {
    {"stop-at-accuracy", OPT_REAL, offsetof(goal_args, stop_at_accuracy), 0, 1, "0", NULL,
     "stop when the validation's accuracy (without validation: an epoch's) is this or more, and tell the "
     "time to it; 0: "
     "never",
     NULL},
};

static void put_times(double seconds, double eval_seconds, uint64_t from)
{
    printf("%.2f s of training and %.2f s of evaluation", seconds, eval_seconds);
    if (from) printf(", counted from step %" PRIu64 " on", from);
    putchar('\n');
}

void goal_text(const mr_trainer *t)
{
    mr_goal g;
    mr_trainer_goal(t, &g);
    if (g.accuracy <= 0) return;
    if (!g.updates) {
        printf("goal     accuracy %g not reached in ", g.accuracy);
        put_times(g.seconds, g.eval_seconds, g.timed_from);
        return;
    }
    printf("goal     accuracy %g reached (%.4f) after %.4g epochs, %" PRIu64 " steps, ", g.accuracy, g.found,
           g.epochs, g.updates);
    put_times(g.reached_seconds, g.reached_eval_seconds, g.timed_from);
}

void goal_json(json_line *j, const mr_trainer *t)
{
    mr_goal g;
    mr_trainer_goal(t, &g);
    if (g.accuracy <= 0) return;
    const bool reached = g.updates > 0;
    json_real(j, "stop_at_accuracy", g.accuracy);
    json_bool(j, "reached", reached);
    json_real(j, "reached_accuracy", reached ? g.found : NAN);
    json_real(j, "reached_epochs", reached ? g.epochs : NAN);
    if (reached) json_u64(j, "reached_steps", g.updates);
    else json_real(j, "reached_steps", NAN);
    json_real(j, "reached_seconds", reached ? g.reached_seconds : NAN);
    json_real(j, "reached_eval_seconds", reached ? g.reached_eval_seconds : NAN);
    json_real(j, "train_seconds", g.seconds);
    json_real(j, "eval_seconds", g.eval_seconds);
    json_u64(j, "timed_from", g.timed_from);
}
