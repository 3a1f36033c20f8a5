/* pipeline/repair/append.c: mr_append(): more samples for a set of record files.
 *
 *   lock     the list's part file: two calls for one set do not run together
 *   known    samples that the set has already are refused, before and after the conversion (append_known.c)
 *   convert  into a set of its own, .STEM.append.mrec: interrupted, it is gone on with
 *   names    .STEM.append-00000.mrec ──► STEM-00009.mrec, ...: after the existing numbers
 *   list     old lines and new ones, in place of the old list: only now the set is another one
 *   end      .STEM.append.mrec goes
 *
 * While .STEM.append.mrec exists all samples are converted: the file names show the remaining steps. Killed
 * at any point, the set is the old one or the new one, and the next call does the rest, once. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/abi.h"
#include "base/floats.h"
#include "base/util.h"
#include "formats/fileset/file_names.h"
#include "formats/source/columns.h"
#include "pipeline/repair/repair.h"

typedef struct append {
    const char *list_path;
    const mr_source *src;
    const mr_append_config *cfg;
    mr_append_result *result;
    mri_shards list, made;    /* the set's; of the samples that are added */
    char stem[MRI_MOST_PATH]; /* of the set's files, without the number */
    char aside[MRI_MOST_PATH];
    uint64_t next; /* number of the first new file */
    int digits;
    bool compared; /* the caller has compared src with the set */
    mri_output *lock;
    mri_output_rules rules;
} append;

