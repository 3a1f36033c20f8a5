/* formats/storage/output.c: see output.h.
 *
 * The part file. A new one is made with O_EXCL, so it is nobody else's and no link. One that is there already
 * is looked at before it is opened (opening a device can do something), opened without following links,
 * looked at again, locked, and its name is looked up once more: the process that had it may have renamed or
 * removed it between our open and our lock. Then its mark says whether it is ours. */
#include "formats/storage/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "formats/storage/kept.h"

struct mri_output {
    mri_output_rules rules;
    char *path, *part; /* of a log both are the same */
    int fd;
    dev_t device; /* of fd */
    ino_t inode;
    FILE *stream; /* or NULL */
    bool is_log;
    bool foreign;  /* somebody else's: not to be emptied, not to be removed */
    bool has_name; /* nothing is left to remove */
};

static int place(mr_error *err, int code, const char *path)
{
    return mri_error_place(err, code, path, MR_NOWHERE, MR_NOWHERE);
}

static int system_error(mr_error *err, const char *path, const char *what)
{
    return place(err, mr_error_sys(err, errno, "%s", what), path);
}

/* ---- what may be written ---- */
static int check_input(const char *path, const struct stat *st, const mri_output_rules *rules, mr_error *err)
{
    const char *input = rules->input ? rules->input(rules->context, st) : NULL;
    if (!input) return MR_OK;
    return place(err,
                 mr_error_set(err, MR_EINVAL,
                              "this is also the input (%s); choose another name for the output", input),
                 path);
}

/* What stands under the output's own name. */
static int check_target(const char *path, const mri_output_rules *rules, mr_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? MR_OK : system_error(err, path, "cannot look at where the output goes");
    int code = MR_OK;
    if (S_ISDIR(st.st_mode)) code = mr_error_set(err, MR_EINVAL, "a folder is there: name a file to write");
    else if (!S_ISREG(st.st_mode)) /* it would be replaced: /dev/null would be gone for everybody */
        code = mr_error_set(err, MR_EINVAL, "this is a link, device, pipe or socket: name a file to write");
    else if (check_input(path, &st, rules, err)) return MR_EINVAL;
    else if (!rules->force)
        code = mr_error_set(err, MR_EEXIST, "it exists already: remove it, or force it to be replaced");
    return code ? place(err, code, path) : MR_OK;
}

/* What stands under the name of a part file or a log. `target`: the only other name that it may have, when
 * a run was killed between taking that name and giving this one up; or NULL. */
static int check_found(const char *part, const char *target, const struct stat *st,
                       const mri_output_rules *rules, mr_error *err)
{
    struct stat other;
    if (!S_ISREG(st->st_mode))
        return place(err,
                     mr_error_set(err, MR_EINVAL,
                                  "expected a file or nothing there, found a folder, link, device, pipe or "
                                  "socket: remove it, or choose another name for the output"),
                     part);
    int rc = check_input(part, st, rules, err);
    if (rc) return rc;
    if (st->st_nlink > 1 && !(target && st->st_nlink == 2 && lstat(target, &other) == 0 &&
                              other.st_ino == st->st_ino && other.st_dev == st->st_dev))
        return place(err,
                     mr_error_set(err, MR_EINVAL,
                                  "this file has other names, too, and would change under all of them: "
                                  "remove it, or choose another name for the output"),
                     part);
    if (st->st_uid != geteuid())
        return place(err,
                     mr_error_set(err, MR_EEXIST,
                                  "this file is another user's (number %u): remove it, or choose another "
                                  "name for the output",
                                  (unsigned)st->st_uid),
                     part);
    return MR_OK;
}

/* ---- whose part file ---- */
static bool is_foreign(const struct stat *st, const mri_output_rules *rules)
{
    return st->st_size > 0 && !(st->st_mode & S_ISVTX) && !rules->take_part;
}

static int refuse_foreign(const char *part, mr_error *err)
{
    return place(err,
                 mr_error_set(err, MR_EEXIST,
                              "the output is written under this name first, and no interrupted run left this "
                              "file: move it, or force it to be overwritten (--force)"),
                 part);
}

