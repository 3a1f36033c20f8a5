/* formats/recordio/recordio_facts.c: see recordio_facts.h. The note, in the machine's own numbers, since an
 * index of another machine is not used:
 *
 *    0  u64 flags    8 u64 samples   16 u64 boxes   24 u64 bytes of names   32 u64 bytes of the report
 *   40  (samples + 1) x u64 first box, boxes x 4 f32, boxes x i64 class: with HAS_BOXES
 *       (samples + 1) x u64 first byte, names: with HAS_NAMES
 *       lines for the user, and a zero */
#include "formats/recordio/recordio_facts.h"

#include <stdio.h>

#include "formats/fileset/facts.h"
#include "formats/source/told.h"

enum { HEAD = 40, HAS_BOXES = 1, HAS_NAMES = 2 };

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for boxes or names"); }

/* ---- gather ---- */
static bool room_for_boxes(mri_rec_gather *g, uint64_t more)
{
    return mri_facts_grow((void **)&g->start, &g->start_cap, g->samples + 2, sizeof *g->start) &&
           mri_facts_grow((void **)&g->box, &g->box_cap, g->box_count + more, 4 * sizeof *g->box) &&
           mri_facts_grow((void **)&g->class, &g->class_cap, g->box_count + more, sizeof *g->class);
}

int mri_rec_add_boxes(mri_rec_gather *g, const uint8_t *labels, uint32_t count, const mr_source_config *cfg,
                      mr_error *err)
{
    mri_objects o;
    if (mri_objects_of(labels, count, &o, NULL) != MR_OK) o.count = 0;
    const uint64_t bytes = (g->box_count + o.count) * (4 * sizeof *g->box + sizeof *g->class) +
                           (g->samples + 2) * sizeof *g->start;
    const int rc = mri_source_budget(cfg, bytes, NULL, err);
    if (rc) return rc;
    if (!room_for_boxes(g, o.count)) return no_memory(err);
    g->start[g->samples++] = g->box_count;
    for (uint32_t k = 0; k < o.count; k++, g->box_count++)
        g->class[g->box_count] = mri_object_at(labels, &o, k, g->box + 4 * g->box_count);
    return MR_OK;
}

int mri_rec_add_name(mri_rec_gather *g, uint64_t sample, const char *name, mr_error *err)
{
    const size_t bytes = strlen(name);
    if (!mri_facts_grow((void **)&g->name_at, &g->name_cap, sample + 2, sizeof *g->name_at) ||
        !mri_facts_grow((void **)&g->text, &g->text_cap, g->text_bytes + bytes, 1))
        return no_memory(err);
    while (g->named <= sample) g->name_at[g->named++] = g->text_bytes;
    memcpy(g->text + g->text_bytes, name, bytes);
    g->text_bytes += bytes;
    return MR_OK;
}

void mri_rec_drop_names(mri_rec_gather *g, uint64_t from_sample)
{
    if (g->named <= from_sample) return;
    g->text_bytes = g->name_at[from_sample];
    g->named = from_sample;
}

void mri_rec_tell(mri_rec_gather *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mri_told_line(&g->reported, format, args);
    va_end(args);
}

void mri_rec_gather_fini(mri_rec_gather *g)
{
    free(g->start);
    free(g->box);
    free(g->class);
    free(g->name_at);
    free(g->text);
    free(g->reported);
    *g = (mri_rec_gather){0};
}

/* ---- the note ---- */
typedef struct sizes {
    uint64_t flags, samples, boxes, text, reported;
} sizes;

typedef struct layout { /* offsets */
    uint64_t start, box, class, name_at, text, reported, all;
} layout;

static layout lay_out(const sizes *s)
{
    const uint64_t starts = 8 * (s->samples + 1);
    layout l = {.start = HEAD};
    l.box = l.start + (s->flags & HAS_BOXES ? starts : 0);
    l.class = l.box + 16 * s->boxes;
    l.name_at = l.class + 8 * s->boxes;
    l.text = l.name_at + (s->flags & HAS_NAMES ? starts : 0);
    l.reported = l.text + s->text;
    l.all = l.reported + s->reported;
    return l;
}