void mr_append_defaults_sized(mr_append_config *cfg, size_t struct_size)
{
    const mr_append_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory to add to a set"); }

static int place(const append *a, int rc, mr_error *err)
{
    return mri_error_place(err, rc, a->list_path, MR_NOWHERE, MR_NOWHERE);
}

/* ---- the set ---- */
static int strange_names(const append *a, mr_error *err)
{
    mr_error_set(err, MR_EINVAL,
                 "expected files named STEM-00000.mrec, STEM-00001.mrec, ... in the list, found others");
    return place(a, MR_EINVAL, err);
}

/* Find the next file's name: STEM-00008.mrec. */
static int take_names(append *a, mr_error *err)
{
    for (uint32_t k = 0; k < a->list.count; k++) {
        const char *path = a->list.shard[k].path, *end = path + strlen(path), *at;
        uint64_t number = 0;
        if (end - path < 7 || strcmp(end - 5, ".mrec") != 0) return strange_names(a, err);
        for (at = end - 5; at > path && at[-1] >= '0' && at[-1] <= '9'; at--) {
        }
        if (at == end - 5 || at == path || at[-1] != '-' || end - 5 - at > 9) return strange_names(a, err);
        for (const char *p = at; p < end - 5; p++) number = number * 10 + (uint64_t)(*p - '0');
        char *whole = mri_shards_resolve(a->list_path, path);
        if (!whole) return no_memory(err);
        const int stem = (int)(strlen(whole) - (size_t)(end - at) - 1);
        if (k == 0) {
            snprintf(a->stem, sizeof a->stem, "%.*s", stem, whole);
            a->digits = (int)(end - 5 - at);
        }
        const bool same = strlen(a->stem) == (size_t)stem && memcmp(a->stem, whole, (size_t)stem) == 0;
        free(whole);
        if (!same) return strange_names(a, err);
        if (number >= a->next) a->next = number + 1;
    }
    return MR_OK;
}

static int open_set(append *a, mr_error *err)
{
    char head[32] = "";
    FILE *f = fopen(a->list_path, "re");
    if (!f) return place(a, mr_error_sys(err, errno, "cannot open"), err);
    const size_t n = fread(head, 1, sizeof head, f);
    const int why = ferror(f) ? errno : 0;
    fclose(f);
    if (why) return place(a, mr_error_sys(err, why, "cannot read"), err);
    if (!mri_shards_magic(head, n))
        return place(
            a,
            mr_error_set(
                err, MR_EINVAL,
                "expected the list of a set of record files: only to such a set samples can be added; "
                "'convert FILE SET.mrec --shard-size SIZE' makes one of a record file"),
            err);
    const int rc = mri_shards_read(&a->list, a->list_path, err);
    if (rc) return rc;
    a->result->before = a->result->after = a->list.records;
    const int named = take_names(a, err);
    if (named) return named;
    const char *name = mri_file_name(a->stem);
    snprintf(a->aside, sizeof a->aside, "%.*s.%s.append.mrec", (int)(name - a->stem), a->stem, name);
    return MR_OK;
}

static char *file_of(const append *a, uint32_t k)
{
    char path[MRI_MOST_PATH + 32];
    snprintf(path, sizeof path, "%s-%0*" PRIu64 ".mrec", a->stem, a->digits, a->next + k);
    return strdup(path);
}

/* ---- convert ---- */
/* The first file of the set, for settings and fields. */
static int open_first(const append *a, mr_mrec **out, char **path, mr_error *err)
{
    *path = mri_shards_resolve(a->list_path, a->list.shard[0].path);
    return *path ? mr_mrec_open(out, *path, 0, err) : no_memory(err);
}

/* "cat", in quotes, or "missing" from `count` on. */
static const char *shown_class(const char *const *names, uint32_t count, uint32_t k, char out[128])
{
    char shown[96];
    if (k >= count) return "missing";
    snprintf(out, 128, "\"%s\"", mr_text_shown(names[k], shown, sizeof shown));
    return out;
}

/* The first class that differs. */
static int check_classes(const append *a, const mr_mrec_info *set, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(a->src);
    const uint32_t count = info->class_names ? info->class_count : 0;
    char mine[128], its[128];
    uint32_t k = 0;
    while (k < count && k < set->class_count && strcmp(info->class_names[k], set->class_names[k]) == 0) k++;
    if (k == count && k == set->class_count) return MR_OK;
    if (count == 0 && info->label_field < 0)
        mr_error_set(err, MR_EINVAL,
                     "the samples to add have no classes, the set has %u (the first is %s): expected samples "
                     "with classes of the set",
                     set->class_count, shown_class(set->class_names, set->class_count, 0, its));
    else
        mr_error_set(
            err, MR_EINVAL,
            "class %u is %s in the samples to add and %s in the set (%u and %u classes with names): expected "
            "the classes of the set; %s",
            k, shown_class(info->class_names, count, k, mine),
            shown_class(set->class_names, set->class_count, k, its), count, set->class_count,
            set->class_count ? "where the samples have some of them, open their source with the set's "
                               "class_names and class_count (the append command does)"
                             : "the set has no names of classes");
    return place(a, MR_EINVAL, err);
}

static int check_same_fields(const append *a, const mri_convert_plan *plan, const mr_mrec *m, mr_error *err)
{
    const mr_mrec_info *set = mr_mrec_info_of(m);
    const uint32_t k = mri_repair_other_field(plan, m);
    if (k == UINT32_MAX) return MR_OK;
    const mr_field *mine = k < plan->field_count ? &plan->fields[k] : NULL,
                   *its = k < set->field_count ? &set->fields[k] : NULL;
    mr_error_set(err, MR_EINVAL,
                 "field %u of the samples to add is %s%s%s, field %u of the set is %s%s%s: "
                 "expected the fields of the set",
                 k, mine ? mine->name : "missing", mine ? " of type " : "",
                 mine ? mr_type_name(mine->type) : "", k, its ? its->name : "missing", its ? " of type " : "",
                 its ? mr_type_name(its->type) : "");
    return place(a, MR_EINVAL, err);
}

static int check_fit(const append *a, const mr_convert_config *cfg, const mr_mrec *m, mr_error *err)
{
    mri_convert_plan plan;
    int rc = check_classes(a, mr_mrec_info_of(m), err);
    if (rc) return rc;
    rc = mri_convert_plan_make(&plan, a->src, cfg, err);
    if (!rc) rc = check_same_fields(a, &plan, m, err);
    const mr_mrec_info *set = mr_mrec_info_of(m);
    if (!rc)
        rc =
            mri_source_columns_fit(a->src, set->fields, set->field_count, set->provenance, a->list_path, err);
    free(plan.provenance);
    return rc;
}

static int fit(const append *a, mr_convert_config *cfg, mr_error *err)
{
    mr_mrec *m = NULL;
    char *path;
    int rc = open_first(a, &m, &path, err);
    if (!rc) rc = mri_repair_config_of(cfg, m, path, err);
    if (!rc) rc = check_fit(a, cfg, m, err);
    if (m) mr_mrec_close(m);
    free(path);
    return rc;
}

static int convert(append *a, mr_convert_config *cfg, mr_error *err)
{
    mr_convert_result made = {.struct_size = sizeof made};
    if (cfg->shard_bytes == 0) cfg->shard_bytes = UINT64_MAX / 2;
    cfg->workers = a->cfg->workers;
    cfg->memory_bytes = a->cfg->memory_bytes;
    cfg->progress = a->cfg->progress;
    cfg->on_bad = a->cfg->on_bad;
    cfg->context = a->cfg->context;
    cfg->stop = a->cfg->stop;
    cfg->space = a->cfg->space;
    cfg->no_space_check = a->cfg->no_space_check;
    cfg->resume = !a->cfg->force;
    cfg->force = a->cfg->force;
    const int rc = mr_convert(a->src, a->aside, cfg, &made, err);
    a->result->bad = made.bad;
    return rc;
}

/* ---- names and list ---- */
/* The file of that line has its name by now. */
static int check_moved(const mri_shard *line, const char *path, mr_error *err)
{
    mr_mrec *m;
    const int rc = mr_mrec_open(&m, path, 0, err);
    if (rc) return rc;
    const bool same =
        mr_mrec_info_of(m)->fingerprint == line->fingerprint && mr_mrec_info_of(m)->count == line->count;
    mr_mrec_close(m);
    if (same) return MR_OK;
    return mri_error_place(
        err, mr_error_set(err, MR_EEXIST, "this is not the file that an interrupted call had made"), path,
        MR_NOWHERE, MR_NOWHERE);
}

/* A file of this name that the list does not have. from: the file that is to get the name; an interrupted
 * call may have given it to it. */
static int check_free(const append *a, const char *from, const char *to, mr_error *err)
{
    struct stat st, own;
    if (lstat(to, &st) != 0) return MR_OK;
    if (from && lstat(from, &own) == 0 && own.st_dev == st.st_dev && own.st_ino == st.st_ino) return MR_OK;
    mr_error_set(
        err, MR_EEXIST,
        "the next file of this set would have this name, but it is there, and %s does not list it: it may "
        "belong to another list of these files, or to a newer list than this one. Append to the list that "
        "has it, or copy this set to a folder of its own, and append there; nothing was changed",
        mri_file_name(a->list_path));
    return mri_error_place(err, MR_EEXIST, to, MR_NOWHERE, MR_NOWHERE);
}

static int check_next_free(const append *a, mr_error *err)
{
    char *to = file_of(a, 0);
    const int rc = to ? check_free(a, NULL, to, err) : no_memory(err);
    free(to);
    return rc;
}

static int name_all(const append *a, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < a->made.count; k++) {
        struct stat st;
        char *from = mri_shards_resolve(a->aside, a->made.shard[k].path), *to = file_of(a, k);
        if (!from || !to) rc = no_memory(err);
        else if (lstat(from, &st) == 0) {
            rc = check_free(a, from, to, err);
            if (!rc) rc = mri_output_move(from, to, err);
        } else if (errno != ENOENT)
            rc = mri_error_place(err, mr_error_sys(err, errno, "cannot look at it"), from, MR_NOWHERE,
                                 MR_NOWHERE);
        else rc = check_moved(&a->made.shard[k], to, err);
        free(from);
        free(to);
    }
    return rc;
}

