/* formats/mds/source_mds.c: MDS shards of Mosaic Streaming as a data set (mds.h has the format).
 *
 *   PATH     a folder with index.json, that file, or one shard
 *   scan     the table of offsets of each shard, checked against the file's end and the index; the label of
 *            each sample
 *   parse    sizes of the columns ─► values
 *
 *   picture  the column that image_key names; else the first of jpeg, png or pil; else one of bytes by its
 *            name (image, img, picture, jpg, jpeg, png)
 *   class    the column of whole numbers that label_key names; else label, class, cls, target, y
 *   fields   the other columns under their names; sample.name holds names of samples
 *
 * Hashes of shards in the index are compared by check(): xxh3_64 and xxh64. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <xxhash.h>

#include "formats/fileset/fileset.h"
#include "formats/mds/mds.h"
#include "formats/source/sample_name.h"
#include "formats/storage/file_scan.h"

enum { SCAN_VERSION = 1, TABLE_PIECE = 2048 };

typedef struct mds { /* fixed after open */
    mri_framed f;
    mri_mds_index index; /* count 0: a shard alone */
    mri_mds_schema schema;
    bool has_schema;
    int image, label, name;         /* columns, or -1 */
    uint32_t column[MR_MAX_FIELDS]; /* of each field */
    mr_field field[MR_MAX_FIELDS];
    const mr_source_config *cfg; /* while opening */
} mds;

/* ---- recognise ---- */
static bool ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

static bool mds_probe(const mri_probe *p)
{
    char path[4096];
    uint8_t head[MRI_PROBE_BYTES];
    if (p->is_pattern) return false;
    if (!p->is_folder && mri_mds_is_index(p->head, p->head_bytes)) return ends_in(p->path, MRI_MDS_INDEX);
    if (!p->is_folder) return mri_mds_is_shard(p->inner, p->inner_bytes);
    if (snprintf(path, sizeof path, "%s/" MRI_MDS_INDEX, p->path) >= (int)sizeof path) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        mr_error what = MR_ERROR_INIT;
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            mri_probe_failed(p->trouble, mr_error_sys(&what, errno, "cannot open"), &what);
        return false;
    }
    const ssize_t n = pread(fd, head, sizeof head, 0);
    close(fd);
    return n > 0 && mri_mds_is_index(head, (size_t)n);
}

/* ---- which column is what ---- */
static int find_column(const mri_mds_schema *s, const char *name)
{
    for (uint32_t k = 0; k < s->count; k++)
        if (strcmp(s->column[k].name, name) == 0) return (int)k;
    return -1;
}

static bool is_whole(const mri_mds_column *c) { return c->kind == MRI_MDS_INT || c->kind == MRI_MDS_STR_INT; }

static bool is_picture(const mri_mds_column *c)
{
    return c->kind == MRI_MDS_PICTURE || c->kind == MRI_MDS_PIL;
}

static int find_image(const mri_mds_schema *s)
{
    static const char *const usual[] = {"image", "img", "picture", "jpg", "jpeg", "png"};
    for (uint32_t k = 0; k < s->count; k++)
        if (is_picture(&s->column[k]) && strcmp(s->column[k].name, "mask") != 0) return (int)k;
    for (size_t u = 0; u < MRI_ARRAY_COUNT(usual); u++) {
        const int k = find_column(s, usual[u]);
        if (k >= 0 && s->column[k].kind == MRI_MDS_BYTES) return k;
    }
    return -1;
}

static const char *const labels[] = {"label", "class", "cls", "target", "y"};

static int find_label(const mri_mds_schema *s)
{
    for (size_t u = 0; u < MRI_ARRAY_COUNT(labels); u++) {
        const int k = find_column(s, labels[u]);
        if (k >= 0 && is_whole(&s->column[k])) return k;
    }
    return -1;
}

static int wrong_key(const mri_mds_schema *s, const char *option, const char *key, const char *expected,
                     mr_error *err)
{
    char names[400] = "";
    size_t at = 0;
    for (uint32_t k = 0; k < s->count && at < sizeof names; k++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s (%s)", k ? ", " : "", s->column[k].name,
                               s->column[k].encoding);
    return mr_error_set(err, MR_EINVAL, "--%s-key %s: expected a column %s; found: %s", option, key, expected,
                        names);
}

