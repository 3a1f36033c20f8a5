/* tools/session/setup.h: the way from the shared options (groups.h) to the library's own settings. */
#ifndef TOOLS_SETUP_H
#define TOOLS_SETUP_H

#include "millrace/train.h"
#include "tools/session/groups.h"

/* How data are opened with these options. Texts stay a's. 0, or an exit status after printing the error. */
int setup_config(mr_source_config *cfg, const data_args *a);
/* 0, or the exit status after printing the error. Prints the source's reports, each text once. */
int setup_source(mr_source **out, const char *path, const data_args *a);
/* *opens: could it be opened so, and has it this field (NULL: whatever it has)? Nothing stays open. An exit
 * status, with its message, where the system refused to look: that is no answer. */
int setup_opens(bool *opens, const char *path, const data_args *a, const char *field);
/* What --take says, NULL: 0 and 1. */
int setup_take(const char *text, double *from, double *to);
/* The same for data whose classes are to be found: of two parts the one to test with, unless a says which.
 * On failure opened sources may stay open. */
int setup_source_to_predict(mr_source **out, const char *path, const data_args *a);
/* For commands that seem to take all of the data: says when it is the train part alone. */
void setup_tell_part(const mr_source *src, const data_args *a);
/* After --take or --hold-out: print the classes without a sample among the taken ones, if the data know
 * labels without reading samples. */
void setup_tell_untrained(const mr_source *src);

/* Is it open where classes begin? Not where they have names, and where a says it. */
bool setup_asks_where(const mr_source_info *info, const data_args *a);
/* Which number is the first class of data to train on, and of `other` (NULL: none), used together with them:
 * what one of them declares; 1 where that is the smallest number of all; else 0. An error where that cannot
 * be decided. Both are open with their own labels. */
int setup_label_start(const mr_source *trained, const mr_source *other, int64_t *out);
/* *src, opened with a, again, so that its classes begin there, unless a says where. */
int setup_source_from(mr_source **src, const char *path, const data_args *a, int64_t offset);

typedef struct data_like {          /* what data to evaluate with have in common with those trained on */
    const char *path;               /* where that is known from, for messages */
    int64_t label_offset;           /* number of the first class, where they have no names */
    const char *const *class_names; /* NULL: none, or not known */
    uint32_t class_count;
} data_like;

/* The same for data to evaluate with: of two parts the one to test with, unless a says which; classes and
 * labels numbered as in those trained on. *out may be open when that fails; the caller closes it. */
int setup_source_like(mr_source **out, const char *path, const data_args *a, const data_like *like);
/* The same for a checkpoint's classes: prints doubts about them. */
int setup_source_to_evaluate(mr_source **out, const char *path, const data_args *a, const data_like *like);
/* To look at: the same, with the classes that it has. */
int setup_source_beside(mr_source **out, const char *path, const data_args *a);
/* c may be NULL. */
int setup_devices(mr_device ***out, uint32_t *count, const device_args *a, const compute_args *c);
/* What c says about a trainer. */
int setup_compute(mr_trainer_config *cfg, const compute_args *c);

void setup_decode(mr_decode_config *cfg, const data_args *a);
/* Everything but source, devices, trace and resume point. run->batch, epochs and augment fall back to the
 * library's. */
void setup_loader(mr_loader_config *cfg, const data_args *data, const run_args *run,
                  const loader_args *loader);

/* Can a file of this name be made? Asked before the work whose result goes there. 0, or the exit status after
 * saying why not. path may be NULL. */
int setup_output(const char *option, const char *path);
/* The same for --html, which replaces a page, another existing file only with force. */
int setup_page(const char *path, bool force);
/* The same once the data are open: it is not one of their files. src may be NULL. */
int setup_not_input(const char *option, const char *path, const mr_source *src);
/* A whole file, on the disk when it returns. src, or NULL, is not overwritten. */
int setup_write_result(const char *path, const void *data, size_t bytes, const mr_source *src, bool force,
                       mr_error *err);

/* Where path is given or `also`: a trace to fill, in *out; else NULL. */
int setup_trace(mr_trace **out, const char *path, bool also);
/* The trace as a file, where path is given. */
int setup_write_trace(const mr_trace *trace, const char *path);

#endif
