/* tools/cli/progress.c: see progress.h. */
#include "tools/cli/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/cli/clock.h"

static pthread_mutex_t terminal = PTHREAD_MUTEX_INITIALIZER;
static progress_bar *shown; /* terminal: the bar that is on it now, so that a message can wipe it */

static void wipe_locked(progress_bar *p)
{
    if (p && p->drawn) fputs("\r\033[K", stderr);
    if (p) p->drawn = false;
}

void progress_hold(void)
{
    pthread_mutex_lock(&terminal);
    wipe_locked(shown);
}

void progress_release(void) { pthread_mutex_unlock(&terminal); }

void progress_start(progress_bar *p, const char *label, const char *unit, bool quiet)
{
    const uint64_t now = clock_ns();
    pthread_mutex_lock(&terminal);
    *p = (progress_bar){.label = label,
                        .unit = unit,
                        .quiet = quiet,
                        .terminal = isatty(STDERR_FILENO) == 1,
                        .start_ns = now};
    p->next_ns = now + (p->terminal ? 0 : 5000000000u);
    p->start_done = UINT64_MAX;
    shown = p;
    pthread_mutex_unlock(&terminal);
}

static void draw_bar_locked(progress_bar *p, double part, uint64_t done, uint64_t count, double rate,
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
    pthread_mutex_lock(&terminal);
    shown = p; /* also when it was ended before: an epoch is over, the next one goes on with the bar */
    if (p->terminal) {
        p->next_ns = now + 250000000u;
        draw_bar_locked(p, count ? (double)done / (double)count : 0, done, count, rate, note);
    } else {
        p->next_ns = now + 5000000000u;
        fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " %s, %.0f/s%s%s\n", p->label, done, count, p->unit,
                rate, note ? ", " : "", note ? note : "");
    }
    pthread_mutex_unlock(&terminal);
}

void progress_end(progress_bar *p)
{
    pthread_mutex_lock(&terminal);
    wipe_locked(p);
    if (shown == p) shown = NULL;
    pthread_mutex_unlock(&terminal);
}
