/* tools/training/training.h: one run of `millrace train`: its options, its handles, and how it is opened.
 *
 *   takes    options, the folder of checkpoints, the processes of the run
 *   gives    data, validation data, loaders, network and trainer, at the step where training begins
 *   callers  tools/commands/cmd_train.c, which trains, prints and closes */
#ifndef TOOLS_TRAINING_H
#define TOOLS_TRAINING_H

#include "tools/cli/progress.h"
#include "tools/facts/choose.h"
#include "tools/session/elastic.h"
#include "tools/session/goal.h"
#include "tools/session/rank_list.h"
#include "tools/session/session.h"
#include "tools/session/show_lr.h"
#include "tools/session/trace_window.h"
#include "tools/session/tune.h"
#include "tools/session/world.h"
#include "tools/session/world_trace.h"
#include "tools/training/train_header.h"
#include "tools/watch/live.h"
#include "tools/watch/watch.h"

typedef struct train_args {
    /* hold_out NAN: not given; sync: reserved for other --sync modes */
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/training.rows"
    begin_args begin;
    choose_args choose;
    goal_args goal;
    watch_args watch;
    tune_args tune;
    trace_args tracing;
    show_args show;
    rank_args rank;
    elastic_args elastic;
    session_args shared;
    opt_given given;
} train_args;

/* Where training begins. */
typedef struct train_origin {
    resume_point point;
    bool resumed, complete; /* complete: every epoch was done before */
    char from[512];         /* checkpoint resumed from */
    mr_checkpoint_info start;
    session_begin begin;
} train_origin;

typedef struct train_validation {
    mr_source *src;
    mr_loader *loader;
    bad_watch bad;
    chooser choice;
} train_validation;

/* What --live shows, besides the loader's figures. */
typedef struct train_view {
    bool wanted;           /* and possible */
    live_view *live;       /* or NULL: there is a bar */
    char title[256];       /* of the view */
    mr_record *record;     /* of steps */
    mr_step_report newest; /* steps: 0 before the first */
    uint64_t newest_ns;    /* when it came */
} train_view;

/* The reports made so far. */
typedef struct train_reports {
    uint64_t start_ns, epochs, last;
    uint64_t first_step, last_step; /* of the whole run, from 1; 0: none yet */
} train_reports;

typedef struct train_goal {
    double accuracy; /* to stop at */
    double eval_at[GOAL_POINTS_MOST];
    uint32_t eval_at_count;
} train_goal;

typedef struct train_run {
    const train_args *args;
    tool_world world;
    elastic *elastic;    /* not NULL; its muster says whether the run is */
    world_clock clock;   /* of the trace */
    bool from_memory;    /* resumed from the snapshot that rank 0 holds */
    uint64_t reached;    /* steps of the run when the world before was left, by any of its processes */
    char own_list[4096]; /* of bad samples, of a process that is not the first */
    session_args shared; /* of args; settings that were not given come from the checkpoint */
    uint32_t patience;   /* the same */
    train_goal goal;     /* the same */
    run_args run;        /* with the model's settings filled in */
    mr_run_folder *folder;
    tool_session s;
    char taken[64], held_out[64]; /* with --hold-out: the samples of training, and the others, in the form of
                                   * --take
                                   */
    chooser choice;
    train_validation val;
    mr_budget *budget; /* of both loaders; NULL: there is one */
    tune_run tune;
    train_origin origin;
    frozen_count frozen;
    progress_bar bar;
    mr_logger *logger; /* or NULL */
    train_view view;
    train_reports reports;
} train_run;

/* Lock the folder of checkpoints, in the first process; again is harmless. Return an exit status. */
int training_take_folder(train_run *r);
/* Look for a checkpoint, then open data, validation data, loaders, network and trainer, and load the
 * checkpoint. After an error the caller closes the handles. Return an exit status. */
int training_open(train_run *r);

#endif