static int choose_columns(mds *x, mr_error *err)
{
    mri_mds_schema *s = &x->schema;
    const char *image = x->cfg->image_key, *label = x->cfg->label_key;
    x->image = image ? find_column(s, image) : find_image(s);
    if (image &&
        (x->image < 0 || !(is_picture(&s->column[x->image]) || s->column[x->image].kind == MRI_MDS_BYTES)))
        return wrong_key(s, "image", image, "of pictures or bytes", err);
    if (x->image >= 0 && s->column[x->image].kind == MRI_MDS_BYTES)
        s->column[x->image].kind = MRI_MDS_PICTURE;
    x->label = label ? find_column(s, label) : find_label(s);
    if (label && (x->label < 0 || !is_whole(&s->column[x->label])))
        return wrong_key(s, "label", label, "of whole numbers", err);
    x->name = find_column(s, MRI_NAME_FIELD);
    if (x->name >= 0 && s->column[x->name].kind != MRI_MDS_BYTES && s->column[x->name].kind != MRI_MDS_TEXT)
        x->name = -1;
    x->has_schema = true;
    return MR_OK;
}

/* ---- the head of a shard ---- */
typedef int get_bytes(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err);

static int scan_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_scan_get(context, offset, bytes, out, err);
}

static int window_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(context, offset, bytes, out, err);
}

static int wrong_at(mr_error *err, int rc, uint64_t offset)
{
    return mri_error_place(err, rc, NULL, offset, MR_NOWHERE);
}

static int read_head(get_bytes *get, void *context, uint64_t file_bytes, uint32_t *count,
                     mri_mds_schema *schema, mr_error *err)
{
    const uint8_t *p;
    if (file_bytes < 8)
        return wrong_at(err,
                        mr_error_set(err, MR_EFORMAT, "a shard has 8 bytes or more, found %llu",
                                     (unsigned long long)file_bytes),
                        0);
    int rc = get(context, 0, 8, &p, err);
    if (rc) return rc;
    *count = mri_le32(p);
    const uint64_t table = 8 + 4 * (uint64_t)*count, first = mri_le32(p + 4);
    if (table > file_bytes || first < table || first > file_bytes)
        return wrong_at(
            err,
            mr_error_set(err, MR_EFORMAT,
                         "%u samples: expected the first one at %llu to %llu, found %llu: this is "
                         "no MDS shard, or it is cut",
                         *count, (unsigned long long)table, (unsigned long long)file_bytes,
                         (unsigned long long)first),
            4);
    if (first - table > MRI_MDS_MAX_CONFIG)
        return wrong_at(err,
                        mr_error_set(err, MR_ELIMIT, "the columns have %llu bytes: at most 1 MiB are read",
                                     (unsigned long long)(first - table)),
                        table);
    rc = get(context, table, (size_t)(first - table), &p, err);
    if (!rc) rc = mri_mds_schema_read(schema, p, (size_t)(first - table), err);
    return rc ? wrong_at(err, rc, table) : MR_OK;
}

static int take_schema(mds *x, mri_mds_schema *found, mr_error *err)
{
    if (x->has_schema) {
        mri_mds_schema mine = x->schema;
        if (mri_mds_schema_same(&mine, found)) return MR_OK;
        return mr_error_set(err, MR_EFORMAT, "expected the columns of the first shard, found others");
    }
    x->schema = *found;
    return choose_columns(x, err);
}

