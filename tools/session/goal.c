/* tools/session/goal.c: see train_goal.h. */
#include "tools/session/goal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

int goal_points(const goal_args *a, double out[GOAL_POINTS_MOST], uint32_t *count)
{
    *count = 0;
    for (const char *at = a->eval_at; at;) {
        char *end;
        const double epochs = strtod(at, &end);
        if (end == at || (*end && *end != '/') || !(epochs > 0) || isinf(epochs)) {
            say("--eval-at: expected numbers of epochs above 0 with / between them, "
                "such as 0.5/1.25, found '%s'",
                shown_text(a->eval_at));
            return EXIT_MISUSED;
        }
        if (*count == GOAL_POINTS_MOST) {
            say("--eval-at: at most %d points are possible", GOAL_POINTS_MOST);
            return EXIT_MISUSED;
        }
        out[(*count)++] = epochs;
        at = *end ? end + 1 : NULL;
    }
    return EXIT_DONE;
}

void goal_eval_text(const mr_eval_report *r)
{
    printf("%5.2f %9s %7s %9.4f", (double)r->epoch + (double)r->step / (double)r->steps_per_epoch, "-", "-",
           r->loss);
    if (isnan(r->accuracy)) printf(" %7s", "-");
    else printf(" %7.4f", r->accuracy);
    printf(" %10s %9s %9s %11s %7s\n", "-", "-", "-", "-", "-");
    fflush(stdout);
}

void goal_eval_json(const mr_eval_report *r)
{
    json_line j = json_begin(stdout, "eval");
    json_u64(&j, "epoch", r->epoch);
    json_u64(&j, "step", r->step);
    json_u64(&j, "steps_per_epoch", r->steps_per_epoch);
    json_u64(&j, "updates", r->updates);
    json_u64(&j, "samples", r->samples);
    json_real(&j, "val_loss", r->loss);
    json_real(&j, "val_accuracy", r->accuracy);
    json_real(&j, "seconds", r->seconds);
    json_bool(&j, "best", r->best);
    json_bool(&j, "diverged", r->diverged);
    json_bool(&j, "simulated", r->simulated);
    json_end(&j);
}

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
