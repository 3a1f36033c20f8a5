/* pipeline/convert/convert_mrec.c: conversion to our own record files. See convert.h.
 *
 *   one file   DST.part ──finish──► read back ──► DST
 *   shards     STEM-00000.mrec.part, STEM-00001.mrec.part, ... each finished and read back; then names for
 *              all and the list DST (convert_shards.c). STEM is DST without ".mrec".
 *
 * Resume: finished files of the same conversion (same settings, same source: the provenance says so) are
 * kept, and the writer continues the part file after them. Without resume, records of an interrupted run are
 * removed only on request (force). */
#include "pipeline/convert/convert_mrec.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/util.h"
#include "formats/record/record.h"
#include "pipeline/convert/convert.h"

#define INDEX_MEMORY_BYTES ((uint64_t)64 << 20)

int mri_mrec_no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "out of memory for the output's names");
}

static char *set_path(const mri_mrec_output *o, uint32_t at, const char *ending)
{
    const size_t len = strlen(o->dst), room = len + strlen(ending) + 32;
    const bool suffix = len > 5 && strcmp(o->dst + len - 5, ".mrec") == 0;
    char *path = malloc(room);
    if (path) snprintf(path, room, "%.*s-%05u.mrec%s", (int)(suffix ? len - 5 : len), o->dst, at, ending);
    return path;
}

char *mri_mrec_file_path(const mri_mrec_output *o, uint32_t at, const char *ending)
{
    const size_t room = strlen(o->dst) + strlen(ending) + 32;
    if (mri_mrec_sharded(o)) return set_path(o, at, ending);
    char *path = malloc(room);
    if (path) snprintf(path, room, "%s%s", o->dst, ending);
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
    if (!data) return mri_mrec_no_memory(err);
    mr_sample sample;
    rc = mri_pread_all(mr_mrec_fd(m), data, bytes, offset, path, err);
    if (rc == MR_OK) rc = mr_mrec_parse(m, info->count - 1, data, bytes, &sample, &source, err);
    free(data);
    *out = source + 1;
    return rc;
}

static int keep_file(mri_mrec_output *o, const mr_mrec_info *info, mr_error *err)
{
    if ((o->shard & (o->shard - 1)) == 0) { /* full at every power of two */
        mri_journal_file *more = realloc(o->files, (o->shard ? o->shard * 2 : 1) * sizeof *more);
        if (!more) return mri_mrec_no_memory(err);
        o->files = more;
    }
    o->files[o->shard++] = (mri_journal_file){info->count, info->fingerprint};
    o->records += info->count;
    return MR_OK;
}

int mri_mrec_take_over(mri_mrec_output *o, const char *path, mr_error *err)
{
    mr_mrec *m;
    int rc = mr_mrec_open(&m, path, INDEX_MEMORY_BYTES, err);
    if (rc) return rc;
    const mr_mrec_info *info = mr_mrec_info_of(m);
    char differs[512];
    if (strcmp(info->provenance, o->plan->provenance) != 0)
        rc = mri_error_place(
            err,
            mr_error_set(
                err, MR_EEXIST,
                "cannot resume: this file was made otherwise: %s; give the same data and settings, or "
                "begin anew with force (--force)",
                mri_convert_differs(info->provenance, o->plan->provenance, differs, sizeof differs)),
            path, MR_NOWHERE, MR_NOWHERE);
    if (rc == MR_OK) rc = last_source_of(m, path, &o->last_source, err);
    if (rc == MR_OK) rc = keep_file(o, info, err);
    mr_mrec_close(m);
    return rc;
}

/* ---- files ---- */
/* Where classes are numbers: the first one, as --label-offset says it or the source declares it. */
static int64_t first_class(const mri_convert_plan *plan)
{
    const mr_source_info *info = plan->info;
    const mr_source_labels *l = mr_source_labels_of(plan->src);
    if (info->class_names || info->label_field < 0) return 0;
    return info->label_offset || l->start == MR_LABEL_AUTO ? info->label_offset : l->start;
}

static int open_writer(mri_mrec_output *o, bool resume, uint64_t *resume_source, mr_error *err)
{
    const mri_convert_plan *plan = o->plan;
    free(o->path);
    o->path = mri_mrec_file_path(o, o->shard, "");
    if (!o->path) return mri_mrec_no_memory(err);
    mr_writer_config cfg;
    mr_writer_defaults(&cfg);
    cfg.field_count = plan->field_count;
    cfg.fields = plan->fields;
    cfg.class_count = plan->info->class_names ? plan->info->class_count : 0;
    cfg.class_names = plan->info->class_names;
    cfg.label_start = first_class(plan);
    cfg.provenance = plan->provenance;
    cfg.force = plan->cfg.force;
    cfg.resume = resume;
    cfg.verify = plan->cfg.verify;
    cfg.input = plan->src;
    const int rc = mr_writer_open(&o->writer, o->path, &cfg, resume_source, err);
    if (rc != MR_EEXIST || !resume) return rc;
    char *part = mri_mrec_file_path(o, o->shard, ".part");
    if (part) mri_convert_part_differs(plan, o->dst, part, err);
    free(part);
    return rc;
}