static int write_list(append *a, mr_error *err)
{
    const uint32_t count = a->list.count + a->made.count;
    char **paths = calloc(count, sizeof *paths);
    uint64_t *counts = calloc(count, sizeof *counts);
    int rc = paths && counts ? MR_OK : no_memory(err);
    for (uint32_t k = 0; !rc && k < count; k++) {
        const bool old = k < a->list.count;
        paths[k] =
            old ? mri_shards_resolve(a->list_path, a->list.shard[k].path) : file_of(a, k - a->list.count);
        counts[k] = old ? a->list.shard[k].count : a->made.shard[k - a->list.count].count;
        if (!paths[k]) rc = no_memory(err);
    }
    if (!rc) rc = mri_shards_write_to(a->lock, (const char *const *)paths, counts, count, err);
    for (uint32_t k = 0; paths && k < count; k++) free(paths[k]);
    free(paths);
    free(counts);
    return rc;
}

/* ---- what an interrupted call left ---- */
/* Are its files in the list already, behind all others? Then the list alone was left to remove. */
static bool is_listed(const append *a)
{
    if (a->list.version != MRI_SHARDS_FACTS || a->made.count > a->list.count) return false;
    const uint32_t first = a->list.count - a->made.count;
    for (uint32_t k = 0; k < a->made.count; k++) {
        struct stat st;
        char *from = mri_shards_resolve(a->aside, a->made.shard[k].path);
        const bool left = from && lstat(from, &st) == 0;
        free(from);
        if (left || a->list.shard[first + k].fingerprint != a->made.shard[k].fingerprint ||
            a->list.shard[first + k].count != a->made.shard[k].count)
            return false;
    }
    return true;
}

