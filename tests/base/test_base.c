/* base: the error record, Philox against its published test vectors, limits of the process. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/hash.h"
#include "base/number.h"
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
    for (int code = 0; code >= MR_EBUSY; code--)
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

static void siphash_known_answers(void **state)
{
    (void)state;
    const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    uint8_t text[15];
    for (uint8_t k = 0; k < sizeof text; k++) text[k] = k;
    MRT_TRUE(mri_siphash(key, text, sizeof text) == 0xa129ca6149be45e5);
    MRT_TRUE(mri_siphash(key, text, 0) == 0x726fdb47dd0e0e31);
    MRT_TRUE(mri_siphash(key, text, 8) == 0x93f5f5799a932462);
    MRT_TRUE(mri_hash_name(text, 5) == mri_hash_name(text, 5));
    MRT_TRUE(mri_hash_name(text, 5) != mri_hash_name(text, 6));
    const uint64_t no_key[2] = {0, 0};
    MRT_TRUE(mri_hash_name(text, 5) != mri_siphash(no_key, text, 5));
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

static void put_limit(const char *name, const char *text)
{
    mrt_write_file(mrt_path("groups/%s", name), text, strlen(text));
}

/* A limit of any group above counts, not only the innermost or the root's. */
static void limits_of_all_groups_above_count(void **state)
{
    (void)state;
    static const char *const folders[] = {"",
                                          "/a",
                                          "/a/b",
                                          "/a/b/c",
                                          "/memory",
                                          "/memory/job",
                                          "/memory/job/1",
                                          "/cpu,cpuacct",
                                          "/cpu,cpuacct/job"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(folders); k++) mrt_mkdir(mrt_path("groups%s", folders[k]));
    char root[4096];
    snprintf(root, sizeof root, "%s", mrt_path("groups"));
    put_limit("a/memory.max", "1073741824\n");
    put_limit("a/b/memory.max", "max\n");
    put_limit("a/b/c/memory.max", "4294967296\n");
    put_limit("a/b/cpu.max", "250000 100000\n");
    put_limit("a/b/c/cpu.max", "max 100000\n");
    mri_cgroup_limits m = mri_cgroup_read(root, "0::/a/b/c\n");
    MRT_EQ(m.memory_bytes, 1073741824);
    MRT_EQ(m.cores, 3);
    MRT_EQ(mri_cgroup_throttled_ns(root, "0::/a/b/c\n"), 0);
    put_limit("a/b/cpu.stat", "usage_usec 12\nnr_throttled 3\nthrottled_usec 4567\nnr_bursts 0\n");
    MRT_EQ(mri_cgroup_throttled_ns(root, "0::/a/b/c\n"), 4567000);
    put_limit("cpu,cpuacct/job/cpu.stat", "nr_periods 4\nthrottled_time 98765\n");
    MRT_EQ(mri_cgroup_throttled_ns(root, "2:cpu,cpuacct:/job\n"), 98765);
    m = mri_cgroup_read(root, "0::/\n"); /* nothing at the root */
    MRT_TRUE(m.memory_bytes == UINT64_MAX && m.cores == UINT64_MAX);
    put_limit("memory.max", "536870912\n"); /* a container: its group is the root, the path the host's */
    MRT_EQ(mri_cgroup_read(root, "0::/docker/0123\n").memory_bytes, 536870912);
    MRT_EQ(mri_cgroup_read(root, "0::/../../other\n").memory_bytes, 536870912);
    MRT_EQ(mri_cgroup_read(root, "0::/a/b/c\n").memory_bytes, 536870912);

    put_limit("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put_limit("memory/job/memory.limit_in_bytes", "268435456\n");
    put_limit("memory/job/1/memory.limit_in_bytes", "9223372036854771712\n");
    put_limit("cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
    put_limit("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put_limit("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put_limit("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    m = mri_cgroup_read(root, "5:pids:/job\n4:memory:/job/1\n2:cpu,cpuacct:/job\nnonsense\n");
    MRT_EQ(m.memory_bytes, 268435456);
    MRT_EQ(m.cores, 2);
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

static void files_of_others_are_not_trusted(void **state)
{
    (void)state;
    char why[MRI_DISTRUST_BYTES];
    const uid_t me = geteuid();
    const char *path = mrt_path("mine");
    mrt_write_file(path, "1", 1);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    MRT_TRUE(fd >= 0);
    MRT_EQ(fchmod(fd, 0644), 0);
    MRT_TRUE(mri_file_is_trusted(fd, why));
    MRT_EQ(fchmod(fd, 0646), 0);
    MRT_TRUE(!mri_file_is_trusted(fd, why));
    MRT_STR(why, "others may write to it (mode 646)");
    MRT_TRUE(!mri_file_is_trusted(fd, NULL));
    if (me == 0) {
        MRT_EQ(fchown(fd, 0, 100), 0);
        MRT_EQ(fchmod(fd, 0664), 0);
        MRT_TRUE(!mri_file_is_trusted(fd, why));
        MRT_EQ(fchown(fd, 0, 0), 0);
        MRT_EQ(fchmod(fd, 0664), 0);
        MRT_TRUE(mri_file_is_trusted(fd, why)); /* the owner's private group */
        MRT_EQ(fchown(fd, 65534, 65534), 0);
        MRT_EQ(fchmod(fd, 0600), 0);
        MRT_TRUE(!mri_file_is_trusted(fd, why));
        MRT_STR(why, "it belongs to user 65534");
    } else {
        printf("SKIP: files of other owners: not root\n");
    }
    close(fd);
    MRT_TRUE(!mri_file_is_trusted(fd, why));
    MRT_HAS(why, "its owner is unknown");
}

static void folders_of_others_are_not_trusted(void **state)
{
    (void)state;
    const char *path = mrt_path("folder");
    MRT_EQ(mkdir(path, 0700), 0);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    MRT_TRUE(fd >= 0);
    MRT_TRUE(mri_file_is_trusted(fd, NULL));
    MRT_EQ(fchmod(fd, 0777), 0);
    MRT_TRUE(!mri_file_is_trusted(fd, NULL));
    MRT_EQ(fchmod(fd, 01777), 0);
    MRT_TRUE(mri_file_is_trusted(fd, NULL)); /* everybody changes only their own files */
    close(fd);
}

/* Faults of a sample, and faults that would recur with the next one. */
static void faults_of_samples(void **state)
{
    (void)state;
    static const int of_sample[] = {MR_EFORMAT, MR_ECHECKSUM, MR_EUNSUPPORTED, MR_ENOENT, MR_ELIMIT};
    static const int of_run[] = {MR_OK,        MR_ENOMEM,  MR_EINVAL,    MR_EIO,
                                 MR_ECANCELED, MR_EDEVICE, MR_EBADSAMPLE};
    static const int file[] = {ENOENT, ELOOP, ENAMETOOLONG},
                     system[] = {EMFILE, ENFILE, ENOMEM, EIO, ENOSPC, EREMOTEIO, EACCES, EPERM};
    mr_error err = MR_ERROR_INIT;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(of_sample); k++) {
        MRT_TRUE(mr_error_of_sample(of_sample[k], NULL));
        MRT_TRUE(mr_error_of_sample(mr_error_set(&err, of_sample[k], "wrong"), &err));
    }
    for (size_t k = 0; k < MRI_ARRAY_COUNT(of_run); k++) MRT_TRUE(!mr_error_of_sample(of_run[k], NULL));
    for (size_t k = 0; k < MRI_ARRAY_COUNT(file); k++)
        MRT_TRUE(mr_error_of_sample(mr_error_sys(&err, file[k], "cannot open"), &err));
    for (size_t k = 0; k < MRI_ARRAY_COUNT(system); k++)
        MRT_TRUE(!mr_error_of_sample(mr_error_sys(&err, system[k], "cannot read"), &err));
    mr_error_set(&err, MR_ELIMIT, "more than the memory allowed");
    err.sys_errno = ENOMEM;
    MRT_TRUE(!mr_error_of_sample(MR_ELIMIT, &err)); /* a budget */
    MRT_TRUE(mr_error_of_sample(MR_EFORMAT, &err)); /* of another error */
}

/* A program may have chosen a decimal comma. */
static void numbers_have_points_in_every_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "pl_PL.UTF-8"};
    char *end;
    uint32_t commas = 0;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(names); i++) commas += setlocale(LC_ALL, names[i]) != NULL;
    if (!commas) print_message("not run: a decimal comma; no locale with one is installed\n");
    const char text[] = "0.25,7";
    MRT_TRUE(mri_strtod(text, &end) == 0.25);
    MRT_TRUE(end == text + 4);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_points_in_every_locale),
        cmocka_unit_test(faults_of_samples),
        cmocka_unit_test(error_tells_place),
        cmocka_unit_test(long_names_keep_their_end),
        cmocka_unit_test(system_errors_keep_their_kind),
        cmocka_unit_test(every_status_has_a_text),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(siphash_known_answers),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(limits_are_sane),
        cmocka_unit_test(limits_of_all_groups_above_count),
        cmocka_unit_test(threads_take_the_signals_of_their_faults),
        cmocka_unit_test(early_end_of_file_is_reported),
        cmocka_unit_test(files_of_others_are_not_trusted),
        cmocka_unit_test(folders_of_others_are_not_trusted),
    };
    return mrt_run(tests);
}
