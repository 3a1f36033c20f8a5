/* tools/commands/setup.h: the options that several commands share, and the way from them to the library's own
 * settings. A command's struct contains the structs below and lists the groups at their offsets. */
#ifndef TOOLS_SETUP_H
#define TOOLS_SETUP_H

#include "millrace/train.h"
#include "tools/cli/options.h"
#include "tools/commands/bad_list.h"

typedef struct output_args {
    bool json, quiet;
} output_args;

typedef struct data_args {
    const char *format;
    uint32_t split; /* mr_split */
    uint32_t exif;  /* 0 apply, 1 ignore */
    uint64_t max_pixels;
    uint32_t max_scans;
    uint32_t pixels;                   /* mr_pixels */
    const char *image_key, *label_key; /* NULL: the format's usual names */
    const char *label_offset;          /* "auto" or a number */
    const char *index_folder;          /* NULL: the library's choice; "off": no index is kept */
    const char *remote_folder;         /* NULL: the library's choice */
    uint64_t remote_size;
} data_args;

typedef struct run_args { /* what a run is: with the data, all that its result depends on */
    uint32_t batch;       /* 0: not given */
    uint64_t epochs;      /* 0: not given */
    uint64_t seed;
    uint32_t order, block, tail;
    const char *augment; /* NULL: not given */
    uint32_t channels;
    uint32_t bad;
    uint64_t max_bad;
    const char *bad_list;
    const char *fields; /* NULL: not given */
    uint32_t width_multiple;
    uint32_t length_window; /* batches; 0: off */
} run_args;

typedef struct loader_args { /* how it is fed: changes no bit of the result */
    uint32_t prefetch, workers, readers, depth, io;
    bool direct;
    uint64_t memory, resident;
    opt_cache cache;
    uint32_t checks; /* 0 on, 1 off */
} loader_args;

typedef struct device_args {
    const char *devices;
    uint32_t threads;
    uint32_t kernels; /* 0 fast, 1 reference */
} device_args;

enum { PRECISION_F32, PRECISION_TF32, PRECISION_BF16, PRECISION_F16 };

typedef struct compute_args { /* how devices compute, for commands that train or evaluate */
    uint32_t precision;       /* PRECISION_... */
    bool deterministic;
    uint32_t graph; /* 0 on, 1 off */
    uint64_t bucket;
    double watchdog;
    const char *loss_scale;
} compute_args;

/* Names of mr_order, mr_tail and mr_pixels, in their order. */
extern const char *const setup_orders[], *const setup_tails[], *const setup_pixels[];

extern const opt output_options[2], data_options[12], run_options[14], loader_options[10], device_options[3],
    compute_options[6];
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
        "What is delivered (the same for any of the options below)", run_options, OPT_COUNT(run_options),    \
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

#define COMPUTE_GROUP(type, member)                                                                          \
    {                                                                                                        \
        "Computing", compute_options, OPT_COUNT(compute_options), offsetof(type, member), true               \
    }

/* 0, or the exit status after saying what is wrong. What the source has to tell is said, once for each
 * text. */
int setup_source(mr_source **out, const char *path, const data_args *a);

typedef struct data_like {          /* what data to evaluate with have in common with those trained on */
    const char *path;               /* where that is known from, for messages */
    const char *format;             /* mr_source_info.format; "": not known */
    int64_t label_offset;           /* goes for data of the same format */
    const char *const *class_names; /* NULL: none, or not known */
    uint32_t class_count;
} data_like;

/* The same for data to evaluate with: of two parts the one to test with, unless a says which; classes and
 * labels numbered as in those trained on. *out may be open when that fails; the caller closes it. */
int setup_source_like(mr_source **out, const char *path, const data_args *a, const data_like *like);
/* c may be NULL. */
int setup_devices(mr_device ***out, uint32_t *count, const device_args *a, const compute_args *c);
/* What c says about a trainer. */
int setup_compute(mr_trainer_config *cfg, const compute_args *c);

void setup_decode(mr_decode_config *cfg, const data_args *a);
/* Everything but source, devices, trace and resume point. run->batch, epochs and augment fall back to the
 * library's. */
void setup_loader(mr_loader_config *cfg, const data_args *data, const run_args *run,
                  const loader_args *loader);

/* Bad samples met while loading: told on stderr (the first ten), and listed in run->bad_list where that is
 * given. */
typedef struct bad_watch {
    bad_list list;
    const mr_source *src;
    bool listed;
    bool stops;     /* --bad stop */
    uint64_t count; /* workers write it one at a time; read it when the loader is closed */
} bad_watch;
int bad_watch_open(bad_watch *w, const mr_source *src, const run_args *run, mr_loader_config *cfg);
/* status, or EXIT_BAD_SAMPLES when it is EXIT_DONE and there were some, or EXIT_FAILED when the list could
 * not be written. */
int bad_watch_close(bad_watch *w, int status);

/* Exit status for what the library returned: says err unless rc is MR_OK; a run stopped by a signal gives 128
 * + signal. */
int exit_status(int rc, const mr_error *err);

/* The same where MR_EINVAL means that an option has no possible value: then it is a misuse. */
int setting_status(int rc, const mr_error *err);

/* Can a file of this name be made? Asked before the work whose result goes there. 0, or the exit status after
 * saying why not. path may be NULL. */
int setup_output(const char *option, const char *path);

#endif
