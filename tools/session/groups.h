/* tools/session/groups.h: the options that several commands share. A command's struct contains the structs
 * below and lists the groups at their offsets. */
#ifndef TOOLS_GROUPS_H
#define TOOLS_GROUPS_H

#include <stddef.h>

#include "tools/cli/options.h"
#include "tools/fields/objective.h"

typedef struct output_args {
    bool json, quiet;
} output_args;

/* Which samples of a source are taken (tools/facts/choose.h): called after every opening, with the source of
 * these data_args. */
typedef struct data_chooser {
    int (*choose)(struct data_chooser *c, mr_source *src); /* 0, or an exit status */
    bool names_classes;                                    /* it gives classes other names or numbers */
    bool gives_names;                                      /* also classes that were numbers */
    bool needs_classes;                                    /* it depends on the classes of samples */
} data_chooser;

/* The structs below have the members of their rows. */
typedef struct data_args { /* label_offset: "auto" or a number; index_folder "off": no index is kept */
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/data.rows"
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#include "settings/decode.rows"
    bool takes_withdrawn;  /* no option: of commands that need the samples that were withdrawn, too */
    data_chooser *chooser; /* no option; NULL: all samples */
} data_args;

/* Members of mr_loader_config, and values that the command makes from its own options. */
typedef struct run_args { /* the settings of a run: its result depends on them and the data. batch, epochs 0,
                             augment NULL: not given */
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/batches.rows"
} run_args;

typedef struct loader_args { /* how it is fed: changes no bit of the result */
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/loader.rows"
} loader_args;

/* How many options there are of each. */
enum {
    DATA_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/data.rows"
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/decode.rows"
    ,
    RUN_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/batches.rows"
    ,
    LOADER_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/loader.rows"
    ,
    DEVICE_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/devices.rows"
    ,
    COMPUTE_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/computing.rows"
    ,
    SHARE_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/shares.rows"
    ,
    MODEL_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/optimizer.rows"
    ,
    UPDATE_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/updates.rows"
    ,
    TARGET_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/targets.rows"
    ,
    BEGIN_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/beginning.rows"
};

typedef struct device_args {
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/devices.rows"
} device_args;

enum { PRECISION_F32, PRECISION_TF32, PRECISION_BF16, PRECISION_F16 };

typedef struct compute_args { /* how devices compute, for commands that train or evaluate. bucket_bytes
                                 MR_BUCKET_AUTO: not given */
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/computing.rows"
} compute_args;

extern const opt output_options[2], data_options[DATA_OPTIONS], run_options[RUN_OPTIONS],
    loader_options[LOADER_OPTIONS], device_options[DEVICE_OPTIONS], compute_options[COMPUTE_OPTIONS];

/* The row of an option of a group below, which there is. */
const opt *group_option(const char *option);
/* The name of one of its choices. */
const char *group_choice(const char *option, uint32_t choice);

#define OUTPUT_GROUP(type, member)                                                                           \
    {                                                                                                        \
        "Output", output_options, OPT_COUNT(output_options), offsetof(type, member), true                    \
    }
#define DATA_GROUP(type, member)                                                                             \
    {                                                                                                        \
        "Data", data_options, OPT_COUNT(data_options), offsetof(type, member), true                          \
    }
#define RUN_GROUP(type, member)                                                                              \
    {                                                                                                        \
        "Batches (the same for all options of the next group)", run_options, OPT_COUNT(run_options),         \
            offsetof(type, member), true                                                                     \
    }
#define LOADER_GROUP(type, member)                                                                           \
    {                                                                                                        \
        "Loader", loader_options, OPT_COUNT(loader_options), offsetof(type, member), true                    \
    }
#define DEVICE_GROUP(type, member)                                                                           \
    {                                                                                                        \
        "Devices", device_options, OPT_COUNT(device_options), offsetof(type, member), true                   \
    }

extern const opt part_options[SHARE_OPTIONS];
#define PART_GROUP(type, member)                                                                             \
    {                                                                                                        \
        "Parts", part_options, OPT_COUNT(part_options), offsetof(type, member), true                         \
    }

#define COMPUTE_GROUP(type, member)                                                                          \
    {                                                                                                        \
        "Computing", compute_options, OPT_COUNT(compute_options), offsetof(type, member), true               \
    }

typedef struct model_args { /* lr, momentum, weight_decay, label_smoothing NAN: the model's own; scale: of
                               replicas; freeze NULL: not given, "none": nothing */
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/optimizer.rows"
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#include "settings/updates.rows"
} model_args;

extern const opt model_options[MODEL_OPTIONS], update_options[UPDATE_OPTIONS];
#define MODEL_GROUP(type, member)                                                                            \
    {                                                                                                        \
        "Network", model_options, OPT_COUNT(model_options), offsetof(type, member), false                    \
    }

#define UPDATE_GROUP(type, member)                                                                           \
    {                                                                                                        \
        "Updates", update_options, OPT_COUNT(update_options), offsetof(type, member), true                   \
    }

extern const opt objective_options[TARGET_OPTIONS];
#define OBJECTIVE_GROUP(type, member)                                                                        \
    {                                                                                                        \
        "Learning", objective_options, OPT_COUNT(objective_options), offsetof(type, member), true            \
    }

typedef struct begin_args { /* weights to begin with */
#define MRI_OPTION(member, kind, ...) MRI_TYPE_##kind member;
#include "settings/beginning.rows"
} begin_args;

extern const opt begin_options[BEGIN_OPTIONS];
#define BEGIN_GROUP(type, member)                                                                            \
    {                                                                                                        \
        "Beginning", begin_options, OPT_COUNT(begin_options), offsetof(type, member), true                   \
    }

typedef struct part_args { /* 0, NULL: not given */
#define MRI_OPTION(member, kind, ...) MRI_TYPE_##kind member;
#include "settings/shares.rows"
} part_args;

/* What commands that take batches have in common; those without a network leave model and compute alone. */
typedef struct session_args {
    const char *data;
    model_args model;
    objective_args objective;
    data_args data_opts;
    run_args run;
    loader_args loader;
    device_args device;
    compute_args compute;
    part_args part;
    output_args output;
} session_args;

/* For a struct with a member `shared` of that type: the groups that every network over data takes, and DATA.
 */
#define NETWORK_GROUPS(type)                                                                                 \
    RUN_GROUP(type, shared.run), LOADER_GROUP(type, shared.loader), DEVICE_GROUP(type, shared.device),       \
        COMPUTE_GROUP(type, shared.compute), DATA_GROUP(type, shared.data_opts),                             \
        OUTPUT_GROUP(type, shared.output)
#define DATA_POSITIONAL(type)                                                                                \
    {                                                                                                        \
        "DATA", offsetof(type, shared.data), true, "a record file, a shard list, or any data set"            \
    }

#endif
