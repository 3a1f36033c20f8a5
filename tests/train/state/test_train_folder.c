/* A folder of checkpoints belongs to one run: who else comes is refused or moves it aside, and nothing is
 * removed but whole checkpoints of that run. */
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrt.h"
#include "train/state/run_folder.h"

/* Failures in place of the system's answer; 0: the real answer. */
static int no_unlink, no_lstat, no_link;
static const char *of = ""; /* no_lstat: of files with this in their path */
int __real_unlink(const char *path);
int __real_lstat(const char *path, struct stat *out);
int __real_link(const char *from, const char *to);
int __wrap_unlink(const char *path);
int __wrap_lstat(const char *path, struct stat *out);
int __wrap_lstat64(const char *path, struct stat *out);
int __wrap_link(const char *from, const char *to);

int __wrap_unlink(const char *path) { return no_unlink ? (errno = no_unlink, -1) : __real_unlink(path); }

int __wrap_lstat(const char *path, struct stat *out)
{
    return no_lstat && strstr(path, of) ? (errno = no_lstat, -1) : __real_lstat(path, out);
}

int __wrap_lstat64(const char *path, struct stat *out) { return __wrap_lstat(path, out); }

int __wrap_link(const char *from, const char *to)
{
    return no_link ? (errno = no_link, -1) : __real_link(from, to);
}

static const mri_tensor_desc tensors[] = {{"0/dense/weights", MRI_ROLE_WEIGHTS, 1, {1000}, 1000}};
static const uint8_t here[MRI_RUN_BYTES] = {1, 2, 3}, elsewhere[MRI_RUN_BYTES] = {9}, nameless[MRI_RUN_BYTES];

static int fill(void *context, uint32_t at, float *out, mr_error *err)
{
    (void)err;
    for (uint64_t i = 0; i < tensors[at].count; i++) out[i] = (float)*(uint64_t *)context;
    return MR_OK;
}

static void write_to(const char *path, const uint8_t *run, uint64_t updates)
{
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info = {
        .model = "test", .h = 1, .w = 1, .c = 1, .classes = 2, .param_count = 1000, .updates = updates};
    memcpy(info.run, run, sizeof info.run);
    MRT_OK(mri_checkpoint_write(path, &info, NULL, tensors, 1, fill, &updates, &err), &err);
}

static const char *step(const char *folder, uint64_t updates)
{
    static char path[8][1024];
    static int next;
    char *out = path[next++ % 8];
    mri_checkpoint_step_path(folder, updates, out, sizeof path[0]);
    return out;
}

static bool is_there(const char *path) { return access(path, F_OK) == 0; }

/* A byte in the middle of the tensor. */
static void damage(const char *path)
{
    size_t bytes;
    char *all = mrt_read_file(path, &bytes);
    all[3000] ^= 1;
    mrt_write_file(path, all, bytes);
    free(all);
}

static mr_run_folder *open_folder(const char *path)
{
    mr_error err = MR_ERROR_INIT;
    mr_run_folder *f;
    MRT_OK(mr_run_folder_open(&f, path, &err), &err);
    return f;
}

static int claim_as(mr_run_folder *f, const mri_run_claim *claim, char *note, mr_error *err)
{
    return mri_run_folder_claim(f, claim, note, 512, err);
}

static void test_one_process_at_a_time(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char expected[64];
    mr_run_folder *second = (mr_run_folder *)&err;
    mr_run_folder *f = open_folder(mrt_path("one"));
    MRT_EQ(mr_run_folder_open(&second, mrt_path("one"), &err), MR_EEXIST);
    MRT_TRUE(second == NULL);
    snprintf(expected, sizeof expected, "process %ld on ", (long)getpid());
    MRT_HAS(err.text, expected);
    MRT_HAS(err.file, "one");
    const pid_t child = fork();
    if (child == 0) _exit(mr_run_folder_open(&second, mrt_path("one"), NULL) == MR_EEXIST ? 0 : 1);
    int status = -1;
    MRT_EQ(waitpid(child, &status, 0), child);
    MRT_EQ(status, 0);
    mr_run_folder_close(f);
    mr_run_folder_close(open_folder(mrt_path("one")));
    mr_run_folder_close(NULL);
    unlink(mrt_path("one/run.lock"));
    MRT_EQ(symlink("/dev/null", mrt_path("one/run.lock")), 0);
    MRT_TRUE(mr_run_folder_open(&second, mrt_path("one"), &err) != MR_OK);
    unlink(mrt_path("one/run.lock"));
    MRT_EQ(mkfifo(mrt_path("one/run.lock"), 0600), 0);
    MRT_EQ(mr_run_folder_open(&second, mrt_path("one"), &err), MR_EINVAL);
    mrt_write_file(mrt_path("file"), "x", 1);
    MRT_EQ(mr_run_folder_open(&second, mrt_path("file"), &err), MR_EEXIST);
}

