/* train/state/folder.c: a folder of checkpoints: which is the newest whole one, which are too old to keep.
 *
 *   step-000000000390.mrck   named by updates done, so that names sort by age whatever the clock said
 *   best.mrck                lowest validation loss; a second name of one of them, or a copy
 *   *.part                   a write in progress, or what a crash left of one
 *
 * Nothing here keeps a list: the folder is read again for each question, so memory does not grow with it. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/abi.h"
#include "train/state/checkpoint.h"

#define BEST_NAME  "best.mrck"
#define PATH_BYTES 4096

int mri_checkpoint_folder_make(const char *folder, mr_error *err)
{
    struct stat st;
    if (mkdir(folder, 0777) == 0) return mri_sync_folder_of(folder, err);
    const int why = errno;
    if (why == EEXIST && stat(folder, &st) == 0 && S_ISDIR(st.st_mode)) return MR_OK;
    const int rc = mr_error_sys(err, why, "cannot make the checkpoint folder");
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

bool mri_checkpoint_link(const char *path, const char *second)
{
    char part[PATH_BYTES];
    if ((size_t)snprintf(part, sizeof part, "%s.part", second) >= sizeof part) return false;
    unlink(part);
    if (link(path, part) != 0) return false;
    const bool done = rename(part, second) == 0;
    unlink(part); /* rename of two names of one file succeeds and leaves both */
    return done && mri_sync_folder_of(second, NULL) == MR_OK;
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

/* The newest step below `below`; MR_ENOENT when there is none. */
static int newest_below(const char *folder, uint64_t below, uint64_t *out, mr_error *err)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        const int rc = mr_error_sys(err, errno, "cannot read the checkpoint folder");
        mr_error_at(err, folder, MR_NOWHERE, MR_NOWHERE);
        return rc;
    }
    bool any = false;
    for (const struct dirent *e; (e = readdir(dir));) {
        uint64_t n;
        if (!is_step_name(e->d_name, &n) || n >= below || (any && n <= *out)) continue;
        *out = n;
        any = true;
    }
    closedir(dir);
    return any ? MR_OK : MR_ENOENT;
}

void mri_checkpoint_prune(const char *folder, uint32_t keep)
{
    char path[PATH_BYTES];
    uint64_t at = UINT64_MAX, kept = 0;
    while (newest_below(folder, at, &at, NULL) == MR_OK) {
        if (++kept <= keep) continue;
        mri_checkpoint_step_path(folder, at, path, sizeof path);
        unlink(path);
    }
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (const struct dirent *e; (e = readdir(dir));) {
        const size_t len = strlen(e->d_name);
        const bool ours =
            strncmp(e->d_name, "step-", 5) == 0 || strncmp(e->d_name, BEST_NAME, strlen(BEST_NAME)) == 0;
        if (!ours || len < 10 || strcmp(e->d_name + len - 10, ".mrck.part") != 0) continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < sizeof path) unlink(path);
    }
    closedir(dir);
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

static bool is_damage(int rc) { return rc == MR_EFORMAT || rc == MR_ECHECKSUM || rc == MR_EUNSUPPORTED; }

/* The first damaged one is what the note tells about. */
static void note_passed(char *note, size_t note_bytes, const mr_error *why)
{
    char text[1400];
    if (!note || note_bytes == 0 || note[0]) return;
    snprintf(note, note_bytes, "passed over %s", mr_error_format(why, text, sizeof text));
}

static int find_in_folder(const char *folder, char *path, mr_checkpoint_info *out, char *note,
                          size_t note_bytes, mr_error *err)
{
    uint64_t at = UINT64_MAX;
    uint32_t damaged = 0;
    for (bool steps_left = true; steps_left;) {
        int rc = newest_below(folder, at, &at, err);
        if (rc != MR_OK && rc != MR_ENOENT) return rc;
        steps_left = rc == MR_OK; /* the best one is the last to try */
        if (steps_left) mri_checkpoint_step_path(folder, at, path, PATH_BYTES);
        else mri_checkpoint_best_path(folder, path, PATH_BYTES);
        mr_error why = MR_ERROR_INIT;
        rc = check_whole(path, out, &why);
        if (rc == MR_OK) return MR_OK;
        if (rc == MR_ENOENT) continue; /* removed since, or no best yet */
        if (!is_damage(rc)) {
            if (err) *err = why;
            return rc;
        }
        damaged++;
        note_passed(note, note_bytes, &why);
    }
    mr_error_set(err, MR_ENOENT, "no whole checkpoint in this folder (%u damaged)", damaged);
    mr_error_at(err, folder, MR_NOWHERE, MR_NOWHERE);
    return MR_ENOENT;
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
    mr_checkpoint_info info;
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = find(path, found, found_bytes, &info, note, note_bytes, err);
    if (rc == MR_OK) mri_result_give(out, &info, sizeof info);
    return rc;
}
