/* run/page/run_log.h: what `train --json` or `profile --json` printed, read back: one object a line. */
#ifndef MRI_RUN_LOG_H
#define MRI_RUN_LOG_H

#include "millrace/base.h"
#include "run/page/json_read.h"

typedef struct mri_run_events {
    const cJSON **at;
    size_t count;
} mri_run_events;

typedef struct mri_run_log {
    const char *path;
    const cJSON *start; /* of train; NULL: a profile, or a log without its beginning */
    const cJSON *end;   /* the last "train" or "profile" line; NULL: the run was cut short */
    bool is_profile;
    mri_run_events reports;     /* "epoch", "profile_run" */
    mri_run_events steps;       /* "step" */
    mri_run_events evals;       /* "eval": validations inside epochs */
    mri_run_events bad;         /* "bad" */
    size_t lines, others;       /* lines that are events of other kinds */
    size_t no_json, no_json_at; /* lines that are no JSON; the first one's number, from 1 */
    bool is_cut;                /* the last line has no end and is no JSON */
    size_t runs;                /* "start" lines; with more than one only what follows the last counts */

    const char *start_text; /* that line: its whole numbers have all their digits */

    cJSON **trees; /* the rest is its own */
    size_t tree_count;
    char *text;
} mri_run_log;

/* text: malloc'd, `bytes` followed by a NUL; the log owns it from now on. Errors as mri_run_log_read(), but
 * for path. */
int mri_run_log_take(mri_run_log *out, const char *path, char *text, size_t bytes, mr_error *err);

/* MR_EFORMAT: nothing in it is of a run. mri_run_log_free() after either. */
int mri_run_log_read(mri_run_log *out, const char *path, mr_error *err);
void mri_run_log_free(mri_run_log *r);

/* Bytes of a file, followed by a NUL; MR_ELIMIT: more than 1 GiB. free() them. */
int mri_run_log_bytes(const char *path, char **text, size_t *bytes, mr_error *err);

#endif
