/* train/state/run_folder.c: see run_folder.h.
 *
 * The folder's files are read again for each question, except for files known to be whole: a file that this
 * process has written or read to its end, as long as nobody has changed it since (device, number, size,
 * time). So no checkpoint is read twice, and none is taken for whole because of its name. */
#include "train/state/run_folder.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/storage/kept.h"

#define PATH_BYTES 4096

typedef struct whole_file {
    uint64_t updates;
    struct stat as; /* it was then */
} whole_file;

struct mr_run_folder {
    uint32_t process; /* that opened it (base/handle.h) */
    char *path;
    mri_run_lock lock;
    uint8_t run[MRI_RUN_BYTES]; /* from claim on */
    bool nameless_too;
    uint64_t since; /* updates of the checkpoint it was resumed from; UINT64_MAX: none */
    whole_file *whole;
    size_t whole_count, whole_room;
};

void mri_run_draw(uint8_t *run)
{
    if (getrandom(run, MRI_RUN_BYTES, 0) == MRI_RUN_BYTES) return;
    const uint64_t other[2] = {mri_now_ns(), (uint64_t)getpid() << 32 ^ (uint64_t)time(NULL)};
    memcpy(run, other, MRI_RUN_BYTES);
}

static bool is_nameless(const uint8_t *run)
{
    static const uint8_t none[MRI_RUN_BYTES];
    return memcmp(run, none, sizeof none) == 0;
}

int mri_run_folder_open(mr_run_folder **out, const char *path, const uint8_t *from, mr_error *err)
{
    *out = NULL;
    if (strlen(path) + 64 > PATH_BYTES)
        return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(path));
    mr_run_folder *f = calloc(1, sizeof *f);
    if (!f) return mr_error_set(err, MR_ENOMEM, "no memory for a folder of checkpoints");
    f->process = mri_process();
    f->lock.fd = -1;
    f->since = UINT64_MAX;
    f->path = strdup(path);
    int rc = f->path ? mri_checkpoint_folder_make(path, err)
                     : mr_error_set(err, MR_ENOMEM, "no memory for a folder of checkpoints");
    if (rc == MR_OK) rc = mri_run_lock_take(&f->lock, path, from, err);
    if (rc) mr_run_folder_close(f);
    else *out = f;
    return rc;
}

int mr_run_folder_open(mr_run_folder **out, const char *path, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    return mri_run_folder_open(out, path, NULL, err);
}

void mr_run_folder_close(mr_run_folder *f)
{
    if (!MRI_IS_OWN(f)) return;
    mri_run_lock_drop(&f->lock);
    free(f->path);
    free(f->whole);
    free(f);
}

const char *mr_run_folder_note(const mr_run_folder *f) { return f && f->lock.note[0] ? f->lock.note : NULL; }

const char *mri_run_folder_path(const mr_run_folder *f) { return f->path; }

bool mr_run_folder_was_lost(const mr_run_folder *f)
{
    return MRI_IS_OWN(f) && mri_run_lock_check(&f->lock, f->path, NULL) == MR_EPEER;
}

int mri_run_folder_check(const mr_run_folder *f, mr_error *err)
{
    return mri_run_lock_check(&f->lock, f->path, err);
}

int mr_run_folder_find_any(const mr_run_folder *f, char *name, size_t name_bytes, mr_error *err)
{
    MRI_OWN(err, f);
    MRI_GIVEN(err, name);
    char path[PATH_BYTES];
    struct stat st;
    uint64_t *steps;
    size_t count;
    const int rc = mri_checkpoint_steps(f->path, &steps, &count, err);
    if (rc) return rc;
    if (count) mri_checkpoint_step_path(f->path, steps[0], path, sizeof path);
    else mri_checkpoint_best_path(f->path, path, sizeof path);
    free(steps);
    if (!count && lstat(path, &st) != 0) return mr_error_set(err, MR_ENOENT, "no checkpoint in this folder");
    snprintf(name, name_bytes, "%s", path);
    return MR_OK;
}

/* ------------------------------------------------------------------------------ whole checkpoints */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static whole_file *find_whole(mr_run_folder *f, uint64_t updates)
{
    for (size_t i = 0; i < f->whole_count; i++)
        if (f->whole[i].updates == updates) return &f->whole[i];
    return NULL;
}

static void forget(mr_run_folder *f, uint64_t updates)
{
    whole_file *known = find_whole(f, updates);
    if (known) *known = f->whole[--f->whole_count];
}

