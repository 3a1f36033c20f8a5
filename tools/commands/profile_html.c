/* tools/commands/profile_html.c: the profile as one self-contained HTML page: the tables, and a timeline of
 * the first traced batches drawn as SVG, one row per thread or stream. See profile_report.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/commands/profile_report.h"

enum { ROWS_MOST = 48, SPANS_MOST = 4000, ROW_PX = 22, LEFT_PX = 230, WIDTH_PX = 1100 };
#define SHOWN_NS 200000000u /* of the run's middle: the start is all warm-up */

static void put_escaped(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') fputs("&lt;", f);
        else if (*text == '>') fputs("&gt;", f);
        else if (*text == '&') fputs("&amp;", f);
        else if (*text == '"') fputs("&quot;", f);
        else fputc(*text, f);
    }
}

/* The same name, the same colour. */
static unsigned hue_of(const char *name)
{
    unsigned h = 5381;
    for (; *name; name++) h = h * 33 + (unsigned char)*name;
    return h % 360;
}

static int row_of(const char *track, const char **rows, int *count)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(rows[i], track) == 0) return i;
    if (*count == ROWS_MOST) return -1;
    rows[*count] = track;
    return (*count)++;
}

static void put_span(FILE *f, const mr_trace_entry *e, int row, uint64_t from)
{
    const double scale = (double)WIDTH_PX / (double)SHOWN_NS;
    const double x = e->start_ns > from ? (double)(e->start_ns - from) * scale : 0;
    double end = (double)(e->end_ns - from) * scale;
    if (end > WIDTH_PX) end = WIDTH_PX;
    fprintf(f, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%u,60%%,60%%)\"><title>",
            LEFT_PX + x, row * ROW_PX + 2, end - x > 0.3 ? end - x : 0.3, ROW_PX - 4, hue_of(e->name));
    put_escaped(f, e->name);
    fprintf(f, ", batch %" PRIu64 ", %.3f ms</title></rect>\n", e->batch,
            (double)(e->end_ns - e->start_ns) * 1e-6);
}

static bool is_shown(const mr_trace_entry *e, uint64_t from)
{
    return e->end_ns >= from && e->start_ns <= from + SHOWN_NS;
}

static void put_timeline(FILE *f, const mr_trace_entry *entries, size_t count)
{
    const char *rows[ROWS_MOST];
    int row_count = 0, spans = 0;
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].start_ns < first) first = entries[i].start_ns;
        if (entries[i].end_ns > last) last = entries[i].end_ns;
    }
    if (count == 0) return;
    const uint64_t from = last - first > 2 * SHOWN_NS ? first + (last - first) / 2 : first;
    for (size_t i = 0; i < count; i++)
        if (is_shown(&entries[i], from)) row_of(entries[i].track, rows, &row_count);
    fprintf(f,
            "<h2>Timeline, %u ms with prefetch on</h2>\n<svg width=\"%d\" height=\"%d\" font-size=\"11\">\n",
            SHOWN_NS / 1000000u, LEFT_PX + WIDTH_PX, row_count * ROW_PX);
    for (size_t i = 0; i < count && spans < SPANS_MOST; i++) {
        if (!is_shown(&entries[i], from)) continue;
        const int row = row_of(entries[i].track, rows, &row_count);
        if (row < 0) continue;
        put_span(f, &entries[i], row, from);
        spans++;
    }
    for (int i = 0; i < row_count; i++) {
        fprintf(f, "<text x=\"0\" y=\"%d\">", i * ROW_PX + 15);
        put_escaped(f, rows[i]);
        fputs("</text>\n", f);
    }
    fputs("</svg>\n", f);
}

static void put_side(FILE *f, const char *name, const mr_report *r)
{
    fprintf(f, "<tr><td>%s<td>%.0f<td>%.3f<td>%.3f<td>%.1f<td>%.1f<td>%.1f\n", name, r->samples_per_s,
            r->step_ms, r->step_ms_mad, r->wait_ms, r->exposed_ms, 100 * r->stall_fraction);
}

static void put_page(FILE *f, const profile_result *p, const mr_trace_entry *entries, size_t count)
{
    const double least = p->loader.samples_per_s < p->trainer.samples_per_s ? p->loader.samples_per_s
                                                                            : p->trainer.samples_per_s;
    fputs("<!doctype html><meta charset=\"utf-8\"><title>millrace profile</title>\n<style>body{font:14px "
          "sans-serif;margin:2em}"
          "td,th{padding:.2em "
          "1em;text-align:right}td:first-child,th:first-child{text-align:left}</style>\n<h1>millrace "
          "profile</h1>\n<p>",
          f);
    put_escaped(f, p->model);
    fputs(" on ", f);
    put_escaped(f, p->data);
    fprintf(f, ", batch %u, seed %" PRIu64 ", %u &times; ", p->batch, p->seed, p->replicas);
    put_escaped(f, p->device);
    fprintf(f,
            ", %u workers, %s</p>\n<table><tr><th>prefetch<th>samples/s<th>step ms<th>MAD<th>wait "
            "ms<th>exposed ms<th>stall %%\n",
            p->workers, p->io);
    put_side(f, "off", &p->off.report);
    put_side(f, "on", &p->on.report);
    fprintf(f,
            "</table>\n<h2>Ceilings</h2>\n<table><tr><th>what<th>samples/s\n<tr><td>loader "
            "alone<td>%.0f\n<tr><td>trainer alone<td>%.0f\n"
            "<tr><td>the slower of the two<td>%.0f\n<tr><td>real data, prefetch on<td>%.0f\n</table>\n<p><b>",
            p->loader.samples_per_s, p->trainer.samples_per_s, least, p->on.report.samples_per_s);
    put_escaped(f, p->on.report.verdict);
    fputs("</b></p>\n", f);
    put_timeline(f, entries, count);
}

int profile_write_html(const profile_result *p, const mr_trace *trace, const char *path, mr_error *err)
{
    mr_trace_entry *entries = NULL;
    size_t count = 0;
    if (trace && mr_trace_entries(trace, &entries, &count) != MR_OK)
        return mr_error_set(err, MR_ENOMEM, "out of memory for the timeline");
    FILE *f = fopen(path, "we");
    if (f) put_page(f, p, entries, count);
    bool ok = f && !ferror(f);
    if (f && fclose(f) != 0) ok = false;
    free(entries);
    if (ok) return MR_OK;
    mr_error_sys(err, errno, "cannot write the report");
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
}
