/* train/state/folder.c: a folder of checkpoints: their names, and which is the newest whole one.
 *
 *   step-000000000390.mrck   named by updates done, so that names sort by age whatever the clock said
 *   best.mrck                lowest validation loss; a second name of one of them, or a copy
 *   *.part                   a write in progress, or the rest of one after a crash
 *   run.lock                 who writes there, and the run it belongs to (run_lock.c)
 *
 * Nothing here keeps a list: the folder is read again for each question. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/dir.h"
#include "formats/storage/kept.h"
#include "formats/storage/output.h"
#include "train/state/run_folder.h"

#define BEST_NAME  "best.mrck"
#define PATH_BYTES 4096

int mri_checkpoint_folder_make(const char *folder, mr_error *err)
{
    struct stat st;
    int rc;
    if (mri_make_folder_deep(folder, 0777)) return mri_sync_folder_of(folder, err);
    if (errno != EEXIST) rc = mr_error_sys(err, errno, "cannot make the folder for checkpoints");
    else if (stat(folder, &st) != 0)
        rc = mr_error_sys(err, errno == ENOENT ? EEXIST : errno, /* ENOENT: a link to nothing */
                          "cannot look at the folder for checkpoints");
    else if (!S_ISDIR(st.st_mode))
        rc = mr_error_set(err, MR_EEXIST,
                          "expected a folder for checkpoints, found a file; choose another name");
    else if (access(folder, W_OK | X_OK) != 0)
        rc = mr_error_sys(err, errno, "cannot write checkpoints into this folder");
    else return MR_OK;
    mr_error_at(err, folder, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

void mri_checkpoint_step_path(const char *folder, uint64_t updates, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s/step-%012llu.mrck", folder, (unsigned long long)updates);
}

void mri_checkpoint_best_path(const char *folder, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s/" BEST_NAME, folder);
}

/* "step-DIGITS.mrck" exactly as mri_checkpoint_step_path() writes it. */
static bool is_step_name(const char *name, uint64_t *updates)
{
    char again[64];
    unsigned long long n;
    if (sscanf(name, "step-%20llu", &n) != 1) return false;
    snprintf(again, sizeof again, "step-%012llu.mrck", n);
    if (strcmp(name, again) != 0) return false;
    *updates = n;
    return true;
}

static int folder_failed(const char *folder, mr_error *err)
{
    return mri_error_place(err, mr_error_sys(err, errno, "cannot read the checkpoint folder"), folder,
                           MR_NOWHERE, MR_NOWHERE);
}

static int newest_first(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static int read_steps(DIR *dir, uint64_t **steps, size_t *count)
{
    size_t room = 0;
    for (const struct dirent *e; (e = mri_dir_next(dir));) {
        uint64_t n;
        if (!is_step_name(e->d_name, &n)) continue;
        if (*count == room) {
            room = room ? 2 * room : 16;
            uint64_t *more = realloc(*steps, room * sizeof *more);
            if (!more) return MR_ENOMEM;
            *steps = more;
        }
        (*steps)[(*count)++] = n;
    }
    return errno ? MR_EIO : MR_OK;
}

int mri_checkpoint_steps(const char *folder, uint64_t **steps, size_t *count, mr_error *err)
{
    *steps = NULL;
    *count = 0;
    DIR *dir = opendir(folder);
    if (!dir) return folder_failed(folder, err);
    int rc = read_steps(dir, steps, count);
    if (rc == MR_EIO) rc = folder_failed(folder, err);
    else if (rc) mr_error_set(err, rc, "no memory for the names of %zu checkpoints", *count);
    closedir(dir);
    if (rc == MR_OK && *count) qsort(*steps, *count, sizeof **steps, newest_first);
    if (rc) {
        free(*steps);
        *steps = NULL;
        *count = 0;
    }
    return rc;
}

void mri_checkpoint_clear_parts(const char *folder)
{
    char path[PATH_BYTES];
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (const struct dirent *e; (e = readdir(dir));) {
        const size_t len = strlen(e->d_name);
        const bool checkpoint =
            strncmp(e->d_name, "step-", 5) == 0 || strncmp(e->d_name, BEST_NAME, strlen(BEST_NAME)) == 0;
        const char *end = strncmp(e->d_name, "run.lock-", 9) == 0 ? ".part"
                          : checkpoint                            ? ".mrck.part"
                                                                  : NULL;
        if (!end || len < strlen(end) || strcmp(e->d_name + len - strlen(end), end) != 0) continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < sizeof path) unlink(path);
    }
    closedir(dir);
}

/* ------------------------------------------------------------------------------ two names */

static int copy(const char *path, const char *second, mr_error *err)
{
    enum { PIECE = 1 << 18 };
    const mri_output_rules rules = {.force = true, .take_part = true}; /* the folder is our own */
    mri_output *out = NULL;
    struct stat st;
    uint8_t *piece = malloc(PIECE);
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int rc = piece ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory to copy a checkpoint");
    if (rc == MR_OK && (fd < 0 || fstat(fd, &st) != 0))
        rc = mri_error_place(err, mr_error_sys(err, errno, "cannot open the checkpoint"), path, MR_NOWHERE,
                             MR_NOWHERE);
    if (rc == MR_OK) rc = mri_output_open(&out, second, &rules, err);
    for (uint64_t at = 0; rc == MR_OK && at < (uint64_t)st.st_size; at += PIECE) {
        const size_t n = (size_t)mri_min_u64(PIECE, (uint64_t)st.st_size - at);
        rc = mri_pread_all(fd, piece, n, at, path, err);
        if (rc == MR_OK) rc = mri_pwrite_all(mri_output_fd(out), piece, n, at, mri_output_part(out), err);
    }
    if (rc == MR_OK) rc = mri_output_commit(out, NULL, NULL, err);
    mri_output_close(out, false);
    if (fd >= 0) close(fd);
    free(piece);
    return rc;
}

static bool has_no_links(int why)
{
    return why == EPERM || why == EOPNOTSUPP || why == ENOSYS || why == EMLINK || why == EXDEV;
}

static void remove_part(const char *part, char *note, size_t note_bytes)
{
    if (unlink(part) != 0 && errno != ENOENT)
        snprintf(note, note_bytes, "%s may stay: cannot remove it: %s", part, strerror(errno));
}

int mri_checkpoint_second_name(const char *path, const char *second, char *note, size_t note_bytes,
                               mr_error *err)
{
    char part[PATH_BYTES];
    if ((size_t)snprintf(part, sizeof part, "%s.part", second) >= sizeof part)
        return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(second));
    remove_part(part, note, note_bytes);
    if (link(path, part) != 0) {
        const int failed = errno;
        const int rc = copy(path, second, err);
        if (rc == MR_OK && !has_no_links(failed))
            snprintf(note, note_bytes, "%s is a copy: cannot give %s a second name: %s", second, path,
                     strerror(failed));
        return rc;
    }
    const bool done = mri_kept_rename(part, second) == 0;
    const int why = errno;
    remove_part(part, note, note_bytes); /* rename of two names of one file succeeds and leaves both */
    if (done) return mri_sync_folder_of(second, err);
    return mri_error_place(err, mr_error_sys(err, why, "cannot rename %s", part), second, MR_NOWHERE,
                           MR_NOWHERE);
}