/* Of the file at `at`, which an earlier run finished. */
static int sources_of(const mri_mrec_output *o, uint32_t at, mri_source_fn *each, void *context,
                      mr_error *err)
{
    mr_mrec *m;
    bool aside = false;
    int rc = mri_mrec_sharded(o) ? mri_mrec_look(o, at, ".part", &aside, err) : MR_OK;
    if (rc) return rc;
    char *path = mri_mrec_file_path(o, at, aside ? ".part" : "");
    if (!path) return mri_mrec_no_memory(err);
    rc = mr_mrec_open(&m, path, INDEX_MEMORY_BYTES, err);
    if (!rc) {
        rc = mri_mrec_sources(m, each, context, err);
        mr_mrec_close(m);
    }
    free(path);
    return rc;
}

static int mrec_sources(void *state, mri_source_fn *each, void *context, mr_error *err)
{
    const mri_mrec_output *o = state;
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < o->shard; k++) rc = sources_of(o, k, each, context, err);
    return !rc && o->writer ? mri_writer_sources(o->writer, each, context, err) : rc;
}

static void mrec_close(void *state, bool keep)
{
    mri_mrec_output *o = state;
    if (!o) return;
    mr_writer_abort(o->writer, keep);
    mri_journal_close(&o->journal, keep);
    free(o->files);
    free(o->path);
    free(o->dst);
    free(o);
}

static int both_there(const mri_mrec_output *o, mr_error *err)
{
    return mri_error_place(
        err,
        mr_error_set(err, MR_EEXIST,
                     "it exists already, and so does %s.part of an interrupted run that was to replace it: "
                     "resume with force to go on (--resume --force), or remove one of them",
                     o->dst),
        o->dst, MR_NOWHERE, MR_NOWHERE);
}

static int left_there(const mri_mrec_output *o, uint64_t left, mr_error *err)
{
    char *part = mri_mrec_file_path(o, 0, ".part");
    const int rc = mr_error_set(
        err, MR_EEXIST,
        "an interrupted run left %llu bytes of records here: go on with resume (--resume), or throw them "
        "away and begin anew with force (--force)",
        (unsigned long long)left);
    mri_error_place(err, rc, part, MR_NOWHERE, MR_NOWHERE);
    free(part);
    return rc;
}

/* Did an interrupted run begin a set of files here, which a run to one file would leave behind? */
static int check_no_set(const mri_mrec_output *o, mr_error *err)
{
    char journal[PATH_MAX];
    struct stat st;
    const mr_convert_config *cfg = &o->plan->cfg;
    snprintf(journal, sizeof journal, "%s.conversion.part", o->dst);
    if ((cfg->force && !cfg->resume) || lstat(journal, &st) != 0 || !S_ISREG(st.st_mode)) return MR_OK;
    char *part = set_path(o, 0, ".part");
    if (!part) return mri_mrec_no_memory(err);
    mr_error_set(err, MR_EEXIST,
                 "an interrupted run made a set of files here (--shard-size): give its options and resume "
                 "(--resume), or remove this file and the .part files of the set");
    mri_error_place(err, MR_EEXIST, journal, MR_NOWHERE, MR_NOWHERE);
    mri_convert_part_differs(o->plan, o->dst, part, err);
    free(part);
    return MR_EEXIST;
}

/* Is DST there, whole, by this same conversion? */
static int open_one(mri_mrec_output *o, mr_error *err)
{
    const mr_convert_config *cfg = &o->plan->cfg;
    const uint64_t left = mri_writer_left(o->dst);
    struct stat st;
    char *part = mri_mrec_file_path(o, 0, ".part");
    if (!part) return mri_mrec_no_memory(err);
    const bool begun = lstat(part, &st) == 0;
    free(part);
    const int rc = check_no_set(o, err);
    if (rc) return rc;
    if (!cfg->resume) return left && !cfg->force ? left_there(o, left, err) : MR_OK;
    if (stat(o->dst, &st) != 0 || (begun && cfg->force)) return MR_OK; /* that run was to replace it */
    if (left) return both_there(o, err);
    const int taken = mri_mrec_take_over(o, o->dst, err);
    o->completed = taken == MR_OK;
    return taken == MR_EEXIST && cfg->force ? MR_OK : taken;
}

