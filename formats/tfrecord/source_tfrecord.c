/* formats/tfrecord/source_tfrecord.c: TFRecord files of tf.train.Example (tfrecord.h has the framing,
 * example.h the message).
 *
 *   scan   each record: length checked (a wrong one ends it: nobody knows where the next record begins), data
 *          looked into for the label, class names and boxes; errors inside a record are left to parse()
 *   parse  checksum of the data, picture, label, boxes, mask; a record that is wrong is a bad sample with its
 *          reason
 *
 * An extent is the data and their checksum; both follow the head, whose offset messages name. The first
 * readable record determines the features of picture, class, boxes and mask; a feature that it lacks comes
 * from the first record that has it, and further features are fields (tfrecord_more.h). Boxes are xmin, ymin,
 * xmax, ymax as in the file, 0 to 1 by custom. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/fileset/fileset.h"
#include "formats/source/value.h"
#include "formats/tfrecord/tfrecord.h"
#include "formats/tfrecord/tfrecord_facts.h"

enum {
    SCAN_VERSION = 4,
    MOST_TRIES = 64 /* unreadable records before the first that says which features there are */
};

typedef struct tfrecord { /* fixed after open */
    mri_framed f;
    mri_tf_facts facts;
    mr_field field[MR_MAX_FIELDS];
} tfrecord;

static bool accept(const uint8_t *head, size_t bytes)
{
    uint64_t length;
    return bytes >= MRI_TFRECORD_HEAD && mri_tfrecord_length(head, &length);
}

static bool tfrecord_probe(const mri_probe *p)
{
    if (p->is_folder || p->is_pattern) return mri_filelist_probe(p->path, accept, p->trouble);
    return accept(p->head, p->head_bytes) || accept(p->inner, p->inner_bytes);
}

/* ---- scan ---- */
typedef struct scanning {
    const mri_framed *f; /* for the names of files */
    mri_tf_gather gather;
    uint32_t tries;
    mr_error first; /* why the first record could not be read */
} scanning;

static int check_data(const uint8_t *data, size_t bytes, mr_error *err)
{
    const uint32_t expected = mri_le32(data + bytes), found = mri_tfrecord_crc(data, bytes);
    if (found == expected) return MR_OK;
    return mr_error_set(
        err, MR_ECHECKSUM,
        "the checksum of the record's data does not match: expected %08x, found %08x: copy the file again",
        expected, found);
}

static int look_inside(scanning *s, const uint8_t *data, size_t bytes, int64_t *label, mr_error *err)
{
    mri_feature f[MRI_TF_FEATURES];
    mri_tf_gather *g = &s->gather;
    mr_error why = MR_ERROR_INIT;
    bool again;
    *label = MRI_NO_LABEL;
    int rc = check_data(data, bytes, &why);
    if (!rc && !g->chosen) rc = mri_tf_choose(g, data, bytes, &why);
    if (rc == MR_ENOMEM) return mr_error_set(err, rc, "%s", why.text);
    if (!g->chosen && s->tries++ == 0) s->first = why;
    if (!rc) rc = mri_example_pick(data, bytes, g->key, MRI_TF_FEATURES, f, NULL);
    if (!rc) rc = mri_tf_look(g, data, bytes, &again, &why);
    if (rc == MR_ENOMEM) return mr_error_set(err, rc, "%s", why.text);
    if (!rc && again) rc = mri_example_pick(data, bytes, g->key, MRI_TF_FEATURES, f, NULL);
    if (!rc && g->key[MRI_TF_LABEL] && mri_tf_one_int(&f[MRI_TF_LABEL], g->key[MRI_TF_LABEL], label, NULL))
        *label = MRI_NO_LABEL;
    return mri_tf_add(g, rc ? NULL : f, *label, err);
}

