/* tools/commands/cmd_plan.c: `millrace plan DATA`: what would help, in numbers: a run is measured, and its
 * durations are replayed with other settings. */
#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/plan/plan.h"
#include "tools/session/bad_watch.h"

static int make(const plan_args *a, const plan_link *link, tool_session *s, mr_record **record,
                plan_result *p)
{
    const bool first = !s->world || mr_world_rank(s->world) == 0;
    progress_bar bar;
    progress_start(&bar, "plan", "parts", a->shared.output.quiet || !first);
    bar.untimed = true;
    int status = plan_measure(a, link, s, record, p);
    progress_show(&bar, 1, 3, "measured");
    if (status == EXIT_DONE && first && !a->no_forms) status = plan_measure_forms(s, p);
    progress_show(&bar, 2, 3, "other forms");
    if (status == EXIT_DONE && first) status = plan_replay(*record, p);
    progress_end(&bar);
    return status;
}

static int run(const void *args)
{
    plan_args all = *(const plan_args *)args, *a = &all;
    char list[4096];
    static plan_result p; /* one command a process, and too large for a stack frame */
    tool_session s = {.compute = &a->shared.compute};
    tool_world world = {.first = true};
    plan_link link;
    mr_record *record = NULL;
    int status = plan_link_read(a->link, &link);
    if (status) return status;
    status = world_join(&world, &a->rank);
    s.world = world.world;
    all.shared.run.bad_list = world_own_file(&world, all.shared.run.bad_list, list, sizeof list);
    if (status == EXIT_DONE) status = make(a, &link, &s, &record, &p);
    if (status == EXIT_DONE && world.first) {
        plan_advise(&p, a->shared.data);
        if (a->shared.output.json) plan_print_json(&p);
        else plan_print_text(&p);
    }
    session_close(&s);
    mr_record_destroy(record);
    return world_leave(&world, bad_watch_close(&s.bad, status));
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(plan_args, __VA_ARGS__),
#include "settings/commands/plan.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Plan", options),
    GROUP(MODEL, plan_args, shared.model),
    GROUP(UPDATE, plan_args, shared.model),
    GROUP(RANK, plan_args, rank),
    NETWORK_GROUPS(plan_args),
};
static const opt_positional positionals[] = {
    DATA_POSITIONAL(plan_args),
};

const command command_plan = {
    .name = "plan",
    .summary = "predict a run with other settings, data or devices from a measured one",
    .text = "Trains for some seconds and records how long reading, decoding, copies and steps take. Then "
            "replays these durations through a model of the pipeline, with one thing changed at a time: "
            "workers, cores, prefetch, data in memory or in another form, the link, the devices, the "
            "number of processes. Prints the predicted rate of each change and its limit. "
            "Simulated devices need no model. Several processes, started by a launcher, form one run and "
            "measure the network between them.",
    .examples = "  millrace plan train.mrec --model cifar-cnn\n"
                "  millrace plan photos --augment rrc224 --batch 64 --devices sim:1,step=20ms\n"
                "  millrace plan train.mrec --model resnet50 --link 10Gbit,0.05ms\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(plan_args),
    .run = run,
};
