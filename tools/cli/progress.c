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
#include "tools/cli/interrupt.h"

static pthread_mutex_t terminal = PTHREAD_MUTEX_INITIALIZER;
static void (*wipe_shown)(void *context); /* wipes the bar shown on the terminal, so that a message can be
                                             printed */
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
    if (!p->drawn) return;
    interrupt_drawing();
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->drawn = false;
    interrupt_drawn(NULL);
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
static size_t width_of_terminal(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

/* ", 1750/s, 2:05 left": empty before anything was done. */
static void rate_text(const progress_bar *p, uint64_t done, uint64_t count, uint64_t now, char *out,
                      size_t bytes)
{
    const double seconds = (double)(now - p->start_ns) * 1e-9;
    const double rate = seconds > 0 ? (double)(done - p->start_done) / seconds : 0;
    out[0] = '\0';
    if (rate <= 0) return;
    const int used = snprintf(out, bytes, rate < 10 ? ", %.1f/s" : ", %.0f/s", rate);
    const double left = done < count && !p->untimed ? (double)(count - done) / rate : 0;
    if (left < 1 || left > 1e8) return;
    const unsigned s = (unsigned)(left + 0.5);
    if (s < 3600) snprintf(out + used, bytes - (size_t)used, ", %u:%02u left", s / 60, s % 60);
    else snprintf(out + used, bytes - (size_t)used, ", %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
}

/* On a narrow terminal the cells shrink, then the note is cut; rate and time left stay. */
static void draw_bar_locked(progress_bar *p, uint64_t done, uint64_t count, const char *rate,
                            const char *note)
{
    enum { CELLS = 24, LEAST_CELLS = 8, AROUND = 3 };
    char cells[CELLS + AROUND + 1] = "", counts[256], text[512];
    const size_t width = width_of_terminal();
    snprintf(counts, sizeof counts, "%" PRIu64 "/%" PRIu64 " %s%s", done, count, p->unit, rate);
    const size_t fixed = strlen(p->label) + 1 + strlen(counts), more = note ? strlen(note) + 2 : 0;
    const size_t room = width > fixed ? width - fixed : 0;
    size_t n = room > AROUND + more ? room - AROUND - more : 0;
    if (n < LEAST_CELLS) n = room >= AROUND + LEAST_CELLS ? LEAST_CELLS : 0;
    if (n > CELLS) n = CELLS;
    if (n > 0) {
        const double part = count ? (double)done / (double)count : 0;
        cells[0] = '[';
        for (size_t i = 0; i < n; i++) cells[1 + i] = (double)i < part * (double)n ? '#' : '.';
        memcpy(cells + 1 + n, "] ", 3);
    }
    snprintf(text, sizeof text, "%s %s%s%s%s", p->label, cells, counts, note ? ", " : "", note ? note : "");
    if (strlen(text) > width) text[width] = '\0';
    interrupt_drawing();
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
    p->drawn = true;
    interrupt_drawn("\n");
}

void progress_show(progress_bar *p, uint64_t done, uint64_t count, const char *note)
{
    if (p->quiet) return;
    if (p->start_done == UINT64_MAX) p->start_done = done;
    const uint64_t now = clock_ns();
    if (now < p->next_ns) return;
    char rate[64];
    rate_text(p, done, count, now, rate, sizeof rate);
    if (note && !note[0]) note = NULL;
    progress_lock();
    show_as_locked(wipe_bar, p); /* also when it was ended before: the next epoch goes on with the bar */
    if (p->terminal) {
        p->next_ns = now + 250000000u;
        draw_bar_locked(p, done, count, rate, note);
    } else {
        p->next_ns = now + 5000000000u;
        fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " %s%s%s%s\n", p->label, done, count, p->unit, rate,
                note ? ", " : "", note ? note : "");
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
