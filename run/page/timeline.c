/* run/page/timeline.c: see timeline.h. The drawing is a picture of its own inside the page's, stretched
 * along the time alone; a script changes which part of the time it shows. Without the script it shows all of
 * it. */
#include "run/page/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/page/page.h"

enum { ROW_PX = 22, LEFT_PX = 190, WIDTH_PX = 1100, AXIS_PX = 24, TIMES = 5, NAMES_MOST = 128 };

/* ---- spans ---- */

mri_timeline_span *mri_timeline_of_trace(const mr_trace_entry *entries, size_t count)
{
    mri_timeline_span *out = malloc((count ? count : 1) * sizeof *out);
    for (size_t i = 0; out && i < count; i++)
        out[i] =
            (mri_timeline_span){.track = entries[i].track,
                                .name = entries[i].name,
                                .from_ms = 1e-6 * (double)entries[i].start_ns,
                                .to_ms = 1e-6 * (double)entries[i].end_ns,
                                .batch = entries[i].batch == MR_NOWHERE ? NAN : (double)entries[i].batch};
    return out;
}

typedef struct named_track {
    double tid;
    const char *name;
} named_track;

static size_t find_tracks(const cJSON *events, named_track *out)
{
    size_t count = 0;
    for (const cJSON *e = events; e && count < MRI_TIMELINE_TRACKS_MOST; e = e->next) {
        const char *name = mri_json_text_of(e, "name");
        const char *is = mri_json_text_of(mri_json_member(e, "args"), "name");
        if (name && is && strcmp(name, "thread_name") == 0)
            out[count++] = (named_track){mri_json_number_of(e, "tid"), is};
    }
    return count;
}

static const char *track_of(const named_track *tracks, size_t count, double tid)
{
    for (size_t i = 0; i < count; i++)
        if (tracks[i].tid == tid) return tracks[i].name;
    return "other";
}

mri_timeline_span *mri_timeline_of_json(const cJSON *trace, size_t *count)
{
    named_track tracks[MRI_TIMELINE_TRACKS_MOST];
    const cJSON *list = cJSON_IsArray(trace) ? trace : mri_json_member(trace, "traceEvents");
    const cJSON *events = cJSON_IsArray(list) ? list->child : NULL;
    const size_t track_count = find_tracks(events, tracks);
    size_t room = 1;
    for (const cJSON *e = events; e; e = e->next) room++;
    mri_timeline_span *out = malloc(room * sizeof *out);
    *count = 0;
    for (const cJSON *e = events; out && e; e = e->next) {
        const char *ph = mri_json_text_of(e, "ph"), *name = mri_json_text_of(e, "name");
        const double from = mri_json_number_of(e, "ts"), length = mri_json_number_of(e, "dur");
        if (!ph || strcmp(ph, "X") != 0 || !name || !isfinite(from) || !isfinite(length)) continue;
        out[(*count)++] = (mri_timeline_span){track_of(tracks, track_count, mri_json_number_of(e, "tid")),
                                              name, 1e-3 * from, 1e-3 * (from + length),
                                              mri_json_number_of(mri_json_member(e, "args"), "batch")};
    }
    return out;
}

static int by_time(const void *a, const void *b)
{
    const mri_timeline_span *x = a, *y = b;
    return (x->from_ms > y->from_ms) - (x->from_ms < y->from_ms);
}

/* ---- rows ---- */

typedef struct rows {
    const char *name[MRI_TIMELINE_TRACKS_MOST];
    int count;
} rows;

static int row_of(rows *r, const char *track, bool add)
{
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->name[i], track) == 0) return i;
    if (!add || r->count == MRI_TIMELINE_TRACKS_MOST) return -1;
    r->name[r->count] = track;
    return r->count++;
}

/* Where a kind of thread stands: along a batch's way. */
static int rank_of(const char *track)
{
    static const char *const first[] = {"read", "worker", "stag", "copy", "stall", "compute"};
    for (int i = 0; i < (int)(sizeof first / sizeof first[0]); i++)
        if (strncmp(track, first[i], strlen(first[i])) == 0) return i;
    return 99;
}

static int by_way(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    const int by_rank = rank_of(x) - rank_of(y);
    if (by_rank) return by_rank;
    return strlen(x) != strlen(y) ? (strlen(x) > strlen(y)) - (strlen(x) < strlen(y)) : strcmp(x, y);
}

/* ---- the drawing ---- */