static int scan_record(scanning *s, mri_scan *scan, uint64_t at, uint64_t *next, mr_error *err)
{
    const uint64_t left = mri_scan_file_bytes(scan) - at;
    const uint8_t *p;
    uint64_t bytes;
    if (left < MRI_TFRECORD_HEAD)
        return mr_error_set(err, MR_EFORMAT,
                            "the file ends inside the head of a record: expected 12 bytes, found %" PRIu64
                            "; copy it again",
                            left);
    int rc = mri_scan_get(scan, at, MRI_TFRECORD_HEAD, &p, err);
    if (rc) return rc;
    if (!mri_tfrecord_length(p, &bytes))
        return mr_error_set(
            err, MR_ECHECKSUM,
            "the checksum of a record's length does not match: expected %08x, found %08x; this is no "
            "TFRecord file, or it is damaged from here on",
            mri_le32(p + 8), mri_tfrecord_crc(p, 8));
    if (bytes > left - MRI_TFRECORD_HEAD || left - MRI_TFRECORD_HEAD - bytes < MRI_TFRECORD_TAIL)
        return mr_error_set(err, MR_EFORMAT,
                            "a record of %" PRIu64 " bytes, but the file has no more than %" PRIu64
                            " behind its head: it was cut short, or is damaged",
                            bytes, left - MRI_TFRECORD_HEAD);
    if (bytes > MRI_MAX_SAMPLE_BYTES - MRI_TFRECORD_TAIL)
        return mr_error_set(err, MR_ELIMIT, "a record of %" PRIu64 " bytes: at most 2 GiB are read", bytes);
    rc = mri_scan_get(scan, at + MRI_TFRECORD_HEAD, (size_t)bytes + MRI_TFRECORD_TAIL, &p, err);
    int64_t label;
    if (!rc) rc = look_inside(s, p, (size_t)bytes, &label, err);
    if (!rc) rc = mri_scan_add(scan, at + MRI_TFRECORD_HEAD, bytes + MRI_TFRECORD_TAIL, label, err);
    *next = at + MRI_TFRECORD_HEAD + bytes + MRI_TFRECORD_TAIL;
    return rc;
}

static int cannot_read_any(const scanning *s, mr_error *err)
{
    if (err) *err = s->first;
    return s->first.code;
}

static int tfrecord_scan(void *context, mri_scan *scan, uint32_t file, mr_error *err)
{
    scanning *s = context;
    s->gather.file = file + 1;
    for (uint64_t at = 0; at < mri_scan_file_bytes(scan);) {
        uint64_t next = 0;
        const int rc = scan_record(s, scan, at, &next, err);
        if (rc) return mri_error_place(err, rc, NULL, at, MR_NOWHERE);
        if (s->tries == 1 && s->first.offset == MR_NOWHERE)
            mri_error_place(&s->first, s->first.code, s->f->file[file].path, at, 0);
        if (!s->gather.chosen && s->tries == MOST_TRIES) return cannot_read_any(s, err);
        at = next;
    }
    return MR_OK;
}

static int tfrecord_note(void *context, uint8_t **out, size_t *bytes, mr_error *err)
{
    scanning *s = context;
    if (!s->gather.chosen && s->tries) return cannot_read_any(s, err);
    return mri_tf_note(&s->gather, out, bytes, err);
}

/* ---- open ---- */
static uint64_t hash_settings(const mr_source_config *cfg)
{
    const char *image = cfg->image_key ? cfg->image_key : "", *label = cfg->label_key ? cfg->label_key : "";
    return XXH3_64bits_withSeed(label, strlen(label), XXH3_64bits(image, strlen(image)));
}

static int open_files(mr_source *src, tfrecord *t, const mr_source_config *cfg, bool keep_index,
                      mr_error *err)
{
    mri_filelist files;
    mr_source_config mine = *cfg;
    int rc = mri_filelist_find(&files, src->path, cfg->split, accept, err);
    if (rc) return rc;
    mri_filelist_tell(&files, src);
    mine.no_index_file = cfg->no_index_file || !keep_index;
    scanning s = {.f = &t->f, .gather.cfg = cfg, .first = MR_ERROR_INIT};
    const mri_framed_format format = {.name = "tfrecord",
                                      .version = SCAN_VERSION,
                                      .settings = hash_settings(cfg),
                                      .scan = tfrecord_scan,
                                      .note = tfrecord_note,
                                      .context = &s};
    rc = mri_framed_open(&t->f, &files, &format, &mine, err);
    mri_tf_gather_fini(&s.gather);
    return rc;
}

