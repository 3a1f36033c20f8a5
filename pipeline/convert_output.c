/* pipeline/convert_output.c: the files of a conversion. See convert.h.
 *
 *   one file   DST.part ──finish──► DST ──verify
 *   shards     STEM-00000.mrec, STEM-00001.mrec, ... each as above, then the list DST, which is written last: while it is
 *              missing the conversion is not complete. STEM is DST without ".mrec".
 *
 * Resume: finished shards of the same conversion (same settings, same source: the provenance says so) are kept, the file
 * aside behind them is continued by the writer. */
#include "pipeline/convert.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define INDEX_MEMORY_BYTES ((uint64_t)64 << 20)

struct mri_convert_output {
    const mri_convert_plan *plan;
    char      *dst;
    mr_writer *writer;         /* of the file at `shard`; NULL between files */
    char      *path;           /* of that file */
    uint32_t   shard;          /* files finished before it */
    uint64_t  *shard_counts;   /* records of finished files */
    uint64_t   records;        /* of finished files */
    uint64_t   last_source;    /* of the last finished file, + 1 */
    bool       completed;      /* an earlier run had finished it all */
};

static bool sharded(const mri_convert_output *o) { return o->plan->cfg.shard_bytes != 0; }

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "out of memory for the output's names"); }

/* Name of file `at`; malloc'd, NULL when memory is gone. */
static char *file_path(const mri_convert_output *o, uint32_t at)
{
    const size_t len = strlen(o->dst);
    char        *path = malloc(len + 32);
    if (!path) return NULL;
    if (!sharded(o)) {
        memcpy(path, o->dst, len + 1);
        return path;
    }
    const bool suffix = len > 5 && strcmp(o->dst + len - 5, ".mrec") == 0;
    snprintf(path, len + 32, "%.*s-%05u.mrec", (int)(suffix ? len - 5 : len), o->dst, at);
    return path;
}

/* ---- input is not output ---- */

static int same_file_error(const char *path, const char *input, mr_error *err)
{
    mr_error_set(err, MR_EINVAL, "this is also the input (%s); choose another name for the output", input);
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
}

