/* tools/cli/progress.c: see progress.h. */
#include "tools/cli/progress.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/cli/clock.h"

static progress_bar *shown; /* the bar on the terminal now, so that a message can wipe it */

static void wipe(progress_bar *p)
{
    if (p && p->drawn) fputs("\r\033[K", stderr);
    if (p) p->drawn = false;
}

void progress_wipe(void) { wipe(shown); }

void progress_start(progress_bar *p, const char *label, const char *unit, bool quiet)
{
    const uint64_t now = clock_ns();
    *p = (progress_bar){.label = label,
                        .unit = unit,
                        .quiet = quiet,
                        .terminal = isatty(STDERR_FILENO) == 1,
                        .start_ns = now};
    p->next_ns = now + (p->terminal ? 0 : 5000000000u);
    p->start_done = UINT64_MAX;
    shown = p;
}

static void draw_bar(progress_bar *p, double part, uint64_t done, uint64_t count, double rate,
                     const char *note)
{
    enum { CELLS = 24 };
    char cells[CELLS + 1];
    for (int i = 0; i < CELLS; i++) cells[i] = (double)i < part * CELLS ? '#' : '.';
    cells[CELLS] = '\0';
    fprintf(stderr, "\r\033[K%s [%s] %" PRIu64 "/%" PRIu64 " %s, %.0f/s%s%s", p->label, cells, done, count,
            p->unit, rate, note ? ", " : "", note ? note : "");
    fflush(stderr);
    p->drawn = true;
}

void progress_show(progress_bar *p, uint64_t done, uint64_t count, const char *note)
{
    if (p->quiet) return;
    if (p->start_done == UINT64_MAX) p->start_done = done;
    const uint64_t now = clock_ns();
    if (now < p->next_ns) return;
    const double rate = (double)(done - p->start_done) / ((double)(now - p->start_ns) * 1e-9 + 1e-9);
    if (p->terminal) {
        p->next_ns = now + 250000000u;
        draw_bar(p, count ? (double)done / (double)count : 0, done, count, rate, note);
    } else {
        p->next_ns = now + 5000000000u;
        fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " %s, %.0f/s%s%s\n", p->label, done, count, p->unit,
                rate, note ? ", " : "", note ? note : "");
    }
}

void progress_end(progress_bar *p)
{
    wipe(p);
    if (shown == p) shown = NULL;
}
