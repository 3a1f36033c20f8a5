/* formats/recordio/recordio_index.c: see recordio_index.h. */
#include "formats/recordio/recordio_index.h"

#include <math.h>

#include "formats/recordio/recordio_lists.h"

enum { LOOKED_AT = 16, MOST_BOX_LABELS = 1 << 22 };

/* ---- labels in records ---- */
bool mri_rec_label_of(const mri_rec_set *x, const mri_picture_head *h, const uint8_t *packed, double *out)
{
    float label = h->label;
    if (x->label_at >= (h->label_count ? h->label_count : 1)) return false;
    if (h->label_count) memcpy(&label, packed + x->label_at * sizeof label, sizeof label);
    *out = (double)label;
    return true;
}

bool mri_rec_is_class(double label) { return label > -0x1p62 && label < 0x1p62 && label == floor(label); }

typedef struct stated { /* by a header */
    bool sound;         /* a label is stated */
    uint64_t id;
    double label;
    uint32_t label_count;
} stated;

/* A record without a sound header is a bad sample, not a bad file: parse() reports it. */
static int look_inside(const mri_rec_set *x, const mri_recordio_input *in, const mri_recordio_record *r,
                       stated *out, mr_error *err)
{
    uint8_t head[MRI_PICTURE_HEAD_BYTES + MRI_REC_MOST_LABELS * sizeof(float)];
    mri_picture_head h;
    const uint64_t wanted = MRI_PICTURE_HEAD_BYTES + ((uint64_t)x->label_at + 1) * sizeof(float);
    *out = (stated){0};
    const int rc = mri_recordio_copy(in, r, head, mri_min_u64(wanted, r->data_bytes), err);
    if (rc || mri_picture_head_parse(head, r->data_bytes, &h, NULL) != MR_OK) return rc;
    out->id = h.id;
    out->label_count = h.label_count;
    out->sound = mri_rec_label_of(x, &h, head + MRI_PICTURE_HEAD_BYTES, &out->label);
    return MR_OK;
}

/* ---- index from .idx and .lst ---- */
static int get_scanned(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_scan_get(context, offset, bytes, out, err);
}

static mri_recordio_input scanned(mri_scan *s)
{
    return (mri_recordio_input){get_scanned, s, mri_scan_file_bytes(s)};
}

static uint64_t end_of(const mri_rec_lists *l, uint64_t k, uint64_t file_bytes)
{
    return k + 1 < l->offset_count ? l->offset[k + 1].offset : file_bytes;
}

/* Does each line of one belong to one line of the other, and do the offsets leave room for records? */
static bool lists_match(mri_rec_lists *l, uint64_t file_bytes)
{
    if (!l->idx_path || !l->lst_path || l->offset_count == 0 || l->offset_count != l->entry_count ||
        l->offset[0].offset != 0)
        return false;
    for (uint64_t k = 0; k < l->offset_count; k++) {
        mri_rec_offset *o = &l->offset[k];
        if (!o->is_number ||
            end_of(l, k, file_bytes) - o->offset < MRI_RECORDIO_HEAD_BYTES + MRI_PICTURE_HEAD_BYTES)
            return false;
        mri_rec_entry *e = mri_rec_lists_find(l, o->key);
        if (!e || e->taken || isnan(e->label)) return false;
        e->taken = true;
    }
    return true;
}

/* Whether the k-th record is the one that both lists speak of. */
static int record_matches(const mri_rec_set *x, const mri_recordio_input *in, const mri_rec_lists *l,
                          uint64_t k, bool *out, mr_error *err)
{
    const mri_rec_offset *o = &l->offset[k];
    const mri_rec_entry *e = mri_rec_lists_find(l, o->key);
    mri_recordio_record r;
    stated f;
    *out = false;
    int rc = mri_recordio_read_headers(in, o->offset, &r, err);
    if (!rc && r.bytes != end_of(l, k, in->end) - o->offset) return MR_OK;
    if (!rc) rc = look_inside(x, in, &r, &f, err);
    if (!rc) *out = f.sound && f.id == o->key && f.label == e->label;
    return rc == MR_EFORMAT ? MR_OK : rc; /* reading all of the file reports the error */
}

