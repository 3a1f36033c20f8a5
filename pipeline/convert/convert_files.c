/* pipeline/convert/convert_files.c: see convert_files.h. */
#include "pipeline/convert/convert_files.h"
#include "base/dir.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/fileset/framed.h"
#include "formats/source/source.h"
#include "formats/storage/output.h"

#define BUFFER_BYTES ((size_t)1 << 20)

struct mri_files {
    const mri_convert_plan *plan;
    const mri_files_format *format;
    void *state; /* the format's */
    char *dst;
    mri_output_rules rules;
    mri_output *lock; /* the first part file, locked as long as we are at it; or NULL */
    mri_output *out;  /* the one being written; of the first it is the same */
    uint8_t *buf;
    size_t filled;
    XXH3_state_t *bytes_hash, *samples_hash;
    mri_file_facts now;   /* of the file being written; bytes in the buffer count */
    mri_file_facts *done; /* of those before */
    uint32_t count;       /* of those */
    uint64_t records;     /* in all */
    bool has_names;       /* nothing is left to remove */
    bool cleared;         /* the replaced set is gone: from here on written files are not removed */
    char **old;           /* files of the set that is replaced */
    size_t old_count;
    bool odd_labels; /* numbers our readers would not take for classes */
};

static bool sharded(const mri_files *f) { return f->plan->cfg.shard_bytes != 0; }

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "out of memory for the output"); }

/* ---- names ---- */
static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

uint32_t mri_files_digits(const char **text, uint64_t *value)
{
    uint32_t digits = 0;
    *value = 0;
    for (; **text >= '0' && **text <= '9' && digits < 10; digits++)
        *value = *value * 10 + (uint64_t)(*(*text)++ - '0');
    return digits;
}

/* Both malloc'd, NULL when memory is gone. This one and ".part" is where it is written. */
static char *path_aside(const mri_files *f, uint32_t at)
{
    const size_t room = strlen(f->dst) + 32;
    char *path = malloc(room);
    if (!path) return NULL;
    if (sharded(f)) snprintf(path, room, "%s-%05u", f->dst, at);
    else snprintf(path, room, "%s", f->dst);
    return path;
}

static char *final_path(const mri_files *f, uint32_t at, uint32_t count)
{
    const size_t room = strlen(f->dst) + 64;
    char *path = malloc(room);
    if (!path) return NULL;
    if (sharded(f)) f->format->shard_name(path, room, f->dst, at, count);
    else memcpy(path, f->dst, strlen(f->dst) + 1);
    return path;
}

/* DST-00017.part, *number its 17. */
static bool is_part_file(const char *dst, const char *name, uint64_t *number)
{
    const size_t n = strlen(dst);
    if (strncmp(name, dst, n) != 0 || name[n] != '-') return false;
    const char *at = name + n + 1;
    return mri_files_digits(&at, number) >= 5 && strcmp(at, ".part") == 0;
}

/* ---- what lies beside DST ---- */
typedef int visitor(mri_files *f, const char *path, bool is_part, mr_error *err);

/* Every part file but the first, and every shard, of whatever set. */
static int visit_others(mri_files *f, visitor *visit, mr_error *err)
{
    const char *name = last_of(f->dst);
    const size_t folder_bytes = (size_t)(name - f->dst);
    char *folder = folder_bytes ? strndup(f->dst, folder_bytes) : strdup(".");
    DIR *d = folder ? opendir(folder) : NULL;
    int rc = !folder ? no_memory(err)
             : d     ? MR_OK
                     : mri_error_place(err, mr_error_sys(err, errno, "cannot open the folder"), folder,
                                       MR_NOWHERE, MR_NOWHERE);
    for (const struct dirent *e; !rc && (e = mri_dir_next(d));) {
        uint64_t number = 0;
        const bool is_part = is_part_file(name, e->d_name, &number);
        if (is_part ? number == 0 : !f->format->is_shard(name, e->d_name)) continue;
        const size_t room = folder_bytes + strlen(e->d_name) + 1;
        char *path = malloc(room);
        if (path) snprintf(path, room, "%.*s%s", (int)folder_bytes, f->dst, e->d_name);
        rc = path ? visit(f, path, is_part, err) : no_memory(err);
        free(path);
    }
    if (!rc && errno)
        rc = mri_error_place(err, mr_error_sys(err, errno, "cannot list the folder"), folder, MR_NOWHERE,
                             MR_NOWHERE);
    if (d) closedir(d);
    free(folder);
    return rc;
}

