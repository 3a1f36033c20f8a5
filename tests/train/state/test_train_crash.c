/* A checkpoint survives SIGKILL at any point of the next one's writing. A child writes one after the other,
 * each holding its own number in every element; it is killed after a random time; the newest whole one must
 * then exist, be consistent, and be no older than the one found the round before. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrt.h"
#include "train/state/run_folder.h"

enum { ROUNDS = 30, KEEP = 2, TENSORS = 3 };

static const mri_tensor_desc tensors[TENSORS] = {
    {"0/dense/weights", MRI_ROLE_WEIGHTS, 2, {100, 1000}, 100000},
    {"0/dense/bias", MRI_ROLE_WEIGHTS, 1, {100}, 100},
    {"0/dense/weights", MRI_ROLE_SLOT0, 2, {100, 1000}, 100000},
};

static int fill(void *context, uint32_t at, float *out, mr_error *err)
{
    (void)err;
    usleep(1500); /* so that most kills fall into the middle of a file */
    for (uint64_t i = 0; i < tensors[at].count; i++) out[i] = (float)*(uint64_t *)context;
    return MR_OK;
}

static void write_until_killed(const char *folder, uint64_t updates)
{
    static const uint8_t run[MRI_RUN_BYTES] = {7};
    char note[256];
    mr_run_folder *f;
    const mri_run_claim claim = {.run = run, .resumed = updates > 1, .updates = updates - 1};
    if (mr_run_folder_open(&f, folder, NULL) || mri_run_folder_claim(f, &claim, note, sizeof note, NULL))
        _exit(3);
    for (;; updates++) {
        char path[1024];
        mr_checkpoint_info info = {.model = "test",
                                   .h = 1,
                                   .w = 1,
                                   .c = 1,
                                   .classes = 100,
                                   .param_count = 100100,
                                   .updates = updates};
        memcpy(info.run, run, sizeof run);
        mri_checkpoint_step_path(folder, updates, path, sizeof path);
        if (mri_checkpoint_write(path, &info, NULL, tensors, TENSORS, fill, &updates, NULL)) _exit(1);
        mri_run_folder_wrote(f, updates);
        if (mri_run_folder_set_best(f, updates, note, sizeof note, NULL)) _exit(2);
        mri_run_folder_prune(f, KEEP, false, note, sizeof note);
    }
}

static void check_content(const char *path, uint64_t updates)
{
    mr_error err = MR_ERROR_INIT;
    mri_checkpoint *ck;
    float *got = malloc(100000 * sizeof *got);
    MRT_OK(mri_checkpoint_open(&ck, path, &err), &err);
    for (uint32_t t = 0; t < TENSORS; t++) {
        MRT_OK(mri_checkpoint_read(ck, t, got, &err), &err);
        for (uint64_t i = 0; i < tensors[t].count; i++) MRT_TRUE(got[i] == (float)updates);
    }
    mri_checkpoint_close(ck);
    free(got);
}

static void test_killed_while_writing(void **state)
{
    (void)state;
    const char *folder = mrt_path("crash");
    uint64_t seen = 0, rising = 0;
    uint32_t patience = 1; /* grows where one write takes longer than the longest round */
    mrt_mkdir(folder);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t random;
        mrt_noise(&random, sizeof random, round + 1);
        const pid_t child = fork();
        if (child == 0) write_until_killed(folder, seen + 1);
        MRT_TRUE(child > 0);
        usleep((1000 + random % 40000) * patience);
        MRT_EQ(kill(child, SIGKILL), 0);
        int status;
        MRT_EQ(waitpid(child, &status, 0), child);
        MRT_TRUE(WIFSIGNALED(status));

        mr_error err = MR_ERROR_INIT;
        mr_checkpoint_info info;
        char path[1024], note[1024];
        const int rc = mr_checkpoint_find(folder, path, sizeof path, &info, note, sizeof note, &err);
        if (rc == MR_ENOENT && seen == 0 && patience < 64) { /* killed before the first was whole */
            patience *= 2;
            round--;
            continue;
        }
        MRT_OK(rc, &err);
        MRT_STR(note, ""); /* no half file ever had the name of a whole one */
        MRT_TRUE(info.updates >= seen);
        check_content(path, info.updates);
        rising += info.updates > seen;
        seen = info.updates;
    }
    MRT_TRUE(seen > 0 && rising > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_while_writing)};
    return mrt_run(tests);
}
