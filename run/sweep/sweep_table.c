/* run/sweep/sweep_table.c: the results of a sweep's runs, as a table and as a page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/number.h"
#include "run/page/chart.h"
#include "run/page/page.h"
#include "run/page/run_log.h"
#include "run/sweep/sweep.h"
#include "settings/csv_put.h"
#include "settings/number_put.h"

/* ------------------------------------------------------------------------------ results */

void mri_sweep_no_result(mr_sweep_result *out)
{
    const double none = (double)NAN;
    *out = (mr_sweep_result){.struct_size = sizeof *out,
                             .state = MR_SWEEP_OPEN,
                             .epochs = none,
                             .loss = none,
                             .accuracy = none,
                             .val_loss = none,
                             .val_accuracy = none,
                             .seconds = none,
                             .samples_per_s = none,
                             .reached_s = none,
                             .reached_steps = none,
                             .speed_up = none};
}

/* From the last line of a run that came to its end. */
static void take_end(mr_sweep_result *r, const cJSON *end)
{
    const char *weights = mri_json_text_of(end, "weights");
    r->state = MR_SWEEP_DONE;
    r->epochs = mri_json_number_of(end, "epochs");
    r->seconds = mri_json_number_of(end, "total_seconds");
    r->samples_per_s = mri_json_number_of(end, "samples_per_s");
    snprintf(r->weights, sizeof r->weights, "%s", weights ? weights : "");
    if (cJSON_IsTrue(mri_json_member(end, "simulated"))) return; /* the others mean nothing */
    r->loss = mri_json_number_of(end, "loss");
    r->accuracy = mri_json_number_of(end, "accuracy");
    r->val_loss = mri_json_number_of(end, "val_loss");
    r->val_accuracy = mri_json_number_of(end, "val_accuracy");
    r->reached_s = mri_json_number_of(end, "reached_seconds");
    r->reached_steps = mri_json_number_of(end, "reached_steps");
}

static int check_run(const mr_sweep *s, uint32_t run, mr_error *err)
{
    if (run < s->info.runs) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "run %u: this sweep has %u", run, s->info.runs);
}

int mr_sweep_read_result(mr_sweep *s, uint32_t run, const char *path, mr_error *err)
{
    mri_run_log log;
    mr_error unread = MR_ERROR_INIT;
    MRI_GIVEN(err, s);
    MRI_GIVEN(err, path);
    int rc = check_run(s, run, err);
    if (rc) return rc;
    mri_sweep_no_result(&s->result[run]);
    rc = mri_run_log_read(&log, path, &unread);
    if (rc == MR_OK && log.end && cJSON_IsTrue(mri_json_member(log.end, "complete")))
        take_end(&s->result[run], log.end);
    mri_run_log_free(&log);
    return MR_OK;
}

int mr_sweep_set_failed(mr_sweep *s, uint32_t run, int status, mr_error *err)
{
    MRI_GIVEN(err, s);
    const int rc = check_run(s, run, err);
    if (rc) return rc;
    s->result[run].state = MR_SWEEP_FAILED;
    s->result[run].status = status;
    return MR_OK;
}

/* How far apart in the order of runs two neighbouring values of key k are. */
static uint32_t stride_of(const mr_sweep *s, uint32_t k)
{
    uint32_t stride = 1;
    for (uint32_t i = k + 1; i < s->info.options; i++) stride *= s->key[i].count;
    return stride;
}

static double speed_up(const mr_sweep *s, uint32_t run)
{
    uint32_t k;
    const mri_sweep_key *devices = mri_sweep_find(s, "devices", &k);
    if (!devices || devices->count < 2 || s->result[run].state != MR_SWEEP_DONE) return (double)NAN;
    const mr_sweep_result *first = &s->result[run - mri_sweep_value(s, run, k) * stride_of(s, k)];
    return first->state == MR_SWEEP_DONE ? first->seconds / s->result[run].seconds : (double)NAN;
}

int mr_sweep_result_of_sized(const mr_sweep *s, uint32_t run, mr_sweep_result *out, mr_error *err)
{
    MRI_GIVEN(err, s);
    MRI_GIVEN(err, out);
    int rc = check_run(s, run, err);
    if (rc == MR_OK) rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_sweep_result r = s->result[run];
    r.speed_up = speed_up(s, run);
    mri_result_give(out, &r, sizeof r);
    return MR_OK;
}

bool mr_sweep_has_goal(const mr_sweep *s)
{
    return mr_sweep_option_number(s, "stop-at-accuracy") != UINT32_MAX;
}

static const char *state_text(const mr_sweep_result *r)
{
    return r->state == MR_SWEEP_DONE ? "done" : r->state == MR_SWEEP_FAILED ? "failed" : "open";
}

/* ------------------------------------------------------------------------------ CSV */

static void put_number(FILE *f, double v)
{
    if (isfinite(v)) fprintf(f, ",%.9g", v);
    else fputc(',', f);
}

