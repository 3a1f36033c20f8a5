/* tools/sweep/sweep_table.h: the results of a sweep's runs: a table and a page. */
#ifndef TOOLS_SWEEP_TABLE_H
#define TOOLS_SWEEP_TABLE_H

#include "tools/sweep/sweep_file.h"

typedef enum sweep_state {
    SWEEP_OPEN,   /* not run yet, or not to its end */
    SWEEP_DONE,   /* to its end */
    SWEEP_FAILED, /* it ended with an error */
} sweep_state;

/* Unknown figures are NAN. Loss and accuracy of simulated devices mean nothing, and are not known. */
typedef struct sweep_result {
    sweep_state state;
    int status; /* SWEEP_FAILED: its exit status */
    double epochs, loss, accuracy, val_loss, val_accuracy, seconds, samples_per_s;
    double reached_s, reached_steps; /* training until the accuracy of stop-at-accuracy */
    char weights[40];
} sweep_result;

/* Read a run's output from this file. SWEEP_OPEN where it is not there, or ends early. */
sweep_result sweep_result_read(const char *path);

/* Time of the run with the first value of `devices` and everything else the same, over this one's; NAN: no
 * such run, or it is not done. */
double sweep_speed_up(const sweep_plan *p, const sweep_result *r, uint32_t at);

/* Is there an accuracy at which runs stop? */
bool sweep_has_goal(const sweep_plan *p);

/* The table as CSV: run, every option of the file, state, epochs, acc, val_acc, loss, val_loss, time_s,
 * samples_per_s, speed_up, with such an accuracy reached_s and reached_steps, weights. */
int sweep_write_csv(const sweep_plan *p, const sweep_result *r, const char *path, mr_error *err);

/* Time and accuracy over the values of key x, a line for each combination of the others, the mean over seeds;
 * and the table. */
int sweep_write_page(const sweep_plan *p, const sweep_result *r, uint32_t x, const char *path, mr_error *err);

#endif