/* Where the file system keeps no such bit nothing is lost but the knowledge whose file it is. */
static void set_mark(const mri_output *o, bool ours)
{
    struct stat st;
    if (fstat(o->fd, &st) != 0) return;
    const mode_t mode = st.st_mode & 07777, wanted = ours ? mode | S_ISVTX : mode & ~(mode_t)S_ISVTX;
    if (mode != wanted) (void)!fchmod(o->fd, wanted);
}

void mri_output_adopt(mri_output *o)
{
    o->foreign = false;
    if (!o->is_log) set_mark(o, true);
}

static char *part_of(const char *path)
{
    const size_t n = strlen(path);
    char *part = malloc(n + sizeof ".part");
    if (!part) return NULL;
    memcpy(part, path, n);
    memcpy(part + n, ".part", sizeof ".part");
    return part;
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "out of memory for an output"); }

int mri_output_check(const char *path, const mri_output_rules *rules, mr_error *err)
{
    static const mri_output_rules none;
    struct stat st;
    if (!rules) rules = &none;
    int rc = check_target(path, rules, err);
    if (rc) return rc;
    char *part = part_of(path);
    if (!part) return no_memory(err);
    if (lstat(part, &st) == 0) {
        rc = check_found(part, path, &st, rules, err);
        if (!rc && !rules->resume && st.st_nlink == 1 && is_foreign(&st, rules))
            rc = refuse_foreign(part, err);
    } else if (errno != ENOENT) rc = system_error(err, part, "cannot look at where the output is written");
    free(part);
    return rc;
}

/* ---- open ---- */
static bool is_same(const mri_output *o, const struct stat *st)
{
    return st->st_ino == o->inode && st->st_dev == o->device;
}

static int leads_to(const mri_output *o, const char *path, bool *leads, mr_error *err)
{
    struct stat st;
    *leads = false;
    if (lstat(path, &st) != 0)
        return errno == ENOENT || errno == ENOTDIR ? MR_OK : system_error(err, path, "cannot look at it");
    *leads = is_same(o, &st);
    return MR_OK;
}

/* Ours as far as anybody can tell: what cannot be looked at is not removed. */
static void remove_part(const mri_output *o)
{
    bool leads;
    if (leads_to(o, o->part, &leads, NULL) == MR_OK && leads) unlink(o->part);
}

static bool has_no_locks(int why)
{
    return why == ENOLCK || why == ENOSYS || why == EOPNOTSUPP || why == EINVAL;
}

/* fd is open. *again: its name leads elsewhere by now. made: by us, so without locks it is ours all the
 * same. */
static int take(mri_output *o, bool made, bool *again, mr_error *err)
{
    struct stat st;
    if (fstat(o->fd, &st) != 0) {
        const int rc = system_error(err, o->part, "cannot look at it");
        if (made) unlink(o->part); /* a moment ago, by us */
        return rc;
    }
    o->device = st.st_dev;
    o->inode = st.st_ino;
    if (flock(o->fd, LOCK_EX | LOCK_NB) != 0 && !(made && has_no_locks(errno))) {
        if (errno != EWOULDBLOCK)
            return system_error(err, o->part, "cannot lock what an earlier run left: remove it");
        return place(err,
                     mr_error_set(err, MR_EEXIST, "another process is writing it: wait for it or stop it"),
                     o->part);
    }
    bool leads;
    int rc = leads_to(o, o->part, &leads, err);
    if (rc) return rc;
    *again = !leads;
    rc = *again || made ? MR_OK : check_found(o->part, o->path, &st, &o->rules, err);
    if (rc || *again) return rc;
    o->foreign = !o->is_log && is_foreign(&st, &o->rules);
    if (st.st_size == 0) mri_output_adopt(o);
    return MR_OK;
}

static int no_folder(mr_error *err, const char *part)
{
    const int code = errno;
    const char *slash = strrchr(part, '/');
    char folder[1024];
    struct stat st;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - part) : 1, slash ? part : ".");
    errno = code;
    if (folder[0] && stat(folder, &st) == 0) return system_error(err, part, "cannot make the file");
    mr_error_sys(err, ENOENT, "cannot make the file: the folder %.400s is missing", folder);
    return mri_error_place(err, MR_ENOENT, part, MR_NOWHERE, MR_NOWHERE);
}

