/* run/logger/log_file.h: a file that grows under its own name while the run goes on. The first failure is
 * reported and kept, and a half-written line is cut off; nothing is written after it. */
#ifndef MRI_LOG_FILE_H
#define MRI_LOG_FILE_H

#include "millrace/formats.h"

typedef struct mri_log_file_config {
    const mr_source *inputs[2]; /* none of their files is written; NULL: none */
    bool resume;                /* keep the content of an existing file; else no file may exist (MR_EEXIST) */
    void (*on_failure)(void *context, const char *path, const mr_error *what); /* or NULL */
    void *context;
} mri_log_file_config;

typedef struct mri_log_file {
    mr_output *out; /* NULL: not open */
    mri_log_file_config cfg;
    mr_output_config output;
    char path[4096];
    uint64_t bytes;
    bool made, used; /* made: it was empty; used: there is more in it than what every such file begins with */
    mr_error failure;
} mri_log_file;

/* f stays where it is: the output refers to it. */
int mri_log_file_open(mri_log_file *f, const char *path, const mri_log_file_config *cfg, mr_error *err);
/* All of it or nothing; MR_OK when it failed before, too. used: see above. */
int mri_log_file_put(mri_log_file *f, const void *data, size_t bytes, bool used);
/* Cut the file to `bytes`; for the rest of a killed run. */
int mri_log_file_cut(mri_log_file *f, uint64_t bytes, mr_error *err);
void mri_log_file_sync(mri_log_file *f);
/* The first failure, or MR_OK. A file that was made and not used is removed. Accepts a zeroed one. */
int mri_log_file_close(mri_log_file *f);

#endif