static int check_not_input(const mri_convert_plan *plan, const char *path, mr_error *err)
{
    struct stat out, in;
    if (stat(path, &out) != 0) return MR_OK;
    if (stat(plan->info->path, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return same_file_error(path, plan->info->path, err);
    for (uint32_t f = 0; f < plan->info->file_count; f++) {
        mr_source_file file;
        if (mr_source_file_at(plan->src, f, &file) != MR_OK || fstat(file.fd, &in) != 0) continue;
        if (in.st_dev == out.st_dev && in.st_ino == out.st_ino) return same_file_error(path, file.path, err);
    }
    return MR_OK;
}

/* In a folder of pictures everything below the folder is the data set: a file made there would be part of it the next time. */
static int check_not_inside(const mri_convert_plan *plan, const char *dst, mr_error *err)
{
    if (plan->info->file_count != 0) return MR_OK;
    char       *folder = strdup(dst), *real_folder = NULL, *real_src = NULL;
    int         rc = folder ? MR_OK : no_memory(err);
    if (rc == MR_OK) {
        char *slash = strrchr(folder, '/');
        if (slash) slash[slash == folder] = '\0';
        real_folder = realpath(slash ? folder : ".", NULL);
        real_src = realpath(plan->info->path, NULL);
    }
    if (real_folder && real_src) {
        const size_t n = strlen(real_src);
        if (strncmp(real_folder, real_src, n) == 0 && (real_folder[n] == '/' || real_folder[n] == '\0')) {
            rc = mr_error_set(err, MR_EINVAL, "the output would lie inside the input (%s) and be part of it the next time; "
                              "choose a place outside", plan->info->path);
            mr_error_at(err, dst, MR_NOWHERE, MR_NOWHERE);
        }
    }
    free(folder);
    free(real_folder);
    free(real_src);
    return rc;
}

static int check_file(const mri_convert_output *o, const char *path, mr_error *err)
{
    const size_t len = strlen(path);
    char        *aside = malloc(len + 6);
    if (!aside) return no_memory(err);
    snprintf(aside, len + 6, "%s.part", path);
    int rc = check_not_input(o->plan, path, err);
    if (rc == MR_OK) rc = check_not_input(o->plan, aside, err);
    free(aside);
    return rc;
}

/* ---- what an earlier run left ---- */

/* Source index of the last record, + 1. */
static int last_source_of(const mr_mrec *m, const char *path, uint64_t *out, mr_error *err)
{
    const mr_mrec_info *info = mr_mrec_info_of(m);
    uint64_t            offset, bytes, source = 0;
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

static int keep_count(mri_convert_output *o, uint64_t count, mr_error *err)
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
static int take_over(mri_convert_output *o, const char *path, mr_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return MR_ENOENT;
    mr_mrec *m;
    int      rc = mr_mrec_open(&m, path, INDEX_MEMORY_BYTES, err);
    if (rc) return rc;
    const mr_mrec_info *info = mr_mrec_info_of(m);
    if (strcmp(info->provenance, o->plan->provenance) != 0) {
        mr_error_set(err, MR_EEXIST, "cannot resume: this file was made from other data or with other settings (%s); "
                     "give the same ones, or start again with force", info->provenance);
        rc = mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    } else {
        rc = last_source_of(m, path, &o->last_source, err);
        if (rc == MR_OK) rc = keep_count(o, info->count, err);
    }
    mr_mrec_close(m);
    return rc;
}

static int find_finished(mri_convert_output *o, mr_error *err)
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

static int open_writer(mri_convert_output *o, bool resume, uint64_t *resume_source, mr_error *err)
{
    const mri_convert_plan *plan = o->plan;
    free(o->path);
    o->path = file_path(o, o->shard);
    if (!o->path) return no_memory(err);
    int rc = check_file(o, o->path, err);
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

static int check_dst_free(const mri_convert_output *o, mr_error *err)
{
    struct stat st;
    if (stat(o->dst, &st) != 0 || o->plan->cfg.force) return MR_OK;
    mr_error_set(err, MR_EEXIST, "the output exists; choose another name, or replace it with force");
    return mr_error_at(err, o->dst, MR_NOWHERE, MR_NOWHERE);
}

int mri_convert_output_open(mri_convert_output **out, const mri_convert_plan *plan, const char *dst, uint64_t *first,
                            uint64_t *resumed, mr_error *err)
{
    *out = NULL;
    *first = *resumed = 0;
    mri_convert_output *o = calloc(1, sizeof *o);
    if (!o) return no_memory(err);
    o->plan = plan;
    o->dst = strdup(dst);
    int rc = o->dst ? check_not_inside(plan, dst, err) : no_memory(err);
    if (rc == MR_OK) rc = check_file(o, dst, err);
    if (rc == MR_OK && plan->cfg.resume) rc = find_finished(o, err);
    if (rc == MR_OK && !o->completed) rc = check_dst_free(o, err);
    uint64_t in_file = 0;
    if (rc == MR_OK && !o->completed) rc = open_writer(o, plan->cfg.resume, &in_file, err);
    if (rc) {
        mri_convert_output_close(o, true);
        return rc;
    }
    *first = mri_max_u64(o->last_source, in_file);
    *resumed = mri_convert_output_records(o);
    *out = o;
    return o->completed ? MR_EEND : MR_OK;
}

static int finish_file(mri_convert_output *o, mr_error *err)
{
    const uint64_t count = mr_writer_count(o->writer);
    mr_writer     *w = o->writer;
    o->writer = NULL; /* gone whatever happens */
    const int rc = mr_writer_finish(w, err);
    return rc ? rc : keep_count(o, count, err);
}

int mri_convert_output_append(mri_convert_output *o, uint64_t source_index, const mr_value *values, mr_error *err)
{
    int rc = MR_OK;
    if (sharded(o) && mr_writer_count(o->writer) > 0 &&
        mr_writer_bytes(o->writer) + mr_writer_record_bytes(o->writer, values) > o->plan->cfg.shard_bytes) {
        rc = finish_file(o, err);
        if (rc == MR_OK) rc = open_writer(o, false, NULL, err);
    }
    return rc ? rc : mr_writer_append(o->writer, source_index, values, err);
}

uint64_t mri_convert_output_records(const mri_convert_output *o)
{
    return o->records + (o->writer ? mr_writer_count(o->writer) : 0);
}

/* ---- the end ---- */

static bool keep_first_finding(void *context, const mr_error *what)
{
    *(mr_error *)context = *what;
    return false;
}

static int verify_file(const char *path, mr_error *err)
{
    mr_error         found = MR_ERROR_INIT;
    mr_verify_result result;
    const int rc = mr_mrec_verify(path, keep_first_finding, &found, &result, err);
    if (found.code != MR_OK && err) *err = found;
    return rc;
}

static int check_files(const mri_convert_output *o, uint64_t *bytes, mr_error *err)
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
static void remove_left_over(const mri_convert_output *o)
{
    for (uint32_t s = o->shard; o->plan->cfg.force; s++) {
        char     *path = file_path(o, s);
        const int gone = path && check_not_input(o->plan, path, NULL) == MR_OK ? unlink(path) : -1;
        free(path);
        if (gone != 0) break;
    }
}

static int write_list(const mri_convert_output *o, mr_error *err)
{
    const char **paths = calloc(o->shard, sizeof *paths);
    int          rc = paths ? MR_OK : no_memory(err);
    for (uint32_t s = 0; rc == MR_OK && s < o->shard; s++)
        if (!(paths[s] = file_path(o, s))) rc = no_memory(err);
    if (rc == MR_OK) rc = mr_shards_write(o->dst, paths, o->shard_counts, o->shard, o->plan->cfg.force, err);
    for (uint32_t s = 0; paths && s < o->shard; s++) free((void *)(uintptr_t)paths[s]);
    free(paths);
    return rc;
}

int mri_convert_output_finish(mri_convert_output *o, uint64_t *bytes, uint32_t *shards, mr_error *err)
{
    int rc = o->writer ? finish_file(o, err) : MR_OK;
    if (rc == MR_OK) rc = check_files(o, bytes, err);
    if (rc == MR_OK && sharded(o) && !o->completed) {
        remove_left_over(o);
        rc = write_list(o, err);
    }
    *shards = o->shard;
    return rc;
}

void mri_convert_output_close(mri_convert_output *o, bool keep)
{
    if (!o) return;
    mr_writer_abort(o->writer, keep);
    free(o->shard_counts);
    free(o->path);
    free(o->dst);
    free(o);
}
