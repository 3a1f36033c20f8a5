/* tools/commands/watch_report.h: what `millrace watch` found out, as text and as JSON. */
#ifndef TOOLS_WATCH_REPORT_H
#define TOOLS_WATCH_REPORT_H

#include "tools/cli/json.h"
#include "tools/foreign/foreign.h"

/* How many samples the program took, and how that is known. */
typedef enum samples_how {
    SAMPLES_UNKNOWN,
    SAMPLES_GIVEN, /* --samples */
    SAMPLES_OPENS, /* files of the data that were opened */
    SAMPLES_BYTES  /* bytes that read calls brought, by the mean size: an upper bound */
} samples_how;

/* Our loader over the same data. */
typedef struct watch_loader {
    bool measured;
    double samples_per_s, samples_per_s_mad;
    const char *augment, *data;
    uint32_t batch, workers;
    double mean_bytes; /* of a sample */
} watch_loader;

typedef struct watch_result {
    const foreign_figures *f;
    char *const *command;
    samples_how how;
    double samples, samples_seconds; /* seconds: in which they were taken */
    watch_loader loader;
    int32_t main_pid;                /* the process that the others work for; 0: none was seen */
    double main_cores, worker_cores; /* of it, and of its descendants */
    uint32_t workers;                /* descendants that used a core for a while */
    bool crowded; /* it lacked cores that others had or a quota denied: its rate is below its best */
    char verdict[512];
    bool input_bound;
} watch_result;

/* Fills main_pid and the members after it: roles, verdict. */
void watch_judge(watch_result *r);
void watch_report_text(const watch_result *r, FILE *out);
void watch_report_json(const watch_result *r, FILE *out);

#endif
