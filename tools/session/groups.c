/* tools/session/groups.c: see groups.h. */
#include "tools/session/groups.h"

#include <assert.h>
#include <string.h>

static const opt output_options[] = {
#define MRI_OPTIONS(...) OPT(output_args, __VA_ARGS__),
#include "settings/output.rows"
};
static const opt data_options[] = {
#define MRI_OPTIONS(...) OPT(data_args, __VA_ARGS__),
#include "settings/data.rows"
#define MRI_OPTIONS(...) OPT(data_args, __VA_ARGS__),
#include "settings/decode.rows"
};
static const opt run_options[] = {
#define MRI_OPTIONS(...) OPT(run_args, __VA_ARGS__),
#include "settings/batches.rows"
};
static const opt loader_options[] = {
#define MRI_OPTIONS(...) OPT(loader_args, __VA_ARGS__),
#include "settings/loader.rows"
};
static const opt device_options[] = {
#define MRI_OPTIONS(...) OPT(device_args, __VA_ARGS__),
#include "settings/devices.rows"
};
static const opt compute_options[] = {
#define MRI_OPTIONS(...) OPT(compute_args, __VA_ARGS__),
#include "settings/computing.rows"
};
static const opt part_options[] = {
#define MRI_OPTIONS(...) OPT(part_args, __VA_ARGS__),
#include "settings/shares.rows"
};
static const opt model_options[] = {
#define MRI_OPTIONS(...) OPT(model_args, __VA_ARGS__),
#include "settings/optimizer.rows"
};
static const opt update_options[] = {
#define MRI_OPTIONS(...) OPT(model_args, __VA_ARGS__),
#include "settings/updates.rows"
};
static const opt objective_options[] = {
#define MRI_OPTIONS(...) OPT(objective_args, __VA_ARGS__),
#include "settings/targets.rows"
};
static const opt begin_options[] = {
#define MRI_OPTIONS(...) OPT(begin_args, __VA_ARGS__),
#include "settings/beginning.rows"
};
static const opt goal_options[] = {
#define MRI_OPTIONS(...) OPT(goal_args, __VA_ARGS__),
#include "settings/goal.rows"
};
static const opt rank_options[] = {
#define MRI_OPTIONS(...) OPT(rank_args, __VA_ARGS__),
#include "settings/ranks.rows"
};
static const opt elastic_options[] = {
#define MRI_OPTIONS(...) OPT(elastic_args, __VA_ARGS__),
#include "settings/elastic.rows"
};
static const opt tune_options[] = {
#define MRI_OPTIONS(...) OPT(tune_args, __VA_ARGS__),
#include "settings/tuning.rows"
};
static const opt trace_options[] = {
#define MRI_OPTIONS(...) OPT(trace_args, __VA_ARGS__),
#include "settings/tracing.rows"
};
static const opt show_options[] = {
#define MRI_OPTIONS(...) OPT(show_args, __VA_ARGS__),
#include "settings/show.rows"
};

/* clang-format off */
#define ROWS(name) name##_options, OPT_COUNT(name##_options)
const opt_set option_groups[GROUP_COUNT] = {
    [GROUP_OUTPUT] = {"Output", ROWS(output), true},
    [GROUP_DATA] = {"Data", ROWS(data), true},
    [GROUP_RUN] = {"Batches (the same for all options of the next group)", ROWS(run), true},
    [GROUP_LOADER] = {"Loader", ROWS(loader), true},
    [GROUP_DEVICE] = {"Devices", ROWS(device), true},
    [GROUP_COMPUTE] = {"Computing", ROWS(compute), true},
    [GROUP_PART] = {"Parts", ROWS(part), true},
    [GROUP_MODEL] = {"Network", ROWS(model), false},
    [GROUP_UPDATE] = {"Updates", ROWS(update), true},
    [GROUP_OBJECTIVE] = {"Learning", ROWS(objective), true},
    [GROUP_BEGIN] = {"Beginning", ROWS(begin), true},
    [GROUP_GOAL] = {"Evaluation", ROWS(goal), true},
    [GROUP_RANK] = {"Ranks", ROWS(rank), true},
    [GROUP_ELASTIC] = {"Servers and lost ranks", ROWS(elastic), true},
    [GROUP_TUNE] = {"Tuning", ROWS(tune), true},
    [GROUP_TRACE] = {"Tracing", ROWS(trace), true},
    [GROUP_SHOW] = {"Learning rate", ROWS(show), true},
};
/* clang-format on */

const opt *group_option(const char *option)
{
    for (size_t g = 0; g < GROUP_COUNT; g++)
        for (size_t i = 0; i < option_groups[g].count; i++)
            if (strcmp(option_groups[g].options[i].option, option) == 0) return &option_groups[g].options[i];
    assert(!"no such option");
    return NULL;
}

const char *group_choice(const char *option, uint32_t choice)
{
    return group_option(option)->choices[choice];
}