/* Opened for writing as it was: what another process writes, another user has, or is a link is refused. */
static int open_part(mri_files *f, const char *path, bool fresh, mri_output **out, mr_error *err)
{
    mri_output_rules rules = f->rules;
    rules.resume = !fresh;
    rules.force |= sharded(f); /* not the name that it gets in the end */
    return mri_output_open(out, path, &rules, err);
}

static int check_other(mri_files *f, const char *path, bool is_part, mr_error *err)
{
    return is_part ? mri_convert_check_input(f->plan, path, err) : mri_output_check(path, &f->rules, err);
}

/* ours: this run made it; if not, a file that is not ours is refused. */
static int remove_part(mri_files *f, const char *path, bool ours, mr_error *err)
{
    mri_output *out = NULL;
    int rc = open_part(f, path, false, &out, err);
    if (!rc && ours) mri_output_adopt(out);
    if (!rc) rc = mri_output_empty(out, err);
    if (!rc) rc = mri_output_discard(out, err);
    mri_output_close(out, false);
    return rc;
}

static int remove_part_file(mri_files *f, const char *path, bool is_part, mr_error *err)
{
    if (!is_part) return MR_OK;
    char *aside = strndup(path, strlen(path) - strlen(".part"));
    const int rc = aside ? remove_part(f, aside, false, err) : no_memory(err);
    free(aside);
    return rc;
}

static int check_place(mri_files *f, mr_error *err)
{
    int rc = mri_convert_check_folder(f->plan, f->dst, err);
    if (rc) return rc;
    if (sharded(f)) {
        if (!*last_of(f->dst))
            return mri_error_place(
                err,
                mr_error_set(err, MR_EINVAL, "expected the beginning of the files' names, found a folder"),
                f->dst, MR_NOWHERE, MR_NOWHERE);
        return visit_others(f, check_other, err);
    }
    rc = mri_convert_check_file(f->plan, f->dst, err);
    return rc ? rc : mri_output_check(f->dst, &f->rules, err);
}

/* ---- bytes ---- */
static int flush(mri_files *f, mr_error *err)
{
    const int rc = mri_pwrite_all(mri_output_fd(f->out), f->buf, f->filled, f->now.bytes - f->filled,
                                  mri_output_part(f->out), err);
    XXH3_64bits_update(f->bytes_hash, f->buf, f->filled);
    f->filled = 0;
    return rc;
}

int mri_files_put(mri_files *f, const void *data, size_t bytes, mr_error *err)
{
    const uint8_t *p = data;
    while (bytes > 0) {
        const size_t some = (size_t)mri_min_u64(bytes, BUFFER_BYTES - f->filled);
        memcpy(f->buf + f->filled, p, some);
        f->filled += some;
        f->now.bytes += some;
        p += some;
        bytes -= some;
        const int rc = f->filled == BUFFER_BYTES ? flush(f, err) : MR_OK;
        if (rc) return rc;
    }
    return MR_OK;
}

int mri_files_put_zeros(mri_files *f, uint64_t bytes, mr_error *err)
{
    static const uint8_t zeros[4096];
    int rc = MR_OK;
    for (; !rc && bytes > 0; bytes -= mri_min_u64(bytes, sizeof zeros))
        rc = mri_files_put(f, zeros, (size_t)mri_min_u64(bytes, sizeof zeros), err);
    return rc;
}

uint64_t mri_files_bytes(const mri_files *f) { return f->now.bytes; }
const char *mri_files_dst(const mri_files *f) { return f->dst; }

/* ---- files ---- */
static int begin_file(mri_files *f, mr_error *err)
{
    char *path = path_aside(f, f->count);
    if (!path) return no_memory(err);
    const int rc = open_part(f, path, true, &f->out, err);
    free(path);
    if (rc) return rc;
    if (f->count == 0) f->lock = f->out;
    f->now = (mri_file_facts){0};
    XXH3_64bits_reset(f->bytes_hash);
    XXH3_64bits_reset(f->samples_hash);
    return f->format->begin ? f->format->begin(f->state, f, err) : MR_OK;
}

