/* formats/recordio/source_recordio.c: MXNet's RecordIO files as a data set (recordio.h has the framing).
 *
 *   open:   recordio_index.h ─► extents, labels, boxes, names; framed.h keeps them
 *   parse:  extent (all parts of one record) ─► joined when it has several (recordio_joined.h)
 *                                            ─► label, or boxes and their classes; packed labels; picture
 *
 *   field          label    detection   class chosen by number
 *   image          0        0           0
 *   label          1                    1
 *   boxes                   1                                    n x 4 f32: xmin, ymin, xmax, ymax
 *   box_labels              2                                    n i64
 *   labels         2 *      3           2                        f32, as they stand   * several a record */
#include <errno.h>
#include <stdio.h>
#include <xxhash.h>

#include "formats/image/image.h"
#include "formats/recordio/recordio_index.h"
#include "formats/recordio/recordio_joined.h"
#include "formats/recordio/recordio_lists.h"
#include "formats/source/told.h"
#include "formats/source/value.h"

enum { INDEX_VERSION = 4 };

typedef struct recordio { /* fixed after open except for members guarded by a lock in it */
    mri_rec_set set;
    mri_joined_table joined;
    char report_text[512];
} recordio;

/* ---- recognise ---- */
static bool begins_like_recordio(const uint8_t *head, size_t bytes)
{
    if (bytes < MRI_RECORDIO_HEAD_BYTES || mri_le32(head) != MRI_RECORDIO_MAGIC) return false;
    return mri_le32(head + 4) >> 29 <= 1;
}

static bool recordio_probe(const mri_probe *p)
{
    if (p->is_folder || p->is_pattern) return mri_filelist_probe(p->path, begins_like_recordio, p->trouble);
    return begins_like_recordio(p->inner, p->inner_bytes);
}

static int take_settings(recordio *x, const mr_source_config *cfg, mr_error *err)
{
    if (cfg->image_key)
        return mr_error_set(err, MR_EINVAL,
                            "a RecordIO record holds one picture: there is no key to choose it by");
    if (!cfg->label_key) return MR_OK;
    char *end;
    const unsigned long at = strtoul(cfg->label_key, &end, 10);
    if (cfg->label_key[0] < '0' || cfg->label_key[0] > '9' || *end || at >= MRI_REC_MOST_LABELS)
        return mr_error_set(
            err, MR_EINVAL,
            "RecordIO labels have numbers: expected the one to use as class, 0 to %u, found '%s'",
            MRI_REC_MOST_LABELS - 1, cfg->label_key);
    x->set.label_at = (uint32_t)at;
    return MR_OK;
}

/* The settings of the index know when .idx and .lst were written; which data set this is does not depend on
 * that. */
static uint64_t print_seed(const mri_framed *f, void *context)
{
    const mri_rec_set *x = context;
    const uint64_t seen[] = {f->count, x->label_at, (uint64_t)f->label_offset};
    return XXH3_64bits_withSeed("recordio", 8, XXH3_64bits(seen, sizeof seen));
}

static int open_files(mr_source *src, recordio *x, const mr_source_config *cfg, bool keep_index,
                      mr_error *err)
{
    mri_rec_set *set = &x->set;
    mri_filelist files;
    mr_source_config mine = *cfg;
    static const char *const lists[] = {".lst", ".idx", NULL};
    int rc = mri_filelist_find_with(&files, src->path, cfg->split, begins_like_recordio, lists, err);
    if (rc) return rc;
    mine.no_index_file = cfg->no_index_file || !keep_index;
    uint64_t settings = set->label_at + (cfg->label_key ? MRI_REC_MOST_LABELS : 0);
    for (uint32_t k = 0; !rc && k < files.count; k++) {
        settings = mri_mix64(settings ^ mri_rec_lists_fingerprint(files.path[k]));
        rc = mri_rec_lists_note(src, files.path[k], err);
    }
    const mri_framed_format format = {.name = "recordio",
                                      .version = INDEX_VERSION,
                                      .settings = settings,
                                      .scan = mri_rec_scan,
                                      .note = mri_rec_note,
                                      .print_seed = print_seed,
                                      .context = set};
    if (keep_index) mri_filelist_tell(&files, src); /* once */
    set->cfg = cfg;
    if (!rc) rc = mri_framed_open(&set->framed, &files, &format, &mine, err);
    else mri_filelist_fini(&files);
    set->cfg = NULL;
    mri_rec_gather_fini(&set->gather);
    return rc;
}

