/* tools/cli/progress.c: see progress.h. */
#include "tools/cli/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cli/clock.h"

static pthread_mutex_t terminal = PTHREAD_MUTEX_INITIALIZER;
static void (*wipe_shown)(void *context); /* terminal: what is on it now, so that a message can wipe it */
static void *shown;                       /* terminal: its context */

void progress_lock(void) { pthread_mutex_lock(&terminal); }
void progress_unlock(void) { pthread_mutex_unlock(&terminal); }

void progress_hold(void)
{
    progress_lock();
    if (wipe_shown) wipe_shown(shown);
}

void progress_release(void) { progress_unlock(); }

static void show_as_locked(void (*wipe)(void *context), void *context)
{
    wipe_shown = wipe;
    shown = context;
}

void progress_show_as(void (*wipe)(void *context), void *context)
{
    progress_lock();
    show_as_locked(wipe, context);
    progress_unlock();
}

static void wipe_bar(void *context)
{
    progress_bar *p = context;
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
}

/* A terminal that says it is dumb cannot wipe a line. */
static bool can_wipe(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && !(term && strcmp(term, "dumb") == 0);
}

void progress_start(progress_bar *p, const char *label, const char *unit, bool quiet)
{
    const uint64_t now = clock_ns();
    progress_lock();
    *p =
        (progress_bar){.label = label, .unit = unit, .quiet = quiet, .terminal = can_wipe(), .start_ns = now};
    p->next_ns = now + (p->terminal ? 0 : 5000000000u);
    p->start_done = UINT64_MAX;
    show_as_locked(wipe_bar, p);
    progress_unlock();
}

/* A bar of two lines could not be wiped. */
static void cut_to_terminal(char *text)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && strlen(text) >= size.ws_col)
        text[size.ws_col - 1] = '\0';
}

static void draw_bar_locked(progress_bar *p, double part, uint64_t done, uint64_t count, double rate,
                            const char *note)
{
    enum { CELLS = 24 };
    char cells[CELLS + 1], text[512];
    for (int i = 0; i < CELLS; i++) cells[i] = (double)i < part * CELLS ? '#' : '.';
    cells[CELLS] = '\0';
    snprintf(text, sizeof text, "%s [%s] %" PRIu64 "/%" PRIu64 " %s, %.0f/s%s%s", p->label, cells, done,
             count, p->unit, rate, note ? ", " : "", note ? note : "");
    cut_to_terminal(text);
    fprintf(stderr, "\r\033[K%s", text);
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
    progress_lock();
    show_as_locked(wipe_bar, p); /* also when it was ended before: the next epoch goes on with the bar */
    if (p->terminal) {
        p->next_ns = now + 250000000u;
        draw_bar_locked(p, count ? (double)done / (double)count : 0, done, count, rate, note);
    } else {
        p->next_ns = now + 5000000000u;
        fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " %s, %.0f/s%s%s\n", p->label, done, count, p->unit,
                rate, note ? ", " : "", note ? note : "");
    }
    progress_unlock();
}

void progress_end(progress_bar *p)
{
    progress_lock();
    wipe_bar(p);
    if (shown == p) wipe_shown = NULL;
    progress_unlock();
}