/* When nothing was scanned. */
static int read_schema(mds *x, mr_error *err)
{
    const mri_framed_file *file = &x->f.file[0];
    mri_file_scan w;
    mri_mds_schema *found = malloc(sizeof *found);
    uint32_t count;
    int fd, rc = found ? mri_framed_file_acquire(&x->f, 0, true, &fd, err)
                       : mr_error_set(err, MR_ENOMEM, "no memory for columns");
    if (rc) {
        free(found);
        return rc;
    }
    mri_file_scan_init(&w, fd, file->path, file->bytes);
    rc = read_head(window_get, &w, file->bytes, &count, found, err);
    if (!rc) rc = take_schema(x, found, err);
    mri_file_scan_fini(&w);
    mri_framed_file_release(&x->f, 0);
    free(found);
    return rc ? mri_error_place(err, rc, file->path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

/* ---- the scan ---- */
/* A wrong label is reported when its sample is read. */
static int read_label(const mds *x, mri_scan *s, uint64_t at, uint64_t bytes, int64_t *label, mr_error *err)
{
    const mri_mds_schema *schema = &x->schema;
    const uint64_t head_bytes = (uint64_t)schema->varied * MRI_MDS_NUMBER;
    const mri_mds_column *c = &schema->column[x->label];
    uint64_t before = head_bytes, own = c->bytes;
    const uint8_t *p;
    if (head_bytes > bytes) return MR_OK;
    int rc = head_bytes ? mri_scan_get(s, at, (size_t)head_bytes, &p, err) : MR_OK;
    if (rc) return rc;
    for (int k = 0, varied = 0; k <= x->label; k++) {
        uint64_t size = schema->column[k].bytes;
        if (!size) size = mri_le32(p + 4 * varied++);
        if (k == x->label) own = size;
        else before += size;
    }
    if (before > bytes || own > bytes - before || own > 32) return MR_OK;
    rc = own ? mri_scan_get(s, at + before, (size_t)own, &p, err) : MR_OK;
    if (rc || own == 0) return rc;
    const mri_mds_cell cell = {p, (uint32_t)own};
    if (mri_mds_int(c, &cell, label, NULL) != MR_OK) *label = MRI_NO_LABEL;
    return MR_OK;
}

static int add_sample(const mds *x, mri_scan *s, uint64_t begin, uint64_t end, uint64_t table_at,
                      mr_error *err)
{
    int64_t label = MRI_NO_LABEL;
    if (end < begin || end > mri_scan_file_bytes(s))
        return wrong_at(
            err,
            mr_error_set(err, MR_EFORMAT,
                         "a sample at %llu ends at %llu: expected an end up to %llu: the shard is "
                         "cut, or its offsets are damaged",
                         (unsigned long long)begin, (unsigned long long)end,
                         (unsigned long long)mri_scan_file_bytes(s)),
            table_at);
    const int rc = x->label >= 0 ? read_label(x, s, begin, end - begin, &label, err) : MR_OK;
    return rc ? rc : mri_scan_add(s, begin, end - begin, label, err);
}

static int scan_samples(const mds *x, mri_scan *s, uint32_t count, mr_error *err)
{
    uint32_t piece[TABLE_PIECE + 1];
    uint64_t end = 0;
    int rc = MR_OK;
    for (uint32_t at = 0; !rc && at < count; at += TABLE_PIECE) {
        const uint32_t some = count - at < TABLE_PIECE ? count - at : TABLE_PIECE;
        const uint8_t *p;
        rc = mri_scan_get(s, 4 + 4 * (uint64_t)at, 4 * ((size_t)some + 1), &p, err);
        if (!rc) memcpy(piece, p, 4 * ((size_t)some + 1));
        for (uint32_t k = 0; !rc && k < some; k++)
            rc = add_sample(x, s, piece[k], end = piece[k + 1], 4 + 4 * ((uint64_t)at + k + 1), err);
    }
    if (!rc && end != mri_scan_file_bytes(s))
        rc = wrong_at(err,
                      mr_error_set(err, MR_EFORMAT,
                                   "the samples end at %llu, and the file has %llu bytes: copy it again",
                                   (unsigned long long)end, (unsigned long long)mri_scan_file_bytes(s)),
                      4 + 4 * (uint64_t)count);
    return rc;
}

static int mds_scan(void *context, mri_scan *s, uint32_t file, mr_error *err)
{
    mds *x = context;
    mri_mds_schema *found = malloc(sizeof *found);
    uint32_t count = 0;
    if (!found) return mr_error_set(err, MR_ENOMEM, "no memory for columns");
    int rc = read_head(scan_get, s, mri_scan_file_bytes(s), &count, found, err);
    if (!rc) rc = take_schema(x, found, err);
    free(found);
    if (!rc && file < x->index.count && x->index.shard[file].samples != count)
        rc = wrong_at(err,
                      mr_error_set(err, MR_EFORMAT, "expected %llu samples as in " MRI_MDS_INDEX ", found %u",
                                   (unsigned long long)x->index.shard[file].samples, count),
                      0);
    if (!rc && count == 0) return MR_OK;
    return rc ? rc : scan_samples(x, s, count, err);
}

/* ---- open ---- */
static uint64_t hash_settings(const mr_source_config *cfg)
{
    const char *image = cfg->image_key ? cfg->image_key : "", *label = cfg->label_key ? cfg->label_key : "";
    return XXH3_64bits_withSeed(label, strlen(label), XXH3_64bits(image, strlen(image)));
}

/* The shards in the index's order; path: the user's name for the set. */
static int list_files(mds *x, const char *path, mri_filelist *files, mr_error *err)
{
    char *folder = strdup(path);
    uint8_t head[8];
    if (!folder) return mr_error_set(err, MR_ENOMEM, "no memory for a name");
    if (ends_in(folder, "/" MRI_MDS_INDEX)) folder[strlen(folder) - strlen("/" MRI_MDS_INDEX)] = '\0';
    else if (strcmp(folder, MRI_MDS_INDEX) == 0) memcpy(folder, ".", 2);
    const int fd = open(folder, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool is_file = fd >= 0 && pread(fd, head, 1, 0) >= 0;
    if (fd >= 0) close(fd);
    int rc = MR_OK;
    *files = (mri_filelist){.accept = mri_mds_is_shard, .part = MRI_NO_PART};
    if (is_file) rc = mri_filelist_add(files, folder, err);
    else rc = mri_mds_index_read(&x->index, folder, err);
    for (uint32_t k = 0; !rc && k < x->index.count; k++)
        rc = mri_filelist_add(files, x->index.shard[k].path, err);
    free(folder);
    return rc;
}

/* A kept index does not know that the list of shards has changed. */
static int check_counts(const mds *x, mr_error *err)
{
    for (uint32_t k = 0; k < x->index.count; k++) {
        const uint64_t next = k + 1 < x->f.file_count ? x->f.file[k + 1].first : x->f.count,
                       found = next - x->f.file[k].first;
        if (found == x->index.shard[k].samples) continue;
        return mri_error_place(
            err,
            mr_error_set(err, MR_EFORMAT, "expected %llu samples as in " MRI_MDS_INDEX ", found %llu",
                         (unsigned long long)x->index.shard[k].samples, (unsigned long long)found),
            x->f.file[k].path, 0, MR_NOWHERE);
    }
    return MR_OK;
}

static void set_fields(mr_source *src, mds *x)
{
    mr_source_info *info = &src->info;
    info->fields = x->field;
    info->field_count = 0;
    info->image_field = info->label_field = -1;
    for (int turn = 0; turn < 2; turn++) {
        const int at = turn ? x->label : x->image;
        if (at < 0) continue;
        if (turn) info->label_field = (int)info->field_count;
        else info->image_field = (int)info->field_count;
        x->column[info->field_count] = (uint32_t)at;
        x->field[info->field_count++] =
            turn ? mri_field("label", MR_TYPE_INT) : mri_field("image", MR_TYPE_IMAGE);
    }
    for (uint32_t k = 0; k < x->schema.count; k++) {
        static const mr_type types[] = {[MRI_MDS_BYTES] = MR_TYPE_BYTES,   [MRI_MDS_OPAQUE] = MR_TYPE_BYTES,
                                        [MRI_MDS_TEXT] = MR_TYPE_TEXT,     [MRI_MDS_INT] = MR_TYPE_INT,
                                        [MRI_MDS_STR_INT] = MR_TYPE_INT,   [MRI_MDS_FLOAT] = MR_TYPE_FLOAT,
                                        [MRI_MDS_PICTURE] = MR_TYPE_IMAGE, [MRI_MDS_PIL] = MR_TYPE_IMAGE,
                                        [MRI_MDS_ARRAY] = MR_TYPE_TENSOR};
        const mri_mds_column *c = &x->schema.column[k];
        if ((int)k == x->image || (int)k == x->label || (int)k == x->name) continue;
        if (mri_field_find(x->field, info->field_count, c->name) >= 0) {
            mri_source_tell(src, "column \"%s\" was passed over: another column has this name here", c->name);
            continue;
        }
        if (c->kind == MRI_MDS_OPAQUE)
            mri_source_tell(src, "column \"%s\" has encoding %s: its bytes are given as they are", c->name,
                            c->encoding);
        mr_field *f = &x->field[info->field_count];
        *f = mri_field(c->name, types[c->kind]);
        if (strcmp(c->encoding, "png") == 0) f->type = MR_TYPE_PNG;
        f->dtype = c->dtype;
        f->ndim = c->ndim;
        memcpy(f->dim, c->dim, sizeof f->dim);
        x->column[info->field_count++] = k;
    }
}

/* Names for every class that occurs, or none. */
static void set_classes(mr_source *src, const mds *x)
{
    if (x->label < 0 || x->index.class_count < x->f.class_count || x->index.class_count == 0) return;
    src->info.class_names = x->index.class_name;
    src->info.class_count = x->index.class_count;
}

/* Pictures without a class, in a set that may have one. */
static void tell_no_class(mr_source *src, const mds *x)
{
    char names[300] = "";
    const mri_mds_schema *s = &x->schema;
    if (x->label >= 0 || x->image < 0) return;
    for (size_t u = 0; u < MRI_ARRAY_COUNT(labels); u++) {
        const int k = find_column(s, labels[u]);
        if (k < 0 || s->column[k].kind != MRI_MDS_TEXT) continue;
        mri_source_tell(
            src,
            "no class is taken: column \"%s\" has texts, and a class is a whole number here: write "
            "the set anew with numbers, or its pictures as files and a table of paths and classes",
            labels[u]);
        return;
    }
    for (uint32_t k = 0; k < s->count; k++) {
        const size_t at = strlen(names);
        if (is_whole(&s->column[k]))
            snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", s->column[k].name);
    }
    if (names[0])
        mri_source_tell(src,
                        "no class is taken: whole numbers are in %s; --label-key NAME takes one as the class",
                        names);
}

static int mds_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mri_filelist files;
    mds *x = calloc(1, sizeof *x);
    if (!x) return mr_error_set(err, MR_ENOMEM, "no memory for MDS shards");
    src->state = x;
    x->cfg = cfg;
    int rc = list_files(x, src->path, &files, err);
    if (rc) {
        mri_filelist_fini(&files);
        return rc;
    }
    const mri_framed_format format = {.name = "mds",
                                      .version = SCAN_VERSION,
                                      .settings = hash_settings(cfg),
                                      .scan = mds_scan,
                                      .context = x};
    rc = mri_framed_open(&x->f, &files, &format, cfg, err);
    if (!rc && !x->has_schema) rc = read_schema(x, err);
    if (!rc) rc = check_counts(x, err);
    x->cfg = NULL;
    if (rc) return rc;
    src->info.format = "mds";
    mri_framed_info(&x->f, &src->info);
    mri_framed_labels(&x->f, &src->labels);
    src->info.memory_bytes += sizeof *x;
    set_fields(src, x);
    set_classes(src, x);
    tell_no_class(src, x);
    return MR_OK;
}

static void mds_close(mr_source *src)
{
    mds *x = src->state;
    if (!x) return;
    mri_framed_close(&x->f);
    mri_mds_index_fini(&x->index);
    free(x);
}

/* ---- samples ---- */
static const mds *of(const mr_source *src) { return src->state; }

static int mds_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    return mri_framed_extent(&of(src)->f, sample, out, err);
}

static int mds_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    return mri_framed_label(&of(src)->f, sample, out);
}