static void test_another_run_is_refused_or_moved_aside(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512], name[1024];
    const char *folder = mrt_path("other");
    mr_run_folder *f = open_folder(folder);
    MRT_EQ(mr_run_folder_find_any(f, name, sizeof name, &err), MR_ENOENT);
    write_to(step(folder, 5), elsewhere, 5);
    write_to(step(folder, 900), elsewhere, 900);
    write_to(mrt_path("other/best.mrck"), elsewhere, 5);
    MRT_OK(mr_run_folder_find_any(f, name, sizeof name, &err), &err);
    MRT_HAS(name, "step-000000000900.mrck");
    mri_run_claim claim = {.run = here};
    MRT_EQ(claim_as(f, &claim, note, &err), MR_EEXIST);
    MRT_HAS(err.text, "another run");
    MRT_TRUE(is_there(step(folder, 5)) && is_there(step(folder, 900)));
    claim.resumed = true, claim.updates = 1000; /* from elsewhere */
    MRT_EQ(claim_as(f, &claim, note, &err), MR_EEXIST);
    claim.nameless_too = true;
    MRT_EQ(claim_as(f, &claim, note, &err), MR_EEXIST);
    claim = (mri_run_claim){.run = here, .replace = true};
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    MRT_HAS(note, "3 checkpoints");
    MRT_HAS(note, "other/old-1");
    MRT_TRUE(!is_there(step(folder, 5)) && !is_there(step(folder, 900)) &&
             !is_there(mrt_path("other/best.mrck")));
    MRT_TRUE(is_there(mrt_path("other/old-1/best.mrck")) && is_there(step(mrt_path("other/old-1"), 900)));
    uint8_t owner[MRI_RUN_BYTES];
    MRT_TRUE(mri_run_lock_owner(folder, owner) && memcmp(owner, here, sizeof owner) == 0);
    write_to(step(folder, 3), elsewhere, 3);
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    MRT_TRUE(is_there(step(mrt_path("other/old-2"), 3)));
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    MRT_STR(note, "");
    mr_run_folder_close(f);
}

/* A checkpoint without a run's name belongs to the run that began with it, and to no other. */
static void test_nameless_checkpoints(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512];
    const char *folder = mrt_path("nameless");
    mr_run_folder *f = open_folder(folder);
    for (uint64_t i = 1; i <= 3; i++) write_to(step(folder, i), nameless, i);
    mri_run_claim claim = {.run = here, .resumed = true, .updates = 3};
    MRT_EQ(claim_as(f, &claim, note, &err), MR_EEXIST);
    claim.nameless_too = true;
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    write_to(step(folder, 4), here, 4);
    mri_run_folder_prune(f, 1, true, note, sizeof note);
    MRT_TRUE(!is_there(step(folder, 1)) && !is_there(step(folder, 3)) && is_there(step(folder, 4)));
    mr_run_folder_close(f);
}

static void test_unreadable_ones(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512];
    const char *folder = mrt_path("unreadable");
    mr_run_folder *f = open_folder(folder);
    mrt_write_file(step(folder, 8), "cut", 3);
    MRT_EQ(mkfifo(step(folder, 9), 0600), 0);
    mri_run_claim claim = {.run = here};
    MRT_EQ(claim_as(f, &claim, note, &err), MR_EEXIST); /* they may be rescued */
    MRT_HAS(err.text, "cannot be read");
    claim.resumed = true, claim.updates = 5;
    write_to(step(folder, 5), here, 5);
    MRT_OK(claim_as(f, &claim, note, &err), &err); /* newer ones were passed over */
    mri_run_folder_prune(f, 1, true, note, sizeof note);
    MRT_TRUE(is_there(step(folder, 8)) && is_there(step(folder, 9)) && is_there(step(folder, 5)));
    mr_run_folder_close(f);
}

