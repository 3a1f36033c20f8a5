/* formats/source/withdrawn_moved.c: see withdrawn_moved.h.
 *
 *   strays, sorted by list, bytes, hash, name
 *   ─► samples of these lists and sizes: counted, then read and hashed ─► matches, sorted alike
 *   ─► entries of files that are there choose first, then those of missing files, a whole file at a time */
#include "formats/source/withdrawn_moved.h"

#include <string.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/source/sample_name.h"
#include "formats/source/value.h"

enum { MOST_SAMPLES = 10000 };
#define MOST_BYTES ((uint64_t)1 << 30)

typedef struct match { /* a sample that has the bytes of a stray */
    uint64_t group;    /* the first stray of these bytes */
    uint64_t number;
    char *name; /* "": it has none */
    bool taken; /* by an entry of a file that is there */
    bool given; /* taken, or promised to an entry of a missing file */
} match;

typedef struct following {
    const mr_source *src;
    const mri_withdrawn *w;
    const uint32_t *list_of;
    mri_stray *stray;
    uint64_t count;
    match *match;
    uint64_t matches, cap;
    bool *dropped; /* missing files of which an entry is not found */
    void *buffer;
    size_t buffer_bytes;
} following;

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory to search withdrawn samples");
}

/* ---- order ---- */
static int by_bytes(const mri_stray *x, uint32_t list, uint64_t bytes)
{
    if (x->list != list) return x->list < list ? -1 : 1;
    return x->entry->bytes < bytes ? -1 : x->entry->bytes > bytes;
}

static int by_hash(const mri_stray *x, uint32_t list, uint64_t bytes, uint64_t hash)
{
    const int order = by_bytes(x, list, bytes);
    if (order) return order;
    return x->entry->hash < hash ? -1 : x->entry->hash > hash;
}

static int by_stray(const void *a, const void *b)
{
    const mri_stray *x = a, *y = b;
    int order = by_hash(x, y->list, y->entry->bytes, y->entry->hash);
    if (!order) order = strcmp(x->entry->name, y->entry->name);
    return order ? order : mri_withdrawn_order(x->entry, y->entry);
}

static int by_match(const void *a, const void *b)
{
    const match *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    const int order = strcmp(x->name, y->name);
    if (order) return order;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* An entry of a file that two paths of the source lead to is there twice. */
static void sort_strays(following *f)
{
    uint64_t n = 0;
    qsort(f->stray, f->count, sizeof *f->stray, by_stray);
    for (uint64_t k = 0; k < f->count; k++) {
        if (n && f->stray[n - 1].entry == f->stray[k].entry)
            f->stray[n - 1].placed = f->stray[n - 1].placed || f->stray[k].placed;
        else f->stray[n++] = f->stray[k];
    }
    f->count = n;
}

/* ---- samples that may be meant ---- */
/* The first stray of this list and size, or of this hash, too. f->count: there is none. */
static uint64_t first_of(const following *f, uint32_t list, uint64_t bytes, const uint64_t *hash)
{
    uint64_t low = 0, high = f->count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        const int order =
            hash ? by_hash(&f->stray[mid], list, bytes, *hash) : by_bytes(&f->stray[mid], list, bytes);
        if (order < 0) low = mid + 1;
        else high = mid;
    }
    if (low == f->count || by_bytes(&f->stray[low], list, bytes) != 0) return f->count;
    return hash && f->stray[low].entry->hash != *hash ? f->count : low;
}

static bool has_entry(const mri_withdrawn *w, uint32_t list, uint64_t number)
{
    uint64_t low = 0, high = w->count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        const mri_withdrawn_found *at = &w->found[mid];
        if (at->number < number || (at->number == number && at->list < list)) low = mid + 1;
        else high = mid;
    }
    return low < w->count && w->found[low].number == number && w->found[low].list == list;
}

/* May the sample be one of these of the first (0) or the second list (1) of its file? */
static bool may_be(const following *f, uint64_t number, const mr_extent *at, int which)
{
    const uint32_t *lists = &f->list_of[2 * (size_t)at->file], list = lists[which];
    return list != UINT32_MAX && !(which && list == lists[0]) &&
           first_of(f, list, at->bytes, NULL) < f->count && !has_entry(f->w, list, number);
}

static bool shared_extent(const following *f, uint64_t number, mr_extent *at)
{
    return f->src->ops->extent(f->src, number, at, NULL) == MR_OK && at->file < f->src->info.file_count;
}

