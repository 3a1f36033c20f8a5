/* pipeline/repair/append_known.c: which samples to append does the set have already? See repair.h.
 *
 *   new samples ──► (bytes, label, CRC of the payloads), sorted ◄── index and record head of each old record
 *                              └── all three are equal ──► the values themselves are compared
 *
 * Names are values of a record (field "sample.name"), the number in the source is not: a source that gained
 * or lost samples gives equal records for the others. Memory: 40 bytes for each new sample. */
#include <stdio.h>

#include "base/util.h"
#include "formats/record/mrec_file.h"
#include "formats/source/sample_name.h"
#include "pipeline/repair/repair.h"

enum { LOOKED_AT = 64, CRC_AT = 32, CHUNK = 1 << 16 };

typedef struct mark {
    uint64_t bytes;
    int64_t label;
    uint32_t crc, file; /* file: of the new set */
    uint64_t number;    /* record in it, or sample of the source */
    bool found;
} mark;

typedef struct search {
    const char *list_path;
    const mri_shards *list;
    mark *mark; /* sorted by by_record() */
    uint64_t count;
    mri_known *out;
    /* the new samples: made again one at a time, or in the files of a set, one of them open */
    mri_repair_again *again;
    const char *made_path;
    const mri_shards *made;
    mr_mrec *open;
    uint32_t open_file;
} search;

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory to compare samples with the set's");
}

static int by_place(const mark *x, const mark *y)
{
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->label < y->label ? -1 : x->label > y->label;
}

static int by_record(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    const int place = by_place(x, y);
    if (place) return place;
    if (x->crc != y->crc) return x->crc < y->crc ? -1 : 1;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* The first mark that is not below key by bytes and label. */
static uint64_t first_of(const search *s, const mark *key)
{
    uint64_t low = 0, high = s->count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (by_place(&s->mark[mid], key) < 0) low = mid + 1;
        else high = mid;
    }
    return low;
}

static int crc_of(const mr_mrec *m, uint64_t offset, uint32_t *crc, mr_error *err)
{
    uint8_t head[MRI_RECORD_HEAD];
    const int rc = mri_pread_all(m->fd, head, sizeof head, offset, m->path, err);
    if (!rc) *crc = mri_le32(head + CRC_AT);
    return rc;
}

/* ---- are they the same? ---- */
/* Two records of one size: everything after the heads. */
static int same_records(const mr_mrec *a, uint64_t a_at, const mr_mrec *b, uint64_t b_at, uint64_t bytes,
                        bool *same, mr_error *err)
{
    uint8_t *x = malloc(2 * (size_t)CHUNK);
    int rc = x ? MR_OK : no_memory(err);
    *same = !rc;
    for (uint64_t at = MRI_RECORD_HEAD; !rc && *same && at < bytes; at += CHUNK) {
        const size_t some = (size_t)mri_min_u64(CHUNK, bytes - at);
        rc = mri_pread_all(a->fd, x, some, a_at + at, a->path, err);
        if (!rc) rc = mri_pread_all(b->fd, x + CHUNK, some, b_at + at, b->path, err);
        *same = !rc && memcmp(x, x + CHUNK, some) == 0;
    }
    free(x);
    return rc;
}

bool mri_known_value(const mr_value *a, const mr_value *b)
{
    uint8_t x_scratch[8], y_scratch[8];
    size_t x_bytes, y_bytes;
    const void *x = mri_value_bytes(a, x_scratch, &x_bytes), *y = mri_value_bytes(b, y_scratch, &y_bytes);
    return a->type == b->type && x_bytes == y_bytes && (x_bytes == 0 || memcmp(x, y, x_bytes) == 0);
}

/* A damaged old record is not the same. */
static int same_made(mri_repair_again *again, uint64_t sample, const mr_mrec *m, const mri_index_entry *e,
                     bool *same, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    char name[MRI_MOST_PATH];
    const mr_value *values;
    mr_sample old;
    *same = false;
    int rc = mri_repair_again_make(again, sample, &values, name, sizeof name, err);
    if (rc) return rc == MR_EEND ? MR_OK : rc;
    void *data = malloc((size_t)e->bytes);
    rc = data ? mri_pread_all(m->fd, data, (size_t)e->bytes, e->offset, m->path, err) : no_memory(err);
    *same = !rc && mr_mrec_parse(m, 0, data, (size_t)e->bytes, &old, NULL, &why) == MR_OK;
    for (uint32_t k = 0; *same && k < m->meta.field_count; k++)
        *same = mri_known_value(&values[k], &old.value[k]);
    free(data);
    return rc;
}