/* Once. */
static int try_open(mri_output *o, bool *again, mr_error *err)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | (o->is_log ? O_APPEND : 0);
    struct stat st;
    *again = false;
    o->fd = open(o->part, flags | O_CREAT | O_EXCL, 0666);
    const bool made = o->fd >= 0;
    if (!made && errno == ENOENT) return no_folder(err, o->part);
    if (!made && errno != EEXIST) return system_error(err, o->part, "cannot make the file");
    if (!made) {
        if (lstat(o->part, &st) != 0) {
            *again = errno == ENOENT;
            return *again ? MR_OK : system_error(err, o->part, "cannot look at the existing file");
        }
        const int rc = check_found(o->part, o->path, &st, &o->rules, err);
        if (rc) return rc;
        if (st.st_nlink > 1) { /* it has its name already: only this one was left to remove */
            *again = unlink(o->part) == 0 || errno == ENOENT;
            return *again ? MR_OK : system_error(err, o->part, "cannot remove what an earlier run left");
        }
        o->fd = open(o->part, flags | O_NONBLOCK);
        *again = o->fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO);
        if (o->fd < 0) return *again ? MR_OK : system_error(err, o->part, "cannot open the existing file");
        fcntl(o->fd, F_SETFL, o->is_log ? O_APPEND : 0); /* not to wait mattered for the open alone */
    }
    int rc = take(o, made, again, err);
    /* not when another process took the lock between our making it and our locking it: it is that one's now
     */
    bool leave = rc == MR_EEXIST;
    if (!rc && !*again && !o->is_log) { /* from now on nobody else gives it its name; until now one might */
        rc = check_target(o->path, &o->rules, err);
        leave = false;
    }
    if (rc && !leave && made) remove_part(o);
    if (rc || *again) {
        close(o->fd);
        o->fd = -1;
    }
    return rc;
}

static int open_part(mri_output *o, mr_error *err)
{
    bool again = true;
    for (int attempt = 0; again && attempt < 10; attempt++) {
        const int rc = try_open(o, &again, err);
        if (rc) return rc;
    }
    return again ? place(err, mr_error_set(err, MR_EEXIST, "other processes keep replacing it"), o->part)
                 : MR_OK;
}

static int create(mri_output **out, const char *path, const mri_output_rules *rules, bool is_log,
                  mr_error *err)
{
    mri_output *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o) return no_memory(err);
    if (rules) o->rules = *rules;
    o->fd = -1;
    o->is_log = o->has_name = is_log;
    o->path = strdup(path);
    o->part = is_log ? o->path : part_of(path);
    if (!o->path || !o->part) {
        mri_output_close(o, true);
        return no_memory(err);
    }
    *out = o;
    return MR_OK;
}

int mri_output_open(mri_output **out, const char *path, const mri_output_rules *rules, mr_error *err)
{
    mri_output *o;
    int rc = create(&o, path, rules, false, err);
    *out = NULL;
    if (rc) return rc;
    rc = check_target(path, &o->rules, err);
    if (!rc) rc = open_part(o, err);
    if (!rc && !o->rules.resume) rc = mri_output_empty(o, err);
    if (rc) {
        mri_output_close(o, true); /* what an earlier run left stays as it was */
        return rc;
    }
    *out = o;
    return MR_OK;
}

int mri_output_open_log(mri_output **out, const char *path, const mri_output_rules *rules, mr_error *err)
{
    mri_output *o;
    struct stat st;
    int rc = create(&o, path, rules, true, err);
    *out = NULL;
    if (rc) return rc;
    if (!o->rules.resume && lstat(path, &st) == 0)
        rc = place(err, mr_error_set(err, MR_EEXIST, "it exists already: remove it, or choose another name"),
                   path);
    else if (!o->rules.resume && errno != ENOENT) rc = system_error(err, path, "cannot look at it");
    if (!rc) rc = open_part(o, err);
    if (rc) {
        mri_output_close(o, true);
        return rc;
    }
    *out = o;
    return MR_OK;
}

