/* pipeline/convert/convert_shards.c: replaces a set of .mrec files so that a reader sees the old set or the
 * new one. See convert_mrec.h.
 *
 *   files are written       STEM-00000.mrec.part, ...: the existing set stays unchanged
 *   all are complete        the journal says which (convert_journal.h)
 *   removal                 of the replaced set: first the list, then the files, the last one first
 *   names                   one after the other; then the list DST, then the journal goes
 *
 * Killed at any point it goes on from the journal (resume). In between there is no list: opening DST fails
 * with a missing file, and old and new files never exist at once. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/record/record.h"
#include "formats/record/shards.h"
#include "pipeline/cache/cache.h"
#include "pipeline/convert/convert.h"
#include "pipeline/convert/convert_mrec.h"

static int look_at(const char *path, bool *there, mr_error *err)
{
    struct stat st;
    *there = lstat(path, &st) == 0;
    if (*there || errno == ENOENT) return MR_OK;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot look at the existing file"), path,
                           MR_NOWHERE, MR_NOWHERE);
}

int mri_mrec_look(const mri_mrec_output *o, uint32_t at, const char *ending, bool *there, mr_error *err)
{
    char *path = mri_mrec_file_path(o, at, ending);
    if (!path) return mri_mrec_no_memory(err);
    const int rc = look_at(path, there, err);
    free(path);
    return rc;
}

/* ---- what an earlier run left ---- */
static int refuse(const char *path, const char *what, mr_error *err)
{
    return mri_error_place(err, mr_error_set(err, MR_EEXIST, "%s", what), path, MR_NOWHERE, MR_NOWHERE);
}

static const char left_text[] =
    "an interrupted run left files here: go on with resume (--resume), or throw them away and "
    "begin anew with force (--force)";

/* The set is complete: exactly the files of this conversion. */
static int take_over_list(mri_mrec_output *o, mr_error *err)
{
    mri_shards list;
    int rc = mri_shards_read(&list, o->dst, err);
    if (rc)
        return rc == MR_EFORMAT ? refuse(o->dst, "it exists already, and is no list of record files", err)
                                : rc;
    for (uint32_t k = 0; !rc && k < list.count; k++) {
        char *path = mri_mrec_file_path(o, k, ""), *listed = mri_shards_resolve(o->dst, list.shard[k].path);
        if (!path || !listed) rc = mri_mrec_no_memory(err);
        else if (strcmp(path, listed) != 0) rc = refuse(o->dst, "it lists files of another set", err);
        else rc = mri_mrec_take_over(o, path, err);
        if (!rc && o->files[k].records != list.shard[k].count)
            rc = refuse(path, "it does not hold as many records as its list says", err);
        free(path);
        free(listed);
    }
    mri_shards_fini(&list);
    o->completed = rc == MR_OK;
    return rc;
}

