/* tools/session/show_lr.c: see show_lr.h. */
#include "tools/session/show_lr.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/cli/exit.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/session/schedule.h"

typedef struct shown {
    const mr_schedule *schedule;
    uint64_t steps, epochs; /* steps of an epoch */
    bool json;
} shown;

static void put_row(const shown *s, uint64_t update)
{
    const float lr = mr_schedule_lr(s->schedule, update, s->steps, s->epochs);
    const uint64_t epoch = update / s->steps, step = update % s->steps;
    char number[32];
    if (!s->json) {
        printf("%6" PRIu64 " %8" PRIu64 " %10" PRIu64 "  %s\n", epoch + 1, step, update,
               float_text(lr, number, sizeof number));
        return;
    }
    json_line j = json_begin(stdout, "lr");
    json_u64(&j, "epoch", epoch);
    json_u64(&j, "step", step);
    json_u64(&j, "update", update);
    json_float(&j, "lr", lr);
    json_end(&j);
}

/* The updates per epoch of a loader with these settings. */
static int count_steps(tool_session *s, const session_args *a, const run_args *run, uint64_t *out)
{
    const int status = session_open_data(s, a->data, &a->data_opts, NEED_SAMPLES);
    if (status) return status;
    const uint64_t count = mr_source_info_of(s->src)->count, rest = count % run->batch;
    *out = count / run->batch + (rest && run->tail != MR_TAIL_DROP);
    if (*out) return EXIT_DONE;
    say("%s: %" PRIu64 " samples are no batch of %u: there is nothing to show", a->data, count, run->batch);
    return EXIT_FAILED;
}

int show_lr(tool_session *s, const session_args *a, const show_args *show, uint64_t log_steps)
{
    uint64_t steps = show->steps;
    run_args run = a->run;
    int status = session_find_model(s, a->model.model);
    if (status == EXIT_DONE && a->model.scale) status = session_open_devices(s, &a->device);
    if (status) return status;
    session_fill_run(s, &run, a->model.scale);
    status = session_fill_rule(s, &a->model, a->model.scale);
    if (status == EXIT_DONE && !steps) status = count_steps(s, a, &run, &steps);
    if (status) return status;
    const shown what = {&s->rule.schedule, steps, run.epochs, a->output.json};
    const uint64_t all = steps * run.epochs, each = log_steps ? log_steps : steps;
    char text[512], number[32];
    if (!what.json) {
        printf("%s, lr %s, %" PRIu64 " epochs of %" PRIu64 " updates\n",
               schedule_text(&s->rule.schedule, text, sizeof text),
               float_text(s->rule.schedule.lr, number, sizeof number), run.epochs, steps);
        printf("%6s %8s %10s  %s\n", "epoch", "step", "update", "lr");
    }
    for (uint64_t update = 0; update < all; update += each) put_row(&what, update);
    if (all && (all - 1) % each) put_row(&what, all - 1);
    return EXIT_DONE;
}
