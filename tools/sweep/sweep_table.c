/* tools/sweep/sweep_table.c: see sweep_table.h. */
#include "tools/sweep/sweep_table.h"

#include <stdlib.h>
#include <string.h>

#include "tools/page/chart.h"
#include "tools/page/page.h"
#include "tools/page/run_log.h"

/* ------------------------------------------------------------------------------ results */

sweep_result sweep_result_read(const char *path)
{
    sweep_result r = {.state = SWEEP_OPEN,
                      .epochs = NAN,
                      .loss = NAN,
                      .accuracy = NAN,
                      .val_loss = NAN,
                      .val_accuracy = NAN,
                      .seconds = NAN,
                      .samples_per_s = NAN,
                      .reached_s = NAN,
                      .reached_steps = NAN};
    mr_error err = MR_ERROR_INIT;
    run_log log;
    const int rc = run_log_read(&log, path, &err);
    if (rc == MR_OK && log.end && cJSON_IsTrue(json_member(log.end, "complete"))) {
        const bool means_something = !cJSON_IsTrue(json_member(log.end, "simulated"));
        const char *weights = json_text_of(log.end, "weights");
        r.state = SWEEP_DONE;
        r.epochs = json_number_of(log.end, "epochs");
        r.seconds = json_number_of(log.end, "total_seconds");
        r.samples_per_s = json_number_of(log.end, "samples_per_s");
        if (means_something) {
            r.loss = json_number_of(log.end, "loss");
            r.accuracy = json_number_of(log.end, "accuracy");
            r.val_loss = json_number_of(log.end, "val_loss");
            r.val_accuracy = json_number_of(log.end, "val_accuracy");
            r.reached_s = json_number_of(log.end, "reached_seconds");
            r.reached_steps = json_number_of(log.end, "reached_steps");
        }
        snprintf(r.weights, sizeof r.weights, "%s", weights ? weights : "");
    }
    run_log_free(&log);
    return r;
}

/* How far apart in the order of runs two neighbouring values of key k are. */
static uint32_t stride_of(const sweep_plan *p, uint32_t k)
{
    uint32_t stride = 1;
    for (uint32_t i = k + 1; i < p->count; i++) stride *= p->key[i].count;
    return stride;
}

double sweep_speed_up(const sweep_plan *p, const sweep_result *r, uint32_t at)
{
    uint32_t k;
    const sweep_key *devices = sweep_find(p, "devices", &k);
    if (!devices || devices->count < 2 || r[at].state != SWEEP_DONE) return NAN;
    const sweep_result *first = &r[at - sweep_value(p, at, k) * stride_of(p, k)];
    return first->state == SWEEP_DONE ? first->seconds / r[at].seconds : NAN;
}

bool sweep_has_goal(const sweep_plan *p)
{
    uint32_t k;
    return sweep_find(p, "stop-at-accuracy", &k) != NULL;
}

static const char *state_text(const sweep_result *r)
{
    return r->state == SWEEP_DONE ? "done" : r->state == SWEEP_FAILED ? "failed" : "open";
}

/* ------------------------------------------------------------------------------ CSV */

