/* A host whose filter of system calls (seccomp) refuses one of ours: the run gives the same batches and
 * weights without it, or ends with an error that says why. It neither hangs nor crashes.
 *
 *     refuse_calls              every call of the list, each with EPERM, ENOSYS and EAGAIN, a line for each
 *     refuse_calls sample       a few of them: for the test suite
 *     refuse_calls CALL ERROR   one, with the output of the run
 *
 * Each run is a process of its own, which has 20 seconds. It reports in memory that it shares with its
 * parent, so that refusing write() does not silence it. Exit status: the number of hangs and crashes, and of
 * runs that gave something else. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/train/rig.h"

enum { SECONDS = 20, BATCH = 8 };

struct call {
    const char *name;
    int number;
};
#define CALL(name)                                                                                           \
    {                                                                                                        \
#name, SYS_##name                                                                                    \
    }
/* All that a run asks of the system, except what libc itself cannot do without: brk, futex, rseq,
 * signals, exit_group. */
static const struct call calls[] = {
    CALL(openat),
    CALL(read),
    CALL(pread64),
    CALL(write),
    CALL(pwrite64),
    CALL(close),
    CALL(fstat),
    CALL(newfstatat),
    CALL(statx),
    CALL(lseek),
    CALL(mmap),
    CALL(munmap),
    CALL(mprotect),
    CALL(madvise),
    CALL(mremap),
    CALL(clone3),
    CALL(clone),
    CALL(set_robust_list),
    CALL(prctl),
    CALL(gettid),
    CALL(getpid),
    CALL(sched_yield),
    CALL(sched_getaffinity),
    CALL(sched_setaffinity),
    CALL(nanosleep),
    CALL(clock_nanosleep),
    CALL(getrandom),
    CALL(io_uring_setup),
    CALL(io_uring_enter),
    CALL(io_uring_register),
    CALL(eventfd2),
    CALL(fcntl),
    CALL(ioctl),
    CALL(fsync),
    CALL(fdatasync),
    CALL(renameat),
    CALL(renameat2),
    CALL(unlinkat),
    CALL(mkdirat),
    CALL(linkat),
    CALL(flock),
    CALL(ftruncate),
    CALL(fallocate),
    CALL(fadvise64),
    CALL(getdents64),
    CALL(readlinkat),
    CALL(faccessat),
    CALL(fchmod),
    CALL(uname),
    CALL(sysinfo),
    CALL(prlimit64),
    CALL(perf_event_open),
    CALL(copy_file_range),
    CALL(statfs),
    CALL(fstatfs),
    CALL(getuid),
    CALL(geteuid),
    CALL(mlock),
#ifdef SYS_open
    CALL(open),
    CALL(stat),
    CALL(lstat),
    CALL(access),
    CALL(rename),
    CALL(mkdir),
    CALL(unlink),
    CALL(link),
    CALL(readlink),
    CALL(chmod),
#endif
};
static const struct call sampled[] = {
    CALL(io_uring_enter), CALL(io_uring_setup), CALL(eventfd2),  CALL(pread64),         CALL(openat),
    CALL(clone3),         CALL(madvise),        CALL(getrandom), CALL(perf_event_open), CALL(fsync)};
static const struct call errors[] = {{"EPERM", EPERM}, {"ENOSYS", ENOSYS}, {"EAGAIN", EAGAIN}};

/* The report of a run. */
static struct reported {
    int rc; /* of the call that failed, or MR_OK */
    bool ended;
    mr_digest digest;
    mrt_hash weights;
    mr_error err;
} * reported;

static char set_path[512], checkpoint[512];

static int read_all(mr_error *err)
{
    mr_source *src;
    mr_digester *d;
    mr_loader *l;
    mr_loader_config cfg;
    uint64_t batches, samples;
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.resident_bytes = 0;
    int rc = mr_source_open(&src, set_path, NULL, err);
    if (rc) return rc;
    rc = mr_loader_open(&l, src, &cfg, err);
    if (rc == MR_OK) {
        rc = mr_digester_create(&d);
        if (rc == MR_OK) rc = mr_digester_run(d, l, NULL, UINT64_MAX, &batches, &samples, err);
        reported->digest = mr_digester_result(d);
        mr_digester_destroy(d);
        mr_loader_close(l);
    }
    mr_source_close(src);
    return rc;
}

