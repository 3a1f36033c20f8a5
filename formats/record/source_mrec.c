/* formats/record/source_mrec.c: our own record files as sources: one file, or a shard list of many that
 * agree.
 *
 *   sample ──► shard by binary search over start[] ──► record in that shard's file ──► its index
 *
 * A field named "image" is the image field and one named "label" (INT) the label field. What "image.entries"
 * (BYTES) holds goes with the image when that is a JPEG; it stays a field like any other too. Lengths of
 * sequences come from the index (mrec_lengths.c). */
#include <errno.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/record/mrec_file.h"
#include "formats/record/record.h"
#include "formats/record/shards.h"
#include "formats/source/classes.h"
#include "formats/source/source.h"
#include "formats/source/value.h"

typedef struct set { /* fixed after open */
    mr_mrec **file;
    uint64_t *start; /* start[k]: first sample of file k; start[count]: all samples */
    uint32_t count;
    mri_lengths lengths; /* element_bytes 0: sizes of records do not tell them */
    int entries;         /* field with the entry points of the image field's JPEGs, or -1 */
} set;

static bool mrec_probe(const mri_probe *p)
{
    return !p->is_folder && p->head_bytes >= 5 && memcmp(p->head + 1, "MREC", 4) == 0;
}
static bool shards_probe(const mri_probe *p)
{
    return !p->is_folder && mri_shards_magic(p->head, p->head_bytes);
}

static int set_create(mr_source *src, uint32_t count, mr_error *err)
{
    set *s = calloc(1, sizeof *s);
    src->state = s;
    if (s) {
        s->file = calloc(count, sizeof *s->file);
        s->start = calloc((size_t)count + 1, sizeof *s->start);
    }
    return s && s->file && s->start ? MR_OK
                                    : mr_error_set(err, MR_ENOMEM, "no memory for %u record files", count);
}

static void set_close(mr_source *src)
{
    set *s = src->state;
    if (!s) return;
    for (uint32_t k = 0; k < s->count; k++) mr_mrec_close(s->file[k]);
    free(s->file);
    free(s->start);
    free(s);
}

/* remote NULL: path is a local file. */
static int set_add(mr_source *src, const char *path, mri_remote_file *remote, const mr_source_config *cfg,
                   mr_error *err)
{
    set *s = src->state;
    const uint64_t used = src->info.memory_bytes,
                   room = used < cfg->memory_bytes ? cfg->memory_bytes - used : 0;
    const int rc = remote ? mri_mrec_open_remote(&s->file[s->count], remote, room, err)
                          : mr_mrec_open(&s->file[s->count], path, room, err);
    if (rc) return rc;
    const mr_mrec *m = s->file[s->count];
    s->start[s->count + 1] = s->start[s->count] + m->h.count;
    s->count++;
    src->info.memory_bytes += mri_mrec_memory_bytes(m);
    src->info.max_extent_bytes = mri_max_u64(src->info.max_extent_bytes, m->h.record_bytes_max);
    src->info.total_bytes += m->h.record_bytes_total; /* below the sum of file sizes */
    return MR_OK;
}

/* Classes without names: as many as the index has labels for. 0 where one is no class, or the index is too
 * large to be in memory. */
static uint32_t classes_in_index(const set *s)
{
    uint32_t classes = 0;
    for (uint32_t k = 0; k < s->count; k++) {
        if (!s->file[k]->index) return 0;
        for (uint64_t record = 0; record < s->file[k]->h.count; record++) {
            mri_index_entry e;
            if (mri_mrec_entry(s->file[k], record, &e, NULL) != MR_OK || e.label < 0 ||
                e.label >= MRI_MAX_CLASSES)
                return 0;
            if (e.label >= classes) classes = (uint32_t)e.label + 1;
        }
    }
    return classes;
}

static void set_info(mr_source *src, const char *format)
{
    set *s = src->state;
    const mri_meta *meta = &s->file[0]->meta;
    mr_source_info *info = &src->info;
    info->format = format;
    info->count = s->start[s->count];
    info->class_count = meta->class_count;
    info->class_names = meta->class_names;
    info->field_count = meta->field_count;
    info->fields = meta->fields;
    info->image_field = meta->image_field;
    info->label_field = meta->label_field;
    info->file_count = s->count;
    if (info->class_count == 0 && info->label_field >= 0) info->class_count = classes_in_index(s);
    s->entries = mri_field_entries(meta->fields, meta->field_count);
    if (mri_lengths_of(meta->fields, meta->field_count, &s->lengths)) {
        info->length_field = s->lengths.field;
        info->length_most = mri_lengths_elements(&s->lengths, info->max_extent_bytes);
    }
    const mr_field *image = meta->image_field >= 0 ? &meta->fields[meta->image_field] : NULL;
    if (!image || image->ndim != 3) return;
    if (image->dim[0] > UINT32_MAX || image->dim[1] > UINT32_MAX || image->dim[2] > UINT32_MAX) return;
    info->height = (uint32_t)image->dim[0];
    info->width = (uint32_t)image->dim[1];
    info->channels = (uint32_t)image->dim[2];
}