/* The run has been further: what came later would be taken for the newest for ever. */
static void test_later_ones(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512];
    const char *folder = mrt_path("later");
    mr_run_folder *f = open_folder(folder);
    for (uint64_t i = 1; i <= 4; i++) write_to(step(folder, i), here, i);
    mri_run_claim claim = {.run = here, .resumed = true, .updates = 2};
    MRT_EQ(claim_as(f, &claim, note, &err), MR_EEXIST);
    MRT_HAS(err.text, "further");
    MRT_HAS(err.file, "step-000000000003");
    damage(step(folder, 3));
    damage(step(folder, 4));
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    write_to(step(folder, 3), here, 3);
    claim.replace = true;
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    MRT_TRUE(!is_there(step(folder, 3)) && is_there(step(folder, 4)) && is_there(step(folder, 2)));
    mr_run_folder_close(f);
}

static void test_prune_removes_whole_ones_of_the_run(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512];
    const char *folder = mrt_path("prune");
    mr_run_folder *f = open_folder(folder);
    for (uint64_t i = 1; i <= 6; i++) write_to(step(folder, i), here, i);
    damage(step(folder, 6));
    mrt_write_file(mrt_path("prune/step-000000000009.mrck.part"), "x", 1);
    mrt_write_file(mrt_path("prune/best.mrck.part"), "x", 1);
    mrt_write_file(mrt_path("prune/notes.part"), "x", 1);
    const mri_run_claim claim = {.run = here, .resumed = true, .updates = 2};
    for (uint64_t i = 3; i <= 5; i++) unlink(step(folder, i));
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    MRT_TRUE(!is_there(mrt_path("prune/step-000000000009.mrck.part")) &&
             !is_there(mrt_path("prune/best.mrck.part")));
    MRT_TRUE(is_there(mrt_path("prune/notes.part")));
    write_to(step(folder, 100), elsewhere, 100); /* put there by hand since */
    write_to(step(folder, 3), here, 3);
    mri_run_folder_wrote(f, 3);
    mri_run_folder_prune(f, 1, false, note, sizeof note);
    MRT_TRUE(is_there(step(folder, 3)) && is_there(step(folder, 6)) && is_there(step(folder, 100)));
    MRT_TRUE(is_there(step(folder, 2)) && !is_there(step(folder, 1))); /* it was resumed from 2 */
    write_to(step(folder, 4), here, 4);
    mri_run_folder_wrote(f, 4);
    damage(step(folder, 4)); /* since */
    mri_run_folder_prune(f, 1, false, note, sizeof note);
    MRT_TRUE(is_there(step(folder, 3)) && is_there(step(folder, 4)));
    mri_run_folder_prune(f, 1, true, note, sizeof note);
    MRT_TRUE(is_there(step(folder, 3)) && !is_there(step(folder, 2)));
    mr_run_folder_close(f);
}

static uint64_t best_of(const char *folder)
{
    char path[1024];
    mr_checkpoint_info info;
    mri_checkpoint_best_path(folder, path, sizeof path);
    return mr_checkpoint_find(path, NULL, 0, &info, NULL, 0, NULL) == MR_OK ? info.updates : 0;
}

