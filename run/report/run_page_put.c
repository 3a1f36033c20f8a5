/* run/report/run_page_put.c: writes a page about runs. Figures that a log does not have are left out, and
 * the page names lines of a log that it leaves out. */
#include "run/report/run_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/page/chart.h"
#include "run/page/page.h"
#include "settings/number_put.h"

static const char *const run_css[MR_RUN_PAGE_RUNS][2] = {{"a", "b"}, {"c", "d"}};

/* ---- contents of a log ---- */

/* Of the n-th report: when it ended, in epochs. */
static double epoch_of(const mri_run_log *r, size_t n)
{
    const double epoch = mri_json_number_of(r->reports.at[n], "epoch");
    return r->is_profile || isnan(epoch) ? (double)n + 1 : epoch + 1;
}

static double step_epoch(const cJSON *step)
{
    return mri_json_number_of(step, "epoch") +
           mri_json_number_of(step, "step") / mri_json_number_of(step, "steps_per_epoch");
}

static bool has_any(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) return true;
    return false;
}

static const char *name_of_run(const mr_run_page *p, int k, char *room, size_t room_bytes)
{
    const char *slash = strrchr(p->run[k].path, '/');
    snprintf(room, room_bytes, "%.80s", slash && slash[1] ? slash + 1 : p->run[k].path);
    return room;
}

/* ---- curves ---- */

/* A figure of reports, or of stretches of steps where there are some, of all runs in one chart. */
typedef struct curve {
    const char *title, *unit, *key, *val_key; /* val_key NULL: no validation */
    double y_most;
    bool from_zero, of_steps;
    bool computed; /* by a device: a simulated one computes nothing */
} curve;

typedef struct curve_data {
    mri_chart_line line[2 * MR_RUN_PAGE_RUNS];
    char label[2 * MR_RUN_PAGE_RUNS][128];
    double *own[4 * MR_RUN_PAGE_RUNS];
    size_t count, own_count;
} curve_data;

typedef struct point {
    double x, y;
} point;

static int by_x(const void *a, const void *b)
{
    const point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

static void add_point(point *out, size_t *count, double x, double y)
{
    if (isfinite(x)) out[(*count)++] = (point){x, y}; /* a step of an epoch without steps has no place */
}

/* The reports' points, or the stretches' of steps; of a validation those inside epochs, too. */
static point *points_of(const mri_run_log *r, const char *key, bool of_steps, bool is_val, size_t *count)
{
    const mri_run_events *e = of_steps ? &r->steps : &r->reports, *in = &r->evals;
    point *out = calloc(e->count + in->count + 1, sizeof *out);
    *count = 0;
    for (size_t i = 0; out && i < e->count; i++)
        add_point(out, count, of_steps ? step_epoch(e->at[i]) : epoch_of(r, i),
                  mri_json_number_of(e->at[i], key));
    for (size_t i = 0; out && is_val && i < in->count; i++)
        add_point(out, count, step_epoch(in->at[i]), mri_json_number_of(in->at[i], key));
    if (out && is_val) qsort(out, *count, sizeof *out, by_x);
    return out;
}

static double *kept(curve_data *d, double *values) { return d->own[d->own_count++] = values; }

static void add_line(curve_data *d, const mr_run_page *p, int run, const char *key, bool of_steps,
                     bool is_val)
{
    char name[96];
    size_t count;
    const mri_run_log *r = &p->run[run];
    point *at = points_of(r, key, of_steps, is_val, &count);
    double *x = kept(d, calloc(count + 1, sizeof *x)), *y = kept(d, calloc(count + 1, sizeof *y));
    for (size_t i = 0; at && x && y && i < count; i++) x[i] = at[i].x, y[i] = at[i].y;
    free(at);
    if (!x || !y || !has_any(y, count)) return;
    snprintf(d->label[d->count], sizeof d->label[0], "%s%s%s",
             p->runs > 1 ? name_of_run(p, run, name, sizeof name) : "", p->runs > 1 ? ": " : "",
             is_val ? "validation" : "training");
    d->line[d->count] = (mri_chart_line){.label = d->label[d->count],
                                         .css = run_css[run][is_val],
                                         .dashed = is_val,
                                         .marked = is_val && r->evals.count,
                                         .x = x,
                                         .y = y,
                                         .count = count};
    d->count++;
}

static bool is_simulated(const mri_run_log *r)
{
    for (size_t i = 0; i < r->reports.count; i++)
        if (cJSON_IsTrue(mri_json_member(r->reports.at[i], "simulated"))) return true;
    return false;
}

static bool put_curve(FILE *f, const mr_run_page *p, const curve *c)
{
    curve_data d = {.count = 0};
    for (int k = 0; k < p->runs; k++) {
        if (c->computed && is_simulated(&p->run[k])) continue;
        add_line(&d, p, k, c->key, c->of_steps && p->run[k].steps.count, false);
        if (c->val_key) add_line(&d, p, k, c->val_key, false, true);
    }
    const mri_chart about = {c->title, "epochs", c->unit, c->from_zero, c->y_most};
    const bool drawn = d.count && mri_chart_lines(f, &about, d.line, d.count);
    for (size_t i = 0; i < d.own_count; i++) free(d.own[i]);
    return drawn;
}

static void note_simulated(FILE *f, const mr_run_page *p)
{
    char name[96];
    for (int k = 0; k < p->runs; k++) {
        if (!is_simulated(&p->run[k])) continue;
        if (p->runs > 1)
            mri_page_note(
                f, "%s ran on simulated devices, which compute nothing: it has no loss and no accuracy.",
                name_of_run(p, k, name, sizeof name));
        else mri_page_note(f, "A simulated device computes nothing: there is no loss and no accuracy.");
    }
}

static void put_curves(FILE *f, const mr_run_page *p)
{
    static const curve curves[] = {
        {"Loss", "mean over samples", "loss", "val_loss", NAN, false, true, true},
        {"Accuracy", "part of samples that are right", "accuracy", "val_accuracy", NAN, true, true, true},
        {"Rate", "samples/s", "samples_per_s", NULL, NAN, true, true, false},
        {"Learning rate", "of the last step", "lr", NULL, NAN, true, true, false},
    };
    mri_page_heading(f, "Training");
    note_simulated(f, p);
    fputs("<div class=\"pair\">\n", f);
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++) put_curve(f, p, &curves[i]);
    fputs("</div>\n", f);
}