/* Was the file made of these samples? Takes path over. */
static int is_made_of(const append *a, char *path, bool *same, mr_error *err)
{
    mr_mrec *m;
    char want[64];
    int rc = path ? mr_mrec_open(&m, path, 0, err) : no_memory(err);
    free(path);
    if (rc) return rc;
    snprintf(want, sizeof want, "\"fingerprint\": \"%016" PRIx64 "\"",
             mr_source_info_of(a->src)->fingerprint);
    *same = strstr(mr_mrec_info_of(m)->provenance, want) != NULL;
    mr_mrec_close(m);
    return MR_OK;
}

/* Was that call for these samples? The first of its files says it, under one of its two names. */
static int is_same_source(const append *a, bool listed, bool *same, mr_error *err)
{
    struct stat st;
    char *path = mri_shards_resolve(a->aside, a->made.shard[0].path);
    if (path && lstat(path, &st) != 0) {
        free(path);
        path = listed ? mri_shards_resolve(a->list_path, a->list.shard[a->list.count - a->made.count].path)
                      : file_of(a, 0);
    }
    return is_made_of(a, path, same, err);
}

static int end(append *a, mr_error *err)
{
    /* a conversion that was killed behind its list leaves the last two */
    static const char *const endings[] = {"", ".conversion.part", ".taken.part"};
    const mri_output_rules rules = {.force = true};
    int rc = MR_OK;
    for (size_t k = MRI_ARRAY_COUNT(endings); !rc && k > 0; k--) { /* the list last: it says that there is
                                                                      something */
        char path[MRI_MOST_PATH + 32];
        snprintf(path, sizeof path, "%s%s", a->aside, endings[k - 1]);
        rc = mri_output_remove(path, &rules, err);
    }
    return rc ? rc : mri_sync_folder_of(a->list_path, err);
}

/* ---- samples that the set has already ---- */
/* Was a file of the set made from this source? A call that was killed after its end is repeated so. */
static int is_in_set(const append *a, bool *known, mr_error *err)
{
    int rc = MR_OK;
    *known = false;
    for (uint32_t k = 0; !rc && !*known && k < a->list.count; k++)
        rc = is_made_of(a, mri_shards_resolve(a->list_path, a->list.shard[k].path), known, err);
    return rc;
}

