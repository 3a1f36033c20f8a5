/* pipeline/convert/convert_recordio.c: conversion to MXNet's RecordIO (formats/recordio/recordio.h).
 *
 *   DST             records: header with label and number, then the picture's file
 *   DST.idx         in place of .rec: a line for each record, | number | tab | offset |
 *   DST.lst         labels and name of each record (convert_rec_list.h), where samples have names
 *
 *   label           one float, exact up to 2^24; without a label 0
 *   labels          a field of this name, one dimension of f32: packed labels. The class, where there is
 *                   one, is the first of them
 *   other fields    have no place: a set with such is refused. Names of classes are not written
 *
 * Index and list are made when the records have their names: a set that lacks them can be read without. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "formats/recordio/recordio.h"
#include "formats/source/value.h"
#include "formats/storage/file_scan.h"
#include "pipeline/convert/convert.h"
#include "pipeline/convert/convert_files.h"
#include "pipeline/convert/convert_rec_list.h"

enum { MOST_EXACT = 1 << 24, MOST_LABELS = 1 << 20 };

typedef struct recordio_state {
    const mri_convert_plan *plan;
    const char *dst;
    uint64_t number; /* of the next record */
    uint8_t *record, *framed;
    size_t record_room, framed_room;
    uint64_t framed_bytes;
    mri_rec_list list;
} recordio_state;

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for RecordIO records"); }

/* ---- the fields ---- */
static int labels_field(const mri_convert_plan *plan)
{
    const int k = mri_field_find(plan->fields, plan->field_count, "labels");
    if (k < 0 || plan->fields[k].type != MR_TYPE_TENSOR || plan->fields[k].dtype != MR_F32) return -1;
    return plan->fields[k].ndim <= 1 ? k : -1;
}

static int recordio_plan(mri_convert_plan *plan, mr_error *err)
{
    const int labels = labels_field(plan);
    if (plan->image < 0)
        return mr_error_set(err, MR_EINVAL, "RecordIO records hold pictures, and this set has no pictures");
    for (uint32_t k = 0; k < plan->field_count; k++) {
        const bool taken =
            (int)k == plan->image || (int)k == plan->label || (int)k == labels || (int)k == plan->name;
        if (!taken)
            return mr_error_set(err, MR_EINVAL,
                                "field \"%s\": RecordIO has a place for the picture, its class and a field "
                                "labels of floats: take another format (mrec, tar, mds)",
                                plan->fields[k].name);
    }
    return MR_OK;
}

static int recordio_fits(const mri_convert_plan *plan, const mr_value *values, mr_error *err)
{
    const int at = labels_field(plan);
    const mr_value *labels = at >= 0 ? &values[at] : NULL;
    const uint64_t count = labels ? labels->bytes / sizeof(float) : 0;
    float first = 0;
    if (count) memcpy(&first, labels->data, sizeof first);
    if (count > MOST_LABELS || (labels && labels->ndim != 1))
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "field \"labels\": expected one dimension of up to %d floats", MOST_LABELS);
    if (plan->label >= 0) {
        const int64_t label = values[plan->label].i;
        if (label < -MOST_EXACT || label > MOST_EXACT)
            return mr_error_set(err, MR_ELIMIT,
                                "label %" PRId64
                                ": RecordIO stores labels as floats, which are exact up to %d",
                                label, MOST_EXACT);
        if (count && first != (float)label)
            return mr_error_set(err, MR_EUNSUPPORTED,
                                "label %" PRId64 ": the first of a record's labels is its class, found %g",
                                label, (double)first);
    }
    const uint64_t all = values[plan->image].bytes + MRI_PICTURE_HEAD_BYTES + count * sizeof(float);
    if (all <= MRI_RECORDIO_MAX_BYTES) return MR_OK;
    return mr_error_set(err, MR_ELIMIT, "the record has %" PRIu64 " bytes: RecordIO has up to %u", all,
                        MRI_RECORDIO_MAX_BYTES);
}

/* ---- a record ---- */
static bool grow(uint8_t **buf, size_t *room, uint64_t bytes)
{
    if (bytes <= *room) return true;
    uint8_t *more = realloc(*buf, (size_t)bytes);
    if (!more) return false;
    *buf = more;
    *room = (size_t)bytes;
    return true;
}

static int add_to_list(recordio_state *s, const mri_picture_head *head, const float *labels,
                       const mr_value *name, mr_error *err)
{
    const bool packed = head->label_count > 0;
    return mri_rec_list_add(&s->list, s->number, packed ? labels : &head->label,
                            packed ? head->label_count : 1, name->data, name->bytes, err);
}