static int count_samples(const following *f, bool *too_many, mr_error *err)
{
    uint64_t samples = 0, bytes = 0;
    *too_many = false;
    for (uint64_t k = 0; !*too_many && k < f->src->info.count; k++) {
        mr_extent at;
        if (mri_stop_asked()) return mri_stopped(err);
        if (!shared_extent(f, k, &at) || !(may_be(f, k, &at, 0) || may_be(f, k, &at, 1))) continue;
        samples++;
        *too_many = samples > MOST_SAMPLES || at.bytes > MOST_BYTES - bytes;
        if (!*too_many) bytes += at.bytes;
    }
    return MR_OK;
}

/* ---- their bytes ---- */
static int read_sample(following *f, uint64_t number, const mr_extent *at, uint64_t *hash,
                       char name[MRI_NAME_ROOM], mr_error *err)
{
    if (at->bytes >= f->buffer_bytes) {
        void *more = realloc(f->buffer, (size_t)at->bytes + 1);
        if (!more) return no_memory(err);
        f->buffer = more;
        f->buffer_bytes = (size_t)at->bytes + 1;
    }
    int rc = mri_withdrawn_read(f->src, NULL, at, f->buffer, err);
    name[0] = '\0';
    if (rc) return rc;
    *hash = XXH3_64bits(f->buffer, (size_t)at->bytes);
    if (f->src->ops->sample_name)
        rc = f->src->ops->sample_name(f->src, number, f->buffer, (size_t)at->bytes, name, MRI_NAME_ROOM, err);
    return rc;
}

static int add_match(following *f, uint64_t group, uint64_t number, const char *name, mr_error *err)
{
    if (f->matches == f->cap) {
        const uint64_t cap = f->cap ? 2 * f->cap : 16;
        match *more = realloc(f->match, (size_t)cap * sizeof *more);
        if (!more) return no_memory(err);
        f->match = more;
        f->cap = cap;
    }
    match *m = &f->match[f->matches];
    *m = (match){.group = group, .number = number, .name = strdup(name)};
    if (!m->name) return no_memory(err);
    f->matches++;
    return MR_OK;
}

static int look_at(following *f, uint64_t number, const mr_extent *at, mr_error *err)
{
    char name[MRI_NAME_ROOM];
    mr_error what = MR_ERROR_INIT;
    uint64_t hash = 0;
    const bool asked[2] = {may_be(f, number, at, 0), may_be(f, number, at, 1)};
    if (!asked[0] && !asked[1]) return MR_OK;
    int rc = read_sample(f, number, at, &hash, name, &what);
    if (rc && mr_error_of_sample(rc, &what)) return MR_OK;
    if (rc) {
        if (err) *err = what;
        return rc;
    }
    for (int which = 0; !rc && which < 2; which++) {
        const uint64_t group =
            asked[which] ? first_of(f, f->list_of[2 * (size_t)at->file + (size_t)which], at->bytes, &hash)
                         : f->count;
        if (group < f->count) rc = add_match(f, group, number, name, err);
    }
    return rc;
}

static int find_matches(following *f, mr_error *err)
{
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < f->src->info.count; k++) {
        mr_extent at;
        if (mri_stop_asked()) return mri_stopped(err);
        if (shared_extent(f, k, &at)) rc = look_at(f, k, &at, err);
    }
    if (!rc && f->matches) qsort(f->match, f->matches, sizeof *f->match, by_match);
    return rc;
}

/* ---- who gets which ---- */
static bool is_asked(const following *f, const mri_stray *s, bool missing)
{
    return s->missing == missing && !(missing && f->dropped[s->file]);
}

/* Strays [s, s_end) that are still without a sample, and samples [m, m_end) that nobody has; name: only
 * samples of this name. They belong together where both are as many; where they are not, they are unclear. */