static void copy(uint8_t *to, const void *from, uint64_t bytes)
{
    if (bytes) memcpy(to, from, (size_t)bytes);
}

static void leave_names_out(mri_rec_gather *g, uint64_t room)
{
    mri_rec_drop_names(g, 0);
    mri_rec_tell(g,
                 "the names in the lists beside need more than the %llu bytes that are left: they are not "
                 "taken; give more with --memory",
                 (unsigned long long)room);
}

static sizes sizes_of(const mri_rec_gather *g, uint64_t samples)
{
    return (sizes){.flags = (g->start ? HAS_BOXES : 0) | (g->text_bytes ? HAS_NAMES : 0),
                   .samples = samples,
                   .boxes = g->box_count,
                   .text = g->text_bytes,
                   .reported = g->reported ? strlen(g->reported) + 1 : 0};
}

int mri_rec_gathered(mri_rec_gather *g, uint64_t samples, uint64_t room, uint8_t **out, size_t *bytes,
                     mr_error *err)
{
    sizes s = sizes_of(g, samples);
    if (s.text && lay_out(&s).all > room) {
        leave_names_out(g, room);
        s = sizes_of(g, samples);
    }
    const layout l = lay_out(&s);
    uint8_t *note = calloc(1, (size_t)l.all);
    if (!note) return no_memory(err);
    memcpy(note, &s, HEAD);
    if (s.flags & HAS_BOXES) {
        g->start[g->samples] = g->box_count;
        copy(note + l.start, g->start, l.box - l.start);
        copy(note + l.box, g->box, l.class - l.box);
        copy(note + l.class, g->class, l.name_at - l.class);
    }
    if (s.flags & HAS_NAMES) {
        uint64_t *at = (uint64_t *)(void *)(note + l.name_at);
        for (uint64_t k = 0; k <= samples; k++) at[k] = k < g->named ? g->name_at[k] : g->text_bytes;
        copy(note + l.text, g->text, s.text);
    }
    copy(note + l.reported, g->reported, s.reported);
    *out = note;
    *bytes = (size_t)l.all;
    return MR_OK;
}

static bool starts_fit(const uint64_t *start, uint64_t samples, uint64_t end)
{
    if (start[0] != 0 || start[samples] != end) return false;
    for (uint64_t k = 0; k < samples; k++)
        if (start[k] > start[k + 1]) return false;
    return true;
}

bool mri_rec_facts_read(mri_rec_facts *out, const uint8_t *note, size_t bytes, uint64_t samples)
{
    sizes s;
    *out = (mri_rec_facts){0};
    if (bytes < HEAD) return false;
    memcpy(&s, note, HEAD);
    if (s.flags > (HAS_BOXES | HAS_NAMES) || s.samples != samples || s.samples > (uint64_t)1 << 40 ||
        s.boxes > bytes || s.text > bytes || s.reported > bytes)
        return false;
    const layout l = lay_out(&s);
    if (l.all != bytes || (s.reported && note[bytes - 1] != '\0')) return false;
    if (s.flags & HAS_BOXES) out->start = (const uint64_t *)(const void *)(note + l.start);
    if (s.flags & HAS_NAMES) out->name_at = (const uint64_t *)(const void *)(note + l.name_at);
    out->box = (const float *)(const void *)(note + l.box);
    out->class = (const int64_t *)(const void *)(note + l.class);
    out->text = (const char *)note + l.text;
    out->reported = s.reported ? (const char *)note + l.reported : NULL;
    return (out->start ? starts_fit(out->start, samples, s.boxes) : s.boxes == 0) &&
           (out->name_at ? starts_fit(out->name_at, samples, s.text) : s.text == 0);
}