/* Both lists are right as far as some records, spread over the file, can tell; the others are held against
 * them when parsed. */
static int lists_hold(const mri_rec_set *x, mri_scan *s, mri_rec_lists *l, bool *out, mr_error *err)
{
    const mri_recordio_input in = scanned(s);
    *out = !x->detection && lists_match(l, in.end); /* boxes are in the records */
    const uint64_t looks = mri_min_u64(l->offset_count, LOOKED_AT);
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && *out && k < looks; k++)
        rc = record_matches(x, &in, l, looks > 1 ? k * (l->offset_count - 1) / (looks - 1) : 0, out, err);
    return rc;
}

static int64_t indexed_label(const mri_rec_set *x, bool sound, double label)
{
    return sound && !x->detection && mri_rec_is_class(label) ? (int64_t)label : MRI_NO_LABEL;
}

static int index_from_lists(mri_rec_set *x, mri_scan *s, const mri_rec_lists *l, uint64_t first,
                            mr_error *err)
{
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < l->offset_count; k++) {
        const mri_rec_offset *o = &l->offset[k];
        const mri_rec_entry *e = mri_rec_lists_find(l, o->key);
        rc = mri_scan_add(s, o->offset, end_of(l, k, mri_scan_file_bytes(s)) - o->offset,
                          indexed_label(x, true, e->label), err);
        if (!rc) rc = mri_rec_add_name(&x->gather, first + k, e->path, err);
    }
    return rc;
}

/* ---- index from the records ---- */
static int wrong_list(mr_error *err, const char *path)
{
    return mri_error_place(err, MR_EFORMAT, path, MR_NOWHERE, MR_NOWHERE);
}

/* The k-th record starts at offset: does .idx say so? At the file's end, where no record starts, it must have
 * no more lines. */
static int compare_offset(const mri_rec_lists *l, uint64_t k, uint64_t offset, bool at_end, mr_error *err)
{
    if (!l->idx_path) return MR_OK;
    const mri_rec_offset *o = k < l->offset_count ? &l->offset[k] : NULL;
    if (o ? !at_end && o->offset == offset : at_end) return MR_OK;
    if (o && (at_end || o->offset < offset))
        mr_error_set(err, MR_EFORMAT,
                     "line %u: no record starts at offset %llu; make this index anew, or remove it", o->line,
                     (unsigned long long)o->offset);
    else
        mr_error_set(
            err, MR_EFORMAT,
            "expected all records, found none for the one at offset %llu (%llu are listed); make this "
            "index anew, or remove it",
            (unsigned long long)offset, (unsigned long long)l->offset_count);
    return wrong_list(err, l->idx_path);
}

static void compare_label(mri_rec_set *x, const mri_rec_entry *e, const stated *f)
{
    x->relabelled += e && f->sound && e->label != f->label;
}

/* The objects of a record, whose header is as `in` has it. */
static int add_boxes(mri_rec_set *x, const mri_recordio_input *in, const mri_recordio_record *r,
                     mr_error *err)
{
    uint8_t head[MRI_PICTURE_HEAD_BYTES];
    mri_picture_head h = {0};
    int rc = mri_recordio_copy(in, r, head, mri_min_u64(sizeof head, r->data_bytes), err);
    if (rc) return rc;
    if (mri_picture_head_parse(head, r->data_bytes, &h, NULL) != MR_OK || h.label_count > MOST_BOX_LABELS)
        return mri_rec_add_boxes(&x->gather, NULL, 0, x->cfg, err);
    uint8_t *data = malloc((size_t)h.bytes);
    rc = data ? mri_recordio_copy(in, r, data, h.bytes, err)
              : mr_error_set(err, MR_ENOMEM, "no memory for %u labels", h.label_count);
    if (!rc) rc = mri_rec_add_boxes(&x->gather, data + MRI_PICTURE_HEAD_BYTES, h.label_count, x->cfg, err);
    free(data);
    return rc;
}

