/* run/page/chart.c: see chart.h. */
#include "run/page/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/page/page.h"

/* There is room for words of 18 units, which a narrow window has (page.c). */
enum { WIDTH = 640, HEIGHT = 240, LEFT = 80, RIGHT = 14, TOP = 16, BOTTOM = 48, TICKS = 5 };
enum { LETTER = 5, BAR_MOST = 90, LABELS_MOST = 6 }; /* LETTER: half of one, or a little more */

typedef struct axis {
    double from, to, step;
} axis;

typedef struct frame {
    FILE *f;
    axis x, y;
} frame;

/* 1, 2 or 5 of a power of ten, so that there are about TICKS of them. */
static axis make_axis(double from, double to)
{
    if (!(to > from)) {
        const double room = from != 0 ? fabs(from) * 0.05 : 1;
        to = from + room;
        from -= from > 0 || from < 0 ? room : 0;
    }
    const double rough = (to - from) / TICKS, power = pow(10, floor(log10(rough))), times = rough / power;
    const double step = power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
    return (axis){floor(from / step) * step, ceil(to / step) * step, step};
}

static double x_of(const frame *c, double x)
{
    return LEFT + (x - c->x.from) / (c->x.to - c->x.from) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const frame *c, double y)
{
    return TOP + (c->y.to - y) / (c->y.to - c->y.from) * (HEIGHT - TOP - BOTTOM);
}

static void begin(frame *c, const mri_chart *about)
{
    fputs("<figure class=\"chart\"><figcaption>", c->f);
    mri_page_text(c->f, about->title);
    fputs(", ", c->f);
    mri_page_text(c->f, about->y);
    fprintf(c->f, "</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, HEIGHT);
    for (double at = c->y.from; at <= c->y.to + c->y.step / 2; at += c->y.step) {
        const double shown = fabs(at) < c->y.step / 1e6 ? 0 : at;
        fprintf(c->f,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%.6g</text>\n",
                LEFT, WIDTH - RIGHT, y_of(c, at), y_of(c, at), LEFT - 6, y_of(c, at) + 5, shown);
    }
}

static void end(frame *c, const mri_chart *about)
{
    fprintf(c->f,
            "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/><text x=\"%d\" y=\"%d\" "
            "text-anchor=\"middle\">",
            LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT - BOTTOM, (LEFT + WIDTH) / 2, HEIGHT - 6);
    mri_page_text(c->f, about->x);
    fputs("</text>\n</svg>\n", c->f);
}

static void x_tick(const frame *c, double at, const char *text)
{
    const double half = LETTER * (double)strlen(text), most = WIDTH - 2 - half;
    fprintf(c->f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
            fmin(fmax(x_of(c, at), LEFT - 5 + half), most), HEIGHT - BOTTOM + 18);
    mri_page_text(c->f, text);
    fputs("</text>\n", c->f);
}

/* ---- lines ---- */

static bool is_point(const mri_chart_line *l, size_t i) { return isfinite(l->x[i]) && isfinite(l->y[i]); }

static bool find_range(const mri_chart *about, const mri_chart_line *lines, size_t count, axis *x, axis *y)
{
    bool found = false;
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < lines[k].count; i++) {
            if (!is_point(&lines[k], i)) continue;
            const double px = lines[k].x[i], py = lines[k].y[i];
            if (!found) *x = (axis){px, px, 0}, *y = (axis){py, py, 0};
            found = true;
            x->from = fmin(x->from, px), x->to = fmax(x->to, px);
            y->from = fmin(y->from, py), y->to = fmax(y->to, py);
        }
    if (x->from < 1 || !(x->to > x->from)) x->from = fmin(0, x->from); /* the beginning of a run */
    if (about->from_zero) y->from = fmin(0, y->from);
    if (isfinite(about->y_most)) y->to = about->y_most;
    return found;
}

static void put_marks(const frame *c, const mri_chart_line *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (!is_point(l, i)) continue;
        fprintf(c->f, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"><title>", l->css,
                x_of(c, l->x[i]), y_of(c, l->y[i]));
        fprintf(c->f, "%.5g: %.5g</title></circle>\n", l->x[i], l->y[i]);
    }
}

