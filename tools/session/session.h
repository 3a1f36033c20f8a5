/* tools/session/session.h: what training, evaluation and measuring have in common: data, devices, loader,
 * network, trainer, opened in that order and closed in reverse. Every function says what went wrong and
 * returns an exit status. */
#ifndef TOOLS_SESSION_H
#define TOOLS_SESSION_H

#include "tools/fields/fields.h"
#include "tools/fields/objective.h"
#include "tools/session/bad_watch.h"
#include "tools/session/setup.h"

/* How weights are trained, as mr_trainer_config has it. */
typedef struct session_rule {
    mr_update_desc update;
    mr_schedule schedule;
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member; /* freeze NULL: nothing */
#include "settings/updates.rows"
    uint64_t schedule_steps; /* of an epoch, as the schedule counts; 0: as the loader has it */
} session_rule;

/* Rows of its members that checkpoints keep. */
enum {
    RULE_KEPT = 0
#define MRI_KEPT(member, kind, ...) +1
#include "settings/updates.rows"
};
extern const mri_setting rule_kept[RULE_KEPT];

/* Points of a network. */
typedef struct session_points {
    mr_point at[3];
    uint32_t count;
} session_points;

/* Of the gradients that the trainer exchanges together. */
typedef struct session_bucket {
    bool tuned; /* the trainer may look for their size */
    bool known; /* it is bytes, whatever compute says */
    uint64_t bytes;
} session_bucket;

typedef struct tool_session {
    const mr_model *model;
    mr_model own;    /* of own_net.c: what model points to then, texts of a checkpoint's info in it */
    mr_net *own_net; /* the same, until it is net; else NULL */
    mr_source *src;
    mr_device **devices;
    uint32_t device_count;
    mr_world *world; /* the caller's; NULL: started alone */
    mr_crew *crew;   /* the caller's: this process is one of its workers; or NULL */
    part_args part;  /* as the user or the checkpoint wants them */
    mr_parts parts;  /* of a batch, dealt to the devices of all processes */
    mr_device *part_devices[MR_LOADER_MAX_PARTS]; /* that of each part of this one */
    mr_loader *loader;
    bool io_reported; /* the reason for not using io_uring was printed, or the command prints it itself */
    mr_net *net;
    mr_trainer *trainer;
    mr_trace *trace;             /* the caller's */
    const compute_args *compute; /* the caller's; NULL: as the library would */
    session_bucket bucket;
    const session_points *kept; /* of the trainer; the caller's, or NULL */
    uint32_t values;            /* a network of numbers: the number of its values; 0: its classes */
    bad_watch bad;
    field_set fields;
    mr_loader_config loader_cfg; /* as opened */
    session_rule rule;
    objective objective;
    char augment[512]; /* of input_size.h */
} tool_session;

/* ---- the whole of it, in the order of a command ---- */

/* Model, devices and data; then *run, which is a->run with the model's settings where the user gave none, and
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

/* The initial weights that the trainer took from a file. */
typedef struct session_begin {
    const char *path; /* NULL: nothing */
    mr_take_report report;
} session_begin;
/* Weights of a file, or of another run's checkpoint, into the trainer; prints the tensors that kept their
 * values, and the file's unused tensors. skip may be NULL. */
int session_begin_with(tool_session *s, const char *path, const char *skip, session_begin *out);

/* Of the devices that are open; fewer than those with --place. */
uint32_t session_replicas(const tool_session *s);

/* ---- its parts ---- */

/* EXIT_MISUSED with the nearest name when the name is unknown. */
int session_find_model(tool_session *s, const char *name);
/* Batch, epochs and augmentation where the user gave none: the model's. --scale, once the devices are
 * known. */
void session_fill_run(const tool_session *s, run_args *run, bool scale);
/* Optimizer and schedule: the model's, changed by the user's options. */
int session_fill_rule(tool_session *s, const model_args *m, bool scale);