/* ------------------------------------------------------------------------------ finding */

static int check_whole(const char *path, mr_checkpoint_info *out, mr_error *err)
{
    mri_checkpoint *ck;
    int rc = mri_checkpoint_open(&ck, path, err);
    if (rc) return rc;
    rc = mri_checkpoint_verify(ck, err);
    if (rc == MR_OK && out) *out = ck->info;
    mri_checkpoint_close(ck);
    return rc;
}

/* The note reports the first damaged one. */
static void note_passed(char *note, size_t note_bytes, const mr_error *why)
{
    char text[1400];
    if (!note || note_bytes == 0 || note[0]) return;
    snprintf(note, note_bytes, "passed over %s", mr_error_format(why, text, sizeof text));
}

/* Does the checkpoint belong to the folder's run, as far as that is known? */
static int check_run(const char *path, const uint8_t *owner, const mr_checkpoint_info *info, mr_error *err)
{
    static const uint8_t none[MRI_RUN_BYTES];
    if (!owner || memcmp(info->run, owner, MRI_RUN_BYTES) == 0 || memcmp(info->run, none, MRI_RUN_BYTES) == 0)
        return MR_OK;
    return mri_error_place(err, mr_error_set(err, MR_EEXIST, "a checkpoint of another run"), path, MR_NOWHERE,
                           MR_NOWHERE);
}