/* The disk fails: files that could not be removed or examined are reported, and removed the next time. */
static void test_what_prune_cannot_do_is_told(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512];
    const char *folder = mrt_path("reported");
    mr_run_folder *f = open_folder(folder);
    const mri_run_claim claim = {.run = here};
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    for (uint64_t i = 1; i <= 3; i++) write_to(step(folder, i), here, i);
    no_unlink = EIO;
    mri_run_folder_prune(f, 2, true, note, sizeof note);
    MRT_HAS(note, "step-000000000001.mrck: cannot remove it: Input/output error");
    no_unlink = 0;
    no_lstat = EIO;
    of = "step-";
    mri_run_folder_prune(f, 2, true, note, sizeof note);
    MRT_HAS(note, "step-000000000003.mrck: cannot look at it: Input/output error");
    of = "run.lock";
    mri_run_folder_prune(f, 2, true, note, sizeof note);
    MRT_HAS(note, "cannot see whose the folder of checkpoints is: Input/output error");
    mr_run_folder *other = f;
    MRT_EQ(mr_run_folder_open(&other, mrt_path("unseen"), &err), MR_EIO);
    MRT_TRUE(other == NULL);
    MRT_HAS(err.file, "unseen/run.lock");
    no_lstat = 0;
    MRT_TRUE(is_there(step(folder, 1)) && is_there(step(folder, 2)) && is_there(step(folder, 3)));
    mri_run_folder_prune(f, 2, true, note, sizeof note);
    MRT_STR(note, "");
    MRT_TRUE(!is_there(step(folder, 1)) && is_there(step(folder, 2)));
    write_to(step(folder, 4), here, 4);
    for (long n = 0;; n++) { /* without memory nothing is taken for damaged, or removed in its place */
        mrt_fail_alloc_at(n);
        mri_run_folder_prune(f, 3, true, note, sizeof note);
        const int failed = mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        MRT_TRUE(is_there(step(folder, 2)) && is_there(step(folder, 3)) && is_there(step(folder, 4)));
        if (!failed) break;
        if (note[0]) MRT_HAS(note, "memory");
    }
    mr_run_folder_close(f);
}

static void test_second_names_that_fail(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512];
    const char *folder = mrt_path("second");
    mr_run_folder *f = open_folder(folder);
    const mri_run_claim claim = {.run = here};
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    write_to(step(folder, 1), here, 1);
    no_link = EPERM; /* a file system that knows no second names */
    MRT_OK(mri_run_folder_set_best(f, 1, note, sizeof note, &err), &err);
    MRT_STR(note, "");
    no_link = EIO;
    MRT_OK(mri_run_folder_set_best(f, 1, note, sizeof note, &err), &err);
    MRT_HAS(note, "best.mrck is a copy");
    MRT_HAS(note, "Input/output error");
    no_link = 0;
    MRT_EQ(best_of(folder), 1);
    no_unlink = EIO;
    MRT_OK(mri_run_folder_set_best(f, 1, note, sizeof note, &err), &err);
    MRT_HAS(note, "best.mrck.part may stay: cannot remove it: Input/output error");
    no_unlink = 0;
    MRT_EQ(best_of(folder), 1);
    mr_run_folder_close(f);
}

/* Killed between a checkpoint and its second name. */
static void test_best_is_what_the_record_says(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512];
    const char *folder = mrt_path("best");
    mr_run_folder *f = open_folder(folder);
    for (uint64_t i = 1; i <= 3; i++) write_to(step(folder, i), here, i);
    MRT_OK(mri_run_folder_set_best(f, 2, note, sizeof note, &err), &err);
    mri_run_claim claim = {.run = here, .resumed = true, .updates = 3, .best_updates = 3};
    for (int round = 0; round < 3; round++) {
        if (round == 1) damage(mrt_path("best/best.mrck")), write_to(step(folder, 3), here, 3);
        if (round == 2) unlink(mrt_path("best/best.mrck"));
        MRT_OK(claim_as(f, &claim, note, &err), &err);
        MRT_EQ(best_of(folder), 3);
        MRT_STR(note, "");
    }
    claim.best_updates = 77;
    MRT_OK(claim_as(f, &claim, note, &err), &err);
    MRT_HAS(note, "after 77 updates");
    mr_run_folder_close(f);
}