/* Before the file is closed: a file that is not counted is not removed after an error. */
static int make_room(mri_files *f, mr_error *err)
{
    if ((f->count & (f->count - 1)) != 0) return MR_OK; /* full at every power of two */
    mri_file_facts *more = realloc(f->done, (f->count ? f->count * 2 : 1) * sizeof *more);
    if (!more) return no_memory(err);
    f->done = more;
    return MR_OK;
}

static void keep_facts(mri_files *f)
{
    f->now.bytes_hash = XXH3_64bits_digest(f->bytes_hash);
    f->now.samples_hash = XXH3_64bits_digest(f->samples_hash);
    f->done[f->count++] = f->now;
}

static int end_file(mri_files *f, mr_error *err)
{
    int rc = f->format->end ? f->format->end(f->state, f, err) : MR_OK;
    if (!rc && f->format->zeros) rc = mri_files_put_zeros(f, f->format->zeros(f->now.bytes), err);
    if (!rc) rc = flush(f, err);
    if (!rc) rc = mri_output_sync(f->out, err);
    if (!rc) rc = make_room(f, err);
    if (rc) return rc;
    if (f->out != f->lock) mri_output_close(f->out, true); /* it gets its name later */
    f->out = NULL;
    keep_facts(f);
    return MR_OK;
}

int mri_files_open(void **out, const mri_convert_plan *plan, const char *dst, const mri_files_format *format,
                   mr_error *err)
{
    *out = NULL;
    mri_files *f = calloc(1, sizeof *f);
    if (!f) return no_memory(err);
    f->plan = plan;
    f->format = format;
    f->rules = (mri_output_rules){.force = plan->cfg.force,
                                  .take_part = plan->cfg.force,
                                  .input = mri_source_input,
                                  .context = plan->src};
    f->dst = strdup(dst);
    f->buf = malloc(BUFFER_BYTES);
    f->bytes_hash = XXH3_createState();
    f->samples_hash = XXH3_createState();
    int rc = f->dst && f->buf && f->bytes_hash && f->samples_hash ? MR_OK : no_memory(err);
    f->has_names = true; /* until a file is begun */
    if (!rc) rc = format->create(&f->state, plan, err);
    if (!rc) rc = check_place(f, err);
    if (!rc) rc = begin_file(f, err);
    f->has_names = !f->lock;
    if (!rc && sharded(f)) rc = visit_others(f, remove_part_file, err);
    if (rc) {
        mri_files_close(f, false);
        return rc;
    }
    *out = f;
    return MR_OK;
}

int mri_files_append(void *state, uint64_t source_index, const mr_value *values, mr_error *err)
{
    mri_files *f = state;
    const mri_convert_plan *plan = f->plan;
    uint64_t bytes;
    int rc = f->format->take(f->state, source_index, values, &bytes, err);
    if (!rc && sharded(f) && f->now.records > 0) {
        const uint64_t waiting = f->format->waiting ? f->format->waiting(f->state) : 0,
                       all = f->now.bytes + waiting + bytes;
        if (all + (f->format->zeros ? f->format->zeros(all) : 0) > plan->cfg.shard_bytes) {
            rc = end_file(f, err);
            if (!rc) rc = begin_file(f, err);
        }
    }
    if (!rc) rc = f->format->put(f->state, f, err);
    if (rc) return rc;
    const mr_value *label =
        plan->label >= 0 && values[plan->label].type == MR_TYPE_INT ? &values[plan->label] : NULL;
    if (plan->image >= 0) mri_files_hash_sample(f->samples_hash, &values[plan->image], label);
    f->odd_labels |= label && (label->i < 0 || label->i >= MRI_MAX_CLASSES);
    f->now.records++;
    f->records++;
    return MR_OK;
}

/* ---- the end ---- */
static int read_back(const mri_files *f, uint32_t at, mr_error *err)
{
    const bool samples = f->format->readable(f->plan) && !f->odd_labels;
    const size_t room = strlen(f->dst) + 48;
    char *aside = path_aside(f, at), *part = malloc(room);
    int rc = aside && part ? MR_OK : no_memory(err);
    if (!rc) {
        snprintf(part, room, "%s.part", aside);
        rc = mri_files_read_back(f->plan, f->format->source, part, &f->done[at], samples, err);
    }
    free(aside);
    free(part);
    return rc;
}

