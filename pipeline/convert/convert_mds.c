/* pipeline/convert/convert_mds.c: conversion to MDS, the shards of Mosaic Streaming (formats/mds/mds.h).
 *
 *   DST/shard.00000.mds, DST/shard.00001.mds, ...    written to shard-00000.part, ...
 *   DST/index.json                                   last: a set without it is not whole
 *
 *   pictures   jpeg if the first one of the field is a JPEG, else png: readers open both by their content
 *   numbers    int, float64
 *   tensors    ndarray:DTYPE:SHAPE, or ndarray:DTYPE where the schema has no shape
 *   the rest   str, bytes
 *
 * Columns stand in the order of their names, as Mosaic's writer has them. A shard begins with the offsets of
 * its samples, which are known when it ends: until then its samples are in an unnamed file. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/mds/mds.h"
#include "formats/source/elements.h"
#include "formats/source/value.h"
#include "pipeline/convert/convert.h"
#include "pipeline/convert/convert_files.h"
#include "pipeline/fields/first_sample.h"

#define USUAL_SHARD ((uint64_t)64 << 20)
enum { MOST_LOOKS = 64, COPY_BYTES = 1 << 18, SHAPE_ROOM = 72 };

typedef struct mds_state {
    const mri_convert_plan *plan;
    mri_mds_schema schema;
    uint32_t field[MR_MAX_FIELDS]; /* of each column */
    const char *dst;               /* DST/shard */
    char *config;
    size_t config_bytes;
    FILE *samples;  /* of the shard; unnamed */
    uint32_t *size; /* of each of them */
    uint32_t count, room;
    uint64_t bytes;         /* of all of them */
    const mr_value *values; /* of the sample to be put */
    uint32_t next;          /* its bytes */
    mri_mds_index_writer *index;
} mds_state;

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for MDS shards"); }

/* ---- the columns ---- */
typedef struct look {
    int field; /* of the source */
    mr_type type;
} look;

static int see_picture(void *context, uint64_t at, const mr_sample *sample, mr_error *err)
{
    look *l = context;
    (void)at, (void)err;
    l->type = sample->value[l->field].type;
    return MR_OK;
}

/* The encoding of the field's pictures: known for pictures made here, else found in the first picture. */
static int picture_encoding(const mri_convert_plan *plan, uint32_t k, const char **out, mr_error *err)
{
    look l = {.field = plan->from[k], .type = plan->fields[k].type};
    mr_error none = MR_ERROR_INIT;
    const bool first = (int)k == plan->image;
    if (first && plan->cfg.resize) l.type = MR_TYPE_JPEG;
    else if (l.type == MR_TYPE_IMAGE && l.field >= 0) {
        const int rc = mri_first_sample(plan->src, MOST_LOOKS, see_picture, &l, &none);
        if (rc == MR_ENOMEM && err) *err = none;
        if (rc == MR_ENOMEM) return rc;
    }
    *out = l.type == MR_TYPE_JPEG || l.type == MR_TYPE_COEF ? "jpeg" : "png";
    return MR_OK;
}

static const char *array_type(mr_dtype t)
{
    static const char *const names[] = {[MR_U8] = "uint8",    [MR_I8] = "int8",     [MR_I16] = "int16",
                                        [MR_I32] = "int32",   [MR_I64] = "int64",   [MR_F16] = "float16",
                                        [MR_F32] = "float32", [MR_F64] = "float64", [MR_BF16] = NULL};
    return (size_t)t < MRI_ARRAY_COUNT(names) ? names[t] : NULL;
}