static void add_field(mr_source *src, tfrecord *t, mr_field f) { t->field[src->info.field_count++] = f; }

static void add_tensor(mr_source *src, tfrecord *t, const char *name, mr_dtype dtype)
{
    mr_field f = mri_field(name, MR_TYPE_TENSOR);
    f.dtype = dtype;
    add_field(src, t, f);
}

static void set_fields(mr_source *src, tfrecord *t)
{
    mr_source_info *info = &src->info;
    const mri_tf_facts *facts = &t->facts;
    const bool pixels = facts->dim[0] > 0;
    if (pixels) {
        info->height = (uint32_t)facts->dim[0];
        info->width = (uint32_t)facts->dim[1];
        info->channels = (uint32_t)facts->dim[2];
    }
    mri_source_set_image_label(src, pixels
                                        ? mri_field_pixels("image", info->height, info->width, info->channels)
                                        : mri_field("image", MR_TYPE_IMAGE));
    memcpy(t->field, src->fields, 2 * sizeof *t->field);
    info->fields = t->field;
    if (!facts->key[MRI_TF_LABEL]) {
        info->label_field = -1;
        info->field_count = 1;
    }
    if (facts->has_boxes) add_tensor(src, t, "boxes", MR_F32);
    if (facts->has_box_labels) add_tensor(src, t, "box_labels", MR_I64);
    if (facts->key[MRI_TF_MASK]) add_field(src, t, mri_field("mask", MR_TYPE_PNG));
    for (uint32_t k = 0; k < facts->more_count; k++) add_field(src, t, facts->more[k]);
    for (size_t k = 0; k < MRI_TF_LINES && facts->told[k]; k++) mri_source_tell(src, "%s", facts->told[k]);
}

/* Either every class that occurs has a name, or names are dropped, with a line: a number without a name must
 * have no sample. */
static int check_names(mr_source *src, tfrecord *t, mr_error *err)
{
    const mri_framed *f = &t->f;
    mri_entries_walk w;
    mri_entry one;
    int64_t label;
    bool all = true;
    int rc = MR_OK;
    if (!t->facts.class_names) return MR_OK;
    mri_entries_walk_init(&w, &f->entries);
    while (all && (rc = mri_entries_walk_next(&w, &one, err)) == MR_OK)
        if (one.label != MRI_NO_LABEL && mri_framed_check_label(f, one.label, &label, NULL) == MR_OK)
            all = label < (int64_t)f->class_count && t->facts.class_names[label][0];
    mri_entries_walk_fini(&w);
    if (!all) {
        mri_tf_facts_fini(&t->facts);
        mri_source_tell(src, "names of classes are left out: class %" PRId64 " has none in \"%s\"", one.label,
                        t->facts.key[MRI_TF_TEXT]);
    }
    return rc == MR_EEND ? MR_OK : rc;
}

static int tfrecord_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    tfrecord *t = calloc(1, sizeof *t);
    if (!t) return mr_error_set(err, MR_ENOMEM, "no memory for TFRecord files");
    src->state = t;
    int rc = open_files(src, t, cfg, true, err);
    if (rc) return rc;
    if (!mri_tf_facts_read(&t->facts, t->f.note, t->f.note_bytes, t->f.count)) {
        mri_framed_close(&t->f); /* an index with a right checksum and wrong contents: somebody made it so */
        rc = open_files(src, t, cfg, false, err);
        if (rc) return rc;
        if (!mri_tf_facts_read(&t->facts, t->f.note, t->f.note_bytes, t->f.count))
            return mr_error_set(err, MR_EFORMAT, "the records contradict each other");
    }
    rc = mri_tf_facts_names(&t->facts, t->f.class_count, t->f.label_offset, err);
    if (!rc) rc = check_names(src, t, err);
    if (rc) return rc;
    src->info.format = "tfrecord";
    mri_framed_info(&t->f, &src->info);
    mri_framed_labels(&t->f, &src->labels);
    src->info.class_names = t->facts.class_names;
    set_fields(src, t);
    return MR_OK;
}