/* ---- stalls ---- */

static const char *report_label(const mri_run_log *r, size_t n, char *room, size_t bytes)
{
    const double prefetch = mri_json_number_of(r->reports.at[n], "prefetch");
    if (r->is_profile && prefetch == 0) snprintf(room, bytes, "prefetch off");
    else if (r->is_profile) snprintf(room, bytes, "prefetch %.0f", prefetch);
    else snprintf(room, bytes, "%.0f", epoch_of(r, n));
    return room;
}

enum { CAUSES = MR_CAUSE_NETWORK + 1 };

/* Logs of earlier versions have no network. */
static void fill_causes(const mri_run_log *r, double *value, char (*text)[24], const char **label)
{
    for (size_t n = 0; n < r->reports.count; n++) {
        const cJSON *causes = mri_json_member(r->reports.at[n], "causes");
        for (int i = 0; i < CAUSES; i++) {
            const char *name = mr_cause_name((mr_cause)i);
            if (mri_json_member(causes, name))
                value[n * CAUSES + (size_t)i] = 100 * mri_json_number_of(causes, name);
        }
        label[n] = report_label(r, n, text[n], sizeof text[n]);
    }
}

static void put_stall(FILE *f, const mri_run_log *r, const char *title)
{
    static const char *const css[] = {"c0", "c1", "c2", "c3", "c4",  "c5",
                                      "c6", "c7", "c8", "c9", "c10", "c11"};
    _Static_assert(sizeof css / sizeof css[0] == CAUSES, "a colour for each cause");
    const size_t n = r->reports.count ? r->reports.count : 1;
    double *value = calloc(n * CAUSES, sizeof *value);
    char(*text)[24] = calloc(n, sizeof *text);
    const char **label = calloc(n, sizeof *label);
    mri_chart_part part[CAUSES];
    for (int i = 0; i < CAUSES; i++) part[i] = (mri_chart_part){mr_cause_text((mr_cause)i), css[i]};
    if (value && text && label) {
        fill_causes(r, value, text, label);
        const mri_chart c = {title, r->is_profile ? "" : "epoch", "% of the device's time", true, NAN};
        if (!mri_chart_bars(f, &c, part, CAUSES, value, label, r->reports.count))
            mri_page_note(f, "%s: no idle time was recorded.", title);
    }
    free(value);
    free(text);
    free(label);
}

