/* formats/recordio/source_recordio.c: MXNet's RecordIO files as a data set (recordio.h has the framing).
 *
 *   open:   .idx and .lst that belong together ─► extents and labels, after a look at some records ─┐
 *           else the headers of all records ────► extents and labels, compared with .idx and .lst ──┴─┐
 *                                                                   framed.h keeps the index ◄────────┘
 *   parse:  extent (all parts of one record) ─► joined when it has several ─► label, packed labels, picture
 *
 * Labels come from the records; a list beside them is only compared. Data that holds the magic number is
 * stored in parts (some ten records of a whole ImageNet) and cannot be shown in one piece where it lies: the
 * joined bytes of such a record are kept by the source from the first time it is parsed. What those may take
 * together is bounded by the memory that a source is allowed. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <xxhash.h>

#include "formats/fileset/fileset.h"
#include "formats/image/image.h"
#include "formats/recordio/recordio.h"
#include "formats/recordio/recordio_lists.h"
#include "formats/source/value.h"

enum { INDEX_VERSION = 1, LOOKED_AT = 16, JOINED_BUCKETS = 1024, MOST_LABELS = 1024 };

typedef struct joined { /* a record of several parts in one piece; fixed once in the table */
    struct joined *next;
    uint64_t sample, bytes;
    uint8_t data[];
} joined;

typedef struct recordio { /* fixed after open but for what the lock guards */
    mri_framed framed;
    const mr_source_config *cfg; /* during open */
    uint32_t label_at;           /* which of packed labels is the class */
    uint64_t relabelled;         /* during open: records with another label than the list */
    char report_text[512];
    uint64_t joined_most; /* bytes that joined records may take */
    bool has_lock;
    pthread_mutex_t lock;
    uint64_t joined_bytes;         /* lock */
    joined *table[JOINED_BUCKETS]; /* lock; entries stay until close */
} recordio;

/* ---- recognise ---- */
static bool begins_like_recordio(const uint8_t *head, size_t bytes)
{
    if (bytes < MRI_RECORDIO_HEAD_BYTES || mri_le32(head) != MRI_RECORDIO_MAGIC) return false;
    return mri_le32(head + 4) >> 29 <= 1;
}

static bool recordio_probe(const mri_probe *p)
{
    if (p->is_folder) return mri_filelist_probe(p->path, begins_like_recordio);
    return begins_like_recordio(p->inner, p->inner_bytes);
}

/* ---- what a record says of itself ---- */
/* The label asked for; packed: the labels behind the header. False when there are not that many. */
static bool label_of(const recordio *x, const mri_picture_head *h, const uint8_t *packed, double *out)
{
    float label = h->label;
    if (x->label_at >= (h->label_count ? h->label_count : 1)) return false;
    if (h->label_count) memcpy(&label, packed + x->label_at * sizeof label, sizeof label);
    *out = (double)label;
    return true;
}

/* A whole number with room for an offset. */
static bool is_class(double label) { return label > -0x1p62 && label < 0x1p62 && label == floor(label); }

typedef struct stated { /* by a header */
    bool sound;         /* a label is stated */
    uint64_t id;
    double label;
    uint32_t label_count;
} stated;

/* A record without a sound header is a bad sample, not a bad file: parse() tells it. */
static int look_inside(const recordio *x, const mri_recordio_input *in, const mri_recordio_record *r,
                       stated *out, mr_error *err)
{
    uint8_t head[MRI_PICTURE_HEAD_BYTES + MOST_LABELS * sizeof(float)];
    mri_picture_head h;
    const uint64_t wanted = MRI_PICTURE_HEAD_BYTES + ((uint64_t)x->label_at + 1) * sizeof(float);
    *out = (stated){0};
    const int rc = mri_recordio_copy(in, r, head, mri_min_u64(wanted, r->data_bytes), err);
    if (rc || mri_picture_head_parse(head, r->data_bytes, &h, NULL) != MR_OK) return rc;
    out->id = h.id;
    out->label_count = h.label_count;
    out->sound = label_of(x, &h, head + MRI_PICTURE_HEAD_BYTES, &out->label);
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
static int record_matches(const recordio *x, const mri_recordio_input *in, const mri_rec_lists *l, uint64_t k,
                          bool *out, mr_error *err)
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
    return rc == MR_EFORMAT ? MR_OK : rc; /* reading all of the file tells what is wrong */
}