static int refuse(const append *a, const mri_known *k, const char *before, const char *after, mr_error *err)
{
    char name[MRI_MOST_PATH + 16] = "";
    a->result->already = k->there;
    a->result->looked = k->looked;
    if (k->name[0]) snprintf(name, sizeof name, " (one is %.400s)", k->name);
    mr_error_set(err, MR_EEXIST, "%s%" PRIu64 " of %" PRIu64 " samples%s are in the set already%s%s", before,
                 k->there, k->looked, after, name,
                 ": append only samples with new names (--update), or all of them again (--again)");
    return place(a, MR_EEXIST, err);
}

/* *done: a file of the set was made from this source, and has its samples. */
static int check_new(const append *a, bool *done, mr_error *err)
{
    bool print = false;
    mri_known *k = calloc(1, sizeof *k);
    int rc = k ? is_in_set(a, &print, err) : no_memory(err);
    if (!rc) rc = mri_known_look(a->list_path, &a->list, a->src, k, err);
    if (!rc && print && k->there == k->looked) *done = a->result->known = true;
    else if (!rc && k->there)
        rc = refuse(a, k, "", k->looked < mr_source_info_of(a->src)->count ? " looked at" : "", err);
    else if (!rc && print) {
        mr_error_set(
            err, MR_EEXIST,
            "a file of the set was made from samples with the same names, sizes and labels, but with "
            "other contents: append these as well (--again), or rename them");
        rc = place(a, MR_EEXIST, err);
    }
    free(k);
    return rc;
}

/* The first file keeps its name the longest: it says that a call was refused, or is removed by one. */
static int discard(append *a, mr_error *err)
{
    const mri_output_rules rules = {.force = true};
    int rc = MR_OK;
    for (uint32_t k = a->made.count; !rc && k > 0; k--) {
        char *path = mri_shards_resolve(a->aside, a->made.shard[k - 1].path);
        rc = path ? mri_output_remove(path, &rules, err) : no_memory(err);
        free(path);
    }
    if (!rc) rc = end(a, err);
    mri_shards_fini(&a->made);
    return rc;
}

static bool is_aside(const append *a, uint32_t k)
{
    struct stat st;
    char *path = mri_shards_resolve(a->aside, a->made.shard[k].path);
    const bool there = path && lstat(path, &st) == 0;
    free(path);
    return there;
}

/* Before the first file has its name in the set. other: an interrupted call converted them. */
static int check_made(append *a, bool other, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    if (a->cfg->again || !is_aside(a, 0)) return MR_OK;
    mri_known *k = calloc(1, sizeof *k);
    int rc = k ? mri_known_count(a->list_path, &a->list, a->aside, &a->made, k, err) : no_memory(err);
    if (!rc && k->there) {
        rc = refuse(a, k, other ? "an interrupted call had converted other samples, and was undone: " : "",
                    "", err);
        const int removed = discard(a, &why);
        if (removed) {
            if (err) *err = why;
            rc = removed;
        }
    }
    free(k);
    return rc;
}

static void count_added(append *a)
{
    a->result->after = a->result->before + a->made.records;
    a->result->files = a->made.count;
}

/* All samples are converted: names, list, end. */
static int finish(append *a, bool other, mr_error *err)
{
    int rc = a->made.shard ? MR_OK : mri_shards_read(&a->made, a->aside, err);
    if (!rc) rc = check_made(a, other, err);
    if (!rc) rc = name_all(a, err);
    if (!rc) rc = write_list(a, err);
    if (!rc) rc = end(a, err);
    if (!rc) count_added(a);
    return rc;
}

/* Was the interrupted call removing its files? Files get their names in order, and are removed from the last
 * one on. */
