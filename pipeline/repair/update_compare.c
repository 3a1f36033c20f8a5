/* pipeline/repair/update_compare.c: a source compared with the set that was made of it. See repair.h.
 *
 *   set     names of all records ──► sorted ──┐
 *   source  pool of a conversion ──► values ──┴─► records of this name: the same values? matched
 *
 * Pictures that the set stores unchanged are compared without decoding them. A name may occur several times:
 * each record is matched by one sample. Records that no sample matches, and that equal a matched one, repeat
 * it: append(again) made them, and they are not changed samples. */
#include <stdio.h>

#include "base/util.h"
#include "pipeline/convert/convert_pool.h"
#include "pipeline/repair/repair.h"

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory to compare a source with its set");
}

void mri_update_set_fini(mri_update_set *s)
{
    free(s->names);
    free(s->record);
    free(s->fresh);
    free(s->changed);
    *s = (mri_update_set){0};
}

/* ---- the set ---- */
static int add_name(mri_update_set *s, const char *name, size_t *at, mr_error *err)
{
    const size_t bytes = strlen(name) + 1;
    if (bytes > s->name_room - s->name_bytes) {
        const size_t room = 2 * s->name_room + bytes + 4096;
        char *more = realloc(s->names, room);
        if (!more) return no_memory(err);
        s->names = more;
        s->name_room = room;
    }
    *at = s->name_bytes;
    memcpy(s->names + s->name_bytes, name, bytes);
    s->name_bytes += bytes;
    return MR_OK;
}

static int no_names(const char *path, mr_error *err)
{
    mr_error_set(err, MR_EINVAL,
                 "the samples have no names, by which changes of the source are found; 'append' compares "
                 "contents alone");
    return mri_error_place(err, MR_EINVAL, path, MR_NOWHERE, MR_NOWHERE);
}

static int read_file(mri_update_set *s, const mr_mrec *m, mr_error *err)
{
    char name[MRI_MOST_PATH];
    mri_index_entry e;
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < m->h.count; k++) {
        mri_update_record *r = &s->record[s->count];
        rc = mri_mrec_entry(m, k, &e, err);
        if (!rc) rc = mri_known_name(m, &e, name, sizeof name, err);
        if (!rc && !name[0]) rc = no_names(m->path, err);
        if (!rc) rc = add_name(s, name, &r->name_at, err);
        if (rc) return rc;
        r->number = s->count++;
        r->live = true;
    }
    return rc;
}

static void mark_withdrawn(mri_update_set *s, const mr_source *list_source)
{
    mr_withdrawn_sample w;
    for (uint64_t k = 0; mr_source_withdrawn_at(list_source, k, &w) == MR_OK; k++) {
        if (w.number >= s->count) continue;
        s->record[w.number].live = false;
        s->record[w.number].ours =
            strcmp(w.reason, MRI_UPDATE_CHANGED) == 0 || strcmp(w.reason, MRI_UPDATE_GONE) == 0;
    }
}

static int by_name(const void *a, const void *b, void *names)
{
    const mri_update_record *x = a, *y = b;
    const int order = strcmp((const char *)names + x->name_at, (const char *)names + y->name_at);
    if (order) return order;
    return x->number < y->number ? -1 : x->number > y->number;
}

