/* tools/commands/profile_report.h: what `millrace profile` found, as text, as JSON and as one HTML page. */
#ifndef TOOLS_PROFILE_REPORT_H
#define TOOLS_PROFILE_REPORT_H

#include "tools/commands/measure.h"

typedef struct profile_side {
    uint32_t prefetch;
    mr_report report;
    uint64_t weights[2]; /* hash after the last step: low, high */
} profile_side;

typedef struct profile_result {
    const char *data, *model, *device;
    uint32_t replicas, workers, batch, h, w, c;
    char io[16];
    bool uses_affine;
    bool free_algorithms; /* a GPU that may take some whose bits change from run to run */
    float mean[4], std[4];
    uint64_t seed;
    profile_side off, on;
    measured_rate loader, trainer;
} profile_result;

void profile_print_text(const profile_result *p);
void profile_print_json(const profile_result *p);
/* Self-contained. trace: the prefetch-on run's, for the timeline. */
int profile_write_html(const profile_result *p, const mr_trace *trace, const char *path, mr_error *err);

#endif