typedef struct matched { /* records and the lines of .lst */
    uint64_t records, unlisted;
} matched;

static int take_record(mri_rec_set *x, mri_scan *s, const mri_rec_lists *l, const mri_framed_file *file,
                       const mri_recordio_record *r, matched *m, mr_error *err)
{
    const mri_recordio_input in = scanned(s);
    const uint64_t sample = file->first + m->records;
    stated f = {0};
    int rc = look_inside(x, &in, r, &f, err);
    if (!rc && x->detection) rc = add_boxes(x, &in, r, err);
    if (rc) return mri_error_place(err, rc, file->path, MR_NOWHERE, sample);
    const mri_rec_entry *e = f.sound && l->lst_path ? mri_rec_lists_find(l, f.id) : NULL;
    compare_label(x, e, &f);
    m->unlisted += f.sound && !e;
    if (e) rc = mri_rec_add_name(&x->gather, sample, e->path, err);
    if (!rc) rc = compare_offset(l, m->records, r->offset, false, err);
    if (!rc) rc = mri_scan_add(s, r->offset, r->bytes, indexed_label(x, f.sound, f.label), err);
    return rc;
}

/* A list of other pictures is no reason not to read the records, which say everything but the names. */
static void judge_list(mri_rec_set *x, const mri_rec_lists *l, const mri_framed_file *file, const matched *m)
{
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    if (!l->lst_path || (l->entry_count == m->records && m->unlisted == 0)) return;
    mri_rec_drop_names(&x->gather, file->first);
    if (l->entry_count != m->records)
        mri_rec_tell(
            &x->gather,
            "the list beside %.200s is not used: %llu pictures are listed, and there are %llu records; "
            "correct or remove it",
            name, (unsigned long long)l->entry_count, (unsigned long long)m->records);
    else
        mri_rec_tell(&x->gather,
                     "the list beside %.200s is not used: it does not have the numbers of %llu "
                     "records; correct or remove it",
                     name, (unsigned long long)m->unlisted);
}

static int index_from_records(mri_rec_set *x, mri_scan *s, const mri_rec_lists *l,
                              const mri_framed_file *file, mr_error *err)
{
    const mri_recordio_input in = scanned(s);
    mri_recordio_record r;
    matched m = {0};
    const uint64_t relabelled = x->relabelled;
    int rc = MR_OK;
    for (uint64_t at = 0; !rc && at < in.end; at += r.bytes, m.records++) {
        rc = mri_recordio_read_headers(&in, at, &r, err);
        if (rc) return mri_error_place(err, rc, file->path, MR_NOWHERE, file->first + m.records);
        rc = take_record(x, s, l, file, &r, &m, err);
    }
    if (!rc) rc = compare_offset(l, m.records, in.end, true, err);
    if (rc) return rc;
    judge_list(x, l, file, &m);
    if (l->entry_count != m.records) x->relabelled = relabelled; /* said already that it is another list */
    return MR_OK;
}

typedef struct first_look {
    uint32_t labels; /* of the record */
    uint64_t end;    /* offset of the next one; 0: no next record */
} first_look;

/* The first record says what kind they are, or where it has no objects a later one; its errors are reported
 * elsewhere. */
static int look_at_one(mri_rec_set *x, const mri_recordio_input *in, uint64_t offset, bool class_asked,
                       first_look *out, mr_error *err)
{
    uint8_t data[MRI_PICTURE_HEAD_BYTES + MRI_REC_MOST_LABELS * sizeof(float)];
    mri_recordio_record r;
    mri_picture_head h;
    bool empty;
    *out = (first_look){0};
    int rc = mri_recordio_read_headers(in, offset, &r, err);
    const uint64_t bytes = rc ? 0 : mri_min_u64(sizeof data, r.data_bytes);
    if (!rc) rc = mri_recordio_copy(in, &r, data, bytes, err);
    if (rc) return rc;
    if (mri_is_protobuf_record(data, (size_t)bytes, r.data_bytes))
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "records of SageMaker's protobuf format, which are vectors of numbers in this framing: "
            "expected pictures as MXNet's im2rec packs them; write the numbers to a NumPy file");
    if (mri_picture_head_parse(data, r.data_bytes, &h, NULL) != MR_OK) return MR_OK;
    out->labels = h.label_count;
    if (h.label_count > MRI_REC_MOST_LABELS || class_asked) return MR_OK;
    x->detection = mri_labels_of_detection(data + MRI_PICTURE_HEAD_BYTES, h.label_count, &empty);
    if (empty) out->end = offset + r.bytes;
    return MR_OK;
}