static bool is_discarded(const append *a)
{
    struct stat st;
    bool gone = false;
    for (uint32_t k = 1; !gone && k < a->made.count; k++) gone = !is_aside(a, k);
    if (is_aside(a, 0)) return gone;
    char *path = file_of(a, 0);
    gone = path && lstat(path, &st) != 0 && errno == ENOENT;
    free(path);
    return gone;
}

/* *done: these samples are in the set now. */
static int finish_earlier(append *a, bool *done, mr_error *err)
{
    bool same = false;
    *done = false;
    int rc = mri_shards_read(&a->made, a->aside, err);
    const bool listed = !rc && is_listed(a);
    if (!rc && !listed && is_discarded(a)) return discard(a, err);
    if (!rc && a->src) rc = is_same_source(a, listed, &same, err);
    same = same || !a->src;
    if (!rc && listed) rc = end(a, err);
    else if (!rc) rc = finish(a, !same, err);
    if (rc) return rc;
    if (same) {
        if (listed) a->result->before -= a->made.records;
        count_added(a);
        *done = a->result->resumed = true;
        return MR_OK;
    }
    if (listed) { /* that one had come to its end */
        mri_shards_fini(&a->made);
        return MR_OK;
    }
    mr_error_set(err, MR_EEXIST,
                 "an interrupted call had converted other samples, %" PRIu64
                 " of them: they are in the set now; call again to add these",
                 a->made.records);
    return place(a, MR_EEXIST, err);
}

/* src NULL: only what an interrupted call left is finished. */
static int run(append *a, mr_error *err)
{
    struct stat st;
    bool done = false;
    mr_convert_config cfg;
    a->rules =
        (mri_output_rules){.force = true, .input = a->src ? mri_source_input : NULL, .context = a->src};
    int rc = mri_output_open(&a->lock, a->list_path, &a->rules, err);
    if (!rc) rc = open_set(a, err);
    if (!rc && lstat(a->aside, &st) == 0) rc = finish_earlier(a, &done, err);
    done = done || !a->src;
    if (!rc && !done) rc = fit(a, &cfg, err);
    if (!rc && !done && !a->compared && !a->cfg->again) rc = check_new(a, &done, err);
    if (!rc && done) return mri_output_discard(a->lock, err); /* the list stays */
    if (!rc) rc = check_next_free(a, err);
    if (!rc) rc = convert(a, &cfg, err);
    return rc ? rc : finish(a, false, err);
}

int mri_append(const char *list_path, const mr_source *src, const mr_append_config *cfg, bool compared,
               mr_append_result *result, mr_error *err)
{
    append *a = calloc(1, sizeof *a);
    if (!a) return no_memory(err);
    a->list_path = list_path;
    a->src = src;
    a->cfg = cfg;
    a->compared = compared;
    a->result = result;
    const int rc = run(a, err);
    mri_output_close(a->lock, false);
    mri_shards_fini(&a->list);
    mri_shards_fini(&a->made);
    free(a);
    return rc;
}

int mri_append_fit(const char *list_path, const mri_shards *list, const mr_source *src,
                   mr_convert_config *cfg, mr_error *err)
{
    append *a = calloc(1, sizeof *a);
    if (!a) return no_memory(err);
    a->list_path = list_path;
    a->src = src;
    a->list = *list;
    const int rc = fit(a, cfg, err);
    free(a);
    return rc;
}

int mr_append_sized(const char *list_path, const mr_source *src, const mr_append_config *cfg,
                    mr_append_result *out, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    mr_append_config mine;
    mr_append_result result = {0};
    MRI_GIVEN(err, list_path);
    MRI_OWN(err, src);
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    mr_append_defaults(&mine);
    rc = mri_settings_take(&mine, sizeof mine, cfg, "append", err);
    if (rc) return rc;
    rc = mri_append(list_path, src, &mine, false, &result, err);
    mri_result_give(out, &result, sizeof result);
    return rc;
}
