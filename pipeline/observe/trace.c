/* pipeline/observe/trace.c: who did what when. A ring of fixed size: when it is full the oldest spans give
 * way and are counted, so a trace can stay on for a whole run. One mutex: spans come per batch or per chunk
 * of samples, not per sample. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "pipeline/observe/trace_pack.h"

#define MAX_TRACKS MRI_TRACE_TRACKS
#define TRACK_NAME MRI_TRACE_NAME

struct mr_trace {
    uint32_t process; /* that opened it (base/handle.h) */
    pthread_mutex_t lock;
    mri_trace_anchor opened; /* fixed */
    uint64_t first, steps;   /* lock: only spans of these are kept; steps 0: all */
    mr_trace_entry *ring;    /* lock; track points into tracks */
    size_t cap;
    uint64_t added;                      /* lock */
    char tracks[MAX_TRACKS][TRACK_NAME]; /* lock; entries are never changed once made */
    uint32_t track_count;                /* lock */
};

/* The closest of a few looks: a thread may lose its core between two clocks. */
static mri_trace_anchor trace_anchor_now(void)
{
    mri_trace_anchor best = {.within_ns = UINT64_MAX};
    for (int i = 0; i < 5; i++) {
        struct timespec real;
        const uint64_t before = mri_now_ns();
        clock_gettime(CLOCK_REALTIME, &real);
        const uint64_t after = mri_now_ns();
        if (after - before >= best.within_ns) continue;
        best =
            (mri_trace_anchor){before + (after - before) / 2,
                               (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec, after - before};
    }
    return best;
}

int mr_trace_create(mr_trace **out, size_t max_spans)
{
    MRI_GIVEN(NULL, out);
    *out = NULL;
    if (max_spans == 0) return MR_EINVAL;
    mr_trace *t = calloc(1, sizeof *t);
    if (!t) return MR_ENOMEM;
    t->process = mri_process();
    t->ring = calloc(max_spans, sizeof *t->ring);
    if (!t->ring) {
        free(t);
        return MR_ENOMEM;
    }
    t->cap = max_spans;
    t->opened = trace_anchor_now();
    pthread_mutex_init(&t->lock, NULL);
    *out = t;
    return MR_OK;
}

void mr_trace_destroy(mr_trace *t)
{
    if (!MRI_IS_OWN(t)) return;
    pthread_mutex_destroy(&t->lock);
    free(t->ring);
    free(t);
}

void mr_trace_keep(mr_trace *t, uint64_t first, uint64_t steps)
{
    if (!MRI_IS_OWN(t)) return;
    pthread_mutex_lock(&t->lock);
    t->first = first;
    t->steps = steps;
    pthread_mutex_unlock(&t->lock);
}

/* MR_NOWHERE lies in no window. */
static bool is_kept_locked(const mr_trace *t, uint64_t batch)
{
    return t->steps == 0 || (batch >= t->first && batch - t->first < t->steps && batch != MR_NOWHERE);
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
    if (!MRI_IS_OWN(t) || !track || !name) return;
    pthread_mutex_lock(&t->lock);
    if (is_kept_locked(t, batch))
        t->ring[t->added++ % t->cap] =
            (mr_trace_entry){track_locked(t, track), name, start_ns, end_ns, batch};
    pthread_mutex_unlock(&t->lock);
}

/* The ring's present contents, and the number of tracks its spans may name; the ring may move on
 * meanwhile. */
typedef struct snapshot {
    mr_trace_entry *entries;
    size_t count;
    uint64_t dropped, first, steps;
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
    if (copy) *out = (snapshot){copy, n, m->added - n, m->first, m->steps, m->track_count};
    pthread_mutex_unlock(&m->lock);
    return copy ? MR_OK : MR_ENOMEM;
}

int mr_trace_entries(const mr_trace *t, mr_trace_entry **out, size_t *count)
{
    MRI_GIVEN(NULL, out);
    *out = NULL;
    MRI_GIVEN(NULL, count);
    *count = 0;
    MRI_OWN(NULL, t);
    snapshot s;
    const int rc = take_snapshot(t, &s);
    *out = s.entries;
    *count = s.count;
    return rc;
}

/* ------------------------------------------------------------------------------ packing */

typedef struct packing {
    mri_trace_head *head;
    mri_trace_span *spans;
    char (*tracks)[TRACK_NAME], (*names)[TRACK_NAME];
    const char *name_of[MRI_TRACE_NAMES]; /* the caller's string of each name */
} packing;

/* The same strings come again and again. After the last slot names share that slot. */
static uint32_t name_number(packing *p, const char *name)
{
    const uint32_t count = p->head->name_count;
    for (uint32_t i = 0; i < count; i++)
        if (p->name_of[i] == name) return i;
    for (uint32_t i = 0; i < count; i++)
        if (strncmp(p->names[i], name, TRACK_NAME - 1) == 0) return i;
    if (count == MRI_TRACE_NAMES) return count - 1;
    snprintf(p->names[count], TRACK_NAME, "%s", name);
    p->name_of[count] = name;
    return p->head->name_count++;
}

static uint32_t track_number(const mr_trace *t, uint32_t track_count, const char *track)
{
    for (uint32_t i = 0; i < track_count; i++)
        if (t->tracks[i] == track) return i;
    return UINT32_MAX; /* "other" */
}

static void fill_head(mri_trace_head *h, const mr_trace *t, const snapshot *s)
{
    h->magic = MRI_TRACE_MAGIC;
    h->anchors[0] = t->opened;
    h->anchors[1] = trace_anchor_now();
    h->dropped = s->dropped;
    h->first = s->first;
    h->steps = s->steps;
    h->span_count = s->count;
    h->track_count = s->track_count;
    h->pid = getpid();
    gethostname(h->host, sizeof h->host - 1);
}

int mr_trace_pack(const mr_trace *t, void **out, size_t *bytes, mr_error *err)
{
    snapshot s;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, bytes);
    *bytes = 0;
    MRI_OWN(err, t);
    if (take_snapshot(t, &s) != MR_OK) return mr_error_set(err, MR_ENOMEM, "no memory for the trace");
    const size_t tracks_at = sizeof(mri_trace_head) + s.count * sizeof(mri_trace_span);
    const size_t names_at = tracks_at + s.track_count * TRACK_NAME;
    packing *p = calloc(1, sizeof *p);
    char *pack = calloc(1, names_at + MRI_TRACE_NAMES * TRACK_NAME);
    if (p && pack) {
        p->head = (mri_trace_head *)pack;
        p->spans = (mri_trace_span *)(p->head + 1);
        p->tracks = (char(*)[TRACK_NAME])(pack + tracks_at);
        p->names = (char(*)[TRACK_NAME])(pack + names_at);
        fill_head(p->head, t, &s);
        memcpy(p->tracks, t->tracks, s.track_count * TRACK_NAME);
        for (size_t i = 0; i < s.count; i++) {
            const mr_trace_entry *e = &s.entries[i];
            p->spans[i] = (mri_trace_span){e->start_ns, e->end_ns, e->batch,
                                           track_number(t, s.track_count, e->track), name_number(p, e->name)};
        }
        *bytes = names_at + p->head->name_count * TRACK_NAME;
        *out = pack;
    } else free(pack);
    free(p);
    free(s.entries);
    return *out ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for the trace");
}