static int mrec_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    int rc = set_create(src, 1, err);
    mri_remote_file *remote = src->view ? mri_remote_first(src->view->remote) : NULL;
    if (!rc) rc = set_add(src, src->path, remote, cfg, err);
    if (rc) return rc;
    const set *s = src->state;
    set_info(src, "mrec");
    src->info.fingerprint = s->file[0]->h.fingerprint;
    return MR_OK;
}

/* ---- shards ---- */
static bool same_field(const mr_field *a, const mr_field *b)
{
    return strcmp(a->name, b->name) == 0 && a->type == b->type && a->dtype == b->dtype &&
           a->ndim == b->ndim && memcmp(a->dim, b->dim, sizeof a->dim) == 0;
}

static bool same_meta(const mri_meta *a, const mri_meta *b)
{
    bool same = a->field_count == b->field_count && a->class_count == b->class_count;
    for (uint32_t k = 0; same && k < a->field_count; k++) same = same_field(&a->fields[k], &b->fields[k]);
    for (uint32_t k = 0; same && k < a->class_count; k++)
        same = strcmp(a->class_names[k], b->class_names[k]) == 0;
    return same;
}

static int check_shard(const set *s, const mri_shard *listed, mr_error *err)
{
    const mr_mrec *m = s->file[s->count - 1];
    int rc = MR_OK;
    if (m->h.count != listed->count)
        rc = mr_error_set(err, MR_EFORMAT, "the shard list expects %llu records here, found %llu",
                          (unsigned long long)listed->count, (unsigned long long)m->h.count);
    else if (!same_meta(&s->file[0]->meta, &m->meta))
        rc = mr_error_set(err, MR_EFORMAT, "fields or class names differ from those of %s", s->file[0]->path);
    return rc ? mri_error_place(err, rc, m->path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

static int add_local(mr_source *src, const mri_shards *list, uint32_t at, const mr_source_config *cfg,
                     mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    char *path = mri_shards_resolve(src->path, list->shard[at].path);
    if (!path) return mr_error_set(err, MR_ENOMEM, "no memory for the path of a shard");
    const int rc = set_add(src, path, NULL, cfg, &why);
    if (rc && why.sys_errno == EMFILE)
        mri_error_place(&why, mri_too_many_files(list->count, &why), path, MR_NOWHERE, MR_NOWHERE);
    if (rc && err) *err = why;
    free(path);
    return rc;
}

/* All of them are asked for at once. Their names are taken as the list's own: never as names of files
 * here. */
static int begin_remote(mr_source *src, const mri_shards *list, mri_remote_file **files, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && src->view && k < list->count; k++) {
        char *url = mri_url_join(mri_remote_url(mri_remote_first(src->view->remote)), list->shard[k].path);
        rc = url ? mri_remote_begin(src->view->remote, &files[k], url, err)
                 : mr_error_set(err, MR_ENOMEM, "no memory for the URL of a shard");
        free(url);
    }
    return rc;
}

static int add_shards(mr_source *src, const mri_shards *list, mri_remote_file **files,
                      const mr_source_config *cfg, mr_error *err)
{
    int rc = set_create(src, list->count, err);
    uint64_t print = XXH3_64bits("shards", 6);
    if (!rc) rc = begin_remote(src, list, files, err);
    for (uint32_t k = 0; !rc && k < list->count; k++) {
        if (files[k]) rc = mri_remote_finish(files[k], err);
        if (!rc) rc = files[k] ? set_add(src, "", files[k], cfg, err) : add_local(src, list, k, cfg, err);
        const set *s = src->state;
        if (!rc) rc = check_shard(s, &list->shard[k], err);
        if (!rc) print = mri_mix64(print ^ s->file[k]->h.fingerprint);
    }
    src->info.fingerprint = print;
    return rc;
}

static int shards_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mri_shards list;
    int rc = mri_shards_read(&list, src->path, err);
    if (rc) return rc;
    mri_remote_file **files = calloc(list.count, sizeof *files);
    rc = files ? add_shards(src, &list, files, cfg, err)
               : mr_error_set(err, MR_ENOMEM, "no memory for a shard list");
    free(files);
    if (!rc) set_info(src, "shards");
    mri_shards_fini(&list);
    return rc;
}