/* The same name, the same colour. */
static unsigned hue_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned hue;
    } usual[] = {{"read", 30},   {"decode", 210}, {"copy", 172},    {"compute", 120},
                 {"host", 95},   {"room", 48},    {"cores", 0},     {"quota", 345},
                 {"large", 262}, {"memory", 310}, {"blocked", 228}, {"evaluate", 150}};
    unsigned h = 5381;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (strcmp(usual[i].name, name) == 0) return usual[i].hue;
    for (; *name; name++) h = h * 33 + (unsigned char)*name;
    return h % 360;
}

static void put_span(FILE *f, const mri_timeline_span *s, int row, double from, double scale)
{
    const double width = (s->to_ms - s->from_ms) * scale;
    fprintf(f, "<rect x=\"%.3f\" y=\"%d\" width=\"%.3f\" height=\"%d\" fill=\"hsl(%u,55%%,55%%)\"><title>",
            (s->from_ms - from) * scale, row * ROW_PX + 3, width > 0.2 ? width : 0.2, ROW_PX - 6,
            hue_of(s->name));
    mri_page_text(f, s->track);
    fputs(": ", f);
    mri_page_text(f, s->name);
    if (isfinite(s->batch)) fprintf(f, ", batch %.0f", s->batch);
    fprintf(f, ", %.3f ms</title></rect>\n", s->to_ms - s->from_ms);
}

static void put_times(FILE *f, const rows *r, double length)
{
    for (int i = 0; i <= TIMES; i++) {
        const char *anchor = i == 0 ? "start" : i == TIMES ? "end" : "middle";
        const double x = LEFT_PX + (double)i * WIDTH_PX / TIMES;
        fprintf(
            f,
            "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/><text class=\"at\" x=\"%.1f\" "
            "y=\"%d\" text-anchor=\"%s\">%.4g ms</text>\n",
            x, x, r->count * ROW_PX, x, r->count * ROW_PX + 17, anchor, length * i / TIMES);
    }
}

static const char script[] =
    "<script>for(const e of document.querySelectorAll('.time')){const v=e.querySelector('svg.plot'),"
    "W=+e.dataset.width,L=+e.dataset.ms;let a=0,w=W;\n"
    "const show=()=>{w=Math.min(W,Math.max(W/5e4,w));a=Math.min(W-w,Math.max(0,a));"
    "v.setAttribute('viewBox',a+' 0 '+w+' '+e.dataset.height);"
    "e.querySelectorAll('.at').forEach((t,i,all)=>{t.textContent=+(L*(a+w*i/(all.length-1))/"
    "W).toPrecision(5)+' ms'})};\n"
    "const by=(k,at)=>{a+=at*w*(1-k);w*=k;show()};const at=m=>{const b=v.getBoundingClientRect(),"
    "p=e.querySelector('svg').getBoundingClientRect(),l=p.left+p.width*" /* the words are in front */
    "+e.dataset.left/(W+ +e.dataset.left);return Math.min(1,Math.max(0,(m.clientX-l)/(p.right-l)))};\n"
    "e.querySelector('svg').addEventListener('wheel',m=>{m.preventDefault();by(m.deltaY<0?0.8:1.25,at(m))},"
    "{passive:false});let d=null;const s=e.querySelector('svg');"
    "s.addEventListener('pointerdown',m=>{d=[at(m),a]});window.addEventListener('pointermove',m=>{if(d){"
    "a=d[1]-(at(m)-d[0])*w;show()}});window.addEventListener('pointerup',()=>{d=null});\n"
    "const b=(t,k)=>{const n=document.createElement('button');n.textContent=t;n.onclick=k;"
    "e.querySelector('.zoom').append(n,' ')};b('+',()=>by(0.5,0.5));b('\\u2212',()=>by(2,0.5));"
    "b('all',()=>{a=0;w=W;show()})}</script>\n";

/* Write a name; a long one is cut after its second word ("compute sim:0"); the table has it in full. */
static void put_short(FILE *f, const char *name)
{
    enum { SHOWN = 19 };
    char text[SHOWN + 1];
    if (strlen(name) <= SHOWN) {
        mri_page_text(f, name);
        return;
    }
    const char *first = strchr(name, ' '), *second = first ? strchr(first + 1, ' ') : NULL;
    size_t n = second && second - name < SHOWN ? (size_t)(second - name) : SHOWN - 1;
    while (n && ((unsigned char)name[n] & 0xc0) == 0x80) n--; /* not inside of a letter */
    snprintf(text, sizeof text, "%.*s", (int)n, name);
    mri_page_text(f, text);
    fputs("&hellip;", f);
}

