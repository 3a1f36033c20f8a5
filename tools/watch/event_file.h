/* tools/watch/event_file.h: a run as scalars for TensorBoard, one file for each time it is started:
 * DIR/events.out.tfevents.SECONDS.HOST. The step of all scalars is the number of updates done. */
#ifndef TOOLS_EVENT_FILE_H
#define TOOLS_EVENT_FILE_H

#include "millrace/train.h"
#include "tools/watch/watch_file.h"

typedef struct event_file {
    watch_file file;
    char folder[4096];
    bool made_folder;
} event_file;

/* The folder is made where it is missing. updates: done before; above 0, what an earlier file has of later
 * ones is taken back. */
int event_file_open(event_file *e, const char *folder, uint64_t updates, mr_error *err);
void event_file_step(event_file *e, const mr_step_report *r);
void event_file_eval(event_file *e, const mr_eval_report *r);
void event_file_epoch(event_file *e, const mr_report *r, uint64_t updates); /* syncs */
int event_file_close(event_file *e);

#endif
