/* tools/commands/session.h: what training, evaluation and measuring have in common: data, devices, loader,
 * network, trainer, opened in that order and closed in reverse. Every function says what went wrong and
 * returns an exit status. */
#ifndef TOOLS_SESSION_H
#define TOOLS_SESSION_H

#include "tools/commands/bad_watch.h"
#include "tools/commands/fields.h"
#include "tools/commands/setup.h"

typedef struct tool_session {
    const mr_model *model;
    mr_source *src;
    uint32_t class_count; /* of the network; 0: as many as the data have */
    mr_device **devices;
    uint32_t device_count;
    mr_loader *loader;
    bool io_reported; /* why io_uring is not used was told, or the command tells it in its own place */
    mr_net *net;
    mr_trainer *trainer;
    mr_trace *trace;             /* the caller's */
    const compute_args *compute; /* the caller's; NULL: as the library would */
    uint32_t values;             /* a network of numbers: how many it tells apart; 0: its classes */
    bad_watch bad;
    field_set fields;
    mr_loader_config loader_cfg; /* as opened */
    mr_update_desc update;
    mr_schedule schedule;
} tool_session;

/* ---- the whole of it, in the order of a command ---- */

/* Model, devices and data; then *run, which is a->run with what the model says where the user did not, and
 * its rule. */
int session_open_to_train(tool_session *s, const session_args *a, run_args *run);
/* s->loader_cfg for run, fields of numbers with rows of `length` (0: as the longest), and what watches for
 * bad samples. */
int session_set_loader(tool_session *s, const session_args *a, const run_args *run, bool training,
                       uint32_t length);
/* The network, unless there is one, and its trainer, for the loader that is open. */
int session_open_network(tool_session *s, uint64_t epochs, bool inference);
/* A checkpoint into the trainer. */
int session_load(tool_session *s, const char *path, mr_checkpoint_info *info);

/* ---- its parts ---- */

/* EXIT_MISUSED with the nearest name when there is none such. */
int session_find_model(tool_session *s, const char *name);
/* Batch, epochs and augmentation where the user gave none: the model's. --scale, once the devices are
 * known. */
void session_fill_run(const tool_session *s, run_args *run, bool scale);
/* Optimizer and schedule: the model's, changed by what the user gave. */
int session_fill_rule(tool_session *s, const model_args *m, bool scale);

typedef enum session_need {
    NEED_SAMPLES,
    NEED_PICTURES,
    NEED_CLASSES
} session_need; /* each of them and those before it */
int session_open_data(tool_session *s, const char *path, const data_args *data, session_need need);
/* run->fields into s->loader_cfg, once data and settings are there. */
int session_take_fields(tool_session *s, const run_args *run);
/* The same for what a network is to take: of one of numbers the sequences, so long (0: as the longest); of
 * others nothing but pictures. */
int session_take_numbers(tool_session *s, const run_args *run, uint32_t length);
/* Of the data, or of those they are to be like; a network of numbers has its own at least. */
uint32_t session_class_count(const tool_session *s);
/* Data to evaluate with, labels needed: setup_source_like(). */
int session_open_data_like(tool_session *s, const char *path, const data_args *data, const data_like *like);
int session_open_devices(tool_session *s, const device_args *d);
/* s->loader_cfg is complete. */
int session_open_loader(tool_session *s);
/* For the size and classes that loader and data have. */
int session_open_net(tool_session *s);
int session_open_trainer(tool_session *s, uint64_t epochs, bool inference);
/* Ends the program when its trainer gave up on a device that hangs: nothing could be closed without waiting
 * for it. */
void session_leave_if_it_hangs(const mr_trainer *t);

void session_close_trainer(tool_session *s);
void session_close_loader(tool_session *s);
void session_close(tool_session *s);

#endif