typedef struct table {
    const mr_sweep *sweep;
    uint32_t x; /* of the page */
} table;

enum { FIGURES = 10 };

/* Of run `at`, in the order of the columns; how many. */
static size_t figures_of(const table *t, uint32_t at, double out[FIGURES])
{
    const mr_sweep_result *r = &t->sweep->result[at];
    const double all[FIGURES] = {r->epochs,    r->accuracy,     r->val_accuracy,  r->loss,
                                 r->val_loss,  r->seconds,      r->samples_per_s, speed_up(t->sweep, at),
                                 r->reached_s, r->reached_steps};
    memcpy(out, all, sizeof all);
    return mr_sweep_has_goal(t->sweep) ? FIGURES : FIGURES - 2;
}

static void put_csv(FILE *f, void *context)
{
    const table *t = context;
    const bool has_goal = mr_sweep_has_goal(t->sweep);
    char name[MR_SWEEP_NAME_BYTES];
    fputs("run", f);
    for (uint32_t k = 0; k < t->sweep->info.options; k++) {
        fputc(',', f);
        mri_csv_put_text(f, t->sweep->key[k].name);
    }
    fputs(",state,epochs_done,acc,val_acc,loss,val_loss,time_s,samples_per_s,speed_up", f);
    fputs(has_goal ? ",reached_s,reached_steps,weights\n" : ",weights\n", f);
    for (uint32_t i = 0; i < t->sweep->info.runs; i++) {
        const mr_sweep_result *r = &t->sweep->result[i];
        mr_sweep_run_name(t->sweep, i, name);
        fputs(name, f);
        for (uint32_t k = 0; k < t->sweep->info.options; k++) {
            fputc(',', f);
            mri_csv_put_text(f, mri_sweep_text(t->sweep, i, k));
        }
        fprintf(f, ",%s", state_text(r));
        double numbers[FIGURES];
        const size_t count = figures_of(t, i, numbers);
        for (size_t n = 0; n < count; n++) put_number(f, numbers[n]);
        fprintf(f, ",%s\n", r->weights);
    }
}

int mr_sweep_write_csv(const mr_sweep *s, const char *path, mr_error *err)
{
    table t = {s, 0};
    MRI_GIVEN(err, s);
    MRI_GIVEN(err, path);
    return mri_page_write(path, true, put_csv, &t, err);
}

/* ------------------------------------------------------------------------------ page */

enum { LINES_MOST = 15 };

/* Lines differ in the keys that have several values, but for x and the seed. */
static bool tells_lines_apart(const table *t, uint32_t k)
{
    return k != t->x && t->sweep->key[k].count > 1 && strcmp(t->sweep->key[k].name, "seed") != 0;
}

static bool same_line(const table *t, uint32_t a, uint32_t b)
{
    for (uint32_t k = 0; k < t->sweep->info.options; k++)
        if (tells_lines_apart(t, k) && mri_sweep_value(t->sweep, a, k) != mri_sweep_value(t->sweep, b, k))
            return false;
    return true;
}

static void label_of(const table *t, uint32_t at, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t k = 0; k < t->sweep->info.options && used < bytes; k++)
        if (tells_lines_apart(t, k)) {
            const int n = snprintf(out + used, bytes - used, "%s%s %s", used ? ", " : "",
                                   t->sweep->key[k].name, mri_sweep_text(t->sweep, at, k));
            used += n > 0 ? (size_t)n : 0;
        }
    if (!out[0]) snprintf(out, bytes, "all runs");
}

/* Numbers stand where they belong, other values one after the other. */
static double place_of(const table *t, uint32_t value)
{
    const mri_sweep_key *k = &t->sweep->key[t->x];
    double number = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        char *end;
        const double v = mri_strtod(k->value[i], &end);
        if (*end || !isfinite(v)) return value;
        if (i == value) number = v;
    }
    return number;
}

typedef double (*figure_of)(const table *t, uint32_t at);
static double accuracy_of(const table *t, uint32_t at) { return 100 * t->sweep->result[at].accuracy; }
static double val_accuracy_of(const table *t, uint32_t at) { return 100 * t->sweep->result[at].val_accuracy; }
static double seconds_of(const table *t, uint32_t at) { return t->sweep->result[at].seconds; }
static double reached_of(const table *t, uint32_t at) { return t->sweep->result[at].reached_s; }
static double speed_up_of(const table *t, uint32_t at) { return speed_up(t->sweep, at); }

/* The mean over the runs of a line that have this value of x. */
static double mean_of(const table *t, uint32_t line, uint32_t value, figure_of figure)
{
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->sweep->info.runs; i++) {
        const double v = figure(t, i);
        if (!isfinite(v) || mri_sweep_value(t->sweep, i, t->x) != value || !same_line(t, i, line)) continue;
        sum += v;
        count++;
    }
    return count ? sum / count : NAN;
}