int mri_output_fd(const mri_output *o) { return o->fd; }
const char *mri_output_part(const mri_output *o) { return o->part; }
const char *mri_output_path(const mri_output *o) { return o->path; }

int mri_output_rename(mri_output *o, const char *path, bool force, mr_error *err)
{
    char *name = strdup(path);
    if (!name) return no_memory(err);
    free(o->path);
    o->path = name;
    o->rules.force = force;
    return MR_OK;
}

int mri_output_empty(mri_output *o, mr_error *err)
{
    if (o->foreign) return refuse_foreign(o->part, err);
    if (ftruncate(o->fd, 0) != 0) return system_error(err, o->part, "cannot empty it");
    mri_output_adopt(o);
    return MR_OK;
}

FILE *mri_output_stream(mri_output *o, mr_error *err)
{
    if (o->stream) return o->stream;
    const int fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) o->stream = fdopen(fd, "w");
    if (!o->stream) {
        system_error(err, o->part, "cannot make a stream");
        if (fd >= 0) close(fd);
    }
    return o->stream;
}

/* ---- end ---- */
/* The stream ends here: what closing it says counts. The reason of an earlier write that failed may be gone
 * by now; then errno is about something else. */
static int flush(mri_output *o, mr_error *err)
{
    FILE *f = o->stream;
    if (!f) return MR_OK;
    o->stream = NULL;
    int why = 0;
    if (ferror(f)) why = errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : EIO;
    else if (fflush(f) != 0) why = errno;
    if (fclose(f) != 0 && !why) why = errno;
    if (!why) return MR_OK;
    errno = why;
    return system_error(err, o->part, "cannot write it");
}

int mri_output_sync(mri_output *o, mr_error *err)
{
    const int rc = flush(o, err);
    if (rc) return rc;
    return fsync(o->fd) == 0 ? MR_OK : system_error(err, o->part, "cannot sync");
}

int mri_output_sync_all(const char *folder, mr_error *err)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int rc =
        fd >= 0 && syncfs(fd) == 0 ? MR_OK : system_error(err, folder, "cannot sync the written files");
    if (fd >= 0) close(fd);
    return rc;
}

static int name_error(const mri_output *o, mr_error *err)
{
    const int why = errno;
    return place(err, mr_error_sys(err, why, "cannot take this name from %s", o->part), o->path);
}

/* Where the system cannot rename without replacing: a second name, which is never given twice, then away with
 * the first. */
static int link_name(const mri_output *o, mr_error *err)
{
    struct stat st;
    if (link(o->part, o->path) == 0) {
        unlink(o->part);
        return MR_OK;
    }
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return name_error(o, err);
    if (lstat(o->path, &st) == 0) { /* a file system without second names: the best that is left */
        errno = EEXIST;
        return name_error(o, err);
    }
    if (errno != ENOENT) return name_error(o, err);
    return rename(o->part, o->path) == 0 ? MR_OK : name_error(o, err);
}

static int take_name(const mri_output *o, mr_error *err)
{
    if (renameat2(AT_FDCWD, o->part, AT_FDCWD, o->path, o->rules.force ? 0 : RENAME_NOREPLACE) == 0)
        return MR_OK;
    const bool unknown = !o->rules.force && (errno == EINVAL || errno == ENOSYS);
    return unknown ? link_name(o, err) : name_error(o, err);
}