static bool read_facts(recordio *x)
{
    const mri_framed *f = &x->set.framed;
    return mri_rec_facts_read(&x->set.facts, f->note, f->note_bytes, f->count);
}

static int open_set(mr_source *src, recordio *x, const mr_source_config *cfg, mr_error *err)
{
    int rc = open_files(src, x, cfg, true, err);
    if (rc || read_facts(x)) return rc;
    mri_framed_close(&x->set.framed); /* an index with a right checksum and wrong contents */
    rc = open_files(src, x, cfg, false, err);
    if (rc || read_facts(x)) return rc;
    return mr_error_set(err, MR_EFORMAT, "the records contradict each other");
}

static void tell(recordio *x, mr_source_info *info, uint32_t to_choose_from)
{
    const char *kept = info->told ? info->told : "";
    int n = 0;
    if (x->set.relabelled)
        n = snprintf(
            x->report_text, sizeof x->report_text,
            "%llu records have another label than the list next to them: the records' labels are used",
            (unsigned long long)x->set.relabelled);
    if (to_choose_from > 1)
        n += snprintf(x->report_text + n, sizeof x->report_text - (size_t)n,
                      "%s%u labels a record; the first is the class: --label-key K takes "
                      "another, counted from 0",
                      n ? "; " : "", to_choose_from);
    if (n == 0) return;
    snprintf(x->report_text + n, sizeof x->report_text - (size_t)n, "%s%s", kept[0] ? "\n" : "", kept);
    info->told = x->report_text;
}

static void add_tensor(mr_source *src, const char *name, mr_dtype dtype)
{
    mr_field *f = &src->fields[src->info.field_count++];
    *f = mri_field(name, MR_TYPE_TENSOR);
    f->dtype = dtype;
}

static void fill_info(mr_source *src, recordio *x, uint32_t packed_labels, const mr_source_config *cfg)
{
    mr_source_info *info = &src->info;
    info->format = "recordio";
    mri_framed_info(&x->set.framed, info);
    mri_framed_labels(&x->set.framed, &src->labels);
    info->fingerprint = x->set.framed.print;
    info->memory_bytes += sizeof *x;
    x->joined.most = cfg->memory_bytes > info->memory_bytes ? cfg->memory_bytes - info->memory_bytes : 0;
    mri_source_set_image_label(src, mri_field("image", MR_TYPE_IMAGE));
    if (x->set.detection) {
        info->field_count = 1;
        add_tensor(src, "boxes", MR_F32);
        add_tensor(src, "box_labels", MR_I64);
    }
    if (packed_labels > 0) add_tensor(src, "labels", MR_F32);
    if (x->set.detection) {
        info->label_field = -1;
        mri_source_tell(src, "the labels describe object detection: boxes and box_labels are taken from "
                             "them, no class of the picture; --label-key K takes the number at K as class");
    }
    if (x->set.facts.reported) mri_told_add(&src->report, x->set.facts.reported);
    tell(x, info, cfg->label_key || x->set.detection ? 0 : packed_labels);
}

static int recordio_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    recordio *x = calloc(1, sizeof *x);
    if (!x) return mr_error_set(err, MR_ENOMEM, "no memory for RecordIO files");
    src->state = x;
    int rc = mri_joined_init(&x->joined, err);
    if (!rc) rc = take_settings(x, cfg, err);
    if (!rc) rc = open_set(src, x, cfg, err);
    uint32_t packed_labels = 0;
    if (!rc) rc = mri_rec_count_labels(&x->set, cfg->label_key != NULL, &packed_labels, err);
    if (!rc) fill_info(src, x, packed_labels, cfg);
    return rc;
}

static void recordio_close(mr_source *src)
{
    recordio *x = src->state;
    if (!x) return;
    mri_framed_close(&x->set.framed);
    mri_joined_fini(&x->joined);
    free(x);
}

