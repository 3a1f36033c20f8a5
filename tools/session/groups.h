/* tools/session/groups.h: the options that several commands share. A command's struct contains the structs
 * below and lists the groups at their offsets. */
#ifndef TOOLS_GROUPS_H
#define TOOLS_GROUPS_H

#include <stddef.h>

#include "tools/cli/options.h"
#include "tools/fields/objective.h"

typedef struct output_args {
#define MRI_OPTIONS OPT_MEMBER
#include "settings/output.rows"
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
#define MRI_OPTIONS OPT_MEMBER
#include "settings/data.rows"
#define MRI_OPTIONS OPT_MEMBER
#include "settings/decode.rows"
    bool takes_withdrawn;  /* no option: of commands that need the samples that were withdrawn, too */
    data_chooser *chooser; /* no option; NULL: all samples */
    bool own_class_rule;   /* no option: `classes` was set by the command */
} data_args;

/* Members of mr_loader_config, and values that the command makes from its own options. */
typedef struct run_args { /* the settings of a run: its result depends on them and the data. batch, epochs 0,
                             augment NULL: not given */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/batches.rows"
} run_args;

typedef struct loader_args { /* how it is fed: changes no bit of the result */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/loader.rows"
} loader_args;

typedef struct device_args {
#define MRI_OPTIONS OPT_MEMBER
#include "settings/devices.rows"
} device_args;

enum { PRECISION_F32, PRECISION_TF32, PRECISION_BF16, PRECISION_F16 };

typedef struct compute_args { /* how devices compute, for commands that train or evaluate. bucket_bytes
                                 MR_BUCKET_AUTO: not given */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/computing.rows"
} compute_args;

typedef struct model_args { /* lr, momentum, weight_decay, label_smoothing NAN: the model's own; scale: of
                               replicas; freeze NULL: not given, "none": nothing */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/optimizer.rows"
#define MRI_OPTIONS OPT_MEMBER
#include "settings/updates.rows"
} model_args;

typedef struct begin_args { /* weights to begin with */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/beginning.rows"
} begin_args;

typedef struct part_args { /* 0, NULL: not given */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/shares.rows"
} part_args;

typedef struct goal_args {
#define MRI_OPTIONS OPT_MEMBER
#include "settings/goal.rows"
} goal_args;

typedef struct rank_args { /* wire: mr_wire_choice */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/ranks.rows"
} rank_args;

typedef struct elastic_args { /* range: MIN:MAX; NULL: the run is not elastic */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/elastic.rows"
} elastic_args;

typedef struct tune_args { /* each has two options */
    bool on, again;
} tune_args;

typedef struct trace_args { /* steps: FIRST:COUNT, the first step of a run is 1; NULL: all */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/tracing.rows"
} trace_args;

typedef struct show_args { /* steps of an epoch; 0: from the data, whose head is read */
#define MRI_OPTIONS OPT_MEMBER
#include "settings/show.rows"
} show_args;

/* The groups in the order of their table. */
typedef enum option_group {
    GROUP_OUTPUT,
    GROUP_DATA,
    GROUP_RUN,
    GROUP_LOADER,
    GROUP_DEVICE,
    GROUP_COMPUTE,
    GROUP_PART,
    GROUP_MODEL,
    GROUP_UPDATE,
    GROUP_OBJECTIVE,
    GROUP_BEGIN,
    GROUP_GOAL,
    GROUP_RANK,
    GROUP_ELASTIC,
    GROUP_TUNE,
    GROUP_TRACE,
    GROUP_SHOW,
    GROUP_COUNT,
} option_group;
extern const opt_set option_groups[GROUP_COUNT];
/* For the groups of a command whose struct `type` has the group's struct at `member`. */
#define GROUP(name, type, member) OPT_GROUP(option_groups[GROUP_##name], type, member)

/* The row of an option of one of these groups; the option exists. */
const opt *group_option(const char *option);
/* The name of one of its choices. */
const char *group_choice(const char *option, uint32_t choice);

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
    GROUP(RUN, type, shared.run), GROUP(LOADER, type, shared.loader), GROUP(DEVICE, type, shared.device),    \
        GROUP(COMPUTE, type, shared.compute), GROUP(DATA, type, shared.data_opts),                           \
        GROUP(OUTPUT, type, shared.output)
#define DATA_POSITIONAL(type)                                                                                \
    {                                                                                                        \
        "DATA", offsetof(type, shared.data), true, "a record file, a shard list, or any data set"            \
    }

#endif
