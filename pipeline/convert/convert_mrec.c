/* pipeline/convert/convert_mrec.c: conversion to our own record files. See convert.h.
 *
 *   one file   DST.part ──finish──► DST ──verify
 *   shards     STEM-00000.mrec, STEM-00001.mrec, ... each as above, then the list DST, which is written last:
 *              while it is missing the conversion is not complete. STEM is DST without ".mrec".
 *
 * Resume: finished shards of the same conversion (same settings, same source: the provenance says so) are
 * kept, the part file behind them is continued by the writer. */
#include "pipeline/convert/convert.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define INDEX_MEMORY_BYTES ((uint64_t)64 << 20)

typedef struct mrec_output {
    const mri_convert_plan *plan;
    char *dst;
    mr_writer *writer;      /* of the file at `shard`; NULL between files */
    char *path;             /* of that file */
    uint32_t shard;         /* files finished before it */
    uint64_t *shard_counts; /* records of finished files */
    uint64_t records;       /* of finished files */
    uint64_t last_source;   /* of the last finished file, + 1 */
    bool completed;         /* an earlier run had finished it all */
} mrec_output;

static bool sharded(const mrec_output *o) { return o->plan->cfg.shard_bytes != 0; }

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "out of memory for the output's names");
}

/* Name of file `at`; malloc'd, NULL when memory is gone. */
static char *file_path(const mrec_output *o, uint32_t at)
{
    const size_t len = strlen(o->dst);
    char *path = malloc(len + 32);
    if (!path) return NULL;
    if (!sharded(o)) {
        memcpy(path, o->dst, len + 1);
        return path;
    }
    const bool suffix = len > 5 && strcmp(o->dst + len - 5, ".mrec") == 0;
    snprintf(path, len + 32, "%.*s-%05u.mrec", (int)(suffix ? len - 5 : len), o->dst, at);
    return path;
}

/* ---- what an earlier run left ---- */

/* Source index of the last record, + 1. */
static int last_source_of(const mr_mrec *m, const char *path, uint64_t *out, mr_error *err)
{
    const mr_mrec_info *info = mr_mrec_info_of(m);
    uint64_t offset, bytes, source = 0;
    *out = 0;
    if (info->count == 0) return MR_OK;
    int rc = mr_mrec_extent(m, info->count - 1, &offset, &bytes, err);
    if (rc) return rc;
    void *data = malloc(bytes ? bytes : 1);
    if (!data) return no_memory(err);
    mr_sample sample;
    rc = mri_pread_all(mr_mrec_fd(m), data, bytes, offset, path, err);
    if (rc == MR_OK) rc = mr_mrec_parse(m, info->count - 1, data, bytes, &sample, &source, err);
    free(data);
    *out = source + 1;
    return rc;
}

static int keep_count(mrec_output *o, uint64_t count, mr_error *err)
{
    if ((o->shard & (o->shard - 1)) == 0) { /* full at every power of two */
        uint64_t *more = realloc(o->shard_counts, (o->shard ? o->shard * 2 : 1) * sizeof *more);
        if (!more) return no_memory(err);
        o->shard_counts = more;
    }
    o->shard_counts[o->shard++] = count;
    o->records += count;
    return MR_OK;
}

/* A finished file of this same conversion at path? MR_OK: taken over. MR_ENOENT: nothing there. */
static int take_over(mrec_output *o, const char *path, mr_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return MR_ENOENT;
    mr_mrec *m;
    int rc = mr_mrec_open(&m, path, INDEX_MEMORY_BYTES, err);
    if (rc) return rc;
    const mr_mrec_info *info = mr_mrec_info_of(m);
    if (strcmp(info->provenance, o->plan->provenance) != 0) {
        mr_error_set(err, MR_EEXIST,
                     "cannot resume: this file was made from other data or with other settings (%s); "
                     "give the same ones, or start again with force",
                     info->provenance);
        rc = mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    } else {
        rc = last_source_of(m, path, &o->last_source, err);
        if (rc == MR_OK) rc = keep_count(o, info->count, err);
    }
    mr_mrec_close(m);
    return rc;
}

static int find_finished(mrec_output *o, mr_error *err)
{
    for (;;) {
        char *path = file_path(o, o->shard);
        if (!path) return no_memory(err);
        const int rc = take_over(o, path, err);
        free(path);
        if (rc == MR_ENOENT) break;
        if (rc) return rc;
        if (!sharded(o)) break;
    }
    struct stat st;
    o->completed = o->shard > 0 && stat(o->dst, &st) == 0;
    return MR_OK;
}

/* ---- files ---- */

static int open_writer(mrec_output *o, bool resume, uint64_t *resume_source, mr_error *err)
{
    const mri_convert_plan *plan = o->plan;
    free(o->path);
    o->path = file_path(o, o->shard);
    if (!o->path) return no_memory(err);
    int rc = mri_convert_check_file(plan, o->path, err);
    if (rc) return rc;
    mr_writer_config cfg;
    mr_writer_defaults(&cfg);
    cfg.field_count = plan->field_count;
    cfg.fields = plan->fields;
    cfg.class_count = plan->info->class_names ? plan->info->class_count : 0;
    cfg.class_names = plan->info->class_names;
    cfg.provenance = plan->provenance;
    cfg.force = plan->cfg.force;
    cfg.resume = resume;
    return mr_writer_open(&o->writer, o->path, &cfg, resume_source, err);
}