/* Without memory for it the file is read again the next time. */
static void remember(mr_run_folder *f, uint64_t updates, const struct stat *st)
{
    forget(f, updates);
    if (f->whole_count == f->whole_room) {
        const size_t room = f->whole_room ? 2 * f->whole_room : 8;
        whole_file *more = realloc(f->whole, room * sizeof *more);
        if (!more) return;
        f->whole = more;
        f->whole_room = room;
    }
    f->whole[f->whole_count++] = (whole_file){updates, *st};
}

void mri_run_folder_wrote(mr_run_folder *f, uint64_t updates)
{
    char path[PATH_BYTES];
    struct stat st;
    mri_checkpoint_step_path(f->path, updates, path, sizeof path);
    if (lstat(path, &st) == 0) remember(f, updates, &st);
}

/* Of this run, by its header? */
static bool is_own(const mr_run_folder *f, const mr_checkpoint_info *info)
{
    return memcmp(info->run, f->run, MRI_RUN_BYTES) == 0 || (f->nameless_too && is_nameless(info->run));
}

/* Is it a whole checkpoint of this run with this number of updates? An error of the system leaves that
 * unknown. */
static int is_whole(const mr_run_folder *f, const char *path, uint64_t updates, bool *whole, mr_error *err)
{
    mri_checkpoint *ck;
    mr_error why = MR_ERROR_INIT;
    *whole = false;
    int rc = mri_checkpoint_open(&ck, path, &why);
    if (rc == MR_OK) {
        *whole = is_own(f, &ck->info) && ck->info.updates == updates;
        if (*whole) rc = mri_checkpoint_verify(ck, &why);
        mri_checkpoint_close(ck);
    }
    if (rc) *whole = false;
    if (rc == MR_ENOENT || mri_checkpoint_is_damage(rc)) return MR_OK;
    if (rc && err) *err = why;
    return rc;
}

static int is_whole_step(mr_run_folder *f, uint64_t updates, bool *whole, mr_error *err)
{
    char path[PATH_BYTES];
    struct stat st;
    *whole = false;
    mri_checkpoint_step_path(f->path, updates, path, sizeof path);
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? MR_OK
                               : mri_error_place(err, mr_error_sys(err, errno, "cannot look at it"), path,
                                                 MR_NOWHERE, MR_NOWHERE);
    if (!S_ISREG(st.st_mode)) return MR_OK;
    const whole_file *known = find_whole(f, updates);
    *whole = known && same_file(&known->as, &st);
    if (*whole) return MR_OK;
    const int rc = is_whole(f, path, updates, whole, err);
    if (*whole) remember(f, updates, &st);
    return rc;
}

static int remove_step(mr_run_folder *f, uint64_t updates, mr_error *err)
{
    char path[PATH_BYTES];
    mri_checkpoint_step_path(f->path, updates, path, sizeof path);
    if (unlink(path) != 0 && errno != ENOENT)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot remove it"), path, MR_NOWHERE,
                               MR_NOWHERE);
    forget(f, updates);
    return MR_OK;
}

static int prune(mr_run_folder *f, const uint64_t *steps, size_t count, uint32_t keep, bool last,
                 mr_error *first)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool whole;
        mr_error err = MR_ERROR_INIT;
        int rc = is_whole_step(f, steps[i], &whole, &err);
        if (whole && kept < keep) kept++;
        else if (whole && (last || steps[i] != f->since)) rc = remove_step(f, steps[i], &err);
        if (rc && first->code == MR_OK) *first = err;
    }
    return first->code;
}

void mri_run_folder_prune(mr_run_folder *f, uint32_t keep, bool last, char *note, size_t note_bytes)
{
    char text[1400];
    uint64_t *steps;
    size_t count;
    mr_error err = MR_ERROR_INIT;
    note[0] = '\0';
    int rc = mri_run_lock_check(&f->lock, f->path, &err);
    if (rc == MR_EPEER) return; /* another process of the run does it */
    if (rc == MR_OK) rc = mri_checkpoint_steps(f->path, &steps, &count, &err);
    if (rc == MR_OK) {
        rc = prune(f, steps, count, keep, last, &err);
        free(steps);
    }
    if (rc)
        snprintf(note, note_bytes, "an older checkpoint may stay in the folder: %s",
                 mr_error_format(&err, text, sizeof text));
}

/* ------------------------------------------------------------------------------ whose it is */