/* Both lists are right as far as some records, spread over the file, can tell; the others are held against
 * them when parsed. */
static int lists_hold(const recordio *x, mri_scan *s, mri_rec_lists *l, bool *out, mr_error *err)
{
    const mri_recordio_input in = scanned(s);
    *out = lists_match(l, in.end);
    const uint64_t looks = mri_min_u64(l->offset_count, LOOKED_AT);
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && *out && k < looks; k++)
        rc = record_matches(x, &in, l, looks > 1 ? k * (l->offset_count - 1) / (looks - 1) : 0, out, err);
    return rc;
}

static int64_t indexed_label(bool sound, double label)
{
    return sound && is_class(label) ? (int64_t)label : MRI_NO_LABEL;
}

static int index_from_lists(mri_scan *s, const mri_rec_lists *l, mr_error *err)
{
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < l->offset_count; k++) {
        const mri_rec_offset *o = &l->offset[k];
        const double label = mri_rec_lists_find(l, o->key)->label;
        rc = mri_scan_add(s, o->offset, end_of(l, k, mri_scan_file_bytes(s)) - o->offset,
                          indexed_label(true, label), err);
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

static int compare_count(const mri_rec_lists *l, uint64_t records, const char *path, mr_error *err)
{
    if (!l->lst_path || l->entry_count == records) return MR_OK;
    const char *slash = strrchr(path, '/');
    mr_error_set(
        err, MR_EFORMAT,
        "%llu pictures are listed, %s has %llu records: pictures were left out or added when packing; "
        "correct or remove the list",
        (unsigned long long)l->entry_count, slash ? slash + 1 : path, (unsigned long long)records);
    return wrong_list(err, l->lst_path);
}

static void compare_label(recordio *x, const mri_rec_lists *l, const stated *f)
{
    const mri_rec_entry *e = f->sound && l->lst_path ? mri_rec_lists_find(l, f->id) : NULL;
    x->relabelled += e && e->label != f->label;
}

static int index_from_records(recordio *x, mri_scan *s, const mri_rec_lists *l, const mri_framed_file *file,
                              mr_error *err)
{
    const mri_recordio_input in = scanned(s);
    mri_recordio_record r;
    uint64_t k = 0;
    int rc = MR_OK;
    for (uint64_t at = 0; !rc && at < in.end; at += r.bytes, k++) {
        stated f = {0};
        rc = mri_recordio_read_headers(&in, at, &r, err);
        if (!rc) rc = look_inside(x, &in, &r, &f, err);
        if (rc) return mri_error_place(err, rc, file->path, MR_NOWHERE, file->first + k);
        compare_label(x, l, &f);
        rc = compare_offset(l, k, at, false, err);
        if (!rc) rc = mri_scan_add(s, at, r.bytes, indexed_label(f.sound, f.label), err);
    }
    if (!rc) rc = compare_offset(l, k, in.end, true, err);
    return rc ? rc : compare_count(l, k, file->path, err);
}

static int recordio_scan(void *context, mri_scan *s, uint32_t file, mr_error *err)
{
    recordio *x = context;
    const mri_framed_file *f = &x->framed.file[file];
    mri_rec_lists l;
    bool lists_do;
    int rc = mri_rec_lists_read(&l, f->path, mri_scan_file_bytes(s), x->label_at, x->cfg, err);
    if (rc) return rc;
    rc = lists_hold(x, s, &l, &lists_do, err);
    if (!rc) rc = lists_do ? index_from_lists(s, &l, err) : index_from_records(x, s, &l, f, err);
    mri_rec_lists_fini(&l);
    return rc;
}

/* ---- open, close ---- */
typedef struct from_file {
    const mri_framed_file *file;
    uint8_t bytes[MRI_PICTURE_HEAD_BYTES + MOST_LABELS * sizeof(float)];
} from_file;

static int get_from_file(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    from_file *f = context;
    *out = f->bytes; /* nobody here asks for more than a header with its labels */
    return mri_pread_all(f->file->fd, f->bytes, bytes, offset, f->file->path, err);
}

/* The first record decides whether there are several labels. */
static int count_packed_labels(const recordio *x, uint32_t *out, mr_error *err)
{
    from_file f = {.file = &x->framed.file[mri_framed_file_of(&x->framed, 0)]};
    mri_recordio_input in = {get_from_file, &f, f.file->bytes};
    mri_recordio_record r;
    stated first = {0};
    int rc = mri_recordio_read_headers(&in, x->framed.offset[0], &r, err);
    if (!rc) rc = look_inside(x, &in, &r, &first, err);
    *out = first.label_count;
    return rc ? mri_error_place(err, rc, f.file->path, MR_NOWHERE, 0) : MR_OK;
}

static int take_settings(recordio *x, const mr_source_config *cfg, mr_error *err)
{
    if (cfg->image_key)
        return mr_error_set(err, MR_EINVAL,
                            "a RecordIO record holds one picture: there is no key to choose it by");
    if (!cfg->label_key) return MR_OK;
    char *end;
    const unsigned long at = strtoul(cfg->label_key, &end, 10);
    if (cfg->label_key[0] < '0' || cfg->label_key[0] > '9' || *end || at >= MOST_LABELS)
        return mr_error_set(
            err, MR_EINVAL,
            "RecordIO labels have numbers: expected the one to use as class, 0 to %u, found '%s'",
            MOST_LABELS - 1, cfg->label_key);
    x->label_at = (uint32_t)at;
    return MR_OK;
}

static int open_files(mr_source *src, recordio *x, mri_filelist *files, const mr_source_config *cfg,
                      mr_error *err)
{
    uint64_t settings = x->label_at;
    for (uint32_t k = 0; k < files->count; k++)
        settings = mri_mix64(settings ^ mri_rec_lists_fingerprint(files->path[k]));
    const mri_framed_format format = {.name = "recordio",
                                      .version = INDEX_VERSION,
                                      .settings = settings,
                                      .scan = recordio_scan,
                                      .context = x};
    src->info.has_test = files->has_test;
    x->cfg = cfg;
    const int rc = mri_framed_open(&x->framed, files, &format, cfg, err);
    x->cfg = NULL;
    return rc;
}

/* The settings of the index know when .idx and .lst were written; which data set this is does not depend on
 * that. */
static uint64_t fingerprint(const recordio *x)
{
    const mri_framed *f = &x->framed;
    const uint64_t seen[] = {f->count, x->label_at, (uint64_t)f->label_offset};
    uint64_t print = XXH3_64bits_withSeed("recordio", 8, XXH3_64bits(seen, sizeof seen));
    for (uint32_t k = 0; k < f->file_count; k++)
        print = XXH3_64bits_withSeed(&f->file[k].first, sizeof f->file[k].first, print);
    print = XXH3_64bits_withSeed(f->offset, f->count * sizeof *f->offset, print);
    print = XXH3_64bits_withSeed(f->bytes, f->count * sizeof *f->bytes, print);
    return f->label ? XXH3_64bits_withSeed(f->label, f->count * sizeof *f->label, print) : print;
}

static void tell(recordio *x, mr_source_info *info, uint32_t to_choose_from)
{
    const char *kept = info->told ? info->told : "";
    int n = 0;
    if (x->relabelled)
        n = snprintf(x->report_text, sizeof x->report_text,
                     "%llu records have another label than the list beside them says: theirs are used",
                     (unsigned long long)x->relabelled);
    if (to_choose_from > 1)
        n += snprintf(x->report_text + n, sizeof x->report_text - (size_t)n,
                      "%s%u labels a record; the first is the class: --label-key K takes "
                      "another, counted from 0",
                      n ? "; " : "", to_choose_from);
    if (n == 0) return;
    snprintf(x->report_text + n, sizeof x->report_text - (size_t)n, "%s%s", kept[0] ? "; " : "", kept);
    info->told = x->report_text;
}

static void fill_info(mr_source *src, recordio *x, uint32_t packed_labels, const mr_source_config *cfg)
{
    mr_source_info *info = &src->info;
    info->format = "recordio";
    mri_framed_info(&x->framed, info);
    info->fingerprint = fingerprint(x);
    info->memory_bytes += sizeof *x;
    x->joined_most = cfg->memory_bytes > info->memory_bytes ? cfg->memory_bytes - info->memory_bytes : 0;
    mri_source_set_image_label(src, mri_field("image", MR_TYPE_IMAGE));
    if (packed_labels > 0) {
        src->fields[2] = mri_field("labels", MR_TYPE_TENSOR);
        src->fields[2].dtype = MR_F32;
        info->field_count = 3;
    }
    tell(x, info, cfg->label_key ? 0 : packed_labels);
}

static int recordio_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    recordio *x = calloc(1, sizeof *x);
    if (!x) return mr_error_set(err, MR_ENOMEM, "no memory for RecordIO files");
    src->state = x;
    x->has_lock = pthread_mutex_init(&x->lock, NULL) == 0;
    if (!x->has_lock) return mr_error_set(err, MR_ENOMEM, "no lock for RecordIO files");
    mri_filelist files = {0};
    int rc = take_settings(x, cfg, err);
    if (!rc) rc = mri_filelist_find(&files, src->path, cfg->split, begins_like_recordio, err);
    if (!rc) rc = open_files(src, x, &files, cfg, err);
    uint32_t packed_labels = 0;
    if (!rc) rc = count_packed_labels(x, &packed_labels, err);
    if (!rc) fill_info(src, x, packed_labels, cfg);
    return rc;
}