static void give(const following *f, uint64_t s, uint64_t s_end, uint64_t m, uint64_t m_end, const char *name,
                 bool missing)
{
    uint64_t entries = 0, samples = 0;
    for (uint64_t k = s; k < s_end; k++)
        entries += is_asked(f, &f->stray[k], missing) && f->stray[k].state == MRI_STRAY_LOST;
    for (uint64_t k = m; k < m_end; k++)
        samples += !f->match[k].given && (!name || strcmp(f->match[k].name, name) == 0);
    if (entries == 0 || samples == 0) return;
    for (uint64_t k = s, at = m; k < s_end; k++) {
        mri_stray *to = &f->stray[k];
        if (!is_asked(f, to, missing) || to->state != MRI_STRAY_LOST) continue;
        to->state = entries == samples ? MRI_STRAY_MOVED : MRI_STRAY_UNCLEAR;
        if (entries != samples) continue;
        while (f->match[at].given || (name && strcmp(f->match[at].name, name) != 0)) at++;
        f->match[at].given = true;
        to->number = f->match[at].number;
    }
}

/* Strays [s, s_end) and samples [m, m_end) have the same bytes. Each name first chooses among its samples.
 * What is left then: a named entry may be a sample without a name, and one without a name may be any. */
static void give_group(const following *f, uint64_t s, uint64_t s_end, uint64_t m, uint64_t m_end,
                       bool missing)
{
    uint64_t named = s; /* entries without names are sorted first, and so are samples */
    while (named < s_end && !f->stray[named].entry->name[0]) named++;
    for (uint64_t k = named, end, first = m; k < s_end; k = end) {
        const char *name = f->stray[k].entry->name;
        for (end = k; end < s_end && strcmp(f->stray[end].entry->name, name) == 0;) end++;
        while (first < m_end && strcmp(f->match[first].name, name) < 0) first++;
        uint64_t last = first;
        while (last < m_end && strcmp(f->match[last].name, name) == 0) last++;
        give(f, k, end, first, last, name, missing);
    }
    give(f, named, s_end, m, m_end, "", missing);
    give(f, s, named, m, m_end, NULL, missing);
}

static void give_all(const following *f, bool missing)
{
    for (uint64_t k = 0; k < f->count; k++)
        if (f->stray[k].missing == missing) f->stray[k].state = MRI_STRAY_LOST;
    for (uint64_t k = 0; k < f->matches; k++) f->match[k].given = f->match[k].taken;
    for (uint64_t m = 0, m_end; m < f->matches; m = m_end) {
        const uint64_t s = f->match[m].group;
        const mri_withdrawn_entry *e = f->stray[s].entry;
        uint64_t s_end = s;
        for (m_end = m; m_end < f->matches && f->match[m_end].group == s;) m_end++;
        while (s_end < f->count && by_hash(&f->stray[s_end], f->stray[s].list, e->bytes, e->hash) == 0)
            s_end++;
        give_group(f, s, s_end, m, m_end, missing);
    }
    for (uint64_t k = 0; !missing && k < f->matches; k++) f->match[k].taken = f->match[k].given;
}

/* Of missing files those of which an entry has this state. False: there is none. */
static bool drop_files(const following *f, mri_stray_state state)
{
    bool any = false;
    for (uint64_t k = 0; k < f->count; k++) {
        const mri_stray *s = &f->stray[k];
        if (!s->missing || s->state != state || f->dropped[s->file]) continue;
        any = f->dropped[s->file] = true;
    }
    return any;
}

/* An entry of a file that is not found whole wants no samples: the other files choose again. */
static void give_to_missing(const following *f)
{
    do give_all(f, true);
    while (drop_files(f, MRI_STRAY_LOST) || drop_files(f, MRI_STRAY_UNCLEAR));
}

int mri_withdrawn_follow(const mr_source *src, const mri_withdrawn *w, const uint32_t *list_of,
                         mri_stray *stray, uint64_t *count, mr_error *err)
{
    following f = {.src = src, .w = w, .list_of = list_of, .stray = stray, .count = *count};
    bool too_many = false;
    uint32_t files = 0;
    sort_strays(&f);
    *count = f.count;
    for (uint64_t k = 0; k < f.count; k++) {
        stray[k].state = MRI_STRAY_UNASKED;
        if (stray[k].missing && stray[k].file >= files) files = stray[k].file + 1;
    }
    f.dropped = calloc((size_t)files + 1, sizeof *f.dropped);
    int rc = f.dropped ? count_samples(&f, &too_many, err) : no_memory(err);
    if (!rc && !too_many) {
        rc = find_matches(&f, err);
        if (!rc) give_all(&f, false);
        if (!rc) give_to_missing(&f);
    }
    for (uint64_t k = 0; k < f.matches; k++) free(f.match[k].name);
    free(f.match);
    free(f.dropped);
    free(f.buffer);
    return rc;
}