/* ---- samples ---- */
static int recordio_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    return mri_framed_extent(&((const recordio *)src->state)->set.framed, sample, out, err);
}

static int recordio_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    return mri_framed_label(&((const recordio *)src->state)->set.framed, sample, out);
}

static bool recordio_labels_near(const mr_source *src)
{
    return mri_framed_labels_near(&((const recordio *)src->state)->set.framed);
}

static int recordio_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    return mri_framed_file_at(&((const recordio *)src->state)->set.framed, file, out);
}

static int recordio_file_acquire(const mr_source *src, uint32_t file, bool must, int *fd, mr_error *err)
{
    return mri_framed_file_acquire(&((const recordio *)src->state)->set.framed, file, must, fd, err);
}

static void recordio_file_release(const mr_source *src, uint32_t file)
{
    mri_framed_file_release(&((const recordio *)src->state)->set.framed, file);
}

static int recordio_check(const mr_source *src, mr_error *err)
{
    return mri_framed_check(src, &((const recordio *)src->state)->set.framed, err);
}

static void recordio_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const mri_framed *f = &((const recordio *)src->state)->set.framed;
    snprintf(buf, buf_bytes, "%s", f->file[mri_framed_file_of(f, sample)].path);
}

static int recordio_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                         size_t buf_bytes, mr_error *err)
{
    const mri_rec_facts *f = &((const recordio *)src->state)->set.facts;
    (void)data, (void)bytes, (void)err; /* the lists beside say it */
    if (!f->name_at) return MR_OK;
    const uint64_t at = f->name_at[sample], n = f->name_at[sample + 1] - at;
    if (n < buf_bytes) snprintf(buf, buf_bytes, "%.*s", (int)n, f->text + at);
    return MR_OK;
}

/* ---- parse ---- */
static int take_class(const mr_source *src, uint64_t sample, double label, int64_t *out, mr_error *err)
{
    const mri_framed *f = &((const recordio *)src->state)->set.framed;
    if (!mri_rec_is_class(label))
        return mr_error_set(err, MR_EFORMAT,
                            "expected a whole number as label, found %g: choose another of the record's "
                            "labels (--label-key K)",
                            label);
    mri_entry e;
    const int rc = mri_framed_entry(f, sample, &e, err);
    if (rc) return rc;
    const int64_t indexed = e.label;
    if (indexed != MRI_NO_LABEL && indexed != (int64_t)label)
        return mr_error_set(
            err, MR_EFORMAT,
            "expected label %lld as in the list, found %.0f: the list or the records have changed",
            (long long)indexed, label);
    return mri_framed_check_label(f, (int64_t)label, out, err);
}

/* All of them, as they stand. */
static void take_packed(const mri_picture_head *h, const uint8_t *data, mr_value *out)
{
    const uint32_t count = h->label_count ? h->label_count : 1;
    *out = (mr_value){.type = MR_TYPE_TENSOR,
                      .dtype = MR_F32,
                      .ndim = 1,
                      .dim = {count},
                      .data = h->label_count ? data + MRI_PICTURE_HEAD_BYTES : data + 4,
                      .bytes = count * sizeof(float)};
}

/* The numbers of the record, as the index keeps them in arrays. */
static int take_boxes(const recordio *x, uint64_t sample, const mri_picture_head *h, const uint8_t *labels,
                      mr_sample *out, mr_error *err)
{
    const mri_rec_facts *f = &x->set.facts;
    mri_objects o;
    const int rc = mri_objects_of(labels, h->label_count, &o, err);
    if (rc) return rc;
    const uint64_t first = f->start ? f->start[sample] : 0,
                   known = f->start ? f->start[sample + 1] - first : 0;
    bool same = o.count == known;
    for (uint32_t k = 0; same && k < o.count; k++) {
        float box[4];
        same = mri_object_at(labels, &o, k, box) == f->class[first + k];
        for (int i = 0; same && i < 4; i++) same = box[i] == f->box[4 * (first + k) + (uint64_t)i];
    }
    if (!same)
        return mr_error_set(err, MR_EFORMAT,
                            "other objects than the index says: the file has changed, or remove the index");
    out->value[1] = (mr_value){.type = MR_TYPE_TENSOR,
                               .dtype = MR_F32,
                               .ndim = 2,
                               .dim = {known, 4},
                               .data = f->box + 4 * first,
                               .bytes = (size_t)known * 4 * sizeof(float)};
    out->value[2] = (mr_value){.type = MR_TYPE_TENSOR,
                               .dtype = MR_I64,
                               .ndim = 1,
                               .dim = {known},
                               .data = f->class + first,
                               .bytes = (size_t)known * sizeof(int64_t)};
    return MR_OK;
}