int mri_update_set_read(mri_update_set *s, const char *list_path, const mri_shards *list,
                        const mr_source *list_source, mr_error *err)
{
    s->record = calloc((size_t)mri_max_u64(list->records, 1), sizeof *s->record);
    int rc = s->record ? MR_OK : no_memory(err);
    for (uint32_t k = 0; !rc && k < list->count; k++) {
        mr_mrec *m = NULL;
        char *path = mri_shards_resolve(list_path, list->shard[k].path);
        rc = path ? mr_mrec_open(&m, path, UINT64_MAX, err) : no_memory(err);
        if (!rc && m->h.count != list->shard[k].count) rc = mri_shard_check(&list->shard[k], NULL, m, err);
        if (!rc && m->h.count > list->records - s->count)
            rc = mri_error_place(
                err, mr_error_set(err, MR_EFORMAT, "has more records than the list of its set says"), path,
                MR_NOWHERE, MR_NOWHERE);
        if (!rc) rc = read_file(s, m, err);
        if (m) mr_mrec_close(m);
        free(path);
    }
    if (rc) return rc;
    mark_withdrawn(s, list_source);
    if (s->count) qsort_r(s->record, (size_t)s->count, sizeof *s->record, by_name, s->names);
    return MR_OK;
}

mri_update_record *mri_update_find(const mri_update_set *s, const char *name, uint64_t *count)
{
    uint64_t low = 0, high = s->count, end;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (strcmp(mri_update_name(s, &s->record[mid]), name) < 0) low = mid + 1;
        else high = mid;
    }
    for (end = low; end < s->count && strcmp(mri_update_name(s, &s->record[end]), name) == 0; end++) {
    }
    *count = end - low;
    return &s->record[low];
}

/* ---- the source ---- */
typedef struct held { /* the bytes of one record */
    void *data;
    size_t room;
} held;

typedef struct compare {
    mri_update_set *set;
    const char *list_path;
    const mri_shards *list;
    const mri_convert_plan *plan;
    int in_set[MR_MAX_FIELDS]; /* field of the set for each field of the plan */
    mr_mrec *open;             /* the file of the record that was compared last */
    uint32_t open_file;
    uint64_t open_first; /* number of its first record */
    held record;
    uint64_t fresh_room, changed_room;
} compare;

static int open_file_of(compare *c, uint64_t number, mr_error *err)
{
    uint32_t file = 0;
    uint64_t first = 0;
    if (c->open && number >= c->open_first && number - c->open_first < c->open->h.count) return MR_OK;
    while (number - first >= c->list->shard[file].count) first += c->list->shard[file++].count;
    if (c->open) mr_mrec_close(c->open);
    c->open = NULL;
    c->open_file = file;
    c->open_first = first;
    char *path = mri_shards_resolve(c->list_path, c->list->shard[file].path);
    const int rc = path ? mr_mrec_open(&c->open, path, UINT64_MAX, err) : no_memory(err);
    free(path);
    return rc;
}

/* *good: the record is whole; then *out points into h->data. */
static int read_record(compare *c, uint64_t number, held *h, mr_sample *out, bool *good, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    mri_index_entry e;
    *good = false;
    int rc = open_file_of(c, number, err);
    if (!rc) rc = mri_mrec_entry(c->open, number - c->open_first, &e, err);
    if (!rc && e.bytes > h->room) {
        free(h->data);
        h->data = malloc((size_t)e.bytes);
        h->room = h->data ? (size_t)e.bytes : 0;
        if (!h->data) rc = no_memory(err);
    }
    if (!rc) rc = mri_pread_all(c->open->fd, h->data, (size_t)e.bytes, e.offset, c->open->path, err);
    if (rc) return rc;
    *good =
        mr_mrec_parse(c->open, number - c->open_first, h->data, (size_t)e.bytes, out, NULL, &why) == MR_OK;
    return MR_OK;
}

/* A damaged record is not the same. */
static int is_same(compare *c, const mri_convert_item *item, uint64_t number, bool *same, mr_error *err)
{
    mr_sample old;
    const int rc = read_record(c, number, &c->record, &old, same, err);
    for (uint32_t k = 0; !rc && *same && k < c->plan->field_count; k++)
        *same = mri_known_value(&item->values[k], &old.value[c->in_set[k]]);
    return rc;
}

