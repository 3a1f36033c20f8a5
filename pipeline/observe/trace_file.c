/* pipeline/observe/trace_file.c: writes a trace, or the traces of several processes, as a file.
 *
 * The Chrome trace event format ("X" complete events, one thread row per track), which Perfetto and
 * chrome://tracing open. Its "otherData" describes the clock: the origin of ts, and the wall clock at two
 * moments of CLOCK_MONOTONIC. With that the trace can be aligned with records of other tools that use either
 * clock (tools/scripts/nsys_correlate.py). */
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/storage/output.h"
#include "pipeline/observe/trace_pack.h"

enum { TRACKS_APART = 1000 }; /* numbers of tracks of one process and the next */

typedef char name[MRI_TRACE_NAME];

/* Into a pack. */
typedef struct view {
    const mr_trace_part *part;
    const mri_trace_head *head;
    const mri_trace_span *spans;
    const name *tracks, *names;
} view;

static bool all_end(const name *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (names[i][MRI_TRACE_NAME - 1] != '\0') return false;
    return true;
}

static bool is_pack(view *v, const void *pack, size_t bytes)
{
    const mri_trace_head *h = pack;
    if (bytes < sizeof *h || h->magic != MRI_TRACE_MAGIC || h->host[sizeof h->host - 1] != '\0') return false;
    if (h->track_count > MRI_TRACE_TRACKS || h->name_count > MRI_TRACE_NAMES) return false;
    const uint64_t names = (uint64_t)(h->track_count + h->name_count) * sizeof(name);
    if (bytes - sizeof *h < names || h->span_count != (bytes - sizeof *h - names) / sizeof *v->spans)
        return false;
    if (bytes != sizeof *h + h->span_count * sizeof *v->spans + names) return false;
    v->head = h;
    v->spans = (const mri_trace_span *)(h + 1);
    v->tracks = (const name *)(v->spans + h->span_count);
    v->names = v->tracks + h->track_count;
    for (uint64_t i = 0; i < h->span_count; i++)
        if (v->spans[i].name >= h->name_count ||
            (v->spans[i].track >= h->track_count && v->spans[i].track != UINT32_MAX))
            return false;
    return all_end(v->tracks, h->track_count + h->name_count);
}

/* ---- one clock ---- */

/* The time on the first part's clock, by the line through the two moments. */
static uint64_t on_our_clock(const mr_trace_part *p, uint64_t ns)
{
    const double span = (double)(int64_t)(p->at_ns[1] - p->at_ns[0]);
    const double share = span > 0 ? (double)(int64_t)(ns - p->at_ns[0]) / span : 0;
    const double more = share * (double)(p->shift_ns[1] - p->shift_ns[0]);
    return ns + (uint64_t)p->shift_ns[0] + (uint64_t)(int64_t)more;
}

static uint64_t begin_of(const view *v, uint32_t count)
{
    uint64_t base_ns = UINT64_MAX;
    for (uint32_t k = 0; k < count; k++)
        for (uint64_t i = 0; i < v[k].head->span_count; i++)
            base_ns = mri_min_u64(base_ns, on_our_clock(v[k].part, v[k].spans[i].start_ns));
    return base_ns == UINT64_MAX ? v[0].head->anchors[0].monotonic_ns : base_ns;
}

/* ---- the file ---- */

static void write_text(FILE *f, const char *s)
{
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (c < 0x20) fprintf(f, "\\u%04x", c);
        else fputc(c, f);
    }
}

static void write_anchor(FILE *f, const mri_trace_anchor *a)
{
    fprintf(f, "{\"monotonic_ns\":%" PRIu64 ",\"realtime_ns\":%" PRIu64 ",\"within_ns\":%" PRIu64 "}",
            a->monotonic_ns, a->realtime_ns, a->within_ns);
}

static void write_process(FILE *f, const view *v, uint32_t k)
{
    const mr_trace_part *p = v->part;
    fprintf(f, "%s{\"name\":\"", k ? "," : "");
    write_text(f, p->name);
    fprintf(f, "\",\"host\":\"");
    write_text(f, v->head->host);
    fprintf(f,
            "\",\"pid\":%" PRId64 ",\"dropped_spans\":%" PRIu64 ",\"shift_ns\":[%" PRId64 ",%" PRId64
            "],\"within_ns\":%" PRIu64 "}",
            v->head->pid, v->head->dropped, p->shift_ns[0], p->shift_ns[1], p->within_ns);
}