static int check_place(const mri_mrec_output *o, mr_error *err)
{
    int rc = mri_convert_check_folder(o->plan, o->dst, err);
    if (rc == MR_OK) rc = mri_convert_check_file(o->plan, o->dst, err);
    if (rc) return rc;
    mri_output_rules rules = o->rules;
    rules.force |= o->plan->cfg.resume; /* existing files may be an earlier run's */
    return mri_output_check(o->dst, &rules, err);
}

static int create(mri_mrec_output **out, const mri_convert_plan *plan, const char *dst, mr_error *err)
{
    mri_mrec_output *o = calloc(1, sizeof *o);
    *out = o;
    if (!o) return mri_mrec_no_memory(err);
    o->plan = plan;
    o->rules = (mri_output_rules){.force = plan->cfg.force,
                                  .take_part = plan->cfg.force,
                                  .resume = true,
                                  .input = mri_source_input,
                                  .context = plan->src};
    o->dst = strdup(dst);
    return o->dst ? MR_OK : mri_mrec_no_memory(err);
}

static int mrec_open(void **out, const mri_convert_plan *plan, const char *dst, uint64_t *first,
                     uint64_t *resumed, mr_error *err)
{
    mri_mrec_output *o;
    uint64_t in_file = 0;
    *out = NULL;
    *first = *resumed = 0;
    int rc = create(&o, plan, dst, err);
    if (rc == MR_OK) rc = check_place(o, err);
    if (rc == MR_OK) rc = mri_mrec_sharded(o) ? mri_set_open(o, err) : open_one(o, err);
    if (rc == MR_OK && !o->completed) rc = open_writer(o, plan->cfg.resume, &in_file, err);
    if (rc) {
        mrec_close(o, o && o->journal.found); /* what an earlier run left stays as it was */
        return rc;
    }
    *first = mri_max_u64(o->last_source, in_file);
    *resumed = o->records + (o->writer ? mr_writer_count(o->writer) : 0);
    *out = o;
    return o->completed ? MR_EEND : MR_OK;
}

static int finish_file(mri_mrec_output *o, mr_error *err)
{
    const mr_mrec_info info = {.count = mr_writer_count(o->writer)};
    mr_writer *w = o->writer;
    o->writer = NULL; /* gone whatever happens */
    int rc = mri_mrec_sharded(o) ? mri_writer_seal(w, err) : mr_writer_finish(w, err);
    if (rc == MR_OK) rc = mri_mrec_sharded(o) ? mri_set_keep(o, err) : keep_file(o, &info, err);
    return rc;
}

static int mrec_append(void *state, uint64_t source_index, const mr_value *values, mr_error *err)
{
    mri_mrec_output *o = state;
    int rc = MR_OK;
    if (mri_mrec_sharded(o) && mr_writer_count(o->writer) > 0 &&
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
    const int rc = mr_mrec_verify(path, keep_first_finding, &found, NULL, err);
    if (found.code != MR_OK && err) *err = found;
    return rc;
}

/* The figures reported about finished files. */
static int add_bytes(const char *path, uint64_t *bytes, mr_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot look at the written file"), path,
                               MR_NOWHERE, MR_NOWHERE);
    *bytes += (uint64_t)st.st_size;
    return MR_OK;
}

/* Files of this run were read back before they had their names; a run that finds all done reads them again.
 */
static int look_at_files(const mri_mrec_output *o, uint64_t *bytes, mr_error *err)
{
    int rc = MR_OK;
    *bytes = 0;
    for (uint32_t s = 0; rc == MR_OK && s < o->shard; s++) {
        char *path = mri_mrec_file_path(o, s, "");
        if (!path) return mri_mrec_no_memory(err);
        rc = add_bytes(path, bytes, err);
        if (rc == MR_OK && o->completed && o->plan->cfg.verify) rc = verify_file(path, err);
        free(path);
    }
    return rc;
}

static int mrec_finish(void *state, uint64_t *bytes, uint32_t *shards, mr_error *err)
{
    mri_mrec_output *o = state;
    *bytes = 0;
    if (o->writer && o->shard > 0 && mr_writer_count(o->writer) == 0) {
        mr_writer_abort(o->writer, false); /* the run before was interrupted with all files written */
        o->writer = NULL;
    }
    int rc = o->writer ? finish_file(o, err) : MR_OK;
    if (rc == MR_OK && mri_mrec_sharded(o)) rc = mri_set_finish(o, err);
    if (rc == MR_OK) rc = look_at_files(o, bytes, err);
    *shards = o->shard;
    return rc;
}

const mri_convert_kind mri_convert_mrec = {
    .name = "mrec",
    .stores = 1 << MR_STORE_JPEG | 1 << MR_STORE_RAW | 1 << MR_STORE_COEF,
    .keeps_numbers = true,
    .resumes = true,
    .open = mrec_open,
    .append = mrec_append,
    .sources = mrec_sources,
    .finish = mrec_finish,
    .close = mrec_close,
};