static int array_encoding(const mr_field *f, mri_mds_column *c, uint64_t *size, mr_error *err)
{
    const char *type = array_type(f->dtype);
    size_t bytes = 0;
    if (!type)
        return mr_error_set(err, MR_EINVAL, "field \"%s\": elements of %s have no place in MDS", f->name,
                            mr_dtype_name(f->dtype));
    int n = snprintf(c->encoding, sizeof c->encoding, "ndarray:%s", type);
    *size = 0;
    if (f->ndim == 0 || !mri_shape_bytes(f->dim, f->ndim, mr_dtype_bytes(f->dtype), &bytes) || bytes == 0 ||
        bytes > UINT32_MAX)
        return MR_OK;
    for (uint32_t k = 0; k < f->ndim && (size_t)n < sizeof c->encoding; k++)
        n += snprintf(c->encoding + n, sizeof c->encoding - (size_t)n, "%c%llu", k ? ',' : ':',
                      (unsigned long long)f->dim[k]);
    if ((size_t)n >= sizeof c->encoding) snprintf(c->encoding, sizeof c->encoding, "ndarray:%s", type);
    else *size = bytes;
    return MR_OK;
}

static int make_column(const mri_convert_plan *plan, uint32_t k, mri_mds_column *c, mr_error *err)
{
    const mr_field *f = &plan->fields[k];
    const char *encoding = "bytes";
    uint64_t size = 0;
    int rc = MR_OK;
    memcpy(c->name, f->name, sizeof c->name);
    if (f->type == MR_TYPE_TENSOR) {
        rc = array_encoding(f, c, &size, err);
        return rc ? rc : mri_mds_column_settle(c, size, err);
    }
    if (mri_type_is_picture(f->type)) rc = picture_encoding(plan, k, &encoding, err);
    else if (f->type == MR_TYPE_INT) encoding = "int", size = 8;
    else if (f->type == MR_TYPE_FLOAT) encoding = "float64", size = 8;
    else if (f->type == MR_TYPE_TEXT) encoding = "str";
    if (rc) return rc;
    snprintf(c->encoding, sizeof c->encoding, "%s", encoding);
    return mri_mds_column_settle(c, size, err);
}

static int make_columns(mds_state *s, mr_error *err)
{
    const mri_convert_plan *plan = s->plan;
    int rc = MR_OK;
    for (uint32_t k = 0; k < plan->field_count; k++) {
        uint32_t at = k;
        for (; at > 0 && strcmp(plan->fields[s->field[at - 1]].name, plan->fields[k].name) > 0; at--)
            s->field[at] = s->field[at - 1];
        s->field[at] = k;
    }
    s->schema.count = plan->field_count;
    for (uint32_t c = 0; !rc && c < plan->field_count; c++) {
        rc = make_column(plan, s->field[c], &s->schema.column[c], err);
        s->schema.varied += s->schema.column[c].bytes == 0;
    }
    return rc;
}

static int mds_plan(mri_convert_plan *plan, mr_error *err)
{
    if (plan->cfg.shard_bytes == 0) plan->cfg.shard_bytes = USUAL_SHARD;
    if (plan->cfg.shard_bytes <= UINT32_MAX) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "shard size: an MDS shard has less than 4 GiB, found %llu bytes",
                        (unsigned long long)plan->cfg.shard_bytes);
}

/* ---- a sample ---- */
/* The bytes of a value; scratch holds the bytes that memory has in another form than the file. */
static uint64_t value_bytes(const mri_mds_column *c, const mr_value *v, uint8_t *scratch)
{
    if (v->type == MR_TYPE_INT || v->type == MR_TYPE_FLOAT) return 8;
    return v->bytes +
           (v->type == MR_TYPE_TENSOR && !c->bytes ? mri_mds_put_shape(v->dim, v->ndim, scratch) : 0);
}

static int mds_fits(const mri_convert_plan *plan, const mr_value *values, mr_error *err)
{
    uint64_t all = (uint64_t)plan->field_count * (MRI_MDS_NUMBER + SHAPE_ROOM);
    for (uint32_t k = 0; k < plan->field_count; k++) all += values[k].bytes + 8;
    if (all <= MRI_MAX_SAMPLE_BYTES) return MR_OK;
    return mr_error_set(err, MR_ELIMIT, "the sample has about %llu bytes: MDS samples have up to 2 GiB here",
                        (unsigned long long)all);
}