static int recordio_take(void *state, uint64_t source_index, const mr_value *values, uint64_t *bytes,
                         mr_error *err)
{
    recordio_state *s = state;
    const mri_convert_plan *plan = s->plan;
    const int at = labels_field(plan);
    const mr_value *picture = &values[plan->image], *labels = at >= 0 ? &values[at] : NULL;
    const uint32_t count = labels ? (uint32_t)(labels->bytes / sizeof(float)) : 0;
    const uint64_t size = MRI_PICTURE_HEAD_BYTES + (uint64_t)count * sizeof(float) + picture->bytes;
    (void)source_index;
    if (!grow(&s->record, &s->record_room, size)) return no_memory(err);
    const mri_picture_head head = {
        .label_count = count, .label = plan->label >= 0 ? (float)values[plan->label].i : 0, .id = s->number};
    uint8_t *to = mri_picture_head_build(&head, count ? labels->data : NULL, s->record);
    if (picture->bytes) memcpy(to, picture->data, picture->bytes);
    s->framed_bytes = mri_recordio_bytes(s->record, (uint32_t)size);
    if (!grow(&s->framed, &s->framed_room, s->framed_bytes)) return no_memory(err);
    mri_recordio_build(s->record, (uint32_t)size, s->framed);
    *bytes = s->framed_bytes;
    return plan->name < 0 ? MR_OK
                          : add_to_list(s, &head, count ? labels->data : NULL, &values[plan->name], err);
}

static int recordio_put(void *state, mri_files *f, mr_error *err)
{
    recordio_state *s = state;
    s->number++;
    s->dst = mri_files_dst(f);
    return mri_files_put(f, s->framed, (size_t)s->framed_bytes, err);
}

/* ---- names: STEM-00017.rec and .idx; STEM is DST without ".rec" ---- */
static int stem_bytes(const char *dst)
{
    const size_t n = strlen(dst);
    return (int)(n > 4 && strcmp(dst + n - 4, ".rec") == 0 ? n - 4 : n);
}

static void shard_name(char *out, size_t room, const char *dst, uint32_t at, uint32_t count)
{
    (void)count;
    snprintf(out, room, "%.*s-%05u.rec", stem_bytes(dst), dst, at);
}

/* Index and list, too: a set that is replaced goes with them. */
static bool is_shard(const char *dst, const char *name)
{
    const size_t n = (size_t)stem_bytes(dst);
    uint64_t number;
    if (strncmp(name, dst, n) != 0 || name[n] != '-') return false;
    const char *at = name + n + 1;
    if (mri_files_digits(&at, &number) < 5) return false;
    return strcmp(at, ".rec") == 0 || strcmp(at, ".idx") == 0 || strcmp(at, ".lst") == 0;
}

/* ---- the index ---- */
static int scan_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(context, offset, bytes, out, err);
}

static int list_records(int fd, const char *path, uint64_t bytes, uint64_t *number, FILE *to, mr_error *err)
{
    mri_file_scan w;
    mri_file_scan_init(&w, fd, path, bytes);
    const mri_recordio_input in = {scan_get, &w, bytes};
    mri_recordio_record r;
    int rc = MR_OK;
    for (uint64_t at = 0; !rc && at < bytes; at += r.bytes) {
        rc = mri_recordio_read_headers(&in, at, &r, err);
        if (!rc && fprintf(to, "%" PRIu64 "\t%" PRIu64 "\n", (*number)++, at) < 0)
            rc = mr_error_sys(err, errno, "cannot write the index");
    }
    mri_file_scan_fini(&w);
    return rc;
}

static const char *const companions[] = {".idx", ".lst"};

static void companion_path(char *out, size_t room, const char *path, const char *ending)
{
    snprintf(out, room, "%.*s%s", stem_bytes(path), path, ending);
}