/* *labels: how many the first one has. */
static int look_at_first(mri_rec_set *x, const mri_recordio_input *in, uint64_t offset, bool class_asked,
                         uint32_t *labels, mr_error *err)
{
    first_look look;
    int rc = look_at_one(x, in, offset, class_asked, &look, err);
    *labels = look.labels;
    for (uint32_t k = 1; !rc && look.end && look.end < in->end && k < LOOKED_AT; k++)
        rc = look_at_one(x, in, look.end, class_asked, &look, err);
    return rc;
}

static int look_before_scan(mri_rec_set *x, mri_scan *s, mr_error *err)
{
    uint32_t ignored;
    const mri_recordio_input in = scanned(s);
    if (in.end == 0 || mri_scan_added(s) > 0) return MR_OK;
    const int rc = look_at_first(x, &in, 0, x->cfg->label_key != NULL, &ignored, err);
    return rc == MR_EFORMAT ? MR_OK : rc; /* the scan reports the error */
}

int mri_rec_scan(void *context, mri_scan *s, uint32_t file, mr_error *err)
{
    mri_rec_set *x = context;
    const mri_framed_file *f = &x->framed.file[file];
    mri_rec_lists l;
    bool lists_do;
    int rc = file == 0 ? look_before_scan(x, s, err) : MR_OK;
    if (!rc) rc = mri_rec_lists_read(&l, f->path, mri_scan_file_bytes(s), x->label_at, x->cfg, err);
    if (rc) return rc;
    rc = lists_hold(x, s, &l, &lists_do, err);
    if (!rc) rc = lists_do ? index_from_lists(x, s, &l, f->first, err) : index_from_records(x, s, &l, f, err);
    mri_rec_lists_fini(&l);
    return rc;
}

int mri_rec_note(void *context, uint8_t **out, size_t *bytes, mr_error *err)
{
    mri_rec_set *x = context;
    const mri_framed *f = &x->framed;
    const uint64_t used = f->memory_bytes + mri_entries_memory(&f->entries);
    return mri_rec_gathered(&x->gather, f->count, mri_max_u64(used, x->cfg->memory_bytes) - used, out, bytes,
                            err);
}

/* ---- the first record ---- */
typedef struct from_file {
    const mri_framed_file *file;
    int fd;
    uint8_t bytes[MRI_PICTURE_HEAD_BYTES + MRI_REC_MOST_LABELS * sizeof(float)];
} from_file;

static int get_from_file(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    from_file *f = context;
    *out = f->bytes; /* nobody here asks for more than a header with its labels */
    return mri_pread_all(f->fd, f->bytes, bytes, offset, f->file->path, err);
}

int mri_rec_count_labels(mri_rec_set *x, bool class_asked, uint32_t *out, mr_error *err)
{
    const uint32_t file = mri_framed_file_of(&x->framed, 0);
    from_file f = {.file = &x->framed.file[file]};
    const mri_recordio_input in = {get_from_file, &f, f.file->bytes};
    mri_entry at;
    int rc = mri_framed_entry(&x->framed, 0, &at, err);
    if (!rc) rc = mri_framed_file_acquire(&x->framed, file, true, &f.fd, err);
    if (rc) return rc;
    rc = look_at_first(x, &in, at.offset, class_asked, out, err);
    mri_framed_file_release(&x->framed, file);
    return rc ? mri_error_place(err, rc, f.file->path, MR_NOWHERE, 0) : MR_OK;
}
