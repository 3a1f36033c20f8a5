/* base: the error record, Philox against its published test vectors, limits of the process. */
#include <errno.h>
#include <signal.h>

#include "base/process.h"
#include "base/util.h"
#include "mrt.h"

static void error_tells_place(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char line[256];
    MRT_EQ(mr_error_set(&err, MR_EFORMAT, "expected %d, found %d", 3, 4), MR_EFORMAT);
    MRT_EQ(mr_error_at(&err, "a\nb.mrec", 4096, 17), MR_EFORMAT);
    MRT_STR(mr_error_format(&err, line, sizeof line),
            "a\\x0ab.mrec: sample 17, offset 4096: expected 3, found 4");
    MRT_STR(mr_error_format(&err, line, 8), "a\\x0ab.");
    MRT_EQ(mr_error_set(NULL, MR_EIO, "x"), MR_EIO);
}

static void long_names_keep_their_end(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char name[2000];
    memset(name, 'x', sizeof name);
    strcpy(name + sizeof name - 10, "/end.jpeg");
    mr_error_at(&err, name, MR_NOWHERE, MR_NOWHERE);
    MRT_HAS(err.file, "/end.jpeg");
    MRT_EQ(strlen(err.file), sizeof err.file - 1);
}

static void system_errors_keep_their_kind(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_error_sys(&err, ENOENT, "cannot open"), MR_ENOENT);
    MRT_EQ(mr_error_sys(&err, ENOSPC, "cannot write"), MR_EIO);
    MRT_EQ(err.sys_errno, ENOSPC);
    MRT_HAS(err.text, "No space left");
}

static void every_status_has_a_text(void **state)
{
    (void)state;
    for (int code = 0; code >= MR_EBADSAMPLE; code--)
        MRT_TRUE(strcmp(mr_status_text(code), "unknown status") != 0);
    MRT_STR(mr_status_text(-99), "unknown status");
    MRT_STR(mr_status_text(1), "unknown status");
}

/* Known answers of philox4x32-10, Random123 distribution (kat_vectors). */
static void philox_known_answers(void **state)
{
    (void)state;
    mri_philox r = mri_philox4x32(0, 0, 0);
    MRT_EQ(r.v[0], 0x6627e8d5u);
    MRT_EQ(r.v[1], 0xe169c58du);
    MRT_EQ(r.v[2], 0xbc57ac4cu);
    MRT_EQ(r.v[3], 0x9b00dbd8u);
    r = mri_philox4x32(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    MRT_EQ(r.v[0], 0x408f276du);
    MRT_EQ(r.v[1], 0x41c83b0eu);
    MRT_EQ(r.v[2], 0xa20bc7c6u);
    MRT_EQ(r.v[3], 0x6d5451fdu);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    size_t r = 7;
    MRT_TRUE(!mri_mul_size(SIZE_MAX / 2, 3, &r));
    MRT_EQ(r, 7);
    MRT_TRUE(mri_mul_size(1000, 1000, &r));
    MRT_EQ(r, 1000000);
    MRT_TRUE(!mri_add_size(SIZE_MAX, 1, &r));
    MRT_EQ(mri_align_up(4097, 4096), 8192);
}

static void limits_are_sane(void **state)
{
    (void)state;
    MRT_TRUE(mri_core_count() >= 1);
    MRT_TRUE(mri_memory_limit_bytes() > 1 << 20);
    MRT_TRUE(mri_peak_rss_bytes() > 1 << 16);
}

/* ------------------------------------------------------------------------------ threads */

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF},
                 sent[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGCHLD, SIGALRM, SIGUSR1, SIGPIPE};

static volatile sig_atomic_t caught;
static void on_signal(int number) { caught = number; }

static void *look_at_mask(void *mask)
{
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    raise(SIGSEGV);
    return NULL;
}

static sigset_t mask_of_new_thread(void)
{
    sigset_t mask;
    pthread_t thread;
    caught = 0;
    MRT_EQ(mri_thread_start(&thread, "test", look_at_mask, &mask), MR_OK);
    MRT_EQ(pthread_join(thread, NULL), 0);
    return mask;
}

/* A wild access in a worker must reach the handler of a sanitizer or of the program. */
static void threads_take_the_signals_of_their_faults(void **state)
{
    (void)state;
    struct sigaction act = {.sa_handler = on_signal}, before;
    sigset_t mine, then, some;
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    MRT_EQ(sigaction(SIGSEGV, &act, &before), 0);
    sigset_t mask = mask_of_new_thread();
    MRT_EQ(caught, SIGSEGV);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(faults); k++)
        MRT_EQ(sigismember(&mask, faults[k]), sigismember(&mine, faults[k]));
    for (size_t k = 0; k < MRI_ARRAY_COUNT(sent); k++) MRT_EQ(sigismember(&mask, sent[k]), 1);

    sigemptyset(&some); /* the caller waits for these in a place of its own */
    sigaddset(&some, SIGPROF);
    sigaddset(&some, SIGABRT);
    pthread_sigmask(SIG_BLOCK, &some, NULL);
    mask = mask_of_new_thread();
    pthread_sigmask(SIG_SETMASK, &mine, &then);
    MRT_EQ(sigismember(&mask, SIGPROF), 1);
    MRT_EQ(sigismember(&mask, SIGABRT), 1);
    MRT_EQ(sigismember(&mask, SIGSEGV), 0);
    MRT_EQ(sigismember(&then, SIGPROF), 1); /* and the caller's own mask is as it was */
    MRT_EQ(sigismember(&then, SIGINT), sigismember(&mine, SIGINT));
    MRT_EQ(sigaction(SIGSEGV, &before, NULL), 0);
}

static void early_end_of_file_is_reported(void **state)
{
    (void)state;
    const char *path = mrt_path("short");
    mrt_write_file(path, "12345", 5);
    FILE *f = fopen(path, "rb");
    mr_error err = MR_ERROR_INIT;
    char buf[10];
    MRT_EQ(mri_pread_all(fileno(f), buf, 10, 0, path, &err), MR_EFORMAT);
    fclose(f);
    MRT_HAS(err.text, "expected 10 bytes, found 5");
    MRT_HAS(err.file, "short");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_tells_place),
        cmocka_unit_test(long_names_keep_their_end),
        cmocka_unit_test(system_errors_keep_their_kind),
        cmocka_unit_test(every_status_has_a_text),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(limits_are_sane),
        cmocka_unit_test(threads_take_the_signals_of_their_faults),
        cmocka_unit_test(early_end_of_file_is_reported),
    };
    return mrt_run(tests);
}
