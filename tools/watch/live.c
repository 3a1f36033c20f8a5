/* tools/watch/live.c: see live.h. Every figure is a difference between the counters now and about a second
 * ago (two for devices, since a step may take long); a ring keeps past counters. */
#include "tools/watch/live.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/progress.h"
#include "tools/watch/live_draw.h"

enum { LOOKS = 9, SECOND = 4, SECONDS = 8 }; /* looks kept; looks in one second, and in two */
#define PERIOD_NS 250000000u

/* The counters at one moment. */
typedef struct look {
    uint64_t ns, samples, val_samples;
    mr_stage_stats stage[LIVE_STAGES];
    mr_causes waits; /* of the consumer */
    double device_s; /* record: of the steps, and what devices were idle for in it */
    mr_causes idle;
    uint64_t steps;
} look;

/* Figures from the training thread. */
typedef struct live_news {
    bool has_steps;
    uint64_t epoch, step, steps_per_epoch;
    mr_step_report newest; /* steps 0: none came yet */
    uint64_t newest_ns;    /* when it came */
} live_news;

struct live_view {
    live_run run;
    pthread_t thread;
    pthread_mutex_t lock; /* guards stop and `news` */
    pthread_cond_t wake;
    bool stop;
    live_news news;
    bool utf8, colour; /* fixed */
    look looks[LOOKS]; /* the view's thread, all below */
    uint64_t look_count;
    mr_loader_stats stats; /* newest */
    bool has_slowest;
    uint64_t slowest_sample;
    char slowest[512];
    live_lines lines;
    uint32_t drawn; /* the terminal's lock: rows on it; the cursor is in the last */
    uint32_t width[LIVE_LINES];
};

/* ---- the terminal ---- */

static const char *locale_name(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return value;
    }
    return "";
}

static bool takes_utf8(void)
{
    const char *name = locale_name(), *charset = strchr(name, '.');
    return charset && (strncasecmp(charset + 1, "utf-8", 5) == 0 || strncasecmp(charset + 1, "utf8", 4) == 0);
}

const char *live_obstacle(void)
{
    const char *term = getenv("TERM");
    if (isatty(STDERR_FILENO) != 1) return "standard error is no terminal";
    if (!term || !*term) return "TERM is not set";
    return strcmp(term, "dumb") == 0 ? "TERM is dumb" : NULL;
}

static live_style style_now(const live_view *v)
{
    struct winsize size;
    live_style s = {.columns = 80, .rows = 24, .utf8 = v->utf8, .colour = v->colour};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        s.columns = size.ws_col;
        s.rows = size.ws_row;
    }
    return s;
}

/* To the beginning of the first row. A terminal that has become narrower broke the lines that no longer fit.
 */
static void go_up_locked(const live_view *v, FILE *out, uint32_t columns)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < v->drawn; i++) rows += v->width[i] ? (v->width[i] + columns - 1) / columns : 1;
    if (rows > 1) fprintf(out, "\033[%uA", rows - 1);
    if (rows) fputc('\r', out);
}

static void wipe(void *context)
{
    live_view *v = context;
    if (!v->drawn) return;
    interrupt_drawing();
    go_up_locked(v, stderr, style_now(v).columns);
    fputs("\033[J", stderr);
    fflush(stderr);
    v->drawn = 0;
    interrupt_drawn(NULL);
}

/* In one write, so that nothing flickers. */
static void draw_locked(live_view *v, const live_lines *lines, uint32_t columns)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return;
    go_up_locked(v, out, columns);
    for (uint32_t i = 0; i < lines->count; i++) fprintf(out, "%s%s\033[K", i ? "\r\n" : "", lines->text[i]);
    fputs("\033[J", out);
    if (fclose(out) == 0) {
        interrupt_drawing();
        fwrite(text, 1, bytes, stderr);
        fflush(stderr);
        v->drawn = lines->count;
        memcpy(v->width, lines->width, sizeof v->width);
        interrupt_drawn("\r\n");
    }
    free(text);
}

/* ---- figures ---- */

static void take_look(live_view *v)
{
    look *l = &v->looks[v->look_count++ % LOOKS];
    mr_loader_stats s;
    mr_loader_stats_read(v->run.loader, &s);
    v->stats = s;
    *l = (look){.ns = clock_ns(), .samples = s.samples, .stage = {s.read, s.decode, s.copy}};
    mr_loader_waits(v->run.loader, &l->waits);
    if (v->run.record) {
        mr_record_totals t;
        mr_record_totals_read(v->run.record, &t);
        l->device_s = t.seconds;
        l->idle = t.causes;
        l->steps = t.steps;
    }
    if (!v->run.val) return;
    mr_loader_stats_read(v->run.val, &s);
    l->val_samples = s.samples;
}