static void put_field(FILE *f, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"') fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

static void put_number(FILE *f, double v)
{
    if (isfinite(v)) fprintf(f, ",%.9g", v);
    else fputc(',', f);
}

typedef struct table {
    const sweep_plan *plan;
    const sweep_result *result;
    uint32_t x; /* of the page */
} table;

enum { FIGURES = 10 };

/* Of run `at`, in the order of the columns; how many. */
static size_t figures_of(const table *t, uint32_t at, double out[FIGURES])
{
    const sweep_result *r = &t->result[at];
    const double all[FIGURES] = {
        r->epochs,    r->accuracy,     r->val_accuracy,  r->loss,
        r->val_loss,  r->seconds,      r->samples_per_s, sweep_speed_up(t->plan, t->result, at),
        r->reached_s, r->reached_steps};
    memcpy(out, all, sizeof all);
    return sweep_has_goal(t->plan) ? FIGURES : FIGURES - 2;
}

static void put_csv(FILE *f, void *context)
{
    const table *t = context;
    const bool has_goal = sweep_has_goal(t->plan);
    char name[SWEEP_NAME_BYTES];
    fputs("run", f);
    for (uint32_t k = 0; k < t->plan->count; k++) {
        fputc(',', f);
        put_field(f, t->plan->key[k].name);
    }
    fputs(",state,epochs_done,acc,val_acc,loss,val_loss,time_s,samples_per_s,speed_up", f);
    fputs(has_goal ? ",reached_s,reached_steps,weights\n" : ",weights\n", f);
    for (uint32_t i = 0; i < t->plan->runs; i++) {
        const sweep_result *r = &t->result[i];
        sweep_name(t->plan, i, name);
        fputs(name, f);
        for (uint32_t k = 0; k < t->plan->count; k++) {
            fputc(',', f);
            put_field(f, sweep_text(t->plan, i, k));
        }
        fprintf(f, ",%s", state_text(r));
        double numbers[FIGURES];
        const size_t count = figures_of(t, i, numbers);
        for (size_t n = 0; n < count; n++) put_number(f, numbers[n]);
        fprintf(f, ",%s\n", r->weights);
    }
}

int sweep_write_csv(const sweep_plan *p, const sweep_result *r, const char *path, mr_error *err)
{
    table t = {p, r, 0};
    return page_write(path, put_csv, &t, err);
}

/* ------------------------------------------------------------------------------ page */

enum { LINES_MOST = 15 };

/* Lines differ in the keys that have several values, but for x and the seed. */
static bool tells_lines_apart(const table *t, uint32_t k)
{
    return k != t->x && t->plan->key[k].count > 1 && strcmp(t->plan->key[k].name, "seed") != 0;
}

static bool same_line(const table *t, uint32_t a, uint32_t b)
{
    for (uint32_t k = 0; k < t->plan->count; k++)
        if (tells_lines_apart(t, k) && sweep_value(t->plan, a, k) != sweep_value(t->plan, b, k)) return false;
    return true;
}

static void label_of(const table *t, uint32_t at, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t k = 0; k < t->plan->count && used < bytes; k++)
        if (tells_lines_apart(t, k)) {
            const int n = snprintf(out + used, bytes - used, "%s%s %s", used ? ", " : "",
                                   t->plan->key[k].name, sweep_text(t->plan, at, k));
            used += n > 0 ? (size_t)n : 0;
        }
    if (!out[0]) snprintf(out, bytes, "all runs");
}

/* Numbers stand where they belong, other values one after the other. */
static double place_of(const table *t, uint32_t value)
{
    const sweep_key *k = &t->plan->key[t->x];
    double number = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        char *end;
        const double v = strtod(k->value[i], &end);
        if (*end || !isfinite(v)) return value;
        if (i == value) number = v;
    }
    return number;
}

typedef double (*figure_of)(const table *t, uint32_t at);
static double accuracy_of(const table *t, uint32_t at) { return 100 * t->result[at].accuracy; }
static double val_accuracy_of(const table *t, uint32_t at) { return 100 * t->result[at].val_accuracy; }
static double seconds_of(const table *t, uint32_t at) { return t->result[at].seconds; }
static double reached_of(const table *t, uint32_t at) { return t->result[at].reached_s; }
static double speed_up_of(const table *t, uint32_t at) { return sweep_speed_up(t->plan, t->result, at); }

/* The mean over the runs of a line that have this value of x. */
static double mean_of(const table *t, uint32_t line, uint32_t value, figure_of figure)
{
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->plan->runs; i++) {
        const double v = figure(t, i);
        if (!isfinite(v) || sweep_value(t->plan, i, t->x) != value || !same_line(t, i, line)) continue;
        sum += v;
        count++;
    }
    return count ? sum / count : NAN;
}