static void tfrecord_close(mr_source *src)
{
    tfrecord *t = src->state;
    if (!t) return;
    mri_tf_facts_fini(&t->facts);
    mri_framed_close(&t->f);
    free(t);
}

/* ---- samples ---- */
static int tfrecord_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    return mri_framed_extent(&((const tfrecord *)src->state)->f, sample, out, err);
}

static int tfrecord_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    return mri_framed_label(&((const tfrecord *)src->state)->f, sample, out);
}

static bool tfrecord_labels_near(const mr_source *src)
{
    return mri_framed_labels_near(&((const tfrecord *)src->state)->f);
}

static int tfrecord_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    return mri_framed_file_at(&((const tfrecord *)src->state)->f, file, out);
}

static int tfrecord_file_acquire(const mr_source *src, uint32_t file, bool must, int *fd, mr_error *err)
{
    return mri_framed_file_acquire(&((const tfrecord *)src->state)->f, file, must, fd, err);
}

static void tfrecord_file_release(const mr_source *src, uint32_t file)
{
    mri_framed_file_release(&((const tfrecord *)src->state)->f, file);
}

static int tfrecord_check(const mr_source *src, mr_error *err)
{
    return mri_framed_check(src, &((const tfrecord *)src->state)->f, err);
}

static void tfrecord_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const mri_framed *f = &((const tfrecord *)src->state)->f;
    snprintf(buf, buf_bytes, "%s", f->file[mri_framed_file_of(f, sample)].path);
}

static int take_boxes(const tfrecord *t, uint64_t sample, const mri_feature *f, mr_sample *out, mr_error *err)
{
    const mri_tf_facts *facts = &t->facts;
    size_t count;
    const int rc = mri_tf_box_count(f, facts->key, &count, err);
    if (rc) return rc;
    const uint64_t first = facts->start[sample], known = facts->start[sample + 1] - first;
    if (known != count)
        return mr_error_set(err, MR_EFORMAT,
                            "boxes: %zu in this record, %" PRIu64 " in the index: remove the index", count,
                            known);
    out->value[out->value_count++] = (mr_value){.type = MR_TYPE_TENSOR,
                                                .dtype = MR_F32,
                                                .ndim = 2,
                                                .dim = {count, 4},
                                                .data = facts->box + 4 * first,
                                                .bytes = count * 4 * sizeof(float)};
    if (facts->has_box_labels)
        out->value[out->value_count++] = (mr_value){.type = MR_TYPE_TENSOR,
                                                    .dtype = MR_I64,
                                                    .ndim = 1,
                                                    .dim = {count},
                                                    .data = facts->box_label + first,
                                                    .bytes = count * sizeof(int64_t)};
    return MR_OK;
}

