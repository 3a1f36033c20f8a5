/* formats/record/mrec_salvage.c: the records of a damaged .mrec file.
 *
 *   an index page is sound    its entries say where each of its 127 records is: a record is whole or lost
 *   it is not                 records are looked for, from the end of the one before to the first one of the
 *                             next sound page: by their own headers, then at every multiple of the alignment
 *
 * A record is whole when its header, its payload and its values are what their checksums and the schema say,
 * and the index (where there is one) knows it. The schema comes from the file, or from another one of the
 * same set. */
#include "formats/record/mrec_salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/record/mrec_file.h"
#include "formats/source/sample_name.h"
#include "formats/source/value.h"
#include "formats/storage/storage.h"

enum { HEADER_CRC_AT = MRI_MREC_BLOCK - 4 };

typedef struct walk {
    char *path;
    int fd;
    uint64_t file_bytes;
    mri_file_scan scan;
    mri_mrec_header h;
    mri_meta meta;
    mr_mrec *like;        /* whose meta is used; NULL: the file's own */
    bool sums;            /* the header's numbers hold: records, index */
    bool begun, end_told; /* notes of the header were given; the missing index was reported */
    mr_error header_why;  /* code 0: nothing is wrong with it */
    int name_field;
    uint64_t page, pages; /* index page that is walked, or is to come */
    uint32_t slot, entries;
    bool page_ok, page_told;
    uint8_t block[MRI_MREC_BLOCK];
    uint64_t at, until;     /* looking for records: here, below this */
    uint64_t expected;      /* records in [at, until) as it began; MR_NOWHERE: not known */
    uint64_t missing, gaps; /* of these are not found; places where they may have been */
    uint64_t last_source;   /* of the last whole record, + 1 */
} walk;

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory to look into a file"); }

