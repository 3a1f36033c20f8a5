/* tools/commands/cmd_lr_find.c: `millrace lr-find DATA --model M`: the range test of Smith 2015 ("Cyclical
 * Learning Rates for Training Neural Networks"): a rate that grows exponentially from step to step, and the
 * loss at each step. The trained weights are discarded. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/session/session.h"

#define SMOOTHING 0.9 /* of a loss how much is of the steps before */
#define DIVERGED  4.0 /* times the lowest: there is nothing more to learn */
#define CHANGED   0.1 /* of a loss is more than its noise */
#define POLL_NS   100000000u
enum { STEPS_LEAST = 10, ROWS = 20 };

typedef struct find_args {
    double from, to;
    uint32_t steps;
    const char *csv;
    bool force;
    begin_args begin;
    session_args shared;
} find_args;

typedef struct found_step {
    double lr, loss, smoothed;
} found_step;

typedef struct find_run {
    const find_args *args;
    tool_session s;
    run_args run;
    found_step *step;
    uint32_t done;
    double smooth; /* before it is corrected for where it began */
    bool diverged;
    progress_bar bar;
} find_run;

/* ---- the steps ---- */

static int next_batch(find_run *r, mr_batch *b)
{
    mr_error err = MR_ERROR_INIT;
    int rc = MR_EAGAIN;
    while (rc == MR_EAGAIN && !interrupt_flag) rc = mr_loader_next(r->s.loader, b, POLL_NS, &err);
    return interrupt_flag ? EXIT_SIGNAL + interrupt_flag : exit_status(rc, &err);
}

static int one_step(find_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    mr_metrics m, none;
    const int status = next_batch(r, &b);
    if (status) return status;
    int rc = mr_trainer_step(r->s.trainer, &b, &err);
    const int given = mr_loader_release(r->s.loader, &b, mr_trainer_streams(r->s.trainer));
    if (rc == MR_OK && given)
        rc = mr_error_set(&err, given, "cannot give a batch back: %s", mr_status_text(given));
    if (rc == MR_OK) rc = mr_trainer_metrics(r->s.trainer, &m, &none, &err);
    if (rc) return exit_status(rc, &err);
    if (m.count == 0) return EXIT_DONE; /* a batch in which nothing counts */
    found_step *f = &r->step[r->done];
    f->loss = m.loss_sum / (double)m.count;
    r->smooth = SMOOTHING * r->smooth + (1 - SMOOTHING) * f->loss;
    f->smoothed = r->smooth / (1 - pow(SMOOTHING, r->done + 1));
    r->done++;
    return EXIT_DONE;
}

/* The first that counts: before it hardly anything is smoothed. */
static uint32_t first_of(const find_run *r) { return r->done < STEPS_LEAST ? 0 : STEPS_LEAST - 1; }

static uint32_t lowest_of(const find_run *r)
{
    uint32_t lowest = first_of(r);
    for (uint32_t k = lowest + 1; k < r->done; k++)
        if (r->step[k].smoothed < r->step[lowest].smoothed) lowest = k;
    return lowest;
}

static int take_steps(find_run *r)
{
    const find_args *a = r->args;
    progress_start(&r->bar, "lr-find", "steps", a->shared.output.quiet);
    int status = EXIT_DONE;
    for (uint32_t k = 0; status == EXIT_DONE && k < a->steps && !r->diverged; k++) {
        const uint32_t before = r->done;
        r->step[r->done].lr = (double)mr_schedule_lr(&r->s.rule.schedule, k, a->steps - 1, 1);
        status = one_step(r);
        if (status || r->done == before) continue;
        const double now = r->step[before].smoothed;
        r->diverged =
            !isfinite(now) || (r->done > STEPS_LEAST && now > DIVERGED * r->step[lowest_of(r)].smoothed);
        progress_show(&r->bar, k + 1, a->steps, "");
    }
    progress_end(&r->bar);
    return status;
}