static void recordio_close(mr_source *src)
{
    recordio *x = src->state;
    if (!x) return;
    mri_framed_close(&x->framed);
    for (size_t k = 0; k < JOINED_BUCKETS; k++)
        for (joined *j = x->table[k], *next; j; j = next) {
            next = j->next;
            free(j);
        }
    if (x->has_lock) pthread_mutex_destroy(&x->lock);
    free(x);
}

/* ---- samples ---- */
static int recordio_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    (void)err;
    return mri_framed_extent(&((const recordio *)src->state)->framed, sample, out);
}

static int recordio_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    return mri_framed_label(&((const recordio *)src->state)->framed, sample, out);
}

static int recordio_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    return mri_framed_file_at(&((const recordio *)src->state)->framed, file, out);
}

static void recordio_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const mri_framed *f = &((const recordio *)src->state)->framed;
    snprintf(buf, buf_bytes, "%s", f->file[mri_framed_file_of(f, sample)].path);
}

/* ---- records of several parts ---- */
static joined *find_joined_locked(const recordio *x, uint64_t sample)
{
    joined *j = x->table[sample % JOINED_BUCKETS];
    while (j && j->sample != sample) j = j->next;
    return j;
}

static int join(const mri_recordio_input *in, const mri_recordio_record *r, uint64_t sample, joined **out,
                mr_error *err)
{
    *out = malloc(sizeof **out + (size_t)r->data_bytes);
    if (!*out)
        return mr_error_set(err, MR_ENOMEM, "no memory to join a record of %llu bytes",
                            (unsigned long long)r->data_bytes);
    **out = (joined){.sample = sample, .bytes = r->data_bytes};
    const int rc = mri_recordio_copy(in, r, (*out)->data, r->data_bytes, err);
    if (rc) free(*out);
    return rc;
}