void mri_output_write_back(const mri_output *o, uint64_t from, uint64_t bytes)
{
    sync_file_range(o->fd, (off_t)from, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
}

int mri_output_commit(mri_output *o, mri_output_read_back *read_back, void *context, mr_error *err)
{
    int rc = o->rules.unsynced ? flush(o, err) : mri_output_sync(o, err);
    if (!rc && o->rules.unsynced) mri_output_write_back(o, 0, 0);
    if (!rc && read_back) rc = read_back(context, o->fd, o->part, err);
    if (rc) return rc;
    if (o->is_log) return mri_sync_folder_of(o->path, err);
    rc = check_target(o->path, &o->rules, err); /* since it was opened hours may have passed */
    if (rc) return rc;
    bool leads;
    rc = leads_to(o, o->part, &leads, err);
    if (rc) return rc;
    if (!leads)
        return place(err,
                     mr_error_set(err, MR_EEXIST, "somebody removed or replaced it while it was written"),
                     o->part);
    rc = take_name(o, err);
    if (rc) return rc;
    o->has_name = true;
    rc = o->rules.unsynced ? MR_OK : mri_sync_folder_of(o->path, err);
    set_mark(o, false); /* not before: whoever finds the part file after a kill must know it */
    return rc;
}

int mri_output_discard(mri_output *o, mr_error *err)
{
    struct stat st;
    const bool there = lstat(o->part, &st) == 0;
    if (!there && errno != ENOENT) return system_error(err, o->part, "cannot look at it");
    if (there && is_same(o, &st) && unlink(o->part) != 0)
        return system_error(err, o->part, "cannot remove it");
    o->has_name = true; /* nothing is left to remove */
    return MR_OK;
}

void mri_output_close(mri_output *o, bool keep)
{
    if (!o) return;
    if (o->fd >= 0 && !o->has_name && !keep && !o->foreign) remove_part(o);
    if (o->stream) fclose(o->stream);
    if (o->fd >= 0) close(o->fd);
    if (!o->is_log) free(o->part);
    free(o->path);
    free(o);
}

int mri_output_write_whole(const char *path, const void *data, size_t bytes, const mri_output_rules *rules,
                           mr_error *err)
{
    mri_output *o;
    mri_output_rules fresh = {0};
    if (rules) fresh = *rules;
    fresh.resume = false;
    int rc = mri_output_open(&o, path, &fresh, err);
    if (rc) return rc;
    rc = mri_pwrite_all(o->fd, data, bytes, 0, o->part, err);
    if (!rc) rc = mri_output_commit(o, NULL, NULL, err);
    mri_output_close(o, false);
    return rc;
}

int mri_output_remove(const char *path, const mri_output_rules *rules, mr_error *err)
{
    const mri_output_rules none = {0};
    mri_output_rules mine = rules ? *rules : none;
    struct stat st;
    if (lstat(path, &st) != 0 && errno == ENOENT) return MR_OK;
    mine.force = true;
    const int rc = check_target(path, &mine, err);
    if (rc || unlink(path) == 0 || errno == ENOENT) return rc;
    return system_error(err, path, "cannot remove it");
}

/* ---- spill ---- */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

int mri_output_spill(int *fd, const char *beside, mr_error *err)
{
    char *folder = folder_of(beside);
    *fd = -1;
    if (!folder) return no_memory(err);
    *fd = mri_kept_scratch(folder);
    const int rc = *fd >= 0 ? MR_OK : system_error(err, folder, "cannot make a file without a name here");
    free(folder);
    return rc;
}

int mri_output_keep_as(const char *path, const char *name, bool force, mr_error *err)
{
    struct stat a, b;
    const mri_output_rules rules = {.force = true};
    if (lstat(path, &a) == 0 && lstat(name, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        return MR_OK;
    const int rc = force ? mri_output_remove(name, &rules, err) : MR_OK;
    if (rc) return rc;
    if (link(path, name) == 0) return mri_sync_folder_of(name, err);
    if (errno == EEXIST)
        mr_error_set(err, MR_EEXIST, "it exists already: remove it, or replace it with force (--force)");
    else mr_error_sys(err, errno, "cannot keep the old file under this name");
    return mri_error_place(err, err && err->code ? err->code : MR_EIO, name, MR_NOWHERE, MR_NOWHERE);
}

int mri_output_move(const char *from, const char *to, mr_error *err)
{
    struct stat a, b;
    const bool same =
        lstat(from, &a) == 0 && lstat(to, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (!same && link(from, to) != 0) {
        if (errno == EEXIST)
            mr_error_set(err, MR_EEXIST, "it exists already: move it elsewhere, and try again");
        else mr_error_sys(err, errno, "cannot give a file this name");
        return mri_error_place(err, err && err->code ? err->code : MR_EIO, to, MR_NOWHERE, MR_NOWHERE);
    }
    if (unlink(from) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot remove it"), from, MR_NOWHERE,
                               MR_NOWHERE);
    return mri_sync_folder_of(to, err);
}