static int add_number(uint64_t **list, uint64_t *count, uint64_t *room, uint64_t number, mr_error *err)
{
    if (*count == *room) {
        const uint64_t more = *room ? 2 * *room : 256;
        uint64_t *grown = realloc(*list, (size_t)more * sizeof *grown);
        if (!grown) return no_memory(err);
        *list = grown;
        *room = more;
    }
    (*list)[(*count)++] = number;
    return MR_OK;
}

/* A record with the sample's values, one that is not withdrawn first. */
static int match(compare *c, const mri_convert_item *item, mri_update_record *r, uint64_t count,
                 mri_update_record **out, mr_error *err)
{
    int rc = MR_OK;
    *out = NULL;
    for (uint64_t k = 0; !rc && k < 2 * count && !*out; k++) {
        mri_update_record *one = &r[k % count];
        bool same;
        if (one->matched || one->live != (k < count)) continue;
        rc = is_same(c, item, one->number, &same, err);
        if (!rc && same) *out = one;
    }
    return rc;
}

/* The name of the sample. */
static int name_of(const compare *c, const mri_convert_item *item, char *out, size_t room, mr_error *err)
{
    if (item->name && item->rc == MR_OK) {
        snprintf(out, room, "%s", item->name);
        return MR_OK;
    }
    mr_error why = MR_ERROR_INIT;
    const int rc = mr_source_sample_name_get(c->plan->src, item->source_index, NULL, 0, out, room, &why);
    if (rc == MR_OK || mr_error_of_sample(rc, &why)) return MR_OK;
    if (err) *err = why;
    return rc;
}

static int take(compare *c, const mri_convert_item *item, mr_error *err)
{
    mri_update_set *s = c->set;
    char name[MRI_MOST_PATH];
    uint64_t count;
    mri_update_record *one = NULL;
    if (item->fatal || (item->rc && !mr_error_of_sample(item->rc, &item->error))) {
        if (err) *err = item->error;
        return item->rc;
    }
    int rc = name_of(c, item, name, sizeof name, err);
    if (!rc && !name[0] && item->rc == MR_OK) rc = no_names(c->plan->info->path, err);
    if (rc) return rc;
    s->unnamed += !name[0];
    mri_update_record *r = mri_update_find(s, name, &count);
    for (uint64_t k = 0; k < count; k++) r[k].named++;
    if (item->rc == MR_OK) rc = match(c, item, r, count, &one, err);
    if (rc) return rc;
    if (!one) return add_number(&s->changed, &s->changed_count, &c->changed_room, item->source_index, err);
    one->matched = true;
    if (one->live) s->same++;
    else if (!one->ours) s->withdrawn++;
    return MR_OK;
}

/* Does r, which no sample matches, equal one of `count` records of its name that a sample matches? `mine` and
 * c->record hold both. */
static int find_repeated(compare *c, held *mine, mri_update_record *r, const mri_update_record *same_name,
                         uint64_t count, mr_error *err)
{
    mr_sample a, b;
    bool good;
    int rc = read_record(c, r->number, mine, &a, &good, err);
    for (uint64_t k = 0; !rc && good && !r->repeated && k < count; k++) {
        if (!same_name[k].live || !same_name[k].matched) continue;
        bool same;
        rc = read_record(c, same_name[k].number, &c->record, &b, &same, err);
        for (uint32_t f = 0; !rc && same && f < c->plan->field_count; f++)
            same = mri_known_value(&a.value[c->in_set[f]], &b.value[c->in_set[f]]);
        r->repeated = !rc && same;
    }
    return rc;
}

static int find_all_repeated(compare *c, mr_error *err)
{
    mri_update_set *s = c->set;
    held mine = {0};
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < s->count && !mri_stop_asked(); k++) {
        mri_update_record *r = &s->record[k];
        if (!r->live || r->matched || !r->named) continue;
        uint64_t count;
        const mri_update_record *first = mri_update_find(s, mri_update_name(s, r), &count);
        rc = find_repeated(c, &mine, r, first, count, err);
    }
    free(mine.data);
    return rc;
}