/* The one in the table when it is there already, which must say the same. */
static int enter_locked(recordio *x, joined *mine, const joined **out, mr_error *err)
{
    const joined *there = find_joined_locked(x, mine->sample);
    *out = there ? there : mine;
    if (there && there->bytes == mine->bytes && memcmp(there->data, mine->data, (size_t)mine->bytes) == 0)
        return MR_OK;
    if (there)
        return mr_error_set(err, MR_EFORMAT,
                            "the record is not what it was when it was read first: the file has changed");
    if (mine->bytes > x->joined_most - x->joined_bytes)
        return mr_error_set(
            err, MR_ELIMIT,
            "records stored in parts need more than the %llu bytes allowed: allow more memory",
            (unsigned long long)x->joined_most);
    x->joined_bytes += mine->bytes;
    mine->next = x->table[mine->sample % JOINED_BUCKETS];
    x->table[mine->sample % JOINED_BUCKETS] = mine;
    return MR_OK;
}

static int joined_data(recordio *x, const mri_recordio_input *in, const mri_recordio_record *r,
                       uint64_t sample, const uint8_t **out, mr_error *err)
{
    joined *mine;
    const joined *kept;
    int rc = join(in, r, sample, &mine, err);
    if (rc) return rc;
    pthread_mutex_lock(&x->lock);
    rc = enter_locked(x, mine, &kept, err);
    pthread_mutex_unlock(&x->lock);
    *out = kept->data;
    if (rc || kept != mine) free(mine);
    return rc;
}