static void put_stalls(FILE *f, const mr_run_page *p)
{
    char name[96];
    mri_page_heading(f, "Causes of the device's waits");
    fputs("<div class=\"pair\">\n", f);
    for (int k = 0; k < p->runs; k++)
        put_stall(f, &p->run[k], p->runs > 1 ? name_of_run(p, k, name, sizeof name) : "Idle");
    fputs("</div>\n", f);
}

/* ---- stages ---- */

static const cJSON *last_report(const mri_run_log *r)
{
    return r->reports.count ? r->reports.at[r->reports.count - 1] : NULL;
}

static void put_stage(FILE *f, const char *name, const cJSON *s)
{
    if (!s) return;
    fprintf(f, "<tr><td>%s<td>%.0f<td>%.0f", name, mri_json_number_of(s, "threads"),
            mri_json_number_of(s, "items"));
    for (int i = 0; i < 4; i++) {
        static const char *const keys[] = {"busy", "blocked_in", "blocked_out", "occupancy"};
        const double part = mri_json_number_of(s, keys[i]);
        if (isnan(part)) fputs("<td>-", f);
        else fprintf(f, "<td>%.1f", 100 * part);
    }
    fputc('\n', f);
}

static void put_stages(FILE *f, const mr_run_page *p)
{
    static const char *const names[] = {"read", "decode", "copy"};
    char name[96];
    mri_page_heading(f, "Stages of the loader");
    mri_page_note(
        f, "Of the last %s; starved: waiting for input, held back: waiting for room in the next stage.",
        p->run[0].is_profile ? "run" : "epoch");
    fputs("<div class=\"pair\">\n", f);
    for (int k = 0; k < p->runs; k++) {
        const cJSON *stages = mri_json_member(last_report(&p->run[k]), "stages");
        if (!stages) continue;
        fputs("<div class=\"wide\">", f);
        if (p->runs > 1) {
            fputs("<h3>", f);
            mri_page_text(f, name_of_run(p, k, name, sizeof name));
            fputs("</h3>", f);
        }
        fputs("<table><tr><th>stage<th>threads<th>items<th>busy %<th>starved "
              "%<th>held back %<th>queue fill %\n",
              f);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            put_stage(f, names[i], mri_json_member(stages, names[i]));
        fputs("</table></div>\n", f);
    }
    fputs("</div>\n", f);
}

/* ---- steps ---- */

typedef struct bin {
    double from;
    double count;
} bin;