static bool mds_labels_near(const mr_source *src) { return mri_framed_labels_near(&of(src)->f); }

static int mds_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    return mri_framed_file_at(&of(src)->f, file, out);
}

static int mds_file_acquire(const mr_source *src, uint32_t file, bool must, int *fd, mr_error *err)
{
    return mri_framed_file_acquire(&of(src)->f, file, must, fd, err);
}

static void mds_file_release(const mr_source *src, uint32_t file)
{
    mri_framed_file_release(&of(src)->f, file);
}

static void mds_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const mri_framed *f = &of(src)->f;
    snprintf(buf, buf_bytes, "%s", f->file[mri_framed_file_of(f, sample)].path);
}

static int parse_sample(const mr_source *src, const void *data, size_t bytes, mr_sample *out, mr_error *err)
{
    const mds *x = of(src);
    mri_mds_cell cells[MR_MAX_FIELDS];
    int rc = mri_mds_split(&x->schema, data, bytes, cells, err);
    out->value_count = src->info.field_count;
    for (uint32_t k = 0; !rc && k < src->info.field_count; k++) {
        const uint32_t at = x->column[k];
        mr_value *v = &out->value[k];
        rc = mri_mds_value(&x->schema.column[at], &cells[at], v, err);
        if (!rc && (int)at == x->label) rc = mri_framed_check_label(&x->f, v->i, &v->i, err);
        if (!rc && x->field[k].type == MR_TYPE_PNG && v->type != MR_TYPE_PNG)
            rc = mr_error_set(err, MR_EFORMAT,
                              "column \"%s\": expected a PNG, found a picture of another kind",
                              x->field[k].name);
    }
    return rc;
}