/* Among files of several runs in one folder, it finds the files of the folder's own run. */
static void test_finding_takes_the_folders_run(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char note[512], path[1024];
    mr_checkpoint_info info;
    const char *folder = mrt_path("mixed");
    mr_run_folder *f = open_folder(folder);
    write_to(step(folder, 5), here, 5);
    MRT_OK(claim_as(f, &(mri_run_claim){.run = here, .resumed = true, .updates = 5}, note, &err), &err);
    write_to(step(folder, 900), elsewhere, 900);
    MRT_OK(mr_checkpoint_find(folder, path, sizeof path, &info, note, sizeof note, &err), &err);
    MRT_EQ(info.updates, 5);
    MRT_HAS(note, "another run");
    unlink(step(folder, 5));
    MRT_EQ(mr_checkpoint_find(folder, path, sizeof path, &info, note, sizeof note, &err), MR_ENOENT);
    MRT_HAS(err.text, "1 of other runs");
    mr_run_folder_close(f);
    unlink(mrt_path("mixed/run.lock")); /* no file names the owner */
    MRT_OK(mr_checkpoint_find(folder, path, sizeof path, &info, note, sizeof note, &err), &err);
    MRT_EQ(info.updates, 900);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    const char *folder = mrt_path("alloc");
    char note[512];
    mrt_mkdir(folder);
    write_to(step(folder, 5), here, 5);
    for (int n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mr_run_folder *f = (mr_run_folder *)&err;
        mrt_fail_alloc_at(n);
        int rc = mr_run_folder_open(&f, folder, &err);
        if (rc == MR_OK)
            rc = claim_as(f, &(mri_run_claim){.run = here, .resumed = true, .updates = 5, .best_updates = 5},
                          note, &err);
        mrt_fail_alloc_at(-1);
        mr_run_folder_close(f);
        MRT_TRUE(is_there(step(folder, 5)));
        if (rc == MR_OK && n > 12) break;
        MRT_TRUE(rc == MR_OK || rc == MR_ENOMEM);
        MRT_TRUE(n < 60);
    }
}

/* A process of the run that has lost the one that has the folder takes it: that one writes nothing more
 * there.
 */
static void test_taken_over(void **state)
{
    (void)state;
    const char *folder = mrt_path("taken");
    char note[1536];
    mr_error err = MR_ERROR_INIT;
    mr_run_folder *second = (mr_run_folder *)&err, *third;
    mr_run_folder *first = open_folder(folder);
    MRT_OK(claim_as(first, &(mri_run_claim){.run = here}, note, &err), &err);
    write_to(step(folder, 1), here, 1);
    mri_run_folder_wrote(first, 1);
    MRT_OK(mri_run_folder_check(first, &err), &err);
    MRT_EQ(mri_run_lock_take(&(mri_run_lock){.fd = -1}, folder, elsewhere, &err), MR_EEXIST);
    MRT_TRUE(!mr_run_folder_was_lost(first));

    mri_run_lock lock;
    MRT_OK(mri_run_lock_take(&lock, folder, here, &err), &err);
    MRT_TRUE(mr_run_folder_was_lost(first));
    MRT_EQ(mri_run_folder_check(first, &err), MR_EPEER);
    MRT_HAS(err.text, "another process of this run");
    MRT_HAS(err.file, "taken");
    MRT_EQ(mri_run_folder_set_best(first, 1, note, sizeof note, &err), MR_EPEER);
    write_to(step(folder, 2), here, 2);
    mri_run_folder_wrote(first, 2);
    mri_run_folder_prune(first, 1, true, note, sizeof note);
    MRT_TRUE(is_there(step(folder, 1)));
    MRT_STR(note, "");
    MRT_EQ(mr_run_folder_open(&second, folder, &err), MR_EEXIST); /* of the new one */
    mr_run_folder_close(first);
    MRT_EQ(mr_run_folder_open(&second, folder, &err), MR_EEXIST);
    mri_run_lock_drop(&lock);
    third = open_folder(folder);
    MRT_OK(mri_run_folder_check(third, &err), &err);
    unlink(mrt_path("taken/run.lock")); /* by somebody: nobody has taken it */
    MRT_OK(mri_run_folder_check(third, &err), &err);
    mr_run_folder_close(third);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_process_at_a_time),
        cmocka_unit_test(test_another_run_is_refused_or_moved_aside),
        cmocka_unit_test(test_nameless_checkpoints),
        cmocka_unit_test(test_unreadable_ones),
        cmocka_unit_test(test_later_ones),
        cmocka_unit_test(test_prune_removes_whole_ones_of_the_run),
        cmocka_unit_test(test_best_is_what_the_record_says),
        cmocka_unit_test(test_what_prune_cannot_do_is_told),
        cmocka_unit_test(test_second_names_that_fail),
        cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_finding_takes_the_folders_run),
        cmocka_unit_test(test_allocation_failures),
    };
    return mrt_run(tests);
}
