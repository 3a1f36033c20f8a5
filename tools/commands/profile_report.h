/* tools/commands/profile_report.h: what `millrace profile` found, as text, as JSON and as one HTML page. */
#ifndef TOOLS_PROFILE_REPORT_H
#define TOOLS_PROFILE_REPORT_H

#include <stdio.h>

#include "tools/session/odd_list.h"
#include "tools/trial/measure.h"

enum { PROFILE_TURNS = 3 };

typedef struct profile_side {
    uint32_t prefetch;
    mr_report turn[PROFILE_TURNS];
    mr_report report;    /* the turn in the middle, by rate */
    uint64_t weights[2]; /* hash after the last step: low, high */
} profile_side;

/* A slow sample, with its description. */
typedef struct profile_slow {
    mr_slow_sample what;
    char name[512];
    uint32_t width, height; /* 0: no picture */
} profile_slow;

/* The profiled run. */
typedef struct profile_about {
    const char *data, *model, *device;
    uint32_t replicas, workers, batch, h, w, c; /* replicas, workers: of this process; batch: of all */
    uint32_t ranks;
    char io[16];
    bool uses_affine;
    bool free_algorithms; /* a GPU that may take some whose bits change from run to run */
    float mean[4], std[4];
    uint64_t seed;
} profile_about;

typedef struct profile_result {
    profile_about of;
    mr_trainer_link link; /* of several processes, from the last turn */
    profile_side off, on;
    profile_slow slow[MR_LOADER_SLOWEST]; /* of the last turn with prefetch on */
    uint32_t slow_count;
    odd_list odd;                                          /* of the same turn */
    mr_rate loader[PROFILE_TURNS], trainer[PROFILE_TURNS]; /* of the slowest process, for all samples */
    struct {
        double samples_per_s, mad; /* over turns */
    } loader_alone, trainer_alone, ceiling;
    double on_over_ceiling, on_over_off; /* the middle of the turns' own */
    uint32_t cores;       /* that loading and computing share: devices of the processor; 0: they do not */
    double most_over_off; /* then on_over_off is at most about this */
} profile_result;

/* What follows from all turns. */
void profile_sum_up(profile_result *p);

void profile_print_text(const profile_result *p);
void profile_print_json(FILE *out, const profile_result *p);
/* The page of `millrace report` of these lines. trace: the prefetch-on run's, for the timeline. */
int profile_write_html(const profile_result *p, const mr_trace *trace, const char *path, mr_error *err);

#endif