static int mds_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                     mr_error *err)
{
    const mri_framed *f = &of(src)->f;
    mr_extent e = {0};
    int rc = mri_framed_extent(f, sample, &e, err);
    if (rc) return rc;
    if (bytes != e.bytes)
        rc = mr_error_set(err, MR_EFORMAT, "expected a sample of %llu bytes, found %zu",
                          (unsigned long long)e.bytes, bytes);
    if (!rc) rc = parse_sample(src, data, bytes, out, err);
    return rc ? mri_error_place(err, rc, f->file[mri_framed_file_of(f, sample)].path, e.offset, sample)
              : MR_OK;
}

static int mds_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                    size_t buf_bytes, mr_error *err)
{
    const mds *x = of(src);
    mri_mds_cell cells[MR_MAX_FIELDS];
    (void)sample, (void)err;
    if (x->name < 0 || mri_mds_split(&x->schema, data, bytes, cells, NULL) != MR_OK) return MR_OK;
    const mri_mds_cell *c = &cells[x->name];
    if (c->bytes < buf_bytes && !memchr(c->data, 0, c->bytes))
        snprintf(buf, buf_bytes, "%.*s", (int)c->bytes, (const char *)c->data);
    return MR_OK;
}

/* ---- hashes of whole shards ---- */
static bool mds_has_sums(const mr_source *src)
{
    const mri_mds_index *x = &of(src)->index;
    bool all = x->count > 0;
    for (uint32_t k = 0; k < x->count; k++) all = all && x->shard[k].has_hash && !x->shard[k].packed;
    return all;
}