typedef struct search {
    const char *folder;
    const uint8_t *owner; /* or NULL */
    char *note;
    size_t note_bytes;
    uint32_t damaged, others;
} search;

/* One candidate; MR_EAGAIN: look further. */
static int try_one(search *s, const char *path, mr_checkpoint_info *out, mr_error *err)
{
    mr_checkpoint_info info;
    mr_error why = MR_ERROR_INIT;
    int rc = check_whole(path, &info, &why);
    if (rc == MR_ENOENT) return MR_EAGAIN; /* removed since, or no best yet */
    if (rc == MR_OK) rc = check_run(path, s->owner, &info, &why);
    if (rc == MR_OK && out) *out = info;
    if (rc == MR_OK) return MR_OK;
    if (rc != MR_EEXIST && !mri_checkpoint_is_damage(rc)) {
        if (err) *err = why;
        return rc;
    }
    s->others += rc == MR_EEXIST;
    s->damaged += rc != MR_EEXIST;
    note_passed(s->note, s->note_bytes, &why);
    return MR_EAGAIN;
}

static int nothing_found(const search *s, mr_error *err)
{
    if (s->others)
        mr_error_set(
            err, MR_ENOENT,
            "no whole checkpoint of the run that this folder belongs to (%u damaged, %u of other runs)",
            s->damaged, s->others);
    else mr_error_set(err, MR_ENOENT, "no whole checkpoint in this folder (%u damaged)", s->damaged);
    return mri_error_place(err, MR_ENOENT, s->folder, MR_NOWHERE, MR_NOWHERE);
}

static int find_in_folder(const char *folder, char *path, mr_checkpoint_info *out, char *note,
                          size_t note_bytes, mr_error *err)
{
    uint8_t owner[MRI_RUN_BYTES];
    search s = {.folder = folder, .note = note, .note_bytes = note_bytes};
    if (mri_run_lock_owner(folder, owner)) s.owner = owner;
    uint64_t *steps;
    size_t count;
    int rc = mri_checkpoint_steps(folder, &steps, &count, err);
    if (rc) return rc;
    rc = MR_EAGAIN;
    for (size_t i = 0; rc == MR_EAGAIN && i <= count; i++) { /* the best one is the last to try */
        if (i < count) mri_checkpoint_step_path(folder, steps[i], path, PATH_BYTES);
        else mri_checkpoint_best_path(folder, path, PATH_BYTES);
        rc = try_one(&s, path, out, err);
    }
    free(steps);
    return rc == MR_EAGAIN ? nothing_found(&s, err) : rc;
}

static int find(const char *path, char *found, size_t found_bytes, mr_checkpoint_info *out, char *note,
                size_t note_bytes, mr_error *err)
{
    struct stat st;
    char in_folder[PATH_BYTES];
    if (note && note_bytes) note[0] = '\0';
    if (strlen(path) + 64 > sizeof in_folder)
        return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(path));
    if (stat(path, &st) != 0) {
        const int rc = mr_error_sys(err, errno, "cannot find the checkpoint");
        mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
        return rc;
    }
    const bool folder = S_ISDIR(st.st_mode);
    const int rc =
        folder ? find_in_folder(path, in_folder, out, note, note_bytes, err) : check_whole(path, out, err);
    if (rc) return rc;
    const char *name = folder ? in_folder : path;
    if (found && (size_t)snprintf(found, found_bytes, "%s", name) >= found_bytes)
        return mr_error_set(err, MR_EINVAL, "no room for the checkpoint's name: %zu characters",
                            strlen(name));
    return MR_OK;
}

int mr_checkpoint_find_sized(const char *path, char *found, size_t found_bytes, mr_checkpoint_info *out,
                             char *note, size_t note_bytes, mr_error *err)
{
    MRI_GIVEN(err, path);
    mr_checkpoint_info info;
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = find(path, found, found_bytes, &info, note, note_bytes, err);
    if (rc == MR_OK) mri_result_give(out, &info, sizeof info);
    return rc;
}