static void put_chart(FILE *f, const table *t, const char *title, const char *unit, figure_of figure)
{
    static const char *const css[LINES_MOST] = {"a",  "b",  "c",  "d",  "c0", "c1", "c2", "c3",
                                                "c4", "c5", "c6", "c7", "c8", "c9", "c10"};
    const uint32_t points = t->sweep->key[t->x].count;
    mri_chart_line line[LINES_MOST] = {{0}};
    char label[LINES_MOST][160];
    double *numbers = calloc((size_t)LINES_MOST * points * 2, sizeof *numbers);
    uint32_t count = 0, left_out = 0;
    if (!numbers) return;
    for (uint32_t i = 0; i < t->sweep->info.runs; i++) {
        bool is_new = true;
        for (uint32_t b = 0; is_new && b < i; b++) is_new = !same_line(t, b, i);
        if (!is_new) continue;
        if (count == LINES_MOST) {
            left_out++;
            continue;
        }
        double *x = numbers + (size_t)count * points * 2, *y = x + points;
        for (uint32_t v = 0; v < points; v++) x[v] = place_of(t, v), y[v] = mean_of(t, i, v, figure);
        label_of(t, i, label[count], sizeof label[count]);
        line[count] =
            (mri_chart_line){.label = label[count], .css = css[count], .x = x, .y = y, .count = points};
        count++;
    }
    const mri_chart c = {
        .title = title, .x = t->sweep->key[t->x].name, .y = unit, .from_zero = true, .y_most = NAN};
    if (mri_chart_lines(f, &c, line, count) && left_out)
        mri_page_note(f, "%u more lines are in the table.", left_out);
    free(numbers);
}

static void put_cell(FILE *f, const char *text, bool left)
{
    fputs(left ? "<td class=\"l\">" : "<td>", f);
    mri_page_text(f, text);
    fputs("</td>", f);
}

static void put_table(FILE *f, const table *t)
{
    static const char *const figures[1 + FIGURES] = {
        "state",      "epochs",  "acc",       "val acc",  "loss",
        "val loss",   "time, s", "samples/s", "speed-up", "training to the accuracy, s",
        "steps to it"};
    const size_t shown = mr_sweep_has_goal(t->sweep) ? 1 + FIGURES : FIGURES - 1;
    char room[32];
    fputs("<div class=\"wide\"><table><tr>", f);
    for (uint32_t k = 0; k < t->sweep->info.options; k++) {
        fputs("<th class=\"l\">", f);
        mri_page_text(f, t->sweep->key[k].name);
        fputs("</th>", f);
    }
    for (size_t i = 0; i < shown; i++) fprintf(f, "<th>%s</th>", figures[i]);
    fputs("</tr>\n", f);
    for (uint32_t i = 0; i < t->sweep->info.runs; i++) {
        const mr_sweep_result *r = &t->sweep->result[i];
        fputs("<tr>", f);
        for (uint32_t k = 0; k < t->sweep->info.options; k++)
            put_cell(f, mri_sweep_text(t->sweep, i, k), true);
        put_cell(f, state_text(r), false);
        double numbers[FIGURES];
        const size_t count = figures_of(t, i, numbers);
        for (size_t n = 0; n < count; n++) put_cell(f, mri_number_text(numbers[n], room), false);
        fputs("</tr>\n", f);
    }
    fputs("</table></div>\n", f);
}

static void put_page(FILE *f, void *context)
{
    const table *t = context;
    uint32_t state[3] = {0};
    for (uint32_t i = 0; i < t->sweep->info.runs; i++) state[t->sweep->result[i].state]++;
    mri_page_begin(f, "millrace sweep");
    mri_page_note(f, "%s: %u runs, %u done, %u failed, %u open. Lines are means over seeds.",
                  t->sweep->info.data, t->sweep->info.runs, state[MR_SWEEP_DONE], state[MR_SWEEP_FAILED],
                  state[MR_SWEEP_OPEN]);
    fputs("<div class=\"pair\">\n", f);
    put_chart(f, t, "Time", "s", seconds_of);
    put_chart(f, t, "Speed-up", "times the first devices", speed_up_of);
    if (mr_sweep_has_goal(t->sweep)) put_chart(f, t, "Training to the accuracy", "s", reached_of);
    put_chart(f, t, "Validation accuracy", "%", val_accuracy_of);
    put_chart(f, t, "Training accuracy", "%", accuracy_of);
    fputs("</div>\n", f);
    mri_page_heading(f, "Runs");
    put_table(f, t);
    mri_page_end(f);
}

int mr_sweep_write_page(const mr_sweep *s, uint32_t option, const char *path, mr_error *err)
{
    table t = {s, option};
    MRI_GIVEN(err, s);
    MRI_GIVEN(err, path);
    if (option >= s->info.options)
        return mr_error_set(err, MR_EINVAL, "option %u: this sweep has %u", option, s->info.options);
    return mri_page_write(path, true, put_page, &t, err);
}
