/* millrace/sweep.h: trainings with every combination of some options: the command line of each run, its
 * result from its log, and a table and a page of all of them. The program starts the runs.
 *
 *     # comment
 *     data    = photos                 a KEY = VALUE line each; `data`: the data set of train
 *     batch   = 64 | 128 | 256         several values: a run for each, with all combinations
 *     devices = cpu:1 | cpu:2          --devices cpu:1
 *     deterministic = - | +            -: without the option; +: with it, where it takes no value
 *     checkpoint = run-{run}           {run}: the run's name
 *
 * Runs are numbered from 0. The last option changes fastest. */
#ifndef MILLRACE_SWEEP_H
#define MILLRACE_SWEEP_H

#include "millrace/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_sweep mr_sweep;

enum {
    MR_SWEEP_OPTIONS = 64,    /* at most in a file, without data */
    MR_SWEEP_VALUES = 256,    /* at most of one option */
    MR_SWEEP_RUNS = 100000,   /* at most in a sweep */
    MR_SWEEP_NAME_BYTES = 17, /* of a run's name, with its NUL */
};

/* Read a file of options. One thread at a time.
 *
 * MR_EFORMAT  a line is invalid, or data or model are missing; err names file, line, and the expected text
 * other < 0   the file cannot be read */
MR_API int mr_sweep_open(mr_sweep **out, const char *path, mr_error *err);
/* Accepts NULL. */
MR_API void mr_sweep_close(mr_sweep *s);

typedef struct mr_sweep_info {
    size_t struct_size;
    const char *path, *data; /* the file; the data set of all runs */
    uint32_t runs, options;  /* options: without data */
} mr_sweep_info;
/* Owned by s. NULL for NULL. */
MR_API const mr_sweep_info *mr_sweep_info_of(const mr_sweep *s);

/* Return an option of the file, by its number from 0, and write the number of its values; NULL: there are
 * fewer options. values may be NULL. */
MR_API const char *mr_sweep_option(const mr_sweep *s, uint32_t option, uint32_t *values);
/* Return the number of the option with this name (without dashes); UINT32_MAX: no such option. */
MR_API uint32_t mr_sweep_option_number(const mr_sweep *s, const char *name);
/* Return the value of an option in a run; NULL: there is no such run or option. */
MR_API const char *mr_sweep_value(const mr_sweep *s, uint32_t run, uint32_t option);
/* Write the name of a run, which follows from its options alone: it is the same in every sweep with this run.
 * Returns name; NULL: there is no such run. name has MR_SWEEP_NAME_BYTES bytes. */
MR_API char *mr_sweep_run_name(const mr_sweep *s, uint32_t run, char *name);
/* Return the command line of a run, NULL at its end: program, "train", the data set, options, --json,
 * --quiet. One allocation, for free(). NULL: no memory, or no such run. */
MR_API char **mr_sweep_words(const mr_sweep *s, uint32_t run, const char *program);

/* ---- results ---- */

typedef enum mr_sweep_state {
    MR_SWEEP_OPEN,   /* not run yet, or not to its end */
    MR_SWEEP_DONE,   /* run to its end */
    MR_SWEEP_FAILED, /* ended with an error */
} mr_sweep_state;

/* Unknown figures are NAN. Loss and accuracy of simulated devices mean nothing, and are unknown. */
typedef struct mr_sweep_result {
    size_t struct_size;
    mr_sweep_state state;
    int status; /* MR_SWEEP_FAILED: its exit status */
    double epochs, loss, accuracy, val_loss, val_accuracy, seconds, samples_per_s;
    double reached_s, reached_steps; /* training until the accuracy of stop-at-accuracy */
    double speed_up;  /* time of the run with the first value of `devices` and the same other values, divided
                         by the time of this run; NAN: no such run, or one of the two is not done */
    char weights[40]; /* digest */
} mr_sweep_result;

/* Take a run's result from the file with its output: MR_SWEEP_OPEN if the file is missing or ends early.
 * MR_EINVAL: there is no such run. */
MR_API int mr_sweep_read_result(mr_sweep *s, uint32_t run, const char *path, mr_error *err);
/* Note that a run failed with this exit status; its figures stay. MR_EINVAL: there is no such run. */
MR_API int mr_sweep_set_failed(mr_sweep *s, uint32_t run, int status, mr_error *err);
/* Write the result of a run. MR_EINVAL: there is no such run. */
static inline int mr_sweep_result_of(const mr_sweep *s, uint32_t run, mr_sweep_result *out, mr_error *err);
/* Return whether runs stop at an accuracy: the file has stop-at-accuracy. */
MR_API bool mr_sweep_has_goal(const mr_sweep *s);

/* Write all results as a table: CSV with run, every option of the file, state, epochs_done, acc, val_acc,
 * loss, val_loss, time_s, samples_per_s, speed_up, reached_s and reached_steps if runs stop at an accuracy,
 * weights. An existing file is replaced. MR_EEXIST: another process writes it. Other < 0: from writing. */
MR_API int mr_sweep_write_csv(const mr_sweep *s, const char *path, mr_error *err);
/* Write a page: time and accuracy over the values of an option, a line for each combination of the others,
 * means over seeds; and the table. path and errors as for mr_sweep_write_csv(). MR_EINVAL: there is no such
 * option. */
MR_API int mr_sweep_write_page(const mr_sweep *s, uint32_t option, const char *path, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the function below in place of the
 * inline one above, which passes the size of its struct in the caller's header (base.h). A program in another
 * language sets struct_size and calls ..._sized. */

MR_API int mr_sweep_result_of_sized(const mr_sweep *s, uint32_t run, mr_sweep_result *out, mr_error *err);
static inline int mr_sweep_result_of(const mr_sweep *s, uint32_t run, mr_sweep_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_sweep_result_of_sized(s, run, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