/* ---- parse ---- */
static int take_class(const mr_source *src, uint64_t sample, double label, int64_t *out, mr_error *err)
{
    const mri_framed *f = &((const recordio *)src->state)->framed;
    if (!is_class(label))
        return mr_error_set(
            err, MR_EFORMAT,
            "expected a whole number as label, found %g: choose another of the record's labels", label);
    const int64_t indexed = f->label ? f->label[sample] : MRI_NO_LABEL;
    if (indexed != MRI_NO_LABEL && indexed != (int64_t)label)
        return mr_error_set(
            err, MR_EFORMAT,
            "expected label %lld as in the list, found %.0f: the list or the records have changed",
            (long long)indexed, label);
    return mri_framed_check_label(f, (int64_t)label, out, err);
}

static int take_labels(const mr_source *src, uint64_t sample, const mri_picture_head *h, const uint8_t *data,
                       mr_sample *out, mr_error *err)
{
    const recordio *x = src->state;
    const uint32_t count = h->label_count ? h->label_count : 1;
    const uint8_t *packed = data + MRI_PICTURE_HEAD_BYTES;
    double label;
    out->value[1] = (mr_value){.type = MR_TYPE_INT};
    if (!label_of(x, h, packed, &label))
        return mr_error_set(err, MR_EFORMAT,
                            "expected a label with the number %u, found %u labels in the record", x->label_at,
                            count);
    if (src->info.field_count == 3)
        out->value[2] = (mr_value){.type = MR_TYPE_TENSOR,
                                   .dtype = MR_F32,
                                   .ndim = 1,
                                   .dim = {count},
                                   .data = h->label_count ? packed : data + 4,
                                   .bytes = count * sizeof(float)};
    else if (count > 1)
        return mr_error_set(err, MR_EFORMAT, "expected one label as in the first record, found %u", count);
    return take_class(src, sample, label, &out->value[1].i, err);
}

static int take_picture(const uint8_t *data, uint64_t bytes, mr_sample *out, mr_error *err)
{
    if (bytes == 0)
        return mr_error_set(err, MR_EFORMAT, "expected a picture behind the labels, found nothing");
    const int type = mr_image_sniff(data, (size_t)bytes);
    if (!type) {
        char kind[MRI_PICTURE_KIND_BYTES];
        return mr_error_set(err, MR_EFORMAT, "expected a JPEG or PNG, found %s",
                            mri_picture_kind(data, (size_t)bytes, kind));
    }
    out->value[0] = (mr_value){.type = (mr_type)type, .data = data, .bytes = (size_t)bytes};
    return MR_OK;
}

static int parse_record(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                        mr_error *err)
{
    recordio *x = src->state;
    mri_recordio_memory memory = {data, bytes};
    const mri_recordio_input in = mri_recordio_in_memory(&memory);
    mri_recordio_record r;
    mri_picture_head h;
    int rc = mri_recordio_read_headers(&in, 0, &r, err);
    if (rc) return rc;
    if (r.bytes != bytes)
        return mr_error_set(
            err, MR_EFORMAT,
            "expected a record of %zu bytes as indexed, found one of %llu: make the .idx file anew, or "
            "remove it",
            bytes, (unsigned long long)r.bytes);
    const uint8_t *content = (const uint8_t *)data + MRI_RECORDIO_HEAD_BYTES;
    if (r.parts > 1) rc = joined_data(x, &in, &r, sample, &content, err);
    if (!rc) rc = mri_picture_head_parse(content, r.data_bytes, &h, err);
    if (!rc) rc = take_labels(src, sample, &h, content, out, err);
    if (!rc) rc = take_picture(content + h.bytes, r.data_bytes - h.bytes, out, err);
    return rc;
}

static int recordio_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                          mr_sample *out, mr_error *err)
{
    const mri_framed *f = &((const recordio *)src->state)->framed;
    mr_error here = MR_ERROR_INIT;
    out->value_count = src->info.field_count;
    const int rc = parse_record(src, sample, data, bytes, out, &here);
    if (!rc) return MR_OK;
    const uint64_t within = here.offset == MR_NOWHERE ? 0 : here.offset;
    if (err) *err = here;
    return mri_error_place(err, rc, f->file[mri_framed_file_of(f, sample)].path, f->offset[sample] + within,
                           sample);
}

const mri_source_ops mri_source_recordio = {
    .name = "recordio",
    .help = "RecordIO of MXNet: .rec files with JPEG or PNG pictures and labels; .idx and .lst beside them "
            "are used and compared",
    .probe = recordio_probe,
    .open = recordio_open,
    .close = recordio_close,
    .extent = recordio_extent,
    .label = recordio_label,
    .file_at = recordio_file_at,
    .sample_path = recordio_sample_path,
    .parse = recordio_parse,
};