static int train_some(mr_error *err)
{
    mrt_rig rig;
    mrt_batch b;
    mr_checkpoint_info info = {.struct_size = sizeof info};
    int rc = mrt_rig_try(&rig, &(mrt_rig_options){.seed = 3, .watchdog_s = SECONDS}, err);
    if (rc) return rc;
    mrt_batch_make(&b, &rig, 0, 0, 32, NULL, 0);
    rc = mr_trainer_step(rig.t, &b.b, err);
    if (rc == MR_OK)
        rc = mr_trainer_weights_hash(rig.t, 0, &reported->weights.lo, &reported->weights.hi, err);
    if (rc == MR_OK) rc = mr_trainer_save(rig.t, checkpoint, &info, err);
    mrt_batch_drop(&b, &rig);
    mrt_rig_close(&rig);
    return rc;
}

static void run(void)
{
    reported->rc = read_all(&reported->err);
    if (reported->rc == MR_OK) reported->rc = train_some(&reported->err);
    reported->ended = true;
}

static bool refuse(int number, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { CANNOT = 97 };

/* number below 0: nothing is refused. The status of the process. */
static int run_without(int number, int error)
{
    int status = 0;
    memset(reported, 0, sizeof *reported);
    unlink(checkpoint);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(mrt_seconds(SECONDS));
        if (number >= 0 && !refuse(number, error)) _exit(CANNOT);
        run();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

enum outcome { SAME, ERROR, OTHER, CRASH, HANG, OUTCOMES };

static enum outcome judge(int status, const struct reported *expected)
{
    if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? HANG : CRASH;
    if (!reported->ended) return CRASH; /* the process was killed */
    if (reported->rc) return ERROR;
    const bool same = memcmp(&reported->digest, &expected->digest, sizeof reported->digest) == 0 &&
                      mrt_same(reported->weights, expected->weights);
    return same ? SAME : OTHER;
}

static int check(const struct call *list, size_t count, const char *only)
{
    static const char *const names[OUTCOMES] = {"same", "error", "OTHER", "CRASH", "HANG"};
    unsigned seen[OUTCOMES] = {0};
    run_without(-1, 0);
    const struct reported expected = *reported;
    char text[1400];
    if (!expected.ended || expected.rc) {
        printf("the run without a filter fails: %s\n", mr_error_format(&expected.err, text, sizeof text));
        return 1;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof errors / sizeof *errors; k++) {
            if (only && strcmp(only, errors[k].name) != 0) continue;
            const int status = run_without(list[i].number, errors[k].number);
            if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
                printf("SKIP: this system takes no filter of system calls\n");
                return 77;
            }
            const enum outcome o = judge(status, &expected);
            seen[o]++;
            printf("%-6s %s %s%s%s\n", names[o], list[i].name, errors[k].name, o == ERROR ? ": " : "",
                   o == ERROR ? mr_error_format(&reported->err, text, sizeof text) : "");
        }
    printf("%u the same, %u errors, %u something else, %u crashes, %u hangs\n", seen[SAME], seen[ERROR],
           seen[OTHER], seen[CRASH], seen[HANG]);
    return (int)(seen[OTHER] + seen[CRASH] + seen[HANG]);
}

int main(int argc, char **argv)
{
    reported = mmap(NULL, sizeof *reported, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (reported == MAP_FAILED) return 1;
    snprintf(set_path, sizeof set_path, "%s", mrt_toy_set("refused", 0, 64));
    snprintf(checkpoint, sizeof checkpoint, "%s", mrt_path("checkpoint"));
    if (argc == 2 && strcmp(argv[1], "sample") == 0)
        return check(sampled, sizeof sampled / sizeof *sampled, NULL);
    for (size_t i = 0; argc == 3 && i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, argv[1]) == 0) return check(&calls[i], 1, argv[2]);
    return check(calls, sizeof calls / sizeof *calls, NULL);
}