static int mds_take(void *state, uint64_t source_index, const mr_value *values, uint64_t *bytes,
                    mr_error *err)
{
    mds_state *s = state;
    uint8_t scratch[SHAPE_ROOM];
    uint64_t all = (uint64_t)s->schema.varied * MRI_MDS_NUMBER;
    (void)source_index;
    for (uint32_t c = 0; c < s->schema.count; c++) {
        const mri_mds_column *column = &s->schema.column[c];
        const uint64_t own = value_bytes(column, &values[s->field[c]], scratch);
        if (column->bytes && own != column->bytes)
            return mr_error_set(err, MR_EFORMAT,
                                "field \"%s\": expected %u bytes in every sample, found %llu", column->name,
                                column->bytes, (unsigned long long)own);
        all += own;
    }
    s->values = values;
    s->next = (uint32_t)all;
    *bytes = all + MRI_MDS_NUMBER;
    return MR_OK;
}

static bool put_value(mds_state *s, const mri_mds_column *c, const mr_value *v)
{
    uint8_t scratch[SHAPE_ROOM];
    if (v->type == MR_TYPE_INT) return fwrite(&v->i, 8, 1, s->samples) == 1;
    if (v->type == MR_TYPE_FLOAT) return fwrite(&v->f, 8, 1, s->samples) == 1;
    const size_t head =
        v->type == MR_TYPE_TENSOR && !c->bytes ? mri_mds_put_shape(v->dim, v->ndim, scratch) : 0;
    return (!head || fwrite(scratch, 1, head, s->samples) == head) &&
           (!v->bytes || fwrite(v->data, 1, v->bytes, s->samples) == v->bytes);
}

static int keep_size(mds_state *s, mr_error *err)
{
    if (s->count == s->room) {
        const uint32_t room = s->room ? 2 * s->room : 1024;
        uint32_t *more = realloc(s->size, room * sizeof *more);
        if (!more) return no_memory(err);
        s->size = more;
        s->room = room;
    }
    s->size[s->count++] = s->next;
    s->bytes += s->next;
    return MR_OK;
}

static int mds_put(void *state, mri_files *f, mr_error *err)
{
    mds_state *s = state;
    uint8_t scratch[SHAPE_ROOM];
    (void)f;
    bool fine = true;
    errno = 0;
    for (uint32_t c = 0; fine && c < s->schema.count; c++) {
        const mri_mds_column *column = &s->schema.column[c];
        const uint32_t own = (uint32_t)value_bytes(column, &s->values[s->field[c]], scratch);
        if (!column->bytes) fine = fwrite(&own, sizeof own, 1, s->samples) == 1;
    }
    for (uint32_t c = 0; fine && c < s->schema.count; c++)
        fine = put_value(s, &s->schema.column[c], &s->values[s->field[c]]);
    if (fine) return keep_size(s, err);
    return mri_error_place(err, mr_error_sys(err, errno ? errno : EIO, "cannot write the samples of a shard"),
                           s->dst, MR_NOWHERE, MR_NOWHERE);
}

/* What end() will write for the samples so far, the table's last entry included. */
static uint64_t mds_waiting(const void *state)
{
    const mds_state *s = state;
    return 2 * MRI_MDS_NUMBER + s->config_bytes + s->bytes + (uint64_t)s->count * MRI_MDS_NUMBER;
}

static int put_table(mds_state *s, mri_files *f, mr_error *err)
{
    uint32_t at = 2 * MRI_MDS_NUMBER + s->count * MRI_MDS_NUMBER + (uint32_t)s->config_bytes;
    int rc = mri_files_put(f, &s->count, sizeof s->count, err);
    for (uint32_t k = 0; !rc && k <= s->count; k++) {
        rc = mri_files_put(f, &at, sizeof at, err);
        if (k < s->count) at += s->size[k];
    }
    return rc ? rc : mri_files_put(f, s->config, s->config_bytes, err);
}