/* Of the samples without a record some are new: no live record of their name is left. */
static int settle(compare *c, mr_error *err)
{
    mri_update_set *s = c->set;
    char name[MRI_MOST_PATH];
    const uint64_t all = s->changed_count;
    s->changed_count = 0;
    int rc = find_all_repeated(c, err);
    for (uint64_t k = 0; !rc && k < all; k++) {
        const mri_convert_item item = {.source_index = s->changed[k], .rc = MR_EBADSAMPLE};
        uint64_t count, at = 0;
        rc = name_of(c, &item, name, sizeof name, err);
        if (rc) break;
        mri_update_record *r = mri_update_find(s, name, &count);
        while (at < count && !(r[at].live && !r[at].matched && !r[at].repeated && !r[at].superseded)) at++;
        if (at == count) rc = add_number(&s->fresh, &s->fresh_count, &c->fresh_room, s->changed[k], err);
        else {
            r[at].superseded = true;
            s->changed[s->changed_count++] = s->changed[k];
        }
    }
    for (uint64_t k = 0; !rc && k < s->count; k++) {
        mri_update_record *r = &s->record[k];
        r->superseded = r->live && !r->matched && !r->repeated && r->named;
    }
    return rc;
}

/* Pictures whose bytes the set keeps need no decoding to be compared. */
static void spare(mr_convert_config *cfg)
{
    if (cfg->store != MR_STORE_JPEG || cfg->resize || cfg->transcode) return;
    cfg->check = false;
    cfg->entries = false;
}

static int find_fields(compare *c, mr_error *err)
{
    int rc = open_file_of(c, 0, err);
    for (uint32_t k = 0; !rc && k < c->plan->field_count; k++) {
        c->in_set[k] = -1;
        for (uint32_t f = 0; f < c->open->meta.field_count; f++)
            if (strcmp(c->plan->fields[k].name, c->open->meta.fields[f].name) == 0) c->in_set[k] = (int)f;
        if (c->in_set[k] < 0)
            rc = mri_error_place(err,
                                 mr_error_set(err, MR_EINVAL, "expected the field %s, which the source has",
                                              c->plan->fields[k].name),
                                 c->open->path, MR_NOWHERE, MR_NOWHERE);
    }
    return rc;
}

static int compare_all(compare *c, mr_error *err)
{
    const mr_convert_config *cfg = &c->plan->cfg;
    mri_convert_pool *pool;
    mri_convert_item *item;
    uint64_t done = 0, bytes = 0;
    int rc = mri_convert_pool_start(&pool, c->plan, 0, err);
    while (!rc && (rc = mri_convert_pool_next(pool, &item)) == MR_OK) {
        bytes += item->bytes_in;
        rc = take(c, item, err);
        if (!rc && cfg->progress) cfg->progress(cfg->context, ++done, c->plan->info->count, bytes);
    }
    mri_convert_pool_stop(pool);
    if (rc == MR_ECANCELED) return mr_error_set(err, rc, "stopped; nothing was changed");
    return rc == MR_EEND ? MR_OK : rc;
}

int mri_update_compare(mri_update_set *s, const char *list_path, const mri_shards *list, const mr_source *src,
                       const mr_convert_config *cfg, mr_error *err)
{
    mr_convert_config own = *cfg;
    mri_convert_plan plan;
    compare *c = calloc(1, sizeof *c);
    if (!c) return no_memory(err);
    c->set = s;
    c->list_path = list_path;
    c->list = list;
    c->plan = &plan;
    spare(&own);
    int rc = mri_convert_plan_make(&plan, src, &own, err);
    if (!rc) rc = find_fields(c, err);
    if (!rc) rc = compare_all(c, err);
    if (!rc) rc = settle(c, err);
    if (c->open) mr_mrec_close(c->open);
    free(plan.provenance);
    free(c->record.data);
    free(c);
    return rc;
}
