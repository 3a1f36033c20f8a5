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

typedef struct data_args {
    const char *format;
    uint32_t split; /* mr_split */
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#include "settings/decode.rows"
    const char *image_key, *label_key; /* NULL: the format's usual names */
    const char *label_offset;          /* "auto" or a number */
    const char *index_folder;          /* NULL: the library's choice; "off": no index is kept */
    const char *remote_folder;         /* NULL: the library's choice */
    uint64_t remote_size;
    uint32_t classes;       /* mr_class_rule */
    uint32_t outside;       /* mr_outside */
    const char *take;       /* "LO:HI" or "HI"; NULL: all samples */
    const char *target_key; /* NULL: none */
    const char *split_key;  /* NULL: the usual names */
    uint32_t match;         /* mr_class_match */
    bool takes_withdrawn;   /* no option: of commands that need the samples that were withdrawn, too */
} data_args;

/* Members of mr_loader_config, and what the command makes of its own options. */
typedef struct run_args { /* what a run is: with the data, all that its result depends on. batch, epochs 0,
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
    DECODE_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#include "settings/decode.rows"
    ,
    RUN_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/batches.rows"
    ,
    UPDATE_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#include "settings/updates.rows"
    ,
    LOADER_OPTIONS = 0
#define MRI_SETTING(member, kind, ...) +1
#define MRI_OPTION                     MRI_SETTING
#include "settings/loader.rows"
};

typedef struct device_args {
    const char *devices;
    uint32_t threads;
    uint32_t kernels;     /* 0 fast, 1 reference */
    uint32_t convolution; /* mr_convolution */
} device_args;

enum { PRECISION_F32, PRECISION_TF32, PRECISION_BF16, PRECISION_F16 };

typedef struct compute_args { /* how devices compute, for commands that train or evaluate */
    uint32_t precision;       /* PRECISION_... */
    bool deterministic;
    uint32_t graph;  /* 0 on, 1 off */
    uint64_t bucket; /* MR_BUCKET_AUTO: not given */
    double watchdog;
    const char *loss_scale;
} compute_args;

extern const char *const setup_convolutions[]; /* of mr_convolution, in their order */

extern const opt output_options[2], data_options[14 + DECODE_OPTIONS], run_options[RUN_OPTIONS],
    loader_options[LOADER_OPTIONS], device_options[4], compute_options[6];
extern const char *const setup_precisions[];

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

extern const opt part_options[3];
#define PART_GROUP(type, member)                                                                             \
    {                                                                                                        \
        "Parts", part_options, OPT_COUNT(part_options), offsetof(type, member), true                         \
    }

#define COMPUTE_GROUP(type, member)                                                                          \
    {                                                                                                        \
        "Computing", compute_options, OPT_COUNT(compute_options), offsetof(type, member), true               \
    }

typedef struct model_args {
    const char *model, *optimizer, *schedule;
    double lr, momentum, weight_decay; /* NAN: the model's own */
    bool scale;                        /* batch and learning rate times the number of replicas */
    /* label_smoothing NAN: the model's own; freeze NULL: not given, "none": nothing */
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#include "settings/updates.rows"
} model_args;

extern const opt model_options[7], update_options[UPDATE_OPTIONS];
#define MODEL_GROUP(type, member)                                                                            \
    {                                                                                                        \
        "Network", model_options, OPT_COUNT(model_options), offsetof(type, member), false                    \
    }

#define UPDATE_GROUP(type, member)                                                                           \
    {                                                                                                        \
        "Updates", update_options, OPT_COUNT(update_options), offsetof(type, member), true                   \
    }

extern const opt objective_options[3];
#define OBJECTIVE_GROUP(type, member)                                                                        \
    {                                                                                                        \
        "Learning", objective_options, OPT_COUNT(objective_options), offsetof(type, member), true            \
    }

typedef struct begin_args { /* weights to begin with */
    const char *init, *skip;
} begin_args;

extern const opt begin_options[2];
#define BEGIN_GROUP(type, member)                                                                            \
    {                                                                                                        \
        "Beginning", begin_options, OPT_COUNT(begin_options), offsetof(type, member), true                   \
    }

typedef struct part_args {
    uint32_t parts, part_threads; /* 0: not given */
    const char *place;            /* NULL: not given */
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