/* Could our own writer have left it? Files that the writer would refuse are not examined. */
static bool is_ours(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

static bool is_damage(int rc) { return rc == MR_EFORMAT || rc == MR_ECHECKSUM || rc == MR_EUNSUPPORTED; }

/* Set complete files aside, up to the first incomplete one, which the writer continues. */
static int take_over_parts(mri_mrec_output *o, mr_error *err)
{
    int rc = MR_OK;
    for (bool ours = true; ours && !rc;) {
        char *path = mri_mrec_file_path(o, o->shard, ".part");
        if (!path) return mri_mrec_no_memory(err);
        ours = is_ours(path);
        if (ours && o->plan->cfg.verify) rc = mr_mrec_verify(path, NULL, NULL, NULL, err);
        if (ours && !rc) rc = mri_mrec_take_over(o, path, err);
        free(path);
    }
    return is_damage(rc) ? MR_OK : rc;
}

/* All files are written: the journal has the remaining steps. */
static int take_over_journal(mri_mrec_output *o, mr_error *err)
{
    o->files = calloc(o->journal.count, sizeof *o->files);
    if (!o->files) return mri_mrec_no_memory(err);
    memcpy(o->files, o->journal.file, o->journal.count * sizeof *o->files);
    o->shard = o->journal.count;
    for (uint32_t k = 0; k < o->shard; k++) o->records += o->files[k].records;
    o->completed = true;
    return MR_OK;
}

/* ---- begin ---- */
/* Through the way that writes them: what another process writes, or another user has, is not removed. */
static int remove_part(mri_mrec_output *o, uint32_t at, mr_error *err)
{
    char *path = mri_mrec_file_path(o, at, "");
    mri_output_rules rules = o->rules;
    mri_output *part = NULL;
    rules.force = true;
    int rc = path ? mri_output_open(&part, path, &rules, err) : mri_mrec_no_memory(err);
    if (!rc) rc = mri_output_empty(part, err); /* refuses files that are not ours */
    if (!rc) rc = mri_output_discard(part, err);
    mri_output_close(part, false);
    free(path);
    return rc;
}

static int remove_parts(mri_mrec_output *o, mr_error *err)
{
    uint32_t count = 0;
    bool there = true;
    int rc = MR_OK;
    while (!rc && there && !(rc = mri_mrec_look(o, count, ".part", &there, err)) && there) count++;
    while (!rc && count > 0)
        rc = remove_part(o, --count, err); /* the last one first: no gap if killed here */
    return rc;
}

static int begin(mri_mrec_output *o, uint64_t source, mr_error *err)
{
    const bool force = o->plan->cfg.force;
    bool part = false, named = false, listed = false;
    int rc = mri_mrec_look(o, 0, ".part", &part, err);
    if (!rc) rc = mri_mrec_look(o, 0, "", &named, err);
    if (!rc) rc = look_at(o->dst, &listed, err);
    if (rc) return rc;
    char *first = mri_mrec_file_path(o, 0, "");
    if (!first) return mri_mrec_no_memory(err);
    if (!force && listed)
        rc = refuse(o->dst, "it exists already: remove it, or force it to be replaced", err);
    else if (!force && (mri_writer_left(first) || o->journal.stage > MRI_JOURNAL_BEGUN))
        rc = refuse(mri_output_part(o->journal.out), left_text, err);
    else if (!force && named)
        rc = refuse(first, "it exists already: remove it, or force it to be replaced", err);
    if (!rc && part) rc = remove_parts(o, err);
    free(first);
    return rc ? rc : mri_journal_begin(&o->journal, source, err);
}

static int refuse_other_data(const mri_mrec_output *o, mr_error *err)
{
    char file[480], text[640];
    const bool named = mri_taken_differs(o->plan, o->dst, file, sizeof file);
    snprintf(text, sizeof text,
             "the data changed since this conversion was interrupted%s%s: to resume would mix old and new; "
             "begin anew with force (--force)",
             named ? ": " : "", named ? file : "");
    return refuse(mri_output_part(o->journal.out), text, err);
}

/* Did an interrupted run begin one file here, which a run to a set would leave behind? */
static int check_no_file(const mri_mrec_output *o, mr_error *err)
{
    const unsigned long long left = mri_writer_left(o->dst);
    if (left == 0) return MR_OK;
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s.part", o->dst);
    mr_error_set(err, MR_EEXIST,
                 "an interrupted run to one file left %llu bytes of records here: resume it without "
                 "--shard-size, or remove this file",
                 left);
    mri_error_place(err, MR_EEXIST, part, MR_NOWHERE, MR_NOWHERE);
    return mri_convert_part_differs(o->plan, o->dst, part, err);
}

static int go_on(mri_mrec_output *o, uint64_t source, mr_error *err)
{
    if (o->journal.stage >= MRI_JOURNAL_NAMED) return take_over_journal(o, err);
    const bool replaces = o->journal.found && o->plan->cfg.force; /* that run was to replace this set */
    bool listed;
    int rc = look_at(o->dst, &listed, err);
    if (rc) return rc;
    if (o->journal.stage == MRI_JOURNAL_NEW && listed && !replaces) {
        rc = take_over_list(o, err);
        if (rc != MR_EEXIST || !o->plan->cfg.force) return rc;
        o->shard = 0;
        o->records = o->last_source = 0;
    }
    if (o->journal.stage == MRI_JOURNAL_NEW) {
        rc = check_no_file(o, err);
        return rc ? rc : begin(o, source, err);
    }
    if (listed && !o->plan->cfg.force)
        return refuse(
            o->dst,
            "it exists already, and an interrupted run to a set of files left its .part files here: go on "
            "and replace it (--resume --force), or remove the .part files",
            err);
    if (o->journal.source != source) return refuse_other_data(o, err);
    return take_over_parts(o, err);
}

int mri_set_open(mri_mrec_output *o, mr_error *err)
{
    uint64_t source;
    int rc = mri_journal_open(&o->journal, o->dst, &o->rules, err);
    if (!rc) rc = mri_cache_stamp(o->plan->src, &source, err);
    if (!rc) rc = o->plan->cfg.resume ? go_on(o, source, err) : begin(o, source, err);
    return rc;
}

int mri_set_keep(mri_mrec_output *o, mr_error *err)
{
    char *path = mri_mrec_file_path(o, o->shard, ".part");
    const int rc = path ? mri_mrec_take_over(o, path, err) : mri_mrec_no_memory(err);
    free(path);
    return rc;
}

/* ---- the end ---- */
/* How many files of the set that is replaced, counted from 0: those whose names are needed, and what follows
 * them without a gap. */
static int count_replaced(const mri_mrec_output *o, uint32_t *out, mr_error *err)
{
    bool there = true;
    *out = 0;
    for (uint32_t k = 0; o->plan->cfg.force && (there || k < o->shard); k++) {
        const int rc = mri_mrec_look(o, k, "", &there, err);
        if (rc) return rc;
        if (there) *out = k + 1;
    }
    return MR_OK;
}

static int clear(mri_mrec_output *o, mr_error *err)
{
    int rc = o->journal.replaced ? mri_output_remove(o->dst, &o->rules, err) : MR_OK;
    if (!rc && o->journal.replaced) rc = mri_sync_folder_of(o->dst, err);
    for (uint32_t k = o->journal.replaced; !rc && k > 0;) {
        char *path = mri_mrec_file_path(o, --k, "");
        rc = path ? mri_output_remove(path, &o->rules, err) : mri_mrec_no_memory(err);
        free(path);
    }
    if (!rc) rc = mri_sync_folder_of(o->dst, err);
    return rc ? rc : mri_journal_cleared(&o->journal, err);
}

/* Its name was given by a run that was interrupted: is it the file that the journal knows? */
static int check_named(const mri_mrec_output *o, uint32_t at, const char *path, mr_error *err)
{
    mr_mrec *m;
    const int rc = mr_mrec_open(&m, path, 0, err);
    if (rc) return rc;
    const mr_mrec_info *info = mr_mrec_info_of(m);
    const bool same = info->count == o->files[at].records && info->fingerprint == o->files[at].fingerprint;
    mr_mrec_close(m);
    return same ? MR_OK
                : refuse(path,
                         "this is not the file that the interrupted run had written: "
                         "begin anew with force (--force)",
                         err);
}

static int take_name(const mri_mrec_output *o, uint32_t at, mr_error *err)
{
    mri_output_rules rules = o->rules;
    mri_output *part;
    bool aside = false;
    int rc = mri_mrec_look(o, at, ".part", &aside, err);
    if (rc) return rc;
    char *path = mri_mrec_file_path(o, at, "");
    if (!path) return mri_mrec_no_memory(err);
    rules.force = false; /* the replaced set is gone */
    if (!aside) rc = check_named(o, at, path, err);
    else if (!(rc = mri_output_open(&part, path, &rules, err))) {
        rc = mri_output_commit(part, NULL, NULL, err);
        mri_output_close(part, true);
    }
    free(path);
    return rc;
}

static int write_list(const mri_mrec_output *o, mr_error *err)
{
    const char **paths = calloc(o->shard, sizeof *paths);
    uint64_t *counts = calloc(o->shard, sizeof *counts);
    int rc = paths && counts ? MR_OK : mri_mrec_no_memory(err);
    for (uint32_t s = 0; rc == MR_OK && s < o->shard; s++) {
        counts[s] = o->files[s].records;
        if (!(paths[s] = mri_mrec_file_path(o, s, ""))) rc = mri_mrec_no_memory(err);
    }
    if (rc == MR_OK) rc = mri_convert_check_file(o->plan, o->dst, err);
    if (rc == MR_OK) rc = mr_shards_write(o->dst, paths, counts, o->shard, o->plan->cfg.force, err);
    for (uint32_t s = 0; paths && s < o->shard; s++) free((void *)(uintptr_t)paths[s]);
    free(paths);
    free(counts);
    return rc;
}

/* A run may have been killed with everything done but the journal. */
static bool is_listed(const mri_mrec_output *o)
{
    mri_shards list;
    if (mri_shards_read(&list, o->dst, NULL) != MR_OK) return false;
    bool same = list.count == o->shard;
    for (uint32_t k = 0; same && k < list.count; k++) {
        char *path = mri_mrec_file_path(o, k, ""), *listed = mri_shards_resolve(o->dst, list.shard[k].path);
        same = path && listed && strcmp(path, listed) == 0 && list.shard[k].count == o->files[k].records;
        free(path);
        free(listed);
    }
    mri_shards_fini(&list);
    return same;
}

int mri_set_finish(mri_mrec_output *o, mr_error *err)
{
    mri_journal *j = &o->journal;
    uint32_t replaced = 0;
    int rc = MR_OK;
    if (o->completed && j->stage == MRI_JOURNAL_NEW) return mri_journal_end(j, err); /* it was all there */
    if (j->stage == MRI_JOURNAL_BEGUN) rc = count_replaced(o, &replaced, err);
    /* the journal is not to know files whose names a loss of power takes away */
    if (!rc && j->stage == MRI_JOURNAL_BEGUN) rc = mri_sync_folder_of(o->dst, err);
    if (!rc && j->stage == MRI_JOURNAL_BEGUN) rc = mri_journal_name(j, o->files, o->shard, replaced, err);
    if (!rc && j->stage == MRI_JOURNAL_NAMED) rc = clear(o, err);
    for (uint32_t k = 0; !rc && k < o->shard; k++) rc = take_name(o, k, err);
    if (!rc && !is_listed(o)) rc = write_list(o, err);
    return rc ? rc : mri_journal_end(j, err);
}
