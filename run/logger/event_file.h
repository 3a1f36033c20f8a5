/* run/logger/event_file.h: a run as scalars for TensorBoard, one file for each time it is started:
 * DIR/events.out.tfevents.SECONDS.HOST. The step of all scalars is the number of updates done. */
#ifndef MRI_EVENT_FILE_H
#define MRI_EVENT_FILE_H

#include "millrace/train.h"
#include "run/logger/log_file.h"

typedef struct mri_event_file {
    mri_log_file file;
    char folder[4096];
    bool made_folder;
} mri_event_file;

/* The folder is made where it is missing. updates: done before; above 0, what an earlier file has of later
 * ones is taken back. cfg without inputs and resume: the file is new. */
int mri_event_file_open(mri_event_file *e, const char *folder, const mri_log_file_config *cfg,
                        uint64_t updates, mr_error *err);
void mri_event_file_step(mri_event_file *e, const mr_step_report *r);
void mri_event_file_eval(mri_event_file *e, const mr_eval_report *r);
void mri_event_file_epoch(mri_event_file *e, const mr_report *r, uint64_t updates); /* syncs */
int mri_event_file_close(mri_event_file *e);

#endif