static int write_idx(const char *path, uint64_t bytes, uint64_t *number, const mri_output_rules *rules,
                     mr_error *err)
{
    char idx[4200];
    mri_output *out = NULL;
    companion_path(idx, sizeof idx, path, companions[0]);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? mri_error_place(err, mr_error_sys(err, errno, "cannot open it again"), path, MR_NOWHERE,
                                      MR_NOWHERE)
                    : mri_output_open(&out, idx, rules, err);
    FILE *to = rc ? NULL : mri_output_stream(out, err);
    if (!rc && !to) rc = MR_ENOMEM;
    if (!rc) rc = list_records(fd, path, bytes, number, to, err);
    if (!rc && fflush(to) != 0) rc = mr_error_sys(err, errno, "cannot write the index");
    if (!rc) rc = mri_output_commit(out, NULL, NULL, err);
    mri_output_close(out, false);
    if (fd >= 0) close(fd);
    return rc ? mri_error_place(err, rc, err && err->file[0] ? NULL : idx, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

/* An old index next to a new file would name wrong offsets, an old list other pictures. */
static int remove_companions(const char *dst, const mri_output_rules *rules, mr_error *err)
{
    char path[4200];
    int rc = MR_OK;
    for (size_t c = 0; !rc && c < MRI_ARRAY_COUNT(companions); c++) {
        companion_path(path, sizeof path, dst, companions[c]);
        rc = mri_output_remove(path, rules, err);
    }
    return rc;
}

static int check_companions(const char *dst, const mri_output_rules *rules, mr_error *err)
{
    char path[4200];
    int rc = MR_OK;
    for (size_t c = 0; !rc && c < MRI_ARRAY_COUNT(companions); c++) {
        companion_path(path, sizeof path, dst, companions[c]);
        rc = mri_output_check(path, rules, err);
    }
    return rc;
}

static int write_companions(recordio_state *s, const char *path, const mri_file_facts *facts,
                            uint64_t *number, const mri_output_rules *rules, mr_error *err)
{
    char companion[4200];
    int rc = write_idx(path, facts->bytes, number, rules, err);
    if (rc || s->plan->name < 0) return rc;
    companion_path(companion, sizeof companion, path, companions[1]);
    rc = mri_rec_list_write(&s->list, companion, facts->records, rules, err);
    if (rc) {
        companion_path(companion, sizeof companion, path, companions[0]);
        mri_output_remove(companion, rules, NULL);
    }
    return rc;
}

static int recordio_list(void *state, const mri_file_facts *facts, uint32_t count,
                         const mri_output_rules *rules, mr_error *err)
{
    recordio_state *s = state;
    char path[4200];
    uint64_t number = 0;
    int rc = MR_OK;
    uint32_t at = 0;
    for (; !rc && at < count; at++) {
        if (s->plan->cfg.shard_bytes) shard_name(path, sizeof path, s->dst, at, count);
        else snprintf(path, sizeof path, "%s", s->dst);
        rc = write_companions(s, path, &facts[at], &number, rules, err);
    }
    for (uint32_t k = 0; rc && k + 1 < at; k++) { /* none of them stays */
        shard_name(path, sizeof path, s->dst, k, count);
        remove_companions(path, rules, NULL);
    }
    return rc;
}

/* ---- the kind ---- */
static void recordio_destroy(void *state)
{
    recordio_state *s = state;
    mri_rec_list_fini(&s->list);
    free(s->record);
    free(s->framed);
    free(s);
}

static int recordio_create(void **state, const mri_convert_plan *plan, mr_error *err)
{
    recordio_state *s = calloc(1, sizeof *s);
    if (!s) return no_memory(err);
    s->plan = plan;
    *state = s;
    return MR_OK;
}

/* Without a class our reader takes the label 0 for one. */
static bool recordio_readable(const mri_convert_plan *plan) { return plan->label >= 0; }

static const mri_files_format format = {
    .source = "recordio",
    .readable = recordio_readable,
    .create = recordio_create,
    .destroy = recordio_destroy,
    .take = recordio_take,
    .put = recordio_put,
    .shard_name = shard_name,
    .is_shard = is_shard,
    .remove_list = remove_companions,
    .list = recordio_list,
};

static int recordio_open(void **state, const mri_convert_plan *plan, const char *dst, uint64_t *first,
                         uint64_t *resumed, mr_error *err)
{
    const mri_output_rules rules = {
        .force = plan->cfg.force, .input = mri_source_input, .context = plan->src};
    *first = *resumed = 0;
    if (strlen(dst) > 4096) return mr_error_set(err, MR_EINVAL, "the name of the output is too long");
    const int rc = plan->cfg.shard_bytes ? MR_OK : check_companions(dst, &rules, err);
    return rc ? rc : mri_files_open(state, plan, dst, &format, err);
}

const mri_convert_kind mri_convert_recordio = {
    .name = "recordio",
    .class_names = MRI_NAMES_LOST,
    .stores = 1 << MR_STORE_JPEG,
    .picture_files = true,
    .plan = recordio_plan,
    .fits = recordio_fits,
    .open = recordio_open,
    .append = mri_files_append,
    .finish = mri_files_finish,
    .close = mri_files_close,
};