/* Each `by` points as their mean. */
static void put_line(const frame *c, const mri_chart_line *l)
{
    const size_t by = (l->count + MRI_CHART_POINTS_MOST - 1) / MRI_CHART_POINTS_MOST;
    double x = 0, y = 0, last_x = 0, last_y = 0;
    size_t points = 0, drawn = 0;
    fprintf(c->f, "<polyline class=\"%s%s\" points=\"", l->css, l->dashed ? " dash" : "");
    for (size_t i = 0; i < l->count; i++) {
        if (is_point(l, i)) x += l->x[i], y += l->y[i], points++;
        if ((i + 1) % by && i + 1 < l->count) continue;
        if (points) {
            last_x = x_of(c, x / (double)points), last_y = y_of(c, y / (double)points);
            fprintf(c->f, "%.1f,%.1f ", last_x, last_y);
            drawn++;
        }
        x = y = 0;
        points = 0;
    }
    fputs("\"/>\n", c->f);
    if (drawn == 1)
        fprintf(c->f, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", l->css, last_x, last_y);
    else if (l->marked && l->count <= MRI_CHART_MARKS_MOST) put_marks(c, l);
}

static void put_legend(FILE *f, const mri_chart_line *lines, size_t count)
{
    size_t by = 1;
    fputs("<p>", f);
    for (size_t k = 0; k < count; k++) {
        if (!lines[k].count) continue;
        mri_page_key(f, lines[k].css, lines[k].label);
        const size_t mine = (lines[k].count + MRI_CHART_POINTS_MOST - 1) / MRI_CHART_POINTS_MOST;
        if (mine > by) by = mine;
    }
    fputs("</p>\n", f);
    if (by > 1) mri_page_note(f, "Each point is the mean of up to %zu.", by);
    fputs("</figure>\n", f);
}

bool mri_chart_lines(FILE *f, const mri_chart *about, const mri_chart_line *lines, size_t count)
{
    frame c = {.f = f};
    char text[32];
    if (!find_range(about, lines, count, &c.x, &c.y)) return false;
    const axis ticks = make_axis(c.x.from, c.x.to);
    if (!(c.x.to > c.x.from)) c.x = ticks;
    c.y = make_axis(c.y.from, c.y.to);
    begin(&c, about);
    for (double at = ticks.from; at <= ticks.to + ticks.step / 2; at += ticks.step) {
        if (at < c.x.from - ticks.step / 1e6 || at > c.x.to + ticks.step / 1e6) continue;
        snprintf(text, sizeof text, "%.6g", fabs(at) < ticks.step / 1e6 ? 0 : at);
        x_tick(&c, at, text);
    }
    for (size_t k = 0; k < count; k++) put_line(&c, &lines[k]);
    end(&c, about);
    put_legend(f, lines, count);
    return true;
}

/* ---- bars ---- */

/* The mean over bars [from, to). */
static double mean_part(const double *value, size_t part_count, size_t part, size_t from, size_t to)
{
    double sum = 0;
    for (size_t b = from; b < to; b++)
        if (isfinite(value[b * part_count + part])) sum += value[b * part_count + part];
    return sum / (double)(to - from);
}

static double highest(const double *value, size_t part_count, size_t bar_count, size_t by)
{
    double most = 0;
    for (size_t b = 0; b < bar_count; b += by) {
        double sum = 0;
        for (size_t p = 0; p < part_count; p++)
            sum += mean_part(value, part_count, p, b, b + by < bar_count ? b + by : bar_count);
        most = fmax(most, sum);
    }
    return most;
}

static void put_bar(const frame *c, const mri_chart_part *parts, size_t part_count, const double *value,
                    const char *label, size_t from, size_t to, double left, double width)
{
    double sum = 0;
    for (size_t p = 0; p < part_count; p++) {
        const double part = mean_part(value, part_count, p, from, to);
        if (part <= 0) continue;
        const double top = y_of(c, fmin(sum + part, c->y.to)), bottom = y_of(c, fmin(sum, c->y.to));
        fprintf(c->f, "<rect class=\"v %s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>",
                parts[p].css, left, top, width, bottom - top);
        mri_page_text(c->f, label);
        fputs(": ", c->f);
        mri_page_text(c->f, parts[p].label);
        fprintf(c->f, " %.4g</title></rect>\n", part);
        sum += part;
    }
}

bool mri_chart_bars(FILE *f, const mri_chart *about, const mri_chart_part *parts, size_t part_count,
                    const double *value, const char *const *label, size_t bar_count)
{
    const size_t by = (bar_count + MRI_CHART_BARS_MOST - 1) / MRI_CHART_BARS_MOST;
    if (!bar_count) return false;
    const double most = isfinite(about->y_most) ? about->y_most : highest(value, part_count, bar_count, by);
    if (!(most > 0)) return false;
    frame c = {.f = f, .x = {0, (double)bar_count, 1}, .y = make_axis(0, most)};
    const double wide = x_of(&c, (double)by) - x_of(&c, 0),
                 width = wide > 4 ? fmin(wide - fmin(wide * 0.2, 12), BAR_MOST) : wide;
    const size_t words = bar_count / by / LABELS_MOST + 1;
    begin(&c, about);
    for (size_t b = 0; b < bar_count; b += by) {
        const size_t to = b + by < bar_count ? b + by : bar_count;
        put_bar(&c, parts, part_count, value, label[b], b, to, x_of(&c, (double)b) + (wide - width) / 2,
                width);
        if (b / by % words == 0) x_tick(&c, (double)b + 0.5 * (double)by, label[b]);
    }
    end(&c, about);
    fputs("<p>", f);
    for (size_t p = 0; p < part_count; p++)
        if (part_count > 1 && mean_part(value, part_count, p, 0, bar_count) > most / 500)
            mri_page_key(f, parts[p].css, parts[p].label);
    fputs("</p>\n", f);
    if (by > 1) mri_page_note(f, "Each bar is the mean of up to %zu.", by);
    fputs("</figure>\n", f);
    return true;
}
