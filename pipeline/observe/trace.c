/* pipeline/observe/trace.c: who did what when. A ring of fixed size: when it is full the oldest spans give
 * way and are counted, so a trace can stay on for a whole run. One mutex: spans come per batch or per chunk
 * of samples, not per sample.
 *
 * The file is the Chrome trace event format ("X" complete events, one thread row per track), which Perfetto
 * and chrome://tracing open. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/util.h"
#include "millrace/pipeline.h"

#define MAX_TRACKS 256
#define TRACK_NAME 48

struct mr_trace {
    pthread_mutex_t lock;
    mr_trace_entry *ring; /* lock; track points into tracks */
    size_t cap;
    uint64_t added;                      /* lock */
    char tracks[MAX_TRACKS][TRACK_NAME]; /* lock; entries are never changed once made */
    uint32_t track_count;                /* lock */
};

int mr_trace_create(mr_trace **out, size_t max_spans)
{
    *out = NULL;
    if (max_spans == 0) return MR_EINVAL;
    mr_trace *t = calloc(1, sizeof *t);
    if (!t) return MR_ENOMEM;
    t->ring = calloc(max_spans, sizeof *t->ring);
    if (!t->ring) {
        free(t);
        return MR_ENOMEM;
    }
    t->cap = max_spans;
    pthread_mutex_init(&t->lock, NULL);
    *out = t;
    return MR_OK;
}

void mr_trace_destroy(mr_trace *t)
{
    if (!t) return;
    pthread_mutex_destroy(&t->lock);
    free(t->ring);
    free(t);
}

static const char *track_locked(mr_trace *t, const char *name)
{
    for (uint32_t i = 0; i < t->track_count; i++)
        if (strncmp(t->tracks[i], name, TRACK_NAME - 1) == 0) return t->tracks[i];
    if (t->track_count == MAX_TRACKS) return "other";
    char *slot = t->tracks[t->track_count++];
    snprintf(slot, TRACK_NAME, "%s", name);
    return slot;
}

void mr_trace_span(mr_trace *t, const char *track, const char *name, uint64_t start_ns, uint64_t end_ns,
                   uint64_t batch)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->ring[t->added++ % t->cap] = (mr_trace_entry){track_locked(t, track), name, start_ns, end_ns, batch};
    pthread_mutex_unlock(&t->lock);
}

/* What is in the ring now, and how many tracks its spans may name; the ring may move on meanwhile. */
typedef struct snapshot {
    mr_trace_entry *entries;
    size_t count;
    uint64_t dropped;
    uint32_t track_count;
} snapshot;

static int take_snapshot(const mr_trace *t, snapshot *out)
{
    mr_trace *m = (mr_trace *)t; /* the lock alone changes */
    *out = (snapshot){0};
    pthread_mutex_lock(&m->lock);
    const size_t n = (size_t)mri_min_u64(m->added, m->cap);
    mr_trace_entry *copy = malloc((n ? n : 1) * sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) copy[i] = m->ring[(m->added - n + i) % m->cap];
    if (copy) *out = (snapshot){copy, n, m->added - n, m->track_count};
    pthread_mutex_unlock(&m->lock);
    return copy ? MR_OK : MR_ENOMEM;
}

int mr_trace_entries(const mr_trace *t, mr_trace_entry **out, size_t *count)
{
    snapshot s;
    const int rc = take_snapshot(t, &s);
    *out = s.entries;
    *count = s.count;
    return rc;
}

static void write_text(FILE *f, const char *s)
{
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (c < 0x20) fprintf(f, "\\u%04x", c);
        else fputc(c, f);
    }
}

static uint32_t track_number(const mr_trace *t, uint32_t track_count, const char *track)
{
    for (uint32_t i = 0; i < track_count; i++)
        if (t->tracks[i] == track) return i + 1;
    return 0; /* "other" */
}

static void write_events(const mr_trace *t, FILE *f, const snapshot *s)
{
    const mr_trace_entry *e = s->entries;
    const size_t n = s->count;
    uint64_t base = UINT64_MAX;
    for (size_t i = 0; i < n; i++) base = mri_min_u64(base, e[i].start_ns);
    fprintf(f, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_spans\":%" PRIu64 "},\"traceEvents\":[",
            s->dropped);
    for (uint32_t i = 0; i < s->track_count; i++) {
        fprintf(f, "%s\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"",
                i ? "," : "", i + 1);
        write_text(f, t->tracks[i]);
        fprintf(f, "\"}}");
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t start = e[i].start_ns - base,
                       length = e[i].end_ns > e[i].start_ns ? e[i].end_ns - e[i].start_ns : 0;
        fprintf(f, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":\"",
                track_number(t, s->track_count, e[i].track));
        write_text(f, e[i].name);
        fprintf(f, "\",\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u,\"args\":{\"batch\":%" PRIu64 "}}",
                start / 1000, (unsigned)(start % 1000), length / 1000, (unsigned)(length % 1000), e[i].batch);
    }
    fprintf(f, "\n]}\n");
}

int mr_trace_write(const mr_trace *t, const char *path, mr_error *err)
{
    snapshot s;
    if (take_snapshot(t, &s) != MR_OK) return mr_error_set(err, MR_ENOMEM, "no memory for the trace");
    char part_path[4096];
    int rc = MR_OK;
    if (snprintf(part_path, sizeof part_path, "%s.part", path) >= (int)sizeof part_path) {
        free(s.entries);
        return mr_error_set(err, MR_EINVAL, "the trace's name is too long");
    }
    FILE *f = fopen(part_path, "we");
    if (!f) {
        rc = mr_error_sys(err, errno, "cannot create the trace");
        mr_error_at(err, part_path, MR_NOWHERE, MR_NOWHERE);
    } else {
        write_events(t, f, &s);
        const bool bad = fflush(f) != 0 || ferror(f) || fsync(fileno(f)) != 0;
        if ((fclose(f) != 0 || bad) || rename(part_path, path) != 0) {
            rc = mr_error_sys(err, errno, "cannot write the trace");
            mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
            unlink(part_path);
        }
    }
    if (rc == MR_OK) rc = mri_sync_folder_of(path, err);
    free(s.entries);
    return rc;
}