static int take_name(mri_files *f, uint32_t at, mr_error *err)
{
    char *aside = path_aside(f, at), *path = final_path(f, at, f->count);
    mri_output *out = f->lock;
    int rc = aside && path ? MR_OK : no_memory(err);
    if (!rc && at > 0) rc = open_part(f, aside, false, &out, err);
    if (!rc) {
        rc = mri_output_rename(out, path, f->rules.force && !sharded(f), err);
        if (!rc) rc = mri_output_commit(out, NULL, NULL, err);
        if (at > 0) mri_output_close(out, true);
    }
    free(aside);
    free(path);
    return rc;
}

static void remove_named(const mri_files *f, uint32_t at)
{
    char *path = final_path(f, at, f->count);
    if (path) mri_output_remove(path, &f->rules, NULL);
    free(path);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int keep_old(mri_files *f, const char *path, bool is_part, mr_error *err)
{
    if (is_part) return MR_OK;
    if ((f->old_count & (f->old_count - 1)) == 0) { /* full at every power of two */
        char **more = realloc(f->old, (f->old_count ? f->old_count * 2 : 1) * sizeof *more);
        if (!more) return no_memory(err);
        f->old = more;
    }
    f->old[f->old_count] = strdup(path);
    return f->old[f->old_count] ? (f->old_count++, MR_OK) : no_memory(err);
}

/* Remove the replaced set. Its first file is removed first, so that the rest is visibly incomplete. */
static int clear(mri_files *f, mr_error *err)
{
    int rc = visit_others(f, keep_old, err);
    if (rc || f->old_count == 0) return rc;
    qsort(f->old, f->old_count, sizeof *f->old, by_name);
    f->cleared = true;
    for (size_t k = 0; !rc && k < f->old_count; k++) rc = mri_output_remove(f->old[k], &f->rules, err);
    return rc ? rc : mri_sync_folder_of(f->dst, err);
}

/* The first file comes last: while it is missing, whoever counts from 0 sees that the set is not whole. */
static int take_names(mri_files *f, mr_error *err)
{
    int rc = sharded(f) && f->rules.force ? clear(f, err) : MR_OK;
    uint32_t at = f->count;
    if (!rc && !sharded(f) && f->rules.force && f->format->remove_list)
        rc = f->format->remove_list(f->dst, &f->rules, err);
    while (!rc && at > 0) rc = take_name(f, --at, err);
    const bool all = rc == MR_OK;
    f->cleared |= all && !sharded(f) && f->rules.force; /* the new file replaced the old one: it stays */
    if (!rc && f->format->list) rc = f->format->list(f->state, f->done, f->count, &f->rules, err);
    if (rc && !f->cleared)
        for (at += !all; at < f->count; at++) remove_named(f, at);
    f->has_names |= rc == MR_OK;
    return rc;
}

int mri_files_finish(void *state, uint64_t *bytes, uint32_t *shards, mr_error *err)
{
    mri_files *f = state;
    int rc = end_file(f, err);
    for (uint32_t k = 0; !rc && f->plan->cfg.verify && k < f->count; k++) rc = read_back(f, k, err);
    if (!rc) rc = take_names(f, err);
    *bytes = 0;
    for (uint32_t k = 0; k < f->count; k++) *bytes += f->done[k].bytes;
    *shards = f->count;
    return rc;
}

void mri_files_report(const void *state, mr_convert_result *out)
{
    const mri_files *f = state;
    if (f->format->report) f->format->report(f->state, out);
}

/* Of an error or a stop nothing is left; but when the set that was to be replaced is gone, the new one stays
 * as far as it came. */
static void give_up(mri_files *f)
{
    const bool keep = f->has_names || f->cleared;
    if (f->out != f->lock) mri_output_close(f->out, keep);
    for (uint32_t k = 1; !keep && k < f->count; k++) {
        char *path = path_aside(f, k);
        if (path) remove_part(f, path, true, NULL);
        free(path);
    }
    mri_output_close(f->lock, keep);
}

void mri_files_close(void *state, bool keep)
{
    mri_files *f = state;
    (void)keep; /* there is nothing to go on from */
    if (!f) return;
    give_up(f);
    for (size_t k = 0; k < f->old_count; k++) free(f->old[k]);
    free(f->old);
    if (f->state) f->format->destroy(f->state);
    XXH3_freeState(f->bytes_hash);
    XXH3_freeState(f->samples_hash);
    free(f->done);
    free(f->buf);
    free(f->dst);
    free(f);
}