/* ---- results ---- */

typedef struct finding {
    double suggested, lowest, steepest; /* rates; NAN: none */
    const char *why_not;                /* NULL: there is one */
} finding;

/* A tenth of the rate with the lowest loss: there it has not begun to rise on any batch. */
static finding judge(const find_run *r)
{
    finding f = {(double)NAN, (double)NAN, (double)NAN, NULL};
    const uint32_t lowest = lowest_of(r);
    double most = 0;
    const double first = r->done ? r->step[first_of(r)].smoothed : 0,
                 least = r->done ? r->step[lowest].smoothed : 0,
                 last = r->done ? r->step[r->done - 1].smoothed : 0;
    const bool fell = least < (1 - CHANGED) * first, rose = r->diverged || last > (1 + CHANGED) * least;
    if (!r->diverged && r->done < STEPS_LEAST) f.why_not = "too few steps counted: give more --steps";
    else if (!fell && rose) f.why_not = "no rate lowered the loss: begin lower, with --from";
    else if (!rose) f.why_not = "the loss has not risen at the highest rate: go on, with a larger --to";
    if (f.why_not) return f;
    for (uint32_t k = first_of(r) + 1; k <= lowest; k++) {
        const double fall = r->step[k - 1].smoothed - r->step[k].smoothed;
        if (fall > most) most = fall, f.steepest = r->step[k].lr;
    }
    f.lowest = r->step[lowest].lr;
    f.suggested = f.lowest / 10;
    return f;
}

static int write_csv(const find_run *r)
{
    mr_error err = MR_ERROR_INIT;
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return exit_no_memory("the rows");
    fputs("step,lr,loss,smoothed\n", f);
    for (uint32_t k = 0; k < r->done; k++)
        fprintf(f, "%" PRIu32 ",%.9g,%.9g,%.9g\n", k, r->step[k].lr, r->step[k].loss, r->step[k].smoothed);
    if (fclose(f) != 0) {
        free(text);
        return exit_no_memory("the rows");
    }
    const int rc = setup_write_result(r->args->csv, text, bytes, r->s.src, r->args->force, &err);
    free(text);
    return exit_status(rc, &err);
}

static void report_text(const find_run *r, const finding *f)
{
    const uint32_t each = (r->done + ROWS - 1) / ROWS;
    printf("    step           lr        loss    smoothed\n");
    for (uint32_t k = 0; k < r->done; k++)
        if (k % (each ? each : 1) == 0 || k + 1 == r->done)
            printf("%8" PRIu32 " %12.4g %11.4f %11.4f\n", k, r->step[k].lr, r->step[k].loss,
                   r->step[k].smoothed);
    if (r->diverged) printf("stopped at %.4g: the loss has diverged\n", r->step[r->done - 1].lr);
    if (f->why_not) printf("suggested  none: %s\n", f->why_not);
    else
        printf("suggested  --lr %.2g: a tenth of %.2g, where the loss was lowest\n", f->suggested, f->lowest);
    if (!f->why_not && isfinite(f->steepest)) printf("fastest    at %.2g\n", f->steepest);
}

static void report_json(const find_run *r, const finding *f)
{
    for (uint32_t k = 0; k < r->done; k++) {
        json_line j = json_begin(stdout, "lr_step");
        json_u64(&j, "step", k);
        json_real(&j, "lr", r->step[k].lr);
        json_real(&j, "loss", r->step[k].loss);
        json_real(&j, "smoothed", r->step[k].smoothed);
        json_end(&j);
    }
    json_line j = json_begin(stdout, "lr_find");
    json_text(&j, "model", r->s.model->name);
    json_text(&j, "data", mr_source_info_of(r->s.src)->path);
    json_u64(&j, "batch", mr_loader_info_of(r->s.loader)->batch);
    json_u64(&j, "steps", r->done);
    json_bool(&j, "diverged", r->diverged);
    json_real(&j, "suggested", f->suggested);
    json_real(&j, "lowest_lr", f->lowest);
    json_real(&j, "steepest_lr", f->steepest);
    json_text(&j, "why_not", f->why_not);
    json_end(&j);
}