/* The look `back` before the newest, or the oldest available. */
static const look *look_before(const live_view *v, uint64_t back)
{
    const uint64_t kept = v->look_count < LOOKS ? v->look_count : LOOKS;
    if (back >= kept) back = kept - 1;
    return &v->looks[(v->look_count - 1 - back) % LOOKS];
}

static live_stage stage_of(const char *name, const mr_stage_stats *a, const mr_stage_stats *b, uint64_t ns)
{
    const double busy = (double)(b->busy_ns - a->busy_ns), in = (double)(b->blocked_in_ns - a->blocked_in_ns),
                 out = (double)(b->blocked_out_ns - a->blocked_out_ns);
    double all = (double)ns * (b->threads ? b->threads : 1); /* threads are not looked at in the same moment
                                                              */
    if (busy + in + out > 0.9 * all) all = busy + in + out;
    if (all <= 0) all = 1;
    return (live_stage){name, b->threads, busy / all, in / all, out / all, b->occupancy};
}

/* The mean since `a` of a figure that is a mean since the beginning, sampled once per item. */
static double fill_since(const mr_stage_stats *a, const mr_stage_stats *b)
{
    if (b->items <= a->items) return b->occupancy;
    const double sum = b->occupancy * (double)b->items - a->occupancy * (double)a->items;
    const double mean = sum / (double)(b->items - a->items);
    return mean < 0 ? 0 : mean > 1 ? 1 : mean;
}

static void fill_idle(live_figures *f, const mr_causes *a, const mr_causes *b, double seconds)
{
    f->idle = seconds > 0 ? 1e-9 * (double)(b->total_ns - a->total_ns) / seconds : 0;
    const double fit = f->idle > 1 ? 1 / f->idle : 1;
    for (int i = 0; i < MR_CAUSES; i++)
        f->cause[i] = seconds > 0 ? fit * 1e-9 * (double)(b->ns[i] - a->ns[i]) / seconds : 0;
    f->idle *= fit;
}

/* The record takes it for computing. */
static void fill_network(live_figures *f, double fraction)
{
    const double part = fraction < 1 - f->idle ? fraction : 1 - f->idle;
    f->cause[MR_CAUSE_NETWORK] = part > 0 ? part : 0;
    f->idle += f->cause[MR_CAUSE_NETWORK];
}

static void fill_slowest(live_view *v, live_figures *f)
{
    mr_slow_sample s;
    if (mr_loader_slowest(v->run.loader, &s, 1) != 1) return;
    if (!v->has_slowest || s.sample != v->slowest_sample) {
        char name[sizeof v->slowest];
        mr_source_sample_name(v->run.src, s.sample, NULL, 0, name, sizeof name);
        if (name[0]) mr_text_shown(name, v->slowest, sizeof v->slowest);
        else snprintf(v->slowest, sizeof v->slowest, "sample %llu", (unsigned long long)s.sample);
        v->slowest_sample = s.sample;
    }
    f->slowest.known = v->has_slowest = true;
    f->slowest.name = v->slowest;
    f->slowest.ms = 1e-6 * (double)s.ns;
    f->slowest.bytes = (double)s.bytes;
    f->slowest.times = s.times;
}

/* Fill in the figures of the looks; f already has the training thread's. */
static void fill(live_view *v, live_figures *f)
{
    static const char *const names[] = {"read", "decode", "copy"};
    const look *now = look_before(v, 0), *then = look_before(v, SECOND), *long_ago = look_before(v, SECONDS);
    const uint64_t ns = now->ns - then->ns;
    for (int i = 0; i < LIVE_STAGES; i++)
        f->stage[i] = stage_of(names[i], &then->stage[i], &now->stage[i], ns);
    for (int i = 1; i < LIVE_STAGES; i++) f->stage[i].fill = fill_since(&then->stage[i], &now->stage[i]);
    f->samples_per_s = ns ? 1e9 * (double)(now->samples - then->samples) / (double)ns : 0;
    f->validating = now->samples == then->samples && now->val_samples > then->val_samples;
    f->bad = v->stats.bad_samples;
    f->replaced = v->stats.replaced;
    f->skipped = v->stats.skipped;
    f->has_device = v->run.record != NULL;
    if (f->has_device) {
        fill_idle(f, &long_ago->idle, &now->idle, now->device_s - long_ago->device_s);
        fill_network(f, f->network);
    } else fill_idle(f, &then->waits, &now->waits, 1e-9 * (double)ns);
    fill_slowest(v, f);
}