/* Reads the header and the name alone. */
int mri_known_name(const mr_mrec *m, const mri_index_entry *e, char *out, size_t room, mr_error *err)
{
    uint8_t head[MRI_RECORD_HEADER_MAX];
    const int field = mri_field_name(m->meta.fields, m->meta.field_count);
    const size_t some = (size_t)mri_min_u64(e->bytes, sizeof head);
    uint64_t at, bytes;
    out[0] = '\0';
    if (field < 0) return MR_OK;
    int rc = mri_pread_all(m->fd, head, some, e->offset, m->path, err);
    if (rc || !mri_record_place(&m->meta, head, some, (uint32_t)field, &at, &bytes)) return rc;
    bytes = mri_min_u64(bytes, room - 1);
    if (at + bytes <= some) memcpy(out, head + at, (size_t)bytes);
    else rc = mri_pread_all(m->fd, out, (size_t)bytes, e->offset + at, m->path, err);
    out[rc ? 0 : bytes] = '\0';
    return rc;
}

/* ---- records ---- */
typedef int visit(search *s, const mr_mrec *m, uint64_t record, const mri_index_entry *e, mr_error *err);

static int visit_all(search *s, const mr_mrec *m, visit *each, mr_error *err)
{
    uint8_t page[MRI_MREC_BLOCK];
    mri_index_entry e;
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < mri_index_pages(m->h.count); k++) {
        rc = mri_mrec_index_page(m, k, page, err);
        for (uint32_t slot = 0; !rc && slot < mri_index_entries(m->h.count, k); slot++) {
            mri_index_get(page, slot, &e);
            rc = each(s, m, k * MRI_INDEX_PER_PAGE + slot, &e, err);
        }
    }
    return rc;
}

static int open_made(search *s, uint32_t file, mr_error *err)
{
    if (s->open && s->open_file == file) return MR_OK;
    if (s->open) mr_mrec_close(s->open);
    s->open = NULL;
    s->open_file = file;
    char *path = mri_shards_resolve(s->made_path, s->made->shard[file].path);
    const int rc = path ? mr_mrec_open(&s->open, path, 0, err) : no_memory(err);
    free(path);
    return rc;
}

/* ---- the set's records ---- */
static int is_same(search *s, const mark *new, const mr_mrec *m, const mri_index_entry *e, bool *same,
                   mr_error *err)
{
    mri_index_entry mine;
    *same = false;
    if (s->again) return same_made(s->again, new->number, m, e, same, err);
    int rc = open_made(s, new->file, err);
    if (!rc) rc = mri_mrec_entry(s->open, new->number, &mine, err);
    return rc ? rc : same_records(s->open, mine.offset, m, e->offset, e->bytes, same, err);
}

static int look_for(search *s, const mr_mrec *m, uint64_t record, const mri_index_entry *e, mr_error *err)
{
    const mark key = {.bytes = e->bytes, .label = e->label};
    uint64_t k = first_of(s, &key);
    uint32_t crc;
    (void)record;
    if (s->out->there == s->count || k == s->count || by_place(&s->mark[k], &key) != 0) return MR_OK;
    int rc = crc_of(m, e->offset, &crc, err);
    for (; !rc && k < s->count && by_place(&s->mark[k], &key) == 0; k++) {
        bool same;
        if (s->mark[k].crc != crc || s->mark[k].found) continue;
        rc = is_same(s, &s->mark[k], m, e, &same, err);
        if (rc || !same) continue;
        s->mark[k].found = true;
        if (s->out->there++ == 0) rc = mri_known_name(m, e, s->out->name, sizeof s->out->name, err);
    }
    return rc;
}