/* The facts needed to align the trace with other records. */
static void write_about(FILE *f, const view *v, uint32_t count, uint64_t base_ns)
{
    const mri_trace_head *h = v->head;
    fprintf(f,
            "\"otherData\":{\"dropped_spans\":%" PRIu64 ",\"clock\":\"CLOCK_MONOTONIC\",\"base_ns\":%" PRIu64
            ",\"anchors\":[",
            h->dropped, base_ns);
    write_anchor(f, &h->anchors[0]);
    fputc(',', f);
    write_anchor(f, &h->anchors[1]);
    fprintf(f, "],\"pid\":%" PRId64 ",\"host\":\"", h->pid);
    write_text(f, h->host);
    fputc('"', f);
    if (h->steps) fprintf(f, ",\"first_batch\":%" PRIu64 ",\"batches\":%" PRIu64, h->first, h->steps);
    if (v->part->name) {
        fputs(",\"processes\":[", f);
        for (uint32_t k = 0; k < count; k++) write_process(f, &v[k], k);
        fputc(']', f);
    }
    fputc('}', f);
}

static void write_name(FILE *f, bool first, uint32_t pid, uint32_t tid, const char *what, const char *prefix,
                       const char *text)
{
    fprintf(f, "%s\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":\"",
            first ? "" : ",", pid, tid, what);
    if (prefix) {
        write_text(f, prefix);
        fputc(' ', f);
    }
    write_text(f, text);
    fprintf(f, "\"}}");
}

static void write_part(FILE *f, const view *v, uint32_t k, uint64_t base_ns)
{
    const uint32_t tid = k * TRACKS_APART;
    const char *process = v->part->name;
    bool first = k == 0;
    if (process) {
        write_name(f, first, k + 1, tid, "process_name", NULL, process);
        first = false;
    }
    for (uint32_t i = 0; i < v->head->track_count; i++, first = false)
        write_name(f, first, k + 1, tid + i + 1, "thread_name", process, v->tracks[i]);
    for (uint64_t i = 0; i < v->head->span_count; i++, first = false) {
        const mri_trace_span *s = &v->spans[i];
        const uint64_t start = on_our_clock(v->part, s->start_ns) - base_ns,
                       length = s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0;
        fprintf(f, "%s\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"name\":\"", first ? "" : ",", k + 1,
                tid + (s->track == UINT32_MAX ? 0 : s->track + 1));
        write_text(f, v->names[s->name]);
        fprintf(f, "\",\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u,\"args\":{", start / 1000,
                (unsigned)(start % 1000), length / 1000, (unsigned)(length % 1000));
        if (s->batch != MR_NOWHERE) fprintf(f, "\"batch\":%" PRIu64, s->batch);
        fprintf(f, "}}");
    }
}

static void write_events(FILE *f, const view *v, uint32_t count)
{
    const uint64_t base_ns = begin_of(v, count);
    fputs("{\"displayTimeUnit\":\"ms\",", f);
    write_about(f, v, count, base_ns);
    fputs(",\"traceEvents\":[", f);
    for (uint32_t k = 0; k < count; k++) write_part(f, &v[k], k, base_ns);
    fprintf(f, "\n]}\n");
}

int mr_trace_write_parts(const mr_trace_part *parts, uint32_t count, const char *path, mr_error *err)
{
    if (count) MRI_GIVEN(err, parts);
    MRI_GIVEN(err, path);
    const mri_output_rules rules = {.force = true};
    mri_output *o = NULL;
    view *views = calloc(count ? count : 1, sizeof *views);
    int rc = views ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for the trace");
    if (rc == MR_OK && count == 0) rc = mr_error_set(err, MR_EINVAL, "no trace to write");
    for (uint32_t k = 0; rc == MR_OK && k < count; k++) {
        views[k].part = &parts[k];
        if (!is_pack(&views[k], parts[k].pack, parts[k].bytes))
            rc = mr_error_set(err, MR_EFORMAT, "the trace of %s is damaged",
                              parts[k].name ? parts[k].name : "this process");
    }
    if (rc == MR_OK) rc = mri_output_open(&o, path, &rules, err);
    if (rc == MR_OK) {
        FILE *f = mri_output_stream(o, err);
        if (f) write_events(f, views, count);
        rc = f ? mri_output_commit(o, NULL, NULL, err) : MR_ENOMEM;
        mri_output_close(o, false);
    }
    free(views);
    return rc;
}

int mr_trace_write(const mr_trace *t, const char *path, mr_error *err)
{
    MRI_GIVEN(err, path);
    void *pack;
    size_t bytes;
    int rc = mr_trace_pack(t, &pack, &bytes, err);
    if (rc == MR_OK) rc = mr_trace_write_parts(&(mr_trace_part){.pack = pack, .bytes = bytes}, 1, path, err);
    free(pack);
    return rc;
}