static int take_values(const tfrecord *t, uint64_t sample, const uint8_t *data, size_t bytes, mr_sample *out,
                       mr_error *err)
{
    const char *const *key = t->facts.key;
    const mri_tf_facts *facts = &t->facts;
    mri_feature f[MRI_TF_KEYS];
    int rc = mri_example_pick(data, bytes, key, MRI_TF_FEATURES + facts->more_count, f, err);
    if (!rc && f[MRI_TF_IMAGE].kind == MRI_FEATURE_NONE) {
        char found[480];
        mri_tf_list_keys(data, bytes, found, sizeof found);
        return mr_error_set(err, MR_EFORMAT, "no feature \"%s\" in this record; found: %s", key[MRI_TF_IMAGE],
                            found[0] ? found : "none");
    }
    if (!rc) rc = mri_tf_picture(f, key, &out->value[0], err);
    const uint64_t *dim = t->facts.dim;
    if (!rc && dim[0] &&
        (out->value[0].type != MR_TYPE_PIXELS || memcmp(dim, out->value[0].dim, 3 * sizeof *dim) != 0))
        return mr_error_set(err, MR_EFORMAT, "another picture than the index says: remove the index");
    out->value_count = 1;
    if (!rc && key[MRI_TF_LABEL]) {
        mr_value *label = &out->value[out->value_count++];
        *label = (mr_value){.type = MR_TYPE_INT};
        rc = mri_tf_one_int(&f[MRI_TF_LABEL], key[MRI_TF_LABEL], &label->i, err);
        if (!rc) rc = mri_framed_check_label(&t->f, label->i, &label->i, err);
    }
    if (!rc && t->facts.has_boxes) rc = take_boxes(t, sample, f, out, err);
    if (!rc && key[MRI_TF_MASK])
        rc = mri_tf_mask(&f[MRI_TF_MASK], key[MRI_TF_MASK], &out->value[out->value_count++], err);
    for (uint32_t k = 0; !rc && k < facts->more_count; k++)
        rc =
            mri_tf_more_value(&facts->more[k], &f[MRI_TF_FEATURES + k], &out->value[out->value_count++], err);
    return rc;
}

static int parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, bool trusted,
                 mr_sample *out, mr_error *err)
{
    const tfrecord *t = src->state;
    mr_extent e;
    int rc = mri_framed_extent(&t->f, sample, &e, err);
    if (rc) return rc;
    if (bytes != e.bytes || bytes < MRI_TFRECORD_TAIL)
        rc = mr_error_set(err, MR_EFORMAT, "expected a record of %" PRIu64 " bytes, found %zu", e.bytes,
                          bytes);
    if (!rc && !trusted) rc = check_data(data, bytes - MRI_TFRECORD_TAIL, err);
    if (!rc) rc = take_values(t, sample, data, bytes - MRI_TFRECORD_TAIL, out, err);
    return rc ? mri_error_place(err, rc, t->f.file[e.file].path, e.offset - MRI_TFRECORD_HEAD, sample)
              : MR_OK;
}

static int tfrecord_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                          mr_sample *out, mr_error *err)
{
    return parse(src, sample, data, bytes, false, out, err);
}

static int tfrecord_parse_trusted(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                                  mr_sample *out, mr_error *err)
{
    return parse(src, sample, data, bytes, true, out, err);
}

static int tfrecord_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                         size_t buf_bytes, mr_error *err)
{
    static const char *const key[] = {"image/filename"};
    mri_feature f;
    (void)src, (void)sample, (void)err;
    if (bytes < MRI_TFRECORD_TAIL || mri_example_pick(data, bytes - MRI_TFRECORD_TAIL, key, 1, &f, NULL))
        return MR_OK;
    mri_span name;
    size_t count;
    if (f.kind != MRI_FEATURE_BYTES || mri_feature_bytes(&f, &name, 1, &count, NULL) || count != 1)
        return MR_OK;
    snprintf(buf, buf_bytes, "%.*s", (int)mri_min_u64(name.bytes, buf_bytes), (const char *)name.data);
    return MR_OK;
}

const mri_source_ops mri_source_tfrecord = {
    .name = "tfrecord",
    .help = "TFRecord files of tf.train.Example: a file, a numbered set (NAME-00000-of-00128), a folder or a "
            "pattern; gzip, zlib or plain",
    .probe = tfrecord_probe,
    .open = tfrecord_open,
    .close = tfrecord_close,
    .extent = tfrecord_extent,
    .label = tfrecord_label,
    .labels_near = tfrecord_labels_near,
    .file_at = tfrecord_file_at,
    .file_acquire = tfrecord_file_acquire,
    .file_release = tfrecord_file_release,
    .check = tfrecord_check,
    .sample_path = tfrecord_sample_path,
    .parse = tfrecord_parse,
    .parse_trusted = tfrecord_parse_trusted,
    .sample_name = tfrecord_name,
};