static void put_drawing(FILE *f, const rows *r, const mri_timeline_span *spans, size_t count, double from,
                        double to)
{
    const double length = to > from ? to - from : 1e-3;
    fprintf(f,
            "<div class=\"time\" data-width=\"%d\" data-left=\"%d\" data-height=\"%d\" data-ms=\"%.6f\">"
            "<p class=\"zoom\"></p><div class=\"wide\"><svg viewBox=\"0 0 %d %d\" role=\"img\">\n",
            WIDTH_PX, LEFT_PX, r->count * ROW_PX, length, LEFT_PX + WIDTH_PX + 4,
            r->count * ROW_PX + AXIS_PX);
    put_times(f, r, length);
    for (int i = 0; i < r->count; i++) {
        fprintf(f, "<svg x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\"><title>", i * ROW_PX, LEFT_PX - 8,
                ROW_PX);
        mri_page_text(f, r->name[i]);
        fputs("</title><text x=\"6\" y=\"16\">", f);
        put_short(f, r->name[i]);
        fputs("</text></svg>\n", f);
    }
    fprintf(f,
            "<svg class=\"plot\" x=\"%d\" y=\"0\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "preserveAspectRatio=\"none\">\n",
            LEFT_PX, WIDTH_PX, r->count * ROW_PX, WIDTH_PX, r->count * ROW_PX);
    for (size_t i = 0; i < count; i++) {
        rows all = *r;
        const int row = row_of(&all, spans[i].track, false);
        if (row >= 0) put_span(f, &spans[i], row, from, WIDTH_PX / length);
    }
    fprintf(f, "</svg></svg></div></div>\n%s", script);
}

/* ---- the table ---- */

typedef struct total {
    const char *track, *name;
    size_t count;
    double ms, longest_ms;
} total;

static void add_up(total *t, size_t *count, const mri_timeline_span *s)
{
    const double ms = s->to_ms - s->from_ms;
    size_t i = 0;
    while (i < *count && (strcmp(t[i].track, s->track) != 0 || strcmp(t[i].name, s->name) != 0)) i++;
    if (i == NAMES_MOST) return;
    if (i == *count) t[(*count)++] = (total){.track = s->track, .name = s->name};
    t[i].count++;
    t[i].ms += ms;
    t[i].longest_ms = fmax(t[i].longest_ms, ms);
}

static void put_table(FILE *f, const rows *r, const mri_timeline_span *spans, size_t count, double length)
{
    total t[NAMES_MOST];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) add_up(t, &n, &spans[i]);
    fputs("<div class=\"wide\"><table><tr><th>who<th class=\"l\">what<th>times<th>ms<th>% of the "
          "time<th>longest ms\n",
          f);
    for (int row = 0; row < r->count; row++)
        for (size_t i = 0; i < n; i++) {
            if (strcmp(t[i].track, r->name[row]) != 0) continue;
            fputs("<tr><td>", f);
            mri_page_text(f, t[i].track);
            fputs("<td class=\"l\">", f);
            mri_page_text(f, t[i].name);
            fprintf(f, "<td>%zu<td>%.1f<td>%.1f<td>%.3f\n", t[i].count, t[i].ms,
                    length > 0 ? 100 * t[i].ms / length : 0, t[i].longest_ms);
        }
    fputs("</table></div>\n", f);
    if (n == NAMES_MOST) mri_page_note(f, "Only the first %d kinds of spans are in the table.", NAMES_MOST);
}

void mri_timeline_put(FILE *f, mri_timeline_span *spans, size_t count)
{
    rows r = {.count = 0};
    if (!count) return;
    qsort(spans, count, sizeof *spans, by_time);
    const size_t drawn = count < MRI_TIMELINE_SPANS_MOST ? count : MRI_TIMELINE_SPANS_MOST;
    const mri_timeline_span *const at = spans + (count - drawn) / 2;
    double to = at[0].to_ms;
    for (size_t i = 0; i < drawn; i++) {
        row_of(&r, at[i].track, true);
        to = fmax(to, at[i].to_ms);
    }
    qsort(r.name, (size_t)r.count, sizeof r.name[0], by_way);
    if (drawn < count)
        mri_page_note(f, "%zu of %zu spans, those in the middle: %.4g ms of %.4g.", drawn, count,
                      to - at[0].from_ms, spans[count - 1].from_ms - spans[0].from_ms);
    put_drawing(f, &r, at, drawn, at[0].from_ms, to);
    put_table(f, &r, at, drawn, to - at[0].from_ms);
}