/* ---- samples ---- */
static uint32_t shard_of(const set *s, uint64_t sample)
{
    uint32_t low = 0, high = s->count - 1;
    /* the last shard that begins at or before the sample; empty ones share their start */
    while (low < high) {
        const uint32_t mid = low + (high - low + 1) / 2;
        if (s->start[mid] <= sample) low = mid;
        else high = mid - 1;
    }
    return low;
}

/* The file's own numbering must not reach the caller. */
static int in_set(int rc, uint64_t sample, mr_error *err)
{
    return rc ? mri_error_place(err, rc, NULL, MR_NOWHERE, sample) : MR_OK;
}

static int set_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    const set *s = src->state;
    const uint32_t k = shard_of(s, sample);
    out->file = k;
    return in_set(mr_mrec_extent(s->file[k], sample - s->start[k], &out->offset, &out->bytes, err), sample,
                  err);
}

static int set_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    const set *s = src->state;
    if (src->info.label_field < 0) return MR_EUNSUPPORTED;
    const uint32_t k = shard_of(s, sample);
    mri_index_entry e;
    const int rc = mri_mrec_entry(s->file[k], sample - s->start[k], &e, NULL);
    if (rc) return rc;
    if (src->info.class_count && (e.label < 0 || e.label >= src->info.class_count))
        return MR_EFORMAT; /* nor will its record be taken */
    *out = e.label;
    return MR_OK;
}

static int set_length(const mr_source *src, uint64_t sample, uint32_t *out)
{
    const set *s = src->state;
    const uint32_t k = shard_of(s, sample);
    mri_index_entry e;
    const int rc = mri_mrec_entry(s->file[k], sample - s->start[k], &e, NULL);
    if (!rc) *out = mri_lengths_elements(&s->lengths, e.bytes);
    return rc;
}

static int set_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    const mr_mrec *m = ((const set *)src->state)->file[file];
    *out = (mr_source_file){
        .path = m->path, .fd = m->fd, .bytes = m->h.file_bytes, .direct_ok = m->remote == NULL};
    return MR_OK;
}

static mri_remote_file *set_remote_at(const mr_source *src, uint32_t file)
{
    return ((const set *)src->state)->file[file]->remote;
}

static void set_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const set *s = src->state;
    snprintf(buf, buf_bytes, "%s", s->file[shard_of(s, sample)]->path);
}

/* Entry points go with the picture they belong to. */
static void join_entries(const mr_source *src, mr_sample *out)
{
    const set *s = src->state;
    mr_value *image = s->entries >= 0 ? &out->value[src->info.image_field] : NULL;
    if (!image || image->type != MR_TYPE_JPEG || out->value[s->entries].bytes == 0) return;
    image->entries = out->value[s->entries].data;
    image->entries_bytes = out->value[s->entries].bytes;
}

static int set_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                     mr_error *err)
{
    const set *s = src->state;
    const uint32_t k = shard_of(s, sample);
    const int rc = mr_mrec_parse(s->file[k], sample - s->start[k], data, bytes, out, NULL, err);
    if (rc) return in_set(rc, sample, err);
    join_entries(src, out);
    return MR_OK;
}

static int set_parse_trusted(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                             mr_sample *out, mr_error *err)
{
    const set *s = src->state;
    const uint32_t k = shard_of(s, sample);
    const int rc = mri_record_parse_trusted(&s->file[k]->meta, data, bytes, out, err);
    if (rc) return in_set(rc, sample, err);
    join_entries(src, out);
    return MR_OK;
}

const mri_source_ops mri_source_mrec = {
    .name = "mrec",
    .help = "a millrace record file",
    .no_keys = true,
    .probe = mrec_probe,
    .open = mrec_open,
    .close = set_close,
    .extent = set_extent,
    .label = set_label,
    .length = set_length,
    .file_at = set_file_at,
    .remote_at = set_remote_at,
    .sample_path = set_sample_path,
    .parse = set_parse,
    .parse_trusted = set_parse_trusted,
};

const mri_source_ops mri_source_shards = {
    .name = "shards",
    .help = "a list of millrace record files that together are one data set",
    .no_keys = true,
    .probe = shards_probe,
    .open = shards_open,
    .close = set_close,
    .extent = set_extent,
    .label = set_label,
    .length = set_length,
    .file_at = set_file_at,
    .remote_at = set_remote_at,
    .sample_path = set_sample_path,
    .parse = set_parse,
    .parse_trusted = set_parse_trusted,
};