typedef enum found {
    FOUND_NOTHING,
    FOUND_OWN,
    FOUND_OTHER,      /* another run's */
    FOUND_LATER,      /* this run's, from where it has not come to again */
    FOUND_UNREADABLE, /* damaged, or no checkpoint at all */
} found;

/* An error of the system says nothing about the file. */
static int look_at(const mr_run_folder *f, const char *path, const mri_run_claim *claim, found *what,
                   mr_error *err)
{
    mri_checkpoint *ck;
    mr_error why = MR_ERROR_INIT;
    int rc = mri_checkpoint_open(&ck, path, &why);
    *what = rc == MR_ENOENT ? FOUND_NOTHING : FOUND_UNREADABLE;
    if (rc == MR_ENOENT || mri_checkpoint_is_damage(rc)) return MR_OK;
    if (rc == MR_OK) {
        *what = is_own(f, &ck->info) ? FOUND_OWN : FOUND_OTHER;
        if (*what == FOUND_OWN && ck->info.updates > claim->updates) rc = mri_checkpoint_verify(ck, &why);
        if (*what == FOUND_OWN && ck->info.updates > claim->updates && rc == MR_OK) *what = FOUND_LATER;
        if (mri_checkpoint_is_damage(rc)) rc = MR_OK;
        mri_checkpoint_close(ck);
    }
    if (rc && err) *err = why;
    return rc;
}

/* best.mrck first, then the step files from the oldest on: what goes on is moved last. */
static void path_of(const mr_run_folder *f, const uint64_t *steps, size_t count, size_t at, char *out)
{
    if (at == 0) mri_checkpoint_best_path(f->path, out, PATH_BYTES);
    else mri_checkpoint_step_path(f->path, steps[count - at], out, PATH_BYTES);
}

static int other_run(const char *path, found what, mr_error *err)
{
    mr_error_set(err, MR_EEXIST, "%s: %s, name another folder, or have %s moved aside",
                 what == FOUND_LATER   ? "this run has been further than where it goes on from now"
                 : what == FOUND_OTHER ? "the folder holds the checkpoints of another run"
                                       : "the folder holds a checkpoint that cannot be read",
                 what == FOUND_LATER ? "go on from the newest" : "go on with that run",
                 what == FOUND_LATER ? "what came later" : "its checkpoints");
    return mri_error_place(err, MR_EEXIST, path, MR_NOWHERE, MR_NOWHERE);
}

static int make_aside(const char *folder, char *out, mr_error *err)
{
    for (uint32_t n = 1; n < 1000000; n++) {
        if ((size_t)snprintf(out, PATH_BYTES, "%s/old-%u", folder, n) >= PATH_BYTES) break;
        if (mkdir(out, 0777) == 0) return MR_OK;
        if (errno != EEXIST) break;
    }
    return mri_error_place(err, mr_error_sys(err, errno, "cannot make a folder for older checkpoints"), out,
                           MR_NOWHERE, MR_NOWHERE);
}

static int move_aside(const char *path, const char *aside, mr_error *err)
{
    char to[PATH_BYTES];
    if ((size_t)snprintf(to, sizeof to, "%s%s", aside, strrchr(path, '/')) >= sizeof to)
        return mr_error_set(err, MR_EINVAL, "path too long: %zu characters", strlen(aside));
    if (mri_kept_rename(path, to) == 0) return MR_OK;
    return mri_error_place(err, mr_error_sys(err, errno, "cannot move it to %s", aside), path, MR_NOWHERE,
                           MR_NOWHERE);
}

/* Is it in the way? Unreadable ones are, unless the folder is known to be this run's. */
static bool is_in_the_way(found what, bool fresh)
{
    return what == FOUND_OTHER || what == FOUND_LATER || (what == FOUND_UNREADABLE && fresh);
}

typedef struct survey {
    uint64_t *steps; /* newest first */
    size_t count;    /* of steps */
    found *what;     /* count + 1: best.mrck, then as path_of() */
    bool any_own;
} survey;

static int survey_open(survey *s, const mr_run_folder *f, const mri_run_claim *claim, mr_error *err)
{
    char path[PATH_BYTES];
    *s = (survey){0};
    const int rc = mri_checkpoint_steps(f->path, &s->steps, &s->count, err);
    if (rc) return rc;
    s->what = malloc((s->count + 1) * sizeof *s->what);
    if (!s->what) return mr_error_set(err, MR_ENOMEM, "no memory to look at %zu checkpoints", s->count);
    for (size_t i = 0; i <= s->count; i++) {
        path_of(f, s->steps, s->count, i, path);
        const int seen = look_at(f, path, claim, &s->what[i], err);
        if (seen) return seen;
        s->any_own = s->any_own || s->what[i] == FOUND_OWN;
    }
    if (s->what[0] == FOUND_LATER) { /* follows the step files */
        s->what[0] = FOUND_OWN;
        for (size_t i = 1; i <= s->count; i++)
            if (s->what[i] == FOUND_LATER) s->what[0] = FOUND_LATER;
    }
    return MR_OK;
}

