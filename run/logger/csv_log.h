/* run/logger/csv_log.h: a run as CSV: a header, a line for each requested stretch of steps, a line for each
 * epoch. A missing figure is an empty field. */
#ifndef MRI_CSV_LOG_H
#define MRI_CSV_LOG_H

#include "millrace/train.h"
#include "run/logger/log_file.h"

typedef struct mri_csv_log {
    mri_log_file file;
} mri_csv_log;

/* cfg->resume: an existing file is continued if its header is ours; half a line at its end, which a kill
 * left, is cut off. */
int mri_csv_log_open(mri_csv_log *c, const char *path, const mri_log_file_config *cfg, mr_error *err);
void mri_csv_log_step(mri_csv_log *c, const mr_step_report *r);
void mri_csv_log_eval(mri_csv_log *c, const mr_eval_report *r);
void mri_csv_log_epoch(mri_csv_log *c, const mr_report *r, uint64_t updates); /* updates: done when it ended;
                                                                                 syncs */
int mri_csv_log_close(mri_csv_log *c);

#endif