/* ---- open ---- */
static int open_file(walk *w, mr_error *err)
{
    struct stat st;
    w->fd = open(w->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = MR_OK;
    if (w->fd < 0) rc = mr_error_sys(err, errno, "cannot open");
    else if (fstat(w->fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    else if (!S_ISREG(st.st_mode)) rc = mr_error_set(err, MR_EFORMAT, "not a regular file");
    else w->file_bytes = (uint64_t)st.st_size;
    return rc ? mri_error_place(err, rc, w->path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

/* Do the parts in front of the data lie where they can be read? */
static bool parts_fit(const mri_mrec_header *h, uint64_t file_bytes)
{
    const uint64_t part[][3] = {{h->schema_offset, h->schema_bytes, MRI_MAX_SCHEMA_BYTES},
                                {h->classes_offset, h->classes_bytes, MRI_MAX_CLASSES_BYTES},
                                {h->provenance_offset, h->provenance_bytes, MRI_MAX_PROVENANCE_BYTES}};
    uint64_t end = MRI_MREC_BLOCK;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(part); k++) {
        if (part[k][0] < end || part[k][1] > part[k][2] || part[k][0] > file_bytes ||
            part[k][1] > file_bytes - part[k][0])
            return false;
        end = part[k][0] + part[k][1];
    }
    return h->data_offset >= end && h->data_offset <= file_bytes && h->data_offset % MRI_MREC_BLOCK == 0;
}

/* A header of a wrong checksum may be wrong in one number that nobody needs: the parts' own checksums decide.
 */
static int read_header(walk *w, mr_error *err)
{
    uint8_t block[MRI_MREC_BLOCK];
    if (w->file_bytes < sizeof block)
        return mr_error_set(&w->header_why, MR_EFORMAT, "expected a header of %d bytes, found %" PRIu64,
                            MRI_MREC_BLOCK, w->file_bytes);
    int rc = mri_pread_all(w->fd, block, sizeof block, 0, w->path, err);
    if (rc) return rc;
    rc = mri_mrec_header_decode(block, &w->h, &w->header_why);
    if (rc == MR_OK) {
        mr_error unused = MR_ERROR_INIT;
        rc = mri_mrec_header_check(&w->h, w->file_bytes, &w->header_why);
        w->sums = rc == MR_OK || ((w->h.flags & MRI_MREC_COMPLETE) &&
                                  mri_mrec_header_check(&w->h, w->h.file_bytes, &unused) == MR_OK);
        return MR_OK;
    }
    if (rc != MR_ECHECKSUM) return MR_OK;
    mr_error unused = MR_ERROR_INIT;
    mri_put_le32(block + HEADER_CRC_AT, mr_crc32c(0, block, HEADER_CRC_AT));
    if (mri_mrec_header_decode(block, &w->h, &unused) != MR_OK) w->h = (mri_mrec_header){0};
    return MR_OK;
}

static int take_meta(walk *w, const char *like, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    int rc = MR_EFORMAT;
    if (w->h.data_offset && parts_fit(&w->h, w->file_bytes))
        rc = mri_meta_read(&w->meta, w->fd, w->path, &w->h, &why);
    if (rc == MR_OK || !mri_salvage_is_damage(rc)) {
        if (rc && err) *err = why;
        return rc;
    }
    if (!w->header_why.code && why.code) w->header_why = why;
    mr_error other = MR_ERROR_INIT;
    rc = like ? mr_mrec_open(&w->like, like, 0, &other) : MR_ENOENT;
    if (rc && rc != MR_ENOENT && !mri_salvage_is_damage(rc)) {
        if (err) *err = other;
        return rc;
    }
    if (rc) {
        if (w->header_why.code == MR_EUNSUPPORTED)
            return mr_error_set(err, MR_EUNSUPPORTED, "%s", w->header_why.text);
        return mr_error_set(
            err, MR_EFORMAT,
            "header or schema are damaged (%.300s), and without them no record can be read: name "
            "another file of the same set, or a copy of this one, with --from",
            w->header_why.text[0] ? w->header_why.text : "they lie outside the file");
    }
    w->meta = w->like->meta;
    w->meta.coef = true; /* each record says it of itself */
    if (!w->sums) {
        w->h = (mri_mrec_header){0};
        w->h.data_offset = w->like->h.data_offset;
    }
    if (!w->h.record_align) w->h.record_align = w->like->h.record_align;
    return MR_OK;
}

static void close_walk(void *state)
{
    walk *w = state;
    if (!w) return;
    if (w->like) mr_mrec_close(w->like);
    else mri_meta_fini(&w->meta);
    mri_file_scan_fini(&w->scan);
    if (w->fd >= 0) close(w->fd);
    free(w->path);
    free(w);
}

/* The header's numbers are lost: the last page of the index says how many pages there are, and so where
 * records are. */
static int find_index(walk *w, mr_error *err)
{
    if (w->file_bytes < w->h.data_offset + MRI_MREC_BLOCK || w->file_bytes % MRI_MREC_BLOCK) return MR_OK;
    const int rc =
        mri_pread_all(w->fd, w->block, sizeof w->block, w->file_bytes - MRI_MREC_BLOCK, w->path, err);
    const uint64_t number = mri_le64(w->block + 8),
                   room = (w->file_bytes - w->h.data_offset) / MRI_MREC_BLOCK;
    const uint32_t entries = mri_le32(w->block + 16);
    if (rc || number >= room || entries == 0 || entries > MRI_INDEX_PER_PAGE ||
        mri_index_check(w->block, number, entries, NULL) != MR_OK)
        return rc;
    w->h.count = number * MRI_INDEX_PER_PAGE + entries;
    w->h.index_bytes = (number + 1) * MRI_MREC_BLOCK;
    w->h.index_offset = w->file_bytes - w->h.index_bytes;
    w->h.data_bytes = w->h.index_offset - w->h.data_offset;
    w->h.file_bytes = w->file_bytes;
    w->sums = true;
    return MR_OK;
}

/* Until the first page is asked for, everything up to there is to be looked through. */
static void begin_looking(walk *w, uint64_t until, uint64_t expected)
{
    w->until = until;
    w->expected = expected;
    w->missing = w->gaps = 0;
}

static int open_walk(void **out, const char *path, const char *like, mr_error *err)
{
    walk *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w) return no_memory(err);
    w->fd = -1;
    w->header_why = (mr_error)MR_ERROR_INIT;
    w->path = strdup(path);
    int rc = w->path ? open_file(w, err) : no_memory(err);
    if (!rc) rc = read_header(w, err);
    if (rc && rc == w->header_why.code && w->header_why.code)
        rc = MR_OK; /* too short: another file may help */
    if (!rc) rc = take_meta(w, like, err);
    if (!rc && !w->sums) rc = find_index(w, err);
    if (rc) {
        mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
        close_walk(w);
        return rc;
    }
    mri_file_scan_init(&w->scan, w->fd, w->path, w->file_bytes);
    w->name_field = -1;
    for (uint32_t k = 0; k < w->meta.field_count; k++)
        if (strcmp(w->meta.fields[k].name, MRI_NAME_FIELD) == 0) w->name_field = (int)k;
    w->at = w->h.data_offset;
    w->pages = w->sums ? mri_index_pages(w->h.count) : 0;
    begin_looking(w, w->sums ? 0 : w->file_bytes, w->sums ? 0 : MR_NOWHERE);
    *out = w;
    return MR_OK;
}

/* ---- one record ---- */
static void keep_name(const walk *w, const uint8_t *data, size_t bytes, mri_salvage_item *item)
{
    const uint8_t *p;
    size_t n;
    item->name[0] = '\0';
    if (w->name_field < 0 || !mri_record_payload(&w->meta, data, bytes, (uint32_t)w->name_field, &p, &n))
        return;
    if (n >= sizeof item->name) n = sizeof item->name - 1;
    for (size_t k = 0; k < n; k++)
        if (p[k] < ' ') return; /* damaged, too */
    memcpy(item->name, p, n);
    item->name[n] = '\0';
}

static void lost(walk *w, mri_salvage_item *item, uint64_t offset, uint64_t bytes, uint64_t count)
{
    item->what = MRI_SALVAGE_LOST;
    item->offset = offset;
    item->bytes = bytes;
    item->count = count;
    mr_error_at(&item->why, w->path, offset, MR_NOWHERE);
}

static bool header_sound(const uint8_t *p, size_t bytes)
{
    mri_record_size size;
    return bytes >= MRI_RECORD_HEAD && mri_record_peek(p, &size) && size.header_bytes <= bytes &&
           mri_le32(p + 4) == mr_crc32c(0, p + 8, size.header_bytes - 8);
}

/* The record of these bytes: WHOLE, or LOST with the facts its header still gives. e: its entry in the index,
 * or NULL. */
static int judge(walk *w, uint64_t offset, uint64_t bytes, const mri_index_entry *e, mri_salvage_item *item,
                 mr_error *err)
{
    const uint8_t *p;
    mr_sample sample;
    mri_record_facts facts;
    const int rc = mri_file_scan_get(&w->scan, offset, (size_t)bytes, &p, err);
    if (rc) return rc;
    item->why = (mr_error)MR_ERROR_INIT;
    int wrong = mri_record_parse(&w->meta, p, (size_t)bytes, &sample, &facts, &item->why);
    if (!wrong && e && (e->header_crc != facts.header_crc || e->label != facts.label))
        wrong = mr_error_set(&item->why, MR_EFORMAT, "the record is not the one that the index knows here");
    const bool known = !wrong || header_sound(p, (size_t)bytes);
    item->number = known ? mri_le64(p + 24) : MR_NOWHERE;
    if (!wrong && (item->number < w->last_source || item->number == UINT64_MAX))
        wrong = mr_error_set(&item->why, MR_EFORMAT, "the record's source index does not rise");
    keep_name(w, p, known ? (size_t)bytes : 0, item);
    if (wrong) {
        lost(w, item, offset, bytes, 1);
        return MR_OK;
    }
    w->last_source = item->number + 1;
    item->what = MRI_SALVAGE_WHOLE;
    item->offset = offset;
    item->bytes = bytes;
    item->count = 1;
    item->data = p;
    return MR_OK;
}

/* ---- by the index ---- */
static int load_page(walk *w, mr_error *err)
{
    const uint64_t offset = w->h.index_offset + w->page * MRI_MREC_BLOCK;
    w->entries = mri_index_entries(w->h.count, w->page);
    w->slot = 0;
    w->page_ok = false;
    if (offset + MRI_MREC_BLOCK > w->file_bytes) return MR_OK;
    const int rc = mri_pread_all(w->fd, w->block, sizeof w->block, offset, w->path, err);
    if (rc) return rc;
    w->page_ok = mri_index_check(w->block, w->page, w->entries, NULL) == MR_OK;
    return MR_OK;
}

static int by_index(walk *w, mri_salvage_item *item, mr_error *err)
{
    mri_index_entry e;
    mri_index_get(w->block, w->slot++, &e);
    if (w->slot == w->entries) w->page++, w->entries = 0;
    item->number = MR_NOWHERE;
    item->name[0] = '\0';
    if (e.offset < w->h.data_offset || e.bytes > MRI_MAX_SAMPLE_BYTES || e.offset > w->file_bytes ||
        e.bytes > w->file_bytes - e.offset) {
        mr_error_set(&item->why, MR_EFORMAT, "the record lies after the end of the file");
        lost(w, item, e.offset, e.bytes, 1);
        return MR_OK;
    }
    w->at = e.offset + e.bytes;
    return judge(w, e.offset, e.bytes, &e, item, err);
}

/* ---- without an index ---- */
/* A record's header at w->at, all of the record in the file. */
static int record_here(walk *w, uint64_t *bytes, bool *found, mr_error *err)
{
    const uint8_t *p;
    mri_record_size size;
    *found = false;
    if (w->at > w->until || w->until - w->at < MRI_RECORD_HEAD) return MR_OK;
    const size_t most = (size_t)mri_min_u64(w->until - w->at, MRI_RECORD_HEADER_MAX);
    int rc = mri_file_scan_get(&w->scan, w->at, MRI_RECORD_HEAD, &p, err);
    if (rc || !mri_record_peek(p, &size) || size.header_bytes > most) return rc;
    rc = mri_file_scan_get(&w->scan, w->at, size.header_bytes, &p, err);
    *found = !rc && header_sound(p, size.header_bytes);
    *bytes = size.record_bytes;
    return rc;
}

/* The next one, at a multiple of the alignment. */
static int find_record(walk *w, uint64_t *bytes, bool *found, mr_error *err)
{
    const uint64_t align = w->h.record_align >= 8 ? w->h.record_align : 8;
    int rc = MR_OK;
    *found = false;
    while (!rc && !*found && w->at < w->until && !mri_stop_asked()) {
        rc = record_here(w, bytes, found, err);
        if (!rc && !*found) w->at = mri_align_down(w->at, align) + align;
    }
    return rc;
}

/* From the end of the last record to the next one: *gap: there is more than padding. The first record lies on
 * the next multiple of the alignment; before the index zeros may fill a block. */
static int step(walk *w, uint64_t *from, bool *gap, uint64_t *bytes, bool *found, mr_error *err)
{
    const uint64_t align = w->h.record_align >= 8 ? w->h.record_align : 8;
    *from = w->at = mri_align_up(w->at, align);
    int rc = find_record(w, bytes, found, err);
    if (rc) return rc;
    if (!*found) w->at = mri_max_u64(*from, w->until);
    *gap = w->at > *from;
    if (*found || !*gap || w->at - *from >= MRI_MREC_BLOCK) return MR_OK;
    const uint8_t *p;
    rc = mri_file_scan_get(&w->scan, *from, (size_t)(w->at - *from), &p, err);
    *gap = !rc && !mri_all_zero(p, (size_t)(w->at - *from));
    return rc;
}

/* Where it is known how many there are: how many cannot be found, and between how many others. */
static int count_missing(walk *w, mr_error *err)
{
    const uint64_t begin = w->at;
    uint64_t there = 0;
    int rc = MR_OK;
    for (w->gaps = 0; !rc && w->at < w->until && !mri_stop_asked();) {
        uint64_t from, bytes = 0;
        bool gap, found;
        rc = step(w, &from, &gap, &bytes, &found, err);
        if (rc) break;
        w->gaps += gap;
        there += found;
        if (found) w->at += mri_min_u64(bytes, w->until - w->at);
    }
    w->at = begin;
    w->missing = w->expected > there ? w->expected - there : 0;
    return rc;
}

/* How many records are lost in the gap that is met; 0: nobody knows. */
static bool gap_loses(walk *w, uint64_t *count)
{
    *count = 0;
    if (w->expected == MR_NOWHERE) return true;
    *count = w->gaps > 1 ? mri_min_u64(w->missing, 1) : w->missing;
    w->gaps -= w->gaps > 0;
    w->missing -= *count;
    return *count > 0;
}

static int look(walk *w, mri_salvage_item *item, mr_error *err)
{
    uint64_t bytes = 0, from, count;
    bool found, gap;
    int rc = step(w, &from, &gap, &bytes, &found, err);
    if (rc) return rc;
    item->number = MR_NOWHERE;
    item->name[0] = '\0';
    if (gap) {
        const bool loses = gap_loses(w, &count);
        mr_error_set(&item->why, MR_EFORMAT,
                     loses ? "no record can be read here" : "bytes that belong to no record");
        lost(w, item, from, found ? w->at - from : UINT64_MAX - from, count);
        if (!loses) item->what = MRI_SALVAGE_NOTE;
        return MR_OK;
    }
    if (!found) return MR_EEND;
    const uint64_t offset = w->at;
    if (bytes > w->until - offset) {
        mr_error_set(&item->why, MR_EFORMAT,
                     "the record is cut off: expected %" PRIu64 " bytes, found %" PRIu64, bytes,
                     w->until - offset);
        const uint8_t *p;
        rc = mri_file_scan_get(&w->scan, offset, MRI_RECORD_HEAD, &p, err);
        if (rc) return rc;
        item->number = mri_le64(p + 24);
        w->at = w->until;
        lost(w, item, offset, bytes, 1);
        return MR_OK;
    }
    w->at = offset + bytes;
    return judge(w, offset, bytes, NULL, item, err);
}

/* Pages from w->page on are damaged: look for their records, up to the first one of the next sound page. */
static int skip_pages(walk *w, mr_error *err)
{
    uint64_t expected = 0, until = mri_min_u64(w->file_bytes, w->h.data_offset + w->h.data_bytes);
    int rc = MR_OK;
    while (!rc && w->page < w->pages && !w->page_ok) {
        expected += w->entries;
        w->page++;
        if (w->page < w->pages) rc = load_page(w, err);
    }
    if (!rc && w->page < w->pages) {
        mri_index_entry e;
        mri_index_get(w->block, 0, &e);
        until = mri_min_u64(until, e.offset);
    }
    begin_looking(w, until, expected);
    return rc ? rc : count_missing(w, err);
}

static bool looking(const walk *w) { return w->at < w->until; }

/* Records that were expected where they were looked for, and no place is known where they were. */
static bool tell_missing(walk *w, mri_salvage_item *item)
{
    if (w->expected == MR_NOWHERE && !w->end_told) { /* neither header nor index say how many there were */
        w->end_told = true;
        item->number = MR_NOWHERE;
        item->name[0] = '\0';
        mr_error_set(&item->why, MR_EFORMAT,
                     "the file ends here without its index: nothing says how many records there were");
        lost(w, item, w->file_bytes, UINT64_MAX - w->file_bytes, 0);
        return true;
    }
    if (w->expected == MR_NOWHERE || w->missing == 0) return false;
    const bool cut = w->file_bytes < w->h.file_bytes && w->until >= w->file_bytes;
    item->number = MR_NOWHERE;
    item->name[0] = '\0';
    mr_error_set(&item->why, MR_EFORMAT,
                 cut ? "the file is cut off here" : "the index and these records are damaged");
    lost(w, item, w->until, w->page < w->pages ? 0 : UINT64_MAX - w->until, w->missing);
    w->missing = 0;
    return true;
}

static bool tell_header(walk *w, mri_salvage_item *item)
{
    if (w->begun) return false;
    w->begun = true;
    if (!w->header_why.code) return false;
    *item = (mri_salvage_item){
        .what = MRI_SALVAGE_NOTE, .offset = w->header_why.offset, .number = MR_NOWHERE, .why = w->header_why};
    mr_error_at(&item->why, w->path, MR_NOWHERE, MR_NOWHERE);
    return true;
}

static bool tell_page(walk *w, mri_salvage_item *item)
{
    if (w->page_told || w->h.index_offset + (w->page + 1) * MRI_MREC_BLOCK > w->file_bytes) return false;
    w->page_told = true;
    *item = (mri_salvage_item){.what = MRI_SALVAGE_NOTE,
                               .offset = w->h.index_offset + w->page * MRI_MREC_BLOCK,
                               .number = MR_NOWHERE,
                               .why = MR_ERROR_INIT};
    mr_error_set(&item->why, MR_EFORMAT, "a page of the index is damaged: its records are looked for");
    mr_error_at(&item->why, w->path, w->h.index_offset + w->page * MRI_MREC_BLOCK, MR_NOWHERE);
    return true;
}

static int next(void *state, mri_salvage_item *item, mr_error *err)
{
    walk *w = state;
    if (tell_header(w, item)) return MR_OK;
    for (;;) {
        if (mri_stop_asked()) return mri_stopped(err);
        if (looking(w)) {
            const int rc = look(w, item, err);
            if (rc != MR_EEND) return rc;
        }
        if (tell_missing(w, item)) return MR_OK;
        if (w->page >= w->pages) return MR_EEND;
        int rc = w->entries ? MR_OK : load_page(w, err);
        if (rc) return rc;
        if (w->page_ok) return by_index(w, item, err);
        if (tell_page(w, item)) return MR_OK;
        w->page_told = false;
        if ((rc = skip_pages(w, err)) != MR_OK) return rc;
    }
}

/* ---- the new file ---- */
typedef struct output {
    mr_writer *writer;
    const walk *from;
} output;

static int create(void **out, const void *state, const char *path, bool force, mr_error *err)
{
    const walk *w = state;
    mr_writer_config cfg;
    output *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o) return no_memory(err);
    o->from = w;
    mr_writer_defaults(&cfg);
    cfg.field_count = w->meta.field_count;
    cfg.fields = w->meta.fields;
    cfg.class_count = w->meta.class_count;
    cfg.class_names = w->meta.class_names;
    cfg.provenance = w->meta.provenance[0] ? w->meta.provenance : NULL;
    cfg.record_align = w->h.record_align;
    cfg.label_start = w->meta.label_start;
    cfg.force = force;
    cfg.verify = true;
    const int rc = mr_writer_open(&o->writer, path, &cfg, NULL, err);
    if (rc) free(o);
    else *out = o;
    return rc;
}

static int put(void *out, const mri_salvage_item *whole, mr_error *err)
{
    output *o = out;
    mr_sample sample;
    mri_record_facts facts;
    const int rc = mri_record_parse(&o->from->meta, whole->data, (size_t)whole->bytes, &sample, &facts, err);
    return rc ? rc : mr_writer_append(o->writer, facts.source_index, sample.value, err);
}

static int finish(void *out, mr_error *err)
{
    output *o = out;
    const int rc = mr_writer_finish(o->writer, err);
    free(o);
    return rc;
}

static void abandon(void *out)
{
    output *o = out;
    if (!o) return;
    mr_writer_abort(o->writer, false);
    free(o);
}

const char *mri_mrec_salvage_provenance(const void *state)
{
    const walk *w = state;
    return w->like ? NULL : w->meta.provenance;
}

mr_writer *mri_mrec_salvage_writer(void *out) { return ((output *)out)->writer; }

const mri_salvage_ops mri_salvage_mrec = {
    .format = "mrec",
    .open = open_walk,
    .next = next,
    .close = close_walk,
    .create = create,
    .put = put,
    .finish = finish,
    .abandon = abandon,
};