static void survey_close(survey *s)
{
    free(s->steps);
    free(s->what);
}

static int clear_the_way(const mr_run_folder *f, const mri_run_claim *claim, const survey *s, char *note,
                         size_t note_bytes, mr_error *err)
{
    char path[PATH_BYTES], aside[PATH_BYTES] = "";
    const bool fresh = !claim->resumed && !s->any_own;
    size_t moved = 0;
    for (size_t i = 0; i <= s->count; i++) {
        if (!is_in_the_way(s->what[i], fresh)) continue;
        path_of(f, s->steps, s->count, i, path);
        if (!claim->replace) return other_run(path, s->what[i], err);
        int rc = aside[0] ? MR_OK : make_aside(f->path, aside, err);
        if (rc == MR_OK) rc = move_aside(path, aside, err);
        if (rc) return rc;
        moved++;
    }
    if (!moved) return MR_OK;
    snprintf(note, note_bytes, "%zu checkpoint%s that %s not of this run moved to %s", moved,
             moved == 1 ? "" : "s", moved == 1 ? "is" : "are", aside);
    strcat(aside, "/."); /* the folder that the names are in */
    const int rc = mri_sync_folder_of(aside, err);
    mri_checkpoint_best_path(f->path, path, sizeof path);
    return rc ? rc : mri_sync_folder_of(path, err);
}

/* ------------------------------------------------------------------------------ the best */

int mri_run_folder_set_best(const mr_run_folder *f, uint64_t updates, char *note, size_t note_bytes,
                            mr_error *err)
{
    char path[PATH_BYTES], best[PATH_BYTES];
    note[0] = '\0';
    const int rc = mri_run_folder_check(f, err);
    if (rc) return rc;
    mri_checkpoint_step_path(f->path, updates, path, sizeof path);
    mri_checkpoint_best_path(f->path, best, sizeof best);
    return mri_checkpoint_second_name(path, best, note, note_bytes, err);
}

/* A run that was killed between a checkpoint and its second name. */
static int mend_best(mr_run_folder *f, uint64_t updates, char *note, size_t note_bytes, mr_error *err)
{
    char best[PATH_BYTES], more[512] = "";
    bool whole = updates == 0;
    mri_checkpoint_best_path(f->path, best, sizeof best);
    int rc = whole ? MR_OK : is_whole(f, best, updates, &whole, err);
    if (rc || whole) return rc;
    rc = is_whole_step(f, updates, &whole, err);
    if (rc == MR_OK && whole) rc = mri_run_folder_set_best(f, updates, more, sizeof more, err);
    if (more[0]) {
        const size_t at = strlen(note);
        snprintf(note + at, note_bytes - at, "%s%s", at ? "; " : "", more);
    }
    if (rc == MR_OK && !whole && !note[0])
        snprintf(note, note_bytes,
                 "%s: the best checkpoint, after %llu updates, is not in the folder any more", f->path,
                 (unsigned long long)updates);
    return rc;
}

int mri_run_folder_claim(mr_run_folder *f, const mri_run_claim *claim, char *note, size_t note_bytes,
                         mr_error *err)
{
    survey s;
    note[0] = '\0';
    memcpy(f->run, claim->run, MRI_RUN_BYTES);
    uint8_t owner[MRI_RUN_BYTES]; /* this run's folder: its first contents are still in it */
    f->nameless_too = claim->nameless_too ||
                      (mri_run_lock_owner(f->path, owner) && memcmp(owner, claim->run, MRI_RUN_BYTES) == 0);
    f->since = claim->resumed ? claim->updates : UINT64_MAX;
    int rc = survey_open(&s, f, claim, err);
    if (rc == MR_OK) rc = clear_the_way(f, claim, &s, note, note_bytes, err);
    survey_close(&s);
    if (rc == MR_OK) rc = mri_run_lock_write(&f->lock, f->path, f->run, err);
    if (rc == MR_OK) mri_checkpoint_clear_parts(f->path);
    return rc ? rc : mend_best(f, claim->best_updates, note, note_bytes, err);
}
