/* tools/cli/output.h: what the user sees besides results: error lines and progress on stderr, numbers in
 * readable form. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace/base.h"

/* "millrace: ..." on stderr. The progress bar, if one is shown, is wiped first. */
void say(const char *format, ...) MR_PRINTF(1, 2);
void say_error(const mr_error *err);

/* "1.5 GiB", "12.3 KiB", "17 B". buf is 32 bytes or more; returns buf. */
const char *size_text(double bytes, char *buf, size_t buf_bytes);

/* CLOCK_MONOTONIC. */
uint64_t clock_ns(void);
double seconds_since(uint64_t start_ns);

/* Cores that this process may run on. */
uint32_t core_count(void);
/* A name or text out of a file, on stdout, without what it could do to a terminal. */
void put_shown(const char *text);

/* One at a time. On a terminal a bar that is drawn again four times a second, elsewhere a line every five
 * seconds. */
typedef struct progress {
    const char *label, *unit;
    bool quiet, terminal, drawn;
    uint64_t start_ns, next_ns;
    uint64_t start_done; /* what was done before: not part of the rate */
} progress;

void progress_start(progress *p, const char *label, const char *unit, bool quiet);
void progress_show(progress *p, uint64_t done, uint64_t count, const char *note); /* note: text behind it, or
                                                                                     NULL */
void progress_end(progress *p);

#endif
