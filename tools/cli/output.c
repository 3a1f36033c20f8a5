/* tools/cli/output.c: see output.h. */
#include "tools/cli/output.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static progress *shown; /* the bar on the terminal now, so that a message can wipe it */

static void wipe(progress *p)
{
    if (p && p->drawn) fputs("\r\033[K", stderr);
    if (p) p->drawn = false;
}

void say(const char *format, ...)
{
    char text[4096], safe[2 * sizeof text];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    wipe(shown);
    fprintf(stderr, "millrace: %s\n", mr_text_shown(text, safe, sizeof safe)); /* names may hold anything */
}

void put_shown(const char *text)
{
    char safe[4096];
    fputs(mr_text_shown(text, safe, sizeof safe), stdout);
}

void say_error(const mr_error *err)
{
    char text[2048];
    say("%s", mr_error_format(err, text, sizeof text));
}

const char *size_text(double bytes, char *buf, size_t buf_bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t k = 0;
    while (bytes >= 1024 && k + 1 < sizeof unit / sizeof unit[0]) {
        bytes /= 1024;
        k++;
    }
    snprintf(buf, buf_bytes, k ? "%.1f %s" : "%.0f %s", bytes, unit[k]);
    return buf;
}

uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double seconds_since(uint64_t start_ns) { return (double)(clock_ns() - start_ns) * 1e-9; }

uint32_t core_count(void)
{
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? (uint32_t)count : 1;
}

void progress_start(progress *p, const char *label, const char *unit, bool quiet)
{
    const uint64_t now = clock_ns();
    *p = (progress){.label = label,
                    .unit = unit,
                    .quiet = quiet,
                    .terminal = isatty(STDERR_FILENO) == 1,
                    .start_ns = now};
    p->next_ns = now + (p->terminal ? 0 : 5000000000u);
    p->start_done = UINT64_MAX;
    shown = p;
}

static void draw_bar(progress *p, double part, uint64_t done, uint64_t count, double rate, const char *note)
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

void progress_show(progress *p, uint64_t done, uint64_t count, const char *note)
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

void progress_end(progress *p)
{
    wipe(p);
    if (shown == p) shown = NULL;
}