static int by_from(const void *a, const void *b)
{
    const bin *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Of all reports together (of a profile: with prefetch on), sorted, the empty ones between included; *count
 * of them. Bins are a fourth of an octave wide (docs/json.md). */
static bin *bins_of(const mri_run_log *r, size_t *count)
{
    enum { BINS = 96 };
    bin *out = calloc(BINS, sizeof *out);
    size_t n = 0;
    for (size_t i = r->is_profile && r->reports.count ? r->reports.count - 1 : 0; out && i < r->reports.count;
         i++) {
        const cJSON *from = mri_json_member(r->reports.at[i], "step_ms_bin_from"),
                    *many = mri_json_member(r->reports.at[i], "step_ms_bin_count");
        const cJSON *a = from ? from->child : NULL, *b = many ? many->child : NULL;
        for (; a && b; a = a->next, b = b->next) {
            size_t at = 0;
            while (at < n && out[at].from != a->valuedouble) at++;
            if (at == BINS) break;
            if (at == n) out[n++].from = a->valuedouble;
            out[at].count += b->valuedouble;
        }
    }
    if (out) qsort(out, n, sizeof *out, by_from);
    *count = n;
    return out;
}

static void put_histogram(FILE *f, const mri_run_log *r, const char *title)
{
    enum { SHOWN_MOST = 200 };
    const double wide = pow(2, 0.25);
    double value[SHOWN_MOST];
    char text[SHOWN_MOST][24];
    const char *label[SHOWN_MOST];
    size_t n, shown = 0;
    const mri_chart_part one = {"steps", "a"};
    bin *b = bins_of(r, &n);
    for (size_t i = 0; b && i < n; i++)
        for (double from = i ? b[i - 1].from * wide : b[i].from; shown < SHOWN_MOST; from *= wide) {
            const bool is_it = from > b[i].from / 1.05;
            value[shown] = is_it ? b[i].count : 0;
            snprintf(text[shown], sizeof text[0], "%.3g", from);
            label[shown] = text[shown];
            shown++;
            if (is_it) break;
        }
    free(b);
    const mri_chart c = {title, "ms, from", "steps", true, NAN};
    mri_chart_bars(f, &c, &one, 1, value, label, shown);
}

/* Mean and its standard error over reports, the first left out where there are three and more: it has what
 * begins with a run. */
static void put_mean(FILE *f, const mri_run_log *r, const char *key)
{
    double sum = 0, squares = 0;
    size_t n = 0;
    char room[2][32];
    for (size_t i = r->reports.count >= 3 && !r->is_profile; i < r->reports.count; i++) {
        const double v = mri_json_number_of(r->reports.at[i], key);
        if (!isfinite(v)) continue;
        sum += v;
        n++;
    }
    const double mean = n ? sum / (double)n : NAN;
    for (size_t i = r->reports.count >= 3 && !r->is_profile; i < r->reports.count; i++) {
        const double v = mri_json_number_of(r->reports.at[i], key);
        if (isfinite(v)) squares += (v - mean) * (v - mean);
    }
    fprintf(f, "<td>%s", mri_number_text(mean, room[0]));
    if (n > 1)
        fprintf(f, " &plusmn; %s", mri_number_text(sqrt(squares / (double)(n - 1) / (double)n), room[1]));
}

static void put_figures(FILE *f, const mr_run_page *p)
{
    static const struct {
        const char *text, *key;
    } rows[] = {
        {"samples/s", "samples_per_s"},          {"step, median, ms", "step_ms"},
        {"MAD of steps, ms", "step_ms_mad"},     {"95 of 100 steps within, ms", "step_ms_p95"},
        {"99 of 100 within, ms", "step_ms_p99"}, {"trainer waited for batches, ms", "wait_ms"},
        {"device idle, ms", "exposed_ms"},
    };
    char name[96];
    fputs("<div class=\"wide\"><table><tr><th>", f);
    for (int k = 0; k < p->runs; k++) {
        fputs("<th>", f);
        mri_page_text(f, p->runs > 1 ? name_of_run(p, k, name, sizeof name) : "mean over epochs");
    }
    fputc('\n', f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fprintf(f, "<tr><td>%s", rows[i].text);
        for (int k = 0; k < p->runs; k++) put_mean(f, &p->run[k], rows[i].key);
        fputc('\n', f);
    }
    fputs("</table></div>\n", f);
    mri_page_note(
        f,
        "Means over epochs, with their standard error; of three epochs and more the first does not count. "
        "MAD: 1.4826 times the median absolute deviation. Steps that warm up (%.0f in the first epoch) are "
        "left out of an epoch's own figures.",
        mri_json_number_of(p->run[0].reports.count ? p->run[0].reports.at[0] : NULL, "warmup_steps"));
}

/* Prefetch off and on. */
static void put_sides(FILE *f, const mr_run_page *p)
{
    static const char *const keys[] = {"samples_per_s", "step_ms", "step_ms_mad", "step_ms_p95",
                                       "step_ms_p99",   "wait_ms", "exposed_ms"};
    char label[24], name[96], room[32];
    fputs("<div class=\"wide\"><table><tr><th><th>samples/s<th>step, median, ms<th>MAD, ms<th>95 of 100 "
          "within, ms<th>99 of 100<th>wait ms<th>idle ms\n",
          f);
    for (int k = 0; k < p->runs; k++)
        for (size_t n = 0; n < p->run[k].reports.count; n++) {
            fputs("<tr><td>", f);
            if (p->runs > 1) mri_page_text(f, name_of_run(p, k, name, sizeof name));
            fprintf(f, "%s%s", p->runs > 1 ? ", " : "", report_label(&p->run[k], n, label, sizeof label));
            for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
                fprintf(f, "<td>%s",
                        mri_number_text(mri_json_number_of(p->run[k].reports.at[n], keys[i]), room));
            fputc('\n', f);
        }
    fputs("</table></div>\n", f);
    mri_page_note(f, "Steps that warm up are left out. MAD: 1.4826 times the median absolute deviation.");
}

static void put_steps(FILE *f, const mr_run_page *p)
{
    char name[96];
    mri_page_heading(f, "Rates and steps");
    if (!p->run[0].is_profile) put_figures(f, p);
    else put_sides(f, p);
    fputs("<div class=\"pair\">\n", f);
    for (int k = 0; k < p->runs; k++)
        put_histogram(f, &p->run[k],
                      p->runs > 1            ? name_of_run(p, k, name, sizeof name)
                      : p->run[0].is_profile ? "From step to step, prefetch on"
                                             : "From step to step");
    fputs("</div>\n", f);
}

/* ---- samples ---- */

static void put_odd(FILE *f, const cJSON *list, const char *what)
{
    for (const cJSON *n = list ? list->child : NULL; n; n = n->next) {
        const char *file = mri_json_text_of(n, "file");
        fprintf(f, "<tr><td>%s ", what);
        if (file) mri_page_text(f, file);
        else fprintf(f, "%.0f", mri_json_number_of(n, "worker"));
        fprintf(f, "<td>%.3g<td>%.3g<td>%.1f\n", mri_json_number_of(n, "ms"),
                mri_json_number_of(n, "others_ms"), mri_json_number_of(n, "times"));
    }
}

static void put_slow(FILE *f, const mri_run_log *r)
{
    const cJSON *workers = mri_json_member(r->end, "slow_workers"),
                *files = mri_json_member(r->end, "slow_files");
    if (!(workers && workers->child) && !(files && files->child)) return;
    mri_page_heading(f, "Slower than others of its kind");
    fputs("<div class=\"wide\"><table><tr><th>who<th>ms<th>others, ms<th>times\n", f);
    put_odd(f, workers, "worker");
    put_odd(f, files, "file");
    fputs("</table></div>\n", f);
}

static void put_slowest(FILE *f, const mri_run_log *r)
{
    const cJSON *list = mri_json_member(r->end, "slowest");
    if (!cJSON_IsArray(list) || !list->child) return;
    mri_page_heading(f, "Slowest samples");
    fputs("<div class=\"wide\"><table><tr><th>sample<th "
          "class=\"l\">name<th>width<th>height<th>bytes<th>ms<th>times the mean\n",
          f);
    for (const cJSON *n = list->child; n; n = n->next) {
        const char *name = mri_json_text_of(n, "name");
        fprintf(f, "<tr><td>%.0f<td class=\"l\">", mri_json_number_of(n, "sample"));
        mri_page_text(f, name ? name : "");
        fprintf(f, "<td>%.0f<td>%.0f<td>%.0f<td>%.3g<td>%.1f\n", mri_json_number_of(n, "width"),
                mri_json_number_of(n, "height"), mri_json_number_of(n, "bytes"), mri_json_number_of(n, "ms"),
                mri_json_number_of(n, "times_mean"));
    }
    fputs("</table></div>\n", f);
}

/* The ceilings that `profile` measured separately, next to the runs. */
static void put_ceilings(FILE *f, const mr_run_page *p)
{
    static const struct {
        const char *text, *key;
    } rows[] = {
        {"loader alone", "loader_samples_per_s"},           {"trainer alone", "trainer_samples_per_s"},
        {"the slower of the two", "ceiling_samples_per_s"}, {"real data, prefetch off", "off_samples_per_s"},
        {"real data, prefetch on", "on_samples_per_s"},
    };
    char name[96], room[32];
    mri_page_heading(f, "Ceilings");
    fputs("<div class=\"wide\"><table><tr><th>samples/s", f);
    for (int k = 0; k < p->runs; k++) {
        fputs("<th>", f);
        mri_page_text(f, p->runs > 1 ? name_of_run(p, k, name, sizeof name) : "");
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fprintf(f, "\n<tr><td>%s", rows[i].text);
        for (int k = 0; k < p->runs; k++)
            fprintf(f, "<td>%s", mri_number_text(mri_json_number_of(p->run[k].end, rows[i].key), room));
    }
    fputs("\n</table></div>\n", f);
}

static void put_bad(FILE *f, const mr_run_page *p)
{
    enum { SHOWN = 200 };
    const mri_run_events *bad = p->bad_path ? &p->bad.bad : &p->run[0].bad;
    const double counted = mri_json_number_of(p->run[0].end, "bad_met");
    if (!bad->count && !(counted > 0) && !p->bad_path) return;
    mri_page_heading(f, "Bad samples");
    if (!bad->count) {
        mri_page_note(f,
                      "%.0f were met; --bad-list FILE, of the list that train --bad-list writes, names them.",
                      counted);
        return;
    }
    fputs("<div class=\"wide\"><table><tr><th>sample<th class=\"l\">file<th class=\"l\">reason\n", f);
    for (size_t i = 0; i < bad->count && i < SHOWN; i++) {
        const char *name = mri_json_text_of(bad->at[i], "name"), *file = mri_json_text_of(bad->at[i], "file"),
                   *reason = mri_json_text_of(bad->at[i], "reason");
        fprintf(f, "<tr><td>%.0f<td class=\"l\">", mri_json_number_of(bad->at[i], "sample"));
        mri_page_text(f, name ? name : file ? file : "");
        fputs("<td class=\"l\">", f);
        mri_page_text(f, reason ? reason : "");
        fputc('\n', f);
    }
    fputs("</table></div>\n", f);
    if (bad->count > SHOWN) mri_page_note(f, "The first %d of %zu.", SHOWN, bad->count);
}

static void put_pictures(FILE *f, const mr_run_page *p)
{
    if (!p->sample_count) return;
    mri_page_heading(f, "Pictures as the network gets them");
    mri_page_note(f, "The first %u of the first epoch, after augmentation.", p->sample_count);
    fputs("<div class=\"pictures\">\n", f);
    for (uint32_t i = 0; i < p->sample_count; i++)
        mri_page_picture(f, "image/png", p->sample[i].png, p->sample[i].bytes, p->sample[i].label);
    fputs("</div>\n", f);
}

/* ---- settings ---- */

static void put_value(FILE *f, const cJSON *n)
{
    if (cJSON_IsString(n)) mri_page_text(f, n->valuestring);
    else if (cJSON_IsNumber(n)) fprintf(f, "%.15g", n->valuedouble);
    else if (cJSON_IsBool(n)) fputs(cJSON_IsTrue(n) ? "yes" : "no", f);
    else fputs("-", f);
}

static bool same(const cJSON *a, const cJSON *b) { return a && b ? cJSON_Compare(a, b, true) : a == b; }

static const cJSON *settings_of(const mri_run_log *r) { return r->start ? r->start : r->end; }

static void put_setting(FILE *f, const mr_run_page *p, const char *key)
{
    const cJSON *value[MR_RUN_PAGE_RUNS] = {NULL};
    for (int k = 0; k < p->runs; k++) value[k] = mri_json_member(settings_of(&p->run[k]), key);
    const bool differs = p->runs > 1 && !same(value[0], value[1]);
    fprintf(f, "<tr%s><td>", differs ? " class=\"differs\"" : "");
    mri_page_text(f, key);
    for (int k = 0; k < p->runs; k++) {
        fputs("<td class=\"l\">", f);
        put_value(f, value[k]);
    }
    fputc('\n', f);
}

static bool is_plain(const cJSON *n)
{
    return strcmp(n->string, "event") != 0 && !cJSON_IsObject(n) && !cJSON_IsArray(n);
}

static void put_settings(FILE *f, const mr_run_page *p)
{
    char name[96];
    mri_page_heading(f, "Settings");
    if (p->runs > 1) mri_page_note(f, "What differs is marked.");
    fputs("<div class=\"wide\"><table><tr><th>", f);
    for (int k = 0; k < p->runs; k++) {
        fputs("<th class=\"l\">", f);
        mri_page_text(f, name_of_run(p, k, name, sizeof name));
    }
    fputc('\n', f);
    const cJSON *all = settings_of(&p->run[0]), *other = p->runs > 1 ? settings_of(&p->run[1]) : NULL;
    for (const cJSON *n = all ? all->child : NULL; n; n = n->next)
        if (is_plain(n)) put_setting(f, p, n->string);
    for (const cJSON *n = other ? other->child : NULL; n; n = n->next)
        if (is_plain(n) && !mri_json_member(all, n->string)) put_setting(f, p, n->string);
    fputs("</table></div>\n", f);
}

/* ---- the whole ---- */

static void put_left_out(FILE *f, const mri_run_log *r)
{
    if (r->runs > 1) mri_page_note(f, "The log has %zu runs; this is the last one.", r->runs);
    if (r->no_json)
        mri_page_note(f, "%zu of its %zu lines are no JSON and left out, the first is line %zu.", r->no_json,
                      r->lines, r->no_json_at);
    if (r->is_cut) mri_page_note(f, "Its last line was cut off.");
    if (r->others) mri_page_note(f, "%zu lines are not about a run and left out.", r->others);
    if (!r->end) mri_page_note(f, "The log has no end: the run was going on, or was stopped.");
}

static const char *text_or(const char *text, const char *otherwise) { return text ? text : otherwise; }

/* Name the settings by which the run is another algorithm than one sum of all gradients per step. */
static void put_algorithm(FILE *f, const cJSON *set)
{
    const char *sync = text_or(mri_json_text_of(set, "sync"), "sync"),
               *exchange = text_or(mri_json_text_of(set, "exchange"), "f32");
    const bool differs = strcmp(sync, "sync") != 0 && strcmp(sync, "ps") != 0,
               packs = strcmp(exchange, "f32") != 0;
    if (!differs && !packs) return;
    fputs("<p>Trained with ", f);
    if (differs) fputs("--sync ", f), mri_page_text(f, sync);
    if (packs) fputs(differs ? " and --exchange " : "--exchange ", f), mri_page_text(f, exchange);
    fputs(": another algorithm than a sum of all gradients in f32 at each step.</p>\n", f);
}

static void put_summary(FILE *f, const mr_run_page *p, int k)
{
    char name[96], room[32];
    const mri_run_log *r = &p->run[k];
    const cJSON *set = settings_of(r), *last = last_report(r);
    const char *verdict = mri_json_text_of(r->end ? r->end : last, "verdict");
    fputs("<div>", f);
    if (p->runs > 1) {
        fprintf(f, "<h3><span class=\"key\"><i class=\"%s\"></i></span>", run_css[k][0]);
        mri_page_text(f, name_of_run(p, k, name, sizeof name));
        fputs("</h3>", f);
    }
    fputs("<p>", f);
    mri_page_text(f, text_or(mri_json_text_of(set, "model"), "no model"));
    fputs(" on ", f);
    mri_page_text(f, text_or(mri_json_text_of(set, "data"), "data that the log does not name"));
    fputs(", ", f);
    mri_page_text(f,
                  text_or(mri_json_text_of(set, "hardware"), text_or(mri_json_text_of(set, "device"), "")));
    fprintf(f, "; %s samples/s in the last %s",
            mri_number_text(mri_json_number_of(last, "samples_per_s"), room),
            r->is_profile ? "run" : "epoch");
    if (isfinite(mri_json_number_of(last, "val_accuracy")) && !is_simulated(r))
        fprintf(f, ", validation accuracy %.4f", mri_json_number_of(last, "val_accuracy"));
    if (isfinite(mri_json_number_of(last, "stall_fraction")))
        fprintf(f, ", device idle %.1f %% of it", 100 * mri_json_number_of(last, "stall_fraction"));
    fputs(".</p>\n", f);
    put_algorithm(f, set);
    if (verdict) {
        fputs("<p class=\"verdict\">", f);
        mri_page_text(f, verdict);
        fputs("</p>\n", f);
    }
    put_left_out(f, r);
    fputs("</div>\n", f);
}

static void put_timeline(FILE *f, const mr_run_page *p)
{
    char name[128];
    if (!p->trace_path) return;
    snprintf(name, sizeof name, "Timeline, of %.90s", p->trace_path);
    mri_page_heading(f, name);
    if (p->span_count) mri_timeline_put(f, p->spans, p->span_count);
    else mri_page_note(f, "The trace has no spans.");
}

void mri_run_page_put(FILE *f, void *context)
{
    const mr_run_page *p = context;
    mri_page_begin(f, p->runs > 1            ? "Two runs of millrace"
                      : p->run[0].is_profile ? "A profile by millrace"
                                             : "A run of millrace");
    fputs("<div class=\"pair\">\n", f);
    for (int k = 0; k < p->runs; k++) put_summary(f, p, k);
    fputs("</div>\n", f);
    if (!p->run[0].is_profile) put_curves(f, p);
    else put_ceilings(f, p);
    put_stalls(f, p);
    put_steps(f, p);
    put_stages(f, p);
    put_timeline(f, p);
    put_pictures(f, p);
    for (int k = 0; k < p->runs; k++) put_slowest(f, &p->run[k]);
    for (int k = 0; k < p->runs; k++) put_slow(f, &p->run[k]);
    put_bad(f, p);
    put_settings(f, p);
    mri_page_end(f);
}