static int put_samples(mds_state *s, mri_files *f, mr_error *err)
{
    uint8_t *piece = malloc(COPY_BYTES);
    int rc = piece ? MR_OK : no_memory(err);
    for (uint64_t at = 0; !rc && at < s->bytes; at += COPY_BYTES) {
        const size_t some = (size_t)mri_min_u64(COPY_BYTES, s->bytes - at);
        rc = mri_pread_all(fileno(s->samples), piece, some, at, s->dst, err);
        if (!rc) rc = mri_files_put(f, piece, some, err);
    }
    free(piece);
    return rc;
}

static int mds_end(void *state, mri_files *f, mr_error *err)
{
    mds_state *s = state;
    if (mds_waiting(s) > UINT32_MAX)
        return mr_error_set(err, MR_ELIMIT, "a shard of %llu bytes: MDS shards have less than 4 GiB",
                            (unsigned long long)mds_waiting(s));
    if (fflush(s->samples) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot write the samples of a shard"), s->dst,
                               MR_NOWHERE, MR_NOWHERE);
    int rc = put_table(s, f, err);
    if (!rc) rc = put_samples(s, f, err);
    s->count = 0;
    s->bytes = 0;
    rewind(s->samples);
    if (!rc && ftruncate(fileno(s->samples), 0) != 0)
        rc = mri_error_place(err, mr_error_sys(err, errno, "cannot empty the samples of a shard"), s->dst,
                             MR_NOWHERE, MR_NOWHERE);
    return rc;
}

/* ---- the list ---- */
static void shard_name(char *out, size_t room, const char *dst, uint32_t at, uint32_t count)
{
    (void)count;
    snprintf(out, room, "%s.%05u.mds", dst, at);
}

/* The list, too: where a set is replaced it is the first to go. */
static bool is_shard(const char *dst, const char *name)
{
    const size_t n = strlen(dst);
    uint64_t number;
    if (strcmp(name, MRI_MDS_INDEX) == 0) return true;
    if (strncmp(name, dst, n) != 0 || name[n] != '.') return false;
    const char *at = name + n + 1;
    return mri_files_digits(&at, &number) >= 5 && strcmp(at, ".mds") == 0;
}

static int mds_list(void *state, const mri_file_facts *facts, uint32_t count, const mri_output_rules *rules,
                    mr_error *err)
{
    mds_state *s = state;
    const mr_source_info *info = s->plan->info;
    char name[32], path[4200];
    const size_t folder = strlen(s->dst) - strlen("shard");
    s->index = mri_mds_index_begin(info->class_names, info->class_count);
    int rc = s->index ? MR_OK : no_memory(err);
    for (uint32_t k = 0; !rc && k < count; k++) {
        shard_name(name, sizeof name, "shard", k, count);
        rc = mri_mds_index_add(s->index, &s->schema, s->plan->cfg.shard_bytes, name, facts[k].bytes,
                               facts[k].records, facts[k].bytes_hash);
        if (rc) rc = no_memory(err);
    }
    char *text = rc ? NULL : mri_mds_index_text(s->index);
    if (!rc && !text) rc = no_memory(err);
    if (!rc && snprintf(path, sizeof path, "%.*s" MRI_MDS_INDEX, (int)folder, s->dst) >= (int)sizeof path)
        rc = mr_error_set(err, MR_EINVAL, "the folder's name is too long");
    if (!rc) rc = mri_output_write_whole(path, text, strlen(text), rules, err);
    free(text);
    return rc;
}

/* ---- the kind ---- */
static void mds_destroy(void *state)
{
    mds_state *s = state;
    if (s->samples) fclose(s->samples);
    mri_mds_index_end(s->index);
    free(s->config);
    free(s->size);
    free(s);
}