/* ---- opening ---- */

static int check(const find_args *a)
{
    if (a->from > 0 && a->to > a->from) return EXIT_DONE;
    say("--from %g, --to %g: expected a rate above 0, and a larger one", a->from, a->to);
    return EXIT_MISUSED;
}

static int prepare_csv(const find_run *r)
{
    mr_error err = MR_ERROR_INIT;
    mr_output_config cfg;
    const mr_source *src = r->s.src;
    if (!r->args->csv) return EXIT_DONE;
    mr_output_defaults(&cfg);
    cfg.inputs = &src, cfg.input_count = 1, cfg.force = r->args->force;
    return exit_status(mr_output_check(r->args->csv, &cfg, &err), &err);
}

static int open_run(find_run *r)
{
    const find_args *a = r->args;
    tool_session *s = &r->s;
    session_begin begin;
    int status = check(a);
    s->part = a->shared.part;
    if (status == EXIT_DONE) status = session_open_to_train(s, &a->shared, &r->run);
    if (status == EXIT_DONE) status = prepare_csv(r);
    if (status) return status;
    r->step = calloc(a->steps, sizeof *r->step);
    if (!r->step) return exit_no_memory("the steps");
    /* an "epoch" is all steps but the first, over which the rate grows by its factor */
    s->rule.schedule =
        (mr_schedule){.kind = MR_LR_EXPONENTIAL, .lr = (float)a->from, .factor = (float)(a->to / a->from)};
    s->rule.update.lr = (float)a->from;
    s->rule.schedule_steps = a->steps - 1;
    r->run.epochs = UINT64_MAX;
    status = session_set_loader(s, &a->shared, &r->run, true, 0);
    if (status == EXIT_DONE) status = session_open_loader(s);
    if (status == EXIT_DONE) status = session_open_network(s, 1, false);
    if (status == EXIT_DONE && a->begin.init)
        status = session_begin_with(s, a->begin.init, a->begin.skip, &begin);
    return status;
}

static int run(const void *args)
{
    const find_args *a = args;
    find_run r = {.args = a, .s.compute = &a->shared.compute};
    int status = open_run(&r);
    if (status == EXIT_DONE) status = take_steps(&r);
    if (status == EXIT_DONE) {
        const finding f = judge(&r);
        if (a->csv) status = write_csv(&r);
        if (status == EXIT_DONE) (a->shared.output.json ? report_json : report_text)(&r, &f);
    }
    session_close(&r.s);
    free(r.step);
    return bad_watch_close(&r.s.bad, status);
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(find_args, __VA_ARGS__),
#include "settings/commands/lr_find.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Rates", options),
    GROUP(BEGIN, find_args, begin),
    GROUP(MODEL, find_args, shared.model),
    GROUP(UPDATE, find_args, shared.model),
    GROUP(OBJECTIVE, find_args, shared.objective),
    GROUP(PART, find_args, shared.part),
    NETWORK_GROUPS(find_args),
};
static const opt_positional positionals[] = {
    DATA_POSITIONAL(find_args),
};

const command command_lr_find = {
    .name = "lr-find",
    .summary = "train some steps with a growing learning rate and suggest a rate",
    .text =
        "The range test of Smith 2015: the rate grows exponentially from step to step, and the loss says "
        "from where on it is too high. Suggested is a tenth of the rate with the lowest loss, smoothed over "
        "steps. --lr and --schedule have no effect. Nothing that is trained is kept.",
    .examples = "  millrace lr-find train.mrec --model cifar-cnn\n"
                "  millrace lr-find photos --model resnet18 --init net.npz --freeze backbone\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(find_args),
    .alone = true,
    .run = run,
};