typedef enum session_need {
    NEED_SAMPLES,
    NEED_PICTURES,
    NEED_CLASSES
} session_need; /* each of them and those before it */
int session_open_data(tool_session *s, const char *path, const data_args *data, session_need need);
/* run->fields into s->loader_cfg, once data and settings are there. */
int session_take_fields(tool_session *s, const run_args *run);
/* Does the network tell classes apart, so that data need them? */
bool session_tells_classes(const tool_session *s);
/* *data with what else of the data is to be read: targets. */
void session_fill_data(const tool_session *s, data_args *data);
/* Of the data, or of those they are to be like; a network of numbers has its own at least. */
uint32_t session_class_count(const tool_session *s);
/* Data to train on, which are open, again with this number as the first class. */
int session_number_from(tool_session *s, const char *path, const data_args *data, int64_t first);
/* Data to evaluate with, labels needed: setup_source_like(). */
int session_open_data_like(tool_session *s, const char *path, const data_args *data, const data_like *like);
/* Pictures for a network of `classes` classes, whatever their labels. */
int session_open_data_to_predict(tool_session *s, const char *path, const data_args *data, uint32_t classes);
int session_open_devices(tool_session *s, const device_args *d);
/* s->loader_cfg is complete. */
int session_open_loader(tool_session *s);
/* For the size and classes that loader and data have. */
int session_open_net(tool_session *s);
int session_open_trainer(tool_session *s, uint64_t epochs, bool inference);
void session_give_rule(const tool_session *s, mr_trainer_config *cfg);
/* Ends the program when its trainer gave up on a device that hangs: nothing could be closed without waiting
 * for it. */
void session_leave_if_it_hangs(const mr_trainer *t);

/* ---- networks of a checkpoint that no name stands for (own_net.c) ---- */

/* The model of a checkpoint, which is a file: the named one, or the network that is in it. info stays. */
int session_model_of(tool_session *s, const char *path, const mr_checkpoint_info *info);
/* The second of them, which is the session's from here on. */
void session_take_net(tool_session *s, mr_net *net, const mr_checkpoint_info *info);
/* Put the network's inputs other than pictures into s->loader_cfg; nothing for a named model. */
int session_take_own_fields(tool_session *s);
/* Build it as s->net, for the open loader and data of `classes` classes; an error if they do not fit it. */
int session_build_own(tool_session *s, uint32_t classes);

/* ---- pictures of one size for a network (input_size.c) ---- */

/* Where neither data nor user nor model promise one size, run->augment gets a resize to the model's natural
 * input in front (in s->augment), which is reported. asked: the user gave an augmentation; EXIT_FAILED when
 * pictures that differ would not become one size by it. */
int input_size_choose(tool_session *s, const session_args *a, bool asked, run_args *run);

/* ---- the settings that a resumed run shares with its first part (resume.c) ----
 *
 * Settings that the user does not give come from the checkpoint. A given setting that differs is refused with
 * the checkpoint's value; if it may change during a run and --override is given, it is accepted and
 * reported. */

typedef struct resume_point {
    const mr_checkpoint_info *from;
    const opt_given *given;
    bool override;
} resume_point;

/* Before anything is opened: *a with the checkpoint's settings where none were given; EXIT_MISUSED where one
 * makes another run of it. */
int resume_fill(const resume_point *p, session_args *a);
/* Data and rule are there: are they the data, and which rule goes on? */
int resume_rule(const resume_point *p, const session_args *a, tool_session *s, const run_args *run);
/* The loader is open, which says what --augment comes to. */
int resume_check_augment(const resume_point *p, const char *now);
/* The trainer is open, which says what --convolution comes to. Where nothing was chosen otherwise and the
 * convolutions are others nevertheless (another processor or version, a checkpoint that does not know), the
 * run continues, and a message reports that its last bits differ. name: of the checkpoint. */
int resume_check_convolution(const resume_point *p, const session_args *a, const tool_session *s,
                             const char *name);
/* The network is open: take the checkpoint's `count` class weights, unless the user gives others; the session
 * owns them from here on. */
int resume_weights(const resume_point *p, tool_session *s, float *then, uint32_t count);
/* For an evaluation or a prediction, which may prepare its pictures otherwise than the checkpoint's training:
 * a line for each of --augment, --pixels and --exif that was given and differs. augment: the loader's,
 * presets expanded; NULL: it is not compared. */
void resume_tell_prepared(const mr_checkpoint_info *from, const opt_given *given, const data_args *data,
                          const char *augment);
/* What --convolution is where it was not given: the checkpoint's, or as it is where that does not know. */
void resume_fill_convolution(const mr_checkpoint_info *from, const opt_given *given, device_args *d);

/* ---- closing ---- */

void session_close_trainer(tool_session *s);
void session_close_loader(tool_session *s);
void session_close(tool_session *s);

#endif