static int mds_create(void **state, const mri_convert_plan *plan, mr_error *err)
{
    mds_state *s = calloc(1, sizeof *s);
    if (!s) return no_memory(err);
    s->plan = plan;
    int rc = make_columns(s, err);
    if (!rc) s->config = mri_mds_schema_text(&s->schema, plan->cfg.shard_bytes);
    if (!rc && !s->config) rc = no_memory(err);
    if (!rc) s->config_bytes = strlen(s->config);
    if (rc) mds_destroy(s);
    else *state = s;
    return rc;
}

/* Called when the place is known to be right. */
static int mds_begin(void *state, mri_files *f, mr_error *err)
{
    mds_state *s = state;
    int fd;
    if (s->samples) return MR_OK;
    s->dst = mri_files_dst(f);
    int rc = mri_output_spill(&fd, s->dst, err);
    if (rc) return rc;
    s->samples = fdopen(fd, "w+");
    if (s->samples) return MR_OK;
    rc = mr_error_sys(err, errno, "cannot use an unnamed file");
    close(fd);
    return rc;
}

static bool mds_readable(const mri_convert_plan *plan) { return plan->image >= 0; }

static const mri_files_format format = {
    .source = "mds",
    .readable = mds_readable,
    .create = mds_create,
    .destroy = mds_destroy,
    .begin = mds_begin,
    .take = mds_take,
    .put = mds_put,
    .end = mds_end,
    .waiting = mds_waiting,
    .shard_name = shard_name,
    .is_shard = is_shard,
    .list = mds_list,
};

typedef struct mds_output {
    void *files;
    char *folder; /* made by this run: goes with a conversion that fails. NULL: it was there */
} mds_output;

static int make_folder(mds_output *o, const char *folder, mr_error *err)
{
    struct stat st;
    if (mkdir(folder, 0777) == 0) {
        o->folder = strdup(folder);
        return o->folder ? MR_OK : no_memory(err);
    }
    if (errno != EEXIST)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot make the folder"), folder, MR_NOWHERE,
                               MR_NOWHERE);
    if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode)) return MR_OK;
    return mri_error_place(err, mr_error_set(err, MR_EEXIST, "MDS needs a folder, and this is a file"),
                           folder, MR_NOWHERE, MR_NOWHERE);
}

static void mds_close(void *state, bool keep)
{
    mds_output *o = state;
    if (!o) return;
    mri_files_close(o->files, keep);
    if (o->folder) rmdir(o->folder); /* refused once files are in it */
    free(o->folder);
    free(o);
}

static int mds_open(void **state, const mri_convert_plan *plan, const char *dst, uint64_t *first,
                    uint64_t *resumed, mr_error *err)
{
    size_t n = strlen(dst);
    while (n > 1 && dst[n - 1] == '/') n--;
    mds_output *o = calloc(1, sizeof *o);
    char *path = malloc(n + sizeof "/shard");
    int rc = o && path ? MR_OK : no_memory(err);
    *state = NULL;
    *first = *resumed = 0;
    if (!rc) {
        memcpy(path, dst, n);
        path[n] = '\0';
        rc = mri_convert_check_folder(plan, path, err);
        if (!rc) rc = make_folder(o, path, err);
        memcpy(path + n, "/shard", sizeof "/shard");
        if (!rc) rc = mri_files_open(&o->files, plan, path, &format, err);
    }
    free(path);
    if (rc) mds_close(o, false);
    else *state = o;
    return rc;
}

static int mds_append(void *state, uint64_t source_index, const mr_value *values, mr_error *err)
{
    return mri_files_append(((mds_output *)state)->files, source_index, values, err);
}

static int mds_finish(void *state, uint64_t *bytes, uint32_t *shards, mr_error *err)
{
    return mri_files_finish(((mds_output *)state)->files, bytes, shards, err);
}

const mri_convert_kind mri_convert_mds = {
    .name = "mds",
    .stores = 1 << MR_STORE_JPEG,
    .picture_files = true,
    .plan = mds_plan,
    .fits = mds_fits,
    .open = mds_open,
    .append = mds_append,
    .finish = mds_finish,
    .close = mds_close,
};