static int check_dst_free(const mrec_output *o, mr_error *err)
{
    struct stat st;
    if (stat(o->dst, &st) != 0 || o->plan->cfg.force) return MR_OK;
    mr_error_set(err, MR_EEXIST, "the output exists; choose another name, or replace it with force");
    return mr_error_at(err, o->dst, MR_NOWHERE, MR_NOWHERE);
}

static uint64_t mrec_records(const void *state)
{
    const mrec_output *o = state;
    return o->records + (o->writer ? mr_writer_count(o->writer) : 0);
}

static void mrec_close(void *state, bool keep)
{
    mrec_output *o = state;
    if (!o) return;
    mr_writer_abort(o->writer, keep);
    free(o->shard_counts);
    free(o->path);
    free(o->dst);
    free(o);
}

static int mrec_open(void **out, const mri_convert_plan *plan, const char *dst, uint64_t *first,
                     uint64_t *resumed, mr_error *err)
{
    *out = NULL;
    *first = *resumed = 0;
    mrec_output *o = calloc(1, sizeof *o);
    if (!o) return no_memory(err);
    o->plan = plan;
    o->dst = strdup(dst);
    int rc = o->dst ? mri_convert_check_folder(plan, dst, err) : no_memory(err);
    if (rc == MR_OK) rc = mri_convert_check_file(plan, dst, err);
    if (rc == MR_OK && plan->cfg.resume) rc = find_finished(o, err);
    if (rc == MR_OK && !o->completed) rc = check_dst_free(o, err);
    uint64_t in_file = 0;
    if (rc == MR_OK && !o->completed) rc = open_writer(o, plan->cfg.resume, &in_file, err);
    if (rc) {
        mrec_close(o, true);
        return rc;
    }
    *first = mri_max_u64(o->last_source, in_file);
    *resumed = mrec_records(o);
    *out = o;
    return o->completed ? MR_EEND : MR_OK;
}

static int finish_file(mrec_output *o, mr_error *err)
{
    const uint64_t count = mr_writer_count(o->writer);
    mr_writer *w = o->writer;
    o->writer = NULL; /* gone whatever happens */
    const int rc = mr_writer_finish(w, err);
    return rc ? rc : keep_count(o, count, err);
}

static int mrec_append(void *state, uint64_t source_index, const mr_value *values, mr_error *err)
{
    mrec_output *o = state;
    int rc = MR_OK;
    if (sharded(o) && mr_writer_count(o->writer) > 0 &&
        mr_writer_bytes(o->writer) + mr_writer_record_bytes(o->writer, values) > o->plan->cfg.shard_bytes) {
        rc = finish_file(o, err);
        if (rc == MR_OK) rc = open_writer(o, false, NULL, err);
    }
    return rc ? rc : mr_writer_append(o->writer, source_index, values, err);
}

/* ---- the end ---- */

static bool keep_first_finding(void *context, const mr_error *what)
{
    *(mr_error *)context = *what;
    return false;
}

static int verify_file(const char *path, mr_error *err)
{
    mr_error found = MR_ERROR_INIT;
    mr_verify_result result;
    const int rc = mr_mrec_verify(path, keep_first_finding, &found, &result, err);
    if (found.code != MR_OK && err) *err = found;
    return rc;
}

static int check_files(const mrec_output *o, uint64_t *bytes, mr_error *err)
{
    int rc = MR_OK;
    *bytes = 0;
    for (uint32_t s = 0; rc == MR_OK && s < o->shard; s++) {
        char *path = file_path(o, s);
        if (!path) return no_memory(err);
        struct stat st;
        if (stat(path, &st) == 0) *bytes += (uint64_t)st.st_size;
        if (o->plan->cfg.verify) rc = verify_file(path, err);
        free(path);
    }
    return rc;
}

/* Shards of a larger conversion that was replaced: numbers past ours, without a gap. */
static void remove_left_over(const mrec_output *o)
{
    for (uint32_t s = o->shard; o->plan->cfg.force; s++) {
        char *path = file_path(o, s);
        const int gone = path && mri_convert_check_input(o->plan, path, NULL) == MR_OK ? unlink(path) : -1;
        free(path);
        if (gone != 0) break;
    }
}

static int write_list(const mrec_output *o, mr_error *err)
{
    const char **paths = calloc(o->shard, sizeof *paths);
    int rc = paths ? MR_OK : no_memory(err);
    for (uint32_t s = 0; rc == MR_OK && s < o->shard; s++)
        if (!(paths[s] = file_path(o, s))) rc = no_memory(err);
    if (rc == MR_OK) rc = mr_shards_write(o->dst, paths, o->shard_counts, o->shard, o->plan->cfg.force, err);
    for (uint32_t s = 0; paths && s < o->shard; s++) free((void *)(uintptr_t)paths[s]);
    free(paths);
    return rc;
}

static int mrec_finish(void *state, uint64_t *bytes, uint32_t *shards, mr_error *err)
{
    mrec_output *o = state;
    int rc = o->writer ? finish_file(o, err) : MR_OK;
    if (rc == MR_OK) rc = check_files(o, bytes, err);
    if (rc == MR_OK && sharded(o) && !o->completed) {
        remove_left_over(o);
        rc = write_list(o, err);
    }
    *shards = o->shard;
    return rc;
}

const mri_convert_kind mri_convert_mrec = {
    .name = "mrec",
    .stores = 1 << MR_STORE_JPEG | 1 << MR_STORE_RAW | 1 << MR_STORE_COEF,
    .resumes = true,
    .open = mrec_open,
    .append = mrec_append,
    .records = mrec_records,
    .finish = mrec_finish,
    .close = mrec_close,
};