static int take_labels(const mr_source *src, uint64_t sample, const mri_picture_head *h, const uint8_t *data,
                       mr_sample *out, mr_error *err)
{
    const recordio *x = src->state;
    const uint32_t count = h->label_count ? h->label_count : 1;
    const uint8_t *packed = data + MRI_PICTURE_HEAD_BYTES;
    double label;
    if (x->set.detection) {
        take_packed(h, data, &out->value[3]);
        return take_boxes(x, sample, h, packed, out, err);
    }
    out->value[1] = (mr_value){.type = MR_TYPE_INT};
    if (!mri_rec_label_of(&x->set, h, packed, &label))
        return mr_error_set(err, MR_EFORMAT,
                            "expected a label with the number %u, found %u labels in the record",
                            x->set.label_at, count);
    if (src->info.field_count == 3) take_packed(h, data, &out->value[2]);
    else if (count > 1)
        return mr_error_set(err, MR_EFORMAT, "expected one label as in the first record, found %u", count);
    return take_class(src, sample, label, &out->value[1].i, err);
}

static int take_picture(const uint8_t *data, uint64_t bytes, mr_sample *out, mr_error *err)
{
    if (bytes == 0)
        return mr_error_set(err, MR_EFORMAT, "expected a picture after the labels, found nothing");
    const int type = mr_image_sniff(data, (size_t)bytes);
    if (!type) {
        char kind[MRI_PICTURE_KIND_BYTES];
        return mr_error_set(err, MR_EFORMAT, "expected a picture, found %s",
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
        return mr_error_set(err, MR_EFORMAT,
                            "expected a record of %zu bytes as indexed, found one of %llu: make the "
                            ".idx file anew, or remove it",
                            bytes, (unsigned long long)r.bytes);
    const uint8_t *content = (const uint8_t *)data + MRI_RECORDIO_HEAD_BYTES;
    if (r.parts > 1) rc = mri_joined_data(&x->joined, &in, &r, sample, &content, err);
    if (!rc) rc = mri_picture_head_parse(content, r.data_bytes, &h, err);
    if (!rc) rc = take_labels(src, sample, &h, content, out, err);
    if (!rc) rc = take_picture(content + h.bytes, r.data_bytes - h.bytes, out, err);
    return rc;
}

static int recordio_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                          mr_sample *out, mr_error *err)
{
    const mri_framed *f = &((const recordio *)src->state)->set.framed;
    mr_error here = MR_ERROR_INIT;
    out->value_count = src->info.field_count;
    const int rc = parse_record(src, sample, data, bytes, out, &here);
    if (!rc) return MR_OK;
    const uint64_t within = here.offset == MR_NOWHERE ? 0 : here.offset;
    mri_entry e = {0};
    mri_framed_entry(f, sample, &e, NULL);
    if (err) *err = here;
    return mri_error_place(err, rc, f->file[mri_framed_file_of(f, sample)].path, e.offset + within, sample);
}

const mri_source_ops mri_source_recordio = {
    .name = "recordio",
    .help = "RecordIO of MXNet: .rec files with pictures and labels; .idx and .lst next to them "
            "are used and compared",
    .probe = recordio_probe,
    .open = recordio_open,
    .close = recordio_close,
    .extent = recordio_extent,
    .label = recordio_label,
    .labels_near = recordio_labels_near,
    .file_at = recordio_file_at,
    .file_acquire = recordio_file_acquire,
    .file_release = recordio_file_release,
    .check = recordio_check,
    .sample_path = recordio_sample_path,
    .sample_name = recordio_name,
    .parse = recordio_parse,
};