static int look(search *s, mr_error *err)
{
    int rc = MR_OK;
    if (s->count) qsort(s->mark, (size_t)s->count, sizeof *s->mark, by_record);
    for (uint32_t k = 0; !rc && s->out->there < s->count && k < s->list->count; k++) {
        mr_mrec *m = NULL;
        char *path = mri_shards_resolve(s->list_path, s->list->shard[k].path);
        rc = path ? mr_mrec_open(&m, path, 0, err) : no_memory(err);
        if (!rc) rc = visit_all(s, m, look_for, err);
        if (m) mr_mrec_close(m);
        free(path);
    }
    return rc;
}

/* ---- samples that are not converted yet ---- */
static int mark_made(search *s, int label_field, uint64_t sample, mr_error *err)
{
    char name[MRI_MOST_PATH];
    uint8_t head[MRI_RECORD_HEADER_MAX];
    const mr_value *values;
    mri_record_size size;
    const int rc = mri_repair_again_make(s->again, sample, &values, name, sizeof name, err);
    if (rc) return rc == MR_EEND ? MR_OK : rc;
    const uint32_t fields = mri_repair_again_fields(s->again);
    if (!mri_record_measure(values, fields, &size)) return MR_OK;
    mri_record_encode(values, fields, sample, &size, head);
    s->mark[s->count++] = (mark){.bytes = size.record_bytes,
                                 .label = label_field < 0 ? 0 : values[label_field].i,
                                 .crc = mri_le32(head + CRC_AT),
                                 .number = sample};
    return MR_OK;
}

int mri_known_look(const char *list_path, const mri_shards *list, const mr_source *src, mri_known *out,
                   mr_error *err)
{
    mark marks[LOOKED_AT];
    search s = {.list_path = list_path, .list = list, .mark = marks, .out = out};
    const uint64_t all = mr_source_info_of(src)->count, some = mri_min_u64(all, LOOKED_AT);
    mr_mrec *first = NULL;
    *out = (mri_known){0};
    char *path = mri_shards_resolve(list_path, list->shard[0].path);
    int rc = path ? mr_mrec_open(&first, path, 0, err) : no_memory(err);
    if (!rc) rc = mri_repair_again_like(&s.again, src, first, path, err);
    for (uint64_t k = 0; !rc && k < some; k++)
        rc = mark_made(&s, first->meta.label_field, (uint64_t)((double)all / (double)some * (double)k), err);
    out->looked = s.count;
    if (!rc) rc = look(&s, err);
    mri_repair_again_close(s.again);
    if (first) mr_mrec_close(first);
    free(path);
    return rc;
}

/* ---- samples that are converted ---- */
static int mark_record(search *s, const mr_mrec *m, uint64_t record, const mri_index_entry *e, mr_error *err)
{
    uint32_t crc;
    const int rc = crc_of(m, e->offset, &crc, err);
    if (!rc)
        s->mark[s->count++] =
            (mark){.bytes = e->bytes, .label = e->label, .crc = crc, .file = s->open_file, .number = record};
    return rc;
}

int mri_known_count(const char *list_path, const mri_shards *list, const char *made_path,
                    const mri_shards *made, mri_known *out, mr_error *err)
{
    search s = {.list_path = list_path, .list = list, .out = out, .made_path = made_path, .made = made};
    *out = (mri_known){.looked = made->records};
    s.mark = malloc((size_t)mri_max_u64(made->records, 1) * sizeof *s.mark);
    int rc = s.mark ? MR_OK : no_memory(err);
    for (uint32_t k = 0; !rc && k < made->count; k++) {
        rc = open_made(&s, k, err);
        if (!rc && s.open->h.count != made->shard[k].count)
            rc = mri_error_place(err,
                                 mr_error_set(err, MR_EFORMAT, "expected %llu records, found %llu",
                                              (unsigned long long)made->shard[k].count,
                                              (unsigned long long)s.open->h.count),
                                 s.open->path, MR_NOWHERE, MR_NOWHERE);
        if (!rc) rc = visit_all(&s, s.open, mark_record, err);
    }
    if (!rc) rc = look(&s, err);
    if (s.open) mr_mrec_close(s.open);
    free(s.mark);
    return rc;
}