/* ---- the thread ---- */

static live_figures figures_of_news(live_view *v)
{
    pthread_mutex_lock(&v->lock);
    const live_news t = v->news;
    pthread_mutex_unlock(&v->lock);
    live_figures f = {.title = v->run.title,
                      .epochs = v->run.epochs,
                      .devices = v->run.devices,
                      .has_steps = t.has_steps,
                      .epoch = t.epoch,
                      .step = t.step,
                      .steps_per_epoch = t.steps_per_epoch,
                      .seconds_left = -1};
    if (!t.newest.steps) return f;
    const double left = t.newest.seconds_left - seconds_since(t.newest_ns);
    if (t.newest.seconds_left >= 0) f.seconds_left = left > 0 ? left : 0;
    f.has_loss = !t.newest.simulated;
    f.network = t.newest.network_fraction;
    f.loss = t.newest.loss;
    f.accuracy = t.newest.accuracy;
    f.lr = (double)t.newest.lr;
    return f;
}

static void redraw(live_view *v)
{
    take_look(v);
    live_figures f = figures_of_news(v);
    fill(v, &f);
    const live_style style = style_now(v);
    live_draw(&f, &style, &v->lines);
    progress_lock();
    draw_locked(v, &v->lines, style.columns);
    progress_unlock();
}

static void *view_main(void *context)
{
    live_view *v = context;
    uint64_t next = clock_ns();
    pthread_mutex_lock(&v->lock);
    while (!v->stop) {
        pthread_mutex_unlock(&v->lock);
        redraw(v);
        next += PERIOD_NS;
        if (next < clock_ns()) next = clock_ns() + PERIOD_NS; /* a slow terminal */
        const struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        pthread_mutex_lock(&v->lock);
        while (!v->stop && pthread_cond_timedwait(&v->wake, &v->lock, &until) != ETIMEDOUT) continue;
    }
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

/* Signals are for the thread that trains. */
static int start_thread(live_view *v)
{
    sigset_t all, before;
    pthread_condattr_t attr;
    pthread_mutex_init(&v->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&v->wake, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int rc = pthread_create(&v->thread, NULL, view_main, v);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int live_open(live_view **out, const live_run *run)
{
    mr_error err = MR_ERROR_INIT;
    *out = NULL;
    live_view *v = calloc(1, sizeof *v);
    if (!v) return exit_no_memory("the live view");
    const char *no_colour = getenv("NO_COLOR");
    v->run = *run;
    v->utf8 = takes_utf8();
    v->colour = !no_colour || !*no_colour;
    progress_show_as(wipe, v);
    const int rc = start_thread(v);
    if (rc) {
        progress_show_as(NULL, NULL);
        free(v);
        return exit_status(mr_error_sys(&err, rc, "--live: cannot start a thread"), &err);
    }
    *out = v;
    return EXIT_DONE;
}

void live_progress(live_view *v, uint64_t epoch, uint64_t step, uint64_t steps_per_epoch)
{
    if (!v) return;
    pthread_mutex_lock(&v->lock);
    v->news.has_steps = true;
    v->news.epoch = epoch;
    v->news.step = step;
    v->news.steps_per_epoch = steps_per_epoch;
    pthread_mutex_unlock(&v->lock);
}

void live_step(live_view *v, const mr_step_report *report)
{
    if (!v) return;
    pthread_mutex_lock(&v->lock);
    v->news.newest = *report;
    v->news.newest_ns = clock_ns();
    pthread_mutex_unlock(&v->lock);
}

void live_close(live_view *v)
{
    if (!v) return;
    pthread_mutex_lock(&v->lock);
    v->stop = true;
    pthread_cond_signal(&v->wake);
    pthread_mutex_unlock(&v->lock);
    pthread_join(v->thread, NULL);
    progress_lock();
    wipe(v);
    progress_unlock();
    progress_show_as(NULL, NULL);
    pthread_cond_destroy(&v->wake);
    pthread_mutex_destroy(&v->lock);
    free(v);
}