static void put_chart(FILE *f, const table *t, const char *title, const char *unit, figure_of figure)
{
    static const char *const css[LINES_MOST] = {"a",  "b",  "c",  "d",  "c0", "c1", "c2", "c3",
                                                "c4", "c5", "c6", "c7", "c8", "c9", "c10"};
    const uint32_t points = t->plan->key[t->x].count;
    chart_line line[LINES_MOST] = {{0}};
    char label[LINES_MOST][160];
    double *numbers = calloc((size_t)LINES_MOST * points * 2, sizeof *numbers);
    uint32_t count = 0, left_out = 0;
    if (!numbers) return;
    for (uint32_t i = 0; i < t->plan->runs; i++) {
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
        line[count] = (chart_line){.label = label[count], .css = css[count], .x = x, .y = y, .count = points};
        count++;
    }
    const chart c = {
        .title = title, .x = t->plan->key[t->x].name, .y = unit, .from_zero = true, .y_most = NAN};
    if (chart_lines(f, &c, line, count) && left_out)
        page_note(f, "%u more lines are in the table.", left_out);
    free(numbers);
}

static void put_cell(FILE *f, const char *text, bool left)
{
    fputs(left ? "<td class=\"l\">" : "<td>", f);
    page_text(f, text);
    fputs("</td>", f);
}

static void put_table(FILE *f, const table *t)
{
    static const char *const figures[1 + FIGURES] = {
        "state",      "epochs",  "acc",       "val acc",  "loss",
        "val loss",   "time, s", "samples/s", "speed-up", "training to the accuracy, s",
        "steps to it"};
    const size_t shown = sweep_has_goal(t->plan) ? 1 + FIGURES : FIGURES - 1;
    char room[32];
    fputs("<div class=\"wide\"><table><tr>", f);
    for (uint32_t k = 0; k < t->plan->count; k++) {
        fputs("<th class=\"l\">", f);
        page_text(f, t->plan->key[k].name);
        fputs("</th>", f);
    }
    for (size_t i = 0; i < shown; i++) fprintf(f, "<th>%s</th>", figures[i]);
    fputs("</tr>\n", f);
    for (uint32_t i = 0; i < t->plan->runs; i++) {
        const sweep_result *r = &t->result[i];
        fputs("<tr>", f);
        for (uint32_t k = 0; k < t->plan->count; k++) put_cell(f, sweep_text(t->plan, i, k), true);
        put_cell(f, state_text(r), false);
        double numbers[FIGURES];
        const size_t count = figures_of(t, i, numbers);
        for (size_t n = 0; n < count; n++) put_cell(f, page_number(numbers[n], room), false);
        fputs("</tr>\n", f);
    }
    fputs("</table></div>\n", f);
}

static void put_page(FILE *f, void *context)
{
    const table *t = context;
    uint32_t state[3] = {0};
    for (uint32_t i = 0; i < t->plan->runs; i++) state[t->result[i].state]++;
    page_begin(f, "millrace sweep");
    page_note(f, "%s: %u runs, %u done, %u failed, %u open. Lines are means over seeds.", t->plan->data,
              t->plan->runs, state[SWEEP_DONE], state[SWEEP_FAILED], state[SWEEP_OPEN]);
    fputs("<div class=\"pair\">\n", f);
    put_chart(f, t, "Time", "s", seconds_of);
    put_chart(f, t, "Speed-up", "times the first devices", speed_up_of);
    if (sweep_has_goal(t->plan)) put_chart(f, t, "Training to the accuracy", "s", reached_of);
    put_chart(f, t, "Validation accuracy", "%", val_accuracy_of);
    put_chart(f, t, "Training accuracy", "%", accuracy_of);
    fputs("</div>\n", f);
    page_heading(f, "Runs");
    put_table(f, t);
    page_end(f);
}

int sweep_write_page(const sweep_plan *p, const sweep_result *r, uint32_t x, const char *path, mr_error *err)
{
    table t = {p, r, x};
    return page_write(path, put_page, &t, err);
}
