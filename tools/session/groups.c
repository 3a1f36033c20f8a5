/* tools/session/groups.c: see groups.h. */
#include "tools/session/groups.h"

#include <assert.h>
#include <string.h>

const opt output_options[2] = {
    OPT(output_args, json, FLAG, .option = "json", .help = "print results as one JSON object per line"),
    OPT(output_args, quiet, FLAG, .option = "quiet", .help = "no progress on stderr"),
};

const opt data_options[DATA_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(data_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/data.rows"
#define MRI_SETTING(...) MRI_ROW(data_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/decode.rows"
};

const opt run_options[RUN_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(run_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/batches.rows"
};

const opt loader_options[LOADER_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(loader_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/loader.rows"
};

const opt device_options[DEVICE_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(device_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/devices.rows"
};

const opt compute_options[COMPUTE_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(compute_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/computing.rows"
};

const opt part_options[SHARE_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(part_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/shares.rows"
};

const opt model_options[MODEL_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(model_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/optimizer.rows"
};

const opt update_options[UPDATE_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(model_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/updates.rows"
};

const opt objective_options[TARGET_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(objective_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/targets.rows"
};

const opt begin_options[BEGIN_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(begin_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/beginning.rows"
};

const opt *group_option(const char *option)
{
    static const struct {
        const opt *rows;
        size_t count;
    } groups[] = {{run_options, RUN_OPTIONS},         {data_options, DATA_OPTIONS},
                  {model_options, MODEL_OPTIONS},     {update_options, UPDATE_OPTIONS},
                  {part_options, SHARE_OPTIONS},      {device_options, DEVICE_OPTIONS},
                  {compute_options, COMPUTE_OPTIONS}, {objective_options, TARGET_OPTIONS}};
    for (size_t g = 0; g < OPT_COUNT(groups); g++)
        for (size_t i = 0; i < groups[g].count; i++)
            if (strcmp(groups[g].rows[i].option, option) == 0) return &groups[g].rows[i];
    assert(!"no such option");
    return NULL;
}

const char *group_choice(const char *option, uint32_t choice)
{
    return group_option(option)->choices[choice];
}
