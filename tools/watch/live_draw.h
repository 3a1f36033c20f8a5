/* tools/watch/live_draw.h: the figures of a run as lines of a terminal. It knows no clock, no loader and no
 * terminal: figures in, lines out. */
#ifndef TOOLS_LIVE_DRAW_H
#define TOOLS_LIVE_DRAW_H

#include "millrace/train.h"

enum { LIVE_STAGES = 3, LIVE_LINES = 10, LIVE_COLUMNS_MOST = 300, LIVE_LINE_BYTES = 2048 };

/* Of the time of a stage's threads, over the last second. */
typedef struct live_stage {
    const char *name;
    uint32_t threads;                /* 0: the consumer's own */
    double busy, starved, held_back; /* 0..1, together at most 1 */
    double fill;                     /* of the queue in front, 0..1: mean of the run */
} live_stage;

/* The sample that took a worker the longest. */
typedef struct live_slowest {
    bool known;
    const char *name; /* as mr_text_shown() leaves it */
    double ms, times, bytes;
} live_slowest;

typedef struct live_figures {
    const char *title;
    bool has_steps; /* steps of an epoch are known, from the first step */
    uint64_t epoch, epochs, step, steps_per_epoch;
    bool validating;
    double samples_per_s; /* over the last second */
    bool has_loss;
    double loss, accuracy, lr;
    double seconds_left; /* negative: unknown */
    live_stage stage[LIVE_STAGES];
    bool has_device; /* steps were timed; else `device` is the consumer's wait */
    uint32_t devices;
    double idle;                        /* part of the devices' time, 0..1, over the last seconds */
    double cause[MR_CAUSE_NETWORK + 1]; /* the same by cause */
    double network;                     /* waiting for other ranks, as the newest step reported: 0..1 */
    live_slowest slowest;
    uint64_t bad, replaced, skipped;
} live_figures;

typedef struct live_style {
    uint32_t columns, rows; /* of the terminal */
    bool utf8, colour;
} live_style;

typedef struct live_lines {
    uint32_t count;
    uint32_t width[LIVE_LINES]; /* columns that are seen of it: fewer than the terminal has */
    char text[LIVE_LINES][LIVE_LINE_BYTES];
} live_lines;

/* At least one line, and at most one less than the terminal has rows: what matters most stays. */
void live_draw(const live_figures *f, const live_style *style, live_lines *out);

/* Parts of 1 (0..1, together at most 1) as whole hundredths or cells: each a number of `whole`, such that no
 * sum is off by rounding: out[count] is the rest, all add up to `whole`. */
void live_shares(const double *parts, uint32_t count, uint32_t whole, uint32_t *out);

#endif