static int hash_file(int fd, const mri_framed_file *file, bool is_xxh64, uint64_t *out, mr_error *err)
{
    enum { PIECE = 1 << 20 };
    uint8_t *piece = malloc(PIECE);
    XXH3_state_t *x3 = XXH3_createState();
    XXH64_state_t *x64 = XXH64_createState();
    int rc = piece && x3 && x64 ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory to check a shard");
    if (!rc) {
        XXH3_64bits_reset(x3);
        XXH64_reset(x64, 0);
    }
    for (uint64_t at = 0; !rc && at < file->bytes; at += PIECE) {
        const size_t some = (size_t)mri_min_u64(PIECE, file->bytes - at);
        rc = mri_pread_all(fd, piece, some, at, file->path, err);
        if (!rc && is_xxh64) XXH64_update(x64, piece, some);
        else if (!rc) XXH3_64bits_update(x3, piece, some);
    }
    if (!rc) *out = is_xxh64 ? XXH64_digest(x64) : XXH3_64bits_digest(x3);
    XXH3_freeState(x3);
    XXH64_freeState(x64);
    free(piece);
    return rc;
}

static int check_shard(const mds *x, uint32_t k, mr_error *err)
{
    const mri_mds_shard *s = &x->index.shard[k];
    const mri_framed_file *file = &x->f.file[k];
    uint64_t found = 0;
    int fd;
    if (!s->has_hash || s->packed) return MR_OK;
    int rc = mri_framed_file_acquire(&x->f, k, true, &fd, err);
    if (rc) return rc;
    rc = hash_file(fd, file, s->hash_is_xxh64, &found, err);
    mri_framed_file_release(&x->f, k);
    if (!rc && found != s->hash)
        rc = mr_error_set(err, MR_ECHECKSUM,
                          "the shard's hash is %016llx, and " MRI_MDS_INDEX " has %016llx: copy it again",
                          (unsigned long long)found, (unsigned long long)s->hash);
    return rc ? mri_error_place(err, rc, file->path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

static int mds_check(const mr_source *src, mr_error *err)
{
    const mds *x = of(src);
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < x->index.count; k++) rc = check_shard(x, k, err);
    return rc ? rc : mri_framed_check(src, &x->f, err);
}

const mri_source_ops mri_source_mds = {
    .name = "mds",
    .help = "MDS of Mosaic Streaming: a folder with index.json, or one shard (.mds); shards plain or packed "
            "with gz",
    .probe = mds_probe,
    .open = mds_open,
    .close = mds_close,
    .extent = mds_extent,
    .label = mds_label,
    .labels_near = mds_labels_near,
    .file_at = mds_file_at,
    .file_acquire = mds_file_acquire,
    .file_release = mds_file_release,
    .check = mds_check,
    .has_sums = mds_has_sums,
    .sample_path = mds_sample_path,
    .sample_name = mds_name,
    .parse = mds_parse,
};
