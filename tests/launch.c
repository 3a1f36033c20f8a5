/* tests/launch.c: starts one test for ctest, everywhere in the same surroundings, and says how it ended.
 *
 *     mrt_launch SECONDS COMMAND ARGUMENT...
 *
 * The command finds: a TMPDIR, HOME and XDG_CACHE_HOME of its own, which are removed after it; umask 022;
 * standard input that is empty; a session of its own; the C locale, UTC, no proxies; OpenMP threads that
 * sleep while they wait. The signals that it was started with do not matter either.
 *
 * When the command is not over after SECONDS, the stacks of all threads of all its processes are printed (by
 * gdb where it is installed, else from /proc for each thread), and they are killed. Processes that a test
 * leaves running are killed and named. Ends with the command's exit status; 124 after the time limit; 128 + N
 * after signal N. The last line gives the processor time of the test; the line above it, in a test that
 * failed, gives the status, the time and the command. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SKIPPED = 77, TIMED_OUT = 124, MOST_PROCESSES = 256, STACK_SECONDS = 60 };

static char room[PATH_MAX];

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* -------------------------------------------------------------------------------------- the room */

static int open_folder(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)ftw;
    if (kind == FTW_D || kind == FTW_DNR) chmod(path, 0700);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path) != 0 && errno != ENOENT;
}

static void remove_room(void)
{
    if (!room[0]) return;
    nftw(room, open_folder, 16, FTW_PHYS);
    if (nftw(room, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0) printf("launch: %s cannot be removed\n", room);
}

static void make_room(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(room, sizeof room, "%s/mrt-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(room)) {
        printf("launch: cannot make %s: %s\n", room, strerror(errno));
        exit(1);
    }
    chmod(room, 0755); /* tests become other users */
}

/* name=room/folder, and the folder is there. */
static void set_folder(const char *name, const char *folder)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", room, folder);
    mkdir(path, 0755);
    setenv(name, path, 1);
}

static void set_surroundings(void)
{
    static const char *const unset[] = {"http_proxy", "https_proxy",   "all_proxy", "no_proxy",
                                        "HTTP_PROXY", "HTTPS_PROXY",   "ALL_PROXY", "NO_PROXY",
                                        "MAKEFLAGS",  "MILLRACE_SIMD", "CDPATH",    "POSIXLY_CORRECT"};
    for (size_t k = 0; k < sizeof unset / sizeof unset[0]; k++) unsetenv(unset[k]);
    umask(022);
    make_room();
    set_folder("TMPDIR", "tmp");
    set_folder("HOME", "home");
    set_folder("XDG_CACHE_HOME", "home/.cache");
    setenv("LC_ALL", "C", 1);
    setenv("TZ", "UTC", 1);
    setenv("OMP_WAIT_POLICY", "passive", 0);
    for (int fd = 3; fd < 1024; fd++) close(fd); /* whatever started it had open */
    const int null = open("/dev/null", O_RDONLY);
    if (null > 0) dup2(null, 0), close(null);
}

/* --------------------------------------------------------------------------------- its processes */

/* /proc/PID/FILE as text; "" when it cannot be read. */
static size_t read_of(long pid, const char *file, char *text, size_t text_bytes)
{
    char path[384];
    snprintf(path, sizeof path, "/proc/%ld/%s", pid, file);
    FILE *f = fopen(path, "re");
    const size_t bytes = f ? fread(text, 1, text_bytes - 1, f) : 0;
    if (f) fclose(f);
    text[bytes] = '\0';
    return bytes;
}

/* One field of /proc/PID/stat after the name: 1 is the parent, 3 the session. -1: it is gone. */
static long stat_field(long pid, int field)
{
    char text[1024];
    read_of(pid, "stat", text, sizeof text);
    const char *at = strrchr(text, ')'); /* a name may have anything in it */
    if (!at || at[1] != ' ') return -1;
    at += 2;
    if (*at == 'Z') return -1;
    for (int k = 0; k < field && at; k++) at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    return at ? strtol(at, NULL, 10) : -1;
}

static bool is_below(long pid, long ancestor)
{
    for (int depth = 0; pid > 1 && depth < 64; depth++) {
        pid = stat_field(pid, 1);
        if (pid == ancestor) return true;
    }
    return false;
}

/* Processes that come from this one: a subreaper is the parent of what its children leave behind. */
static int find_processes(long found[MOST_PROCESSES])
{
    DIR *dir = opendir("/proc");
    int count = 0;
    if (!dir) return 0;
    for (struct dirent *entry; count < MOST_PROCESSES && (entry = readdir(dir));) {
        const long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 1 && is_below(pid, getpid())) found[count++] = pid;
    }
    closedir(dir);
    return count;
}

static void print_command(long pid)
{
    char text[512];
    const size_t bytes = read_of(pid, "cmdline", text, sizeof text);
    for (size_t k = 0; k + 1 < bytes; k++)
        if (text[k] == '\0') text[k] = ' ';
    printf("process %ld: %s\n", pid, text);
}

/* Waits for one child; false when it is not over within the time. */
static bool wait_for(pid_t pid, double seconds)
{
    for (const double end = now_s() + seconds; now_s() < end; usleep(20000))
        if (waitpid(pid, NULL, WNOHANG) != 0) return true;
    return false;
}

/* gdb's warnings are left out. False: gdb is missing, or may not attach. */
static bool print_stacks(long pid)
{
    char number[24];
    snprintf(number, sizeof number, "%ld", pid);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL); /* gdb waits for SIGCHLD */
        dup2(open("/dev/null", O_WRONLY), 2);
        execlp("gdb", "gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-ex",
               "set width 160", "-ex", "thread apply all bt 24", "-p", number, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    const double end = now_s() + STACK_SECONDS;
    while (child > 0 && now_s() < end && waitpid(child, &status, WNOHANG) == 0) usleep(20000);
    if (child > 0 && status == -1) kill(child, SIGKILL), wait_for(child, 5);
    return status == 0;
}

/* Without gdb: what each thread waits for. */
static void print_waits(long pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *dir = opendir(path);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        printf("  thread %s", entry->d_name);
        static const char *const files[] = {"comm", "wchan", "syscall"};
        for (size_t k = 0; k < 3; k++) {
            char file[288], text[256];
            snprintf(file, sizeof file, "task/%s/%s", entry->d_name, files[k]);
            read_of(pid, file, text, sizeof text);
            text[strcspn(text, "\n")] = '\0';
            printf(", %s %s", files[k], text);
        }
        printf("\n");
    }
    closedir(dir);
}

static void print_where_it_hangs(void)
{
    long pids[MOST_PROCESSES];
    const int count = find_processes(pids);
    for (int k = 0; k < count; k++) {
        print_command(pids[k]);
        if (!print_stacks(pids[k])) print_waits(pids[k]);
    }
    fflush(stdout);
}

static void kill_all(bool tell)
{
    long pids[MOST_PROCESSES];
    for (int round = 0; round < 100; round++) { /* killed processes may have had children meanwhile */
        const int count = find_processes(pids);
        for (int k = 0; k < count; k++) {
            if (tell && round == 0) printf("launch: left running, killed now: "), print_command(pids[k]);
            kill((pid_t)pids[k], SIGKILL);
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
        if (count == 0) return;
        usleep(10000);
    }
}

/* ------------------------------------------------------------------------------------- the test */

static pid_t start(char **command, const sigset_t *plain)
{
    const pid_t launcher = getpid(), pid = fork();
    if (pid != 0) return pid;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    for (int signal_number = 1; signal_number < NSIG; signal_number++) signal(signal_number, SIG_DFL);
    sigprocmask(SIG_SETMASK, plain, NULL);
    execvp(command[0], command);
    printf("launch: %s: %s\n", command[0], strerror(errno));
    fflush(stdout);
    _exit(126);
}

/* The status of waitpid(); -1: the time is over; -2: somebody wants this to end. */
static int wait_until(pid_t pid, double end, const sigset_t *signals)
{
    for (;;) {
        int status;
        for (pid_t other; (other = waitpid(-1, &status, WNOHANG)) > 0;)
            if (other == pid) return status;
        const double left = end - now_s();
        if (left <= 0) return -1;
        const struct timespec most = {.tv_sec = left > 1 ? 1 : 0,
                                      .tv_nsec = left > 1 ? 0 : (long)(left * 1e9)};
        const int got = sigtimedwait(signals, NULL, &most);
        if (got > 0 && got != SIGCHLD) return -2;
    }
}

static int tell(int status, double seconds, char **command)
{
    int code;
    char how[64];
    if (status == -1) {
        code = TIMED_OUT;
        snprintf(how, sizeof how, "its time was over");
    } else if (WIFSIGNALED(status)) {
        code = 128 + WTERMSIG(status);
        snprintf(how, sizeof how, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        code = WEXITSTATUS(status);
        snprintf(how, sizeof how, "exit status %d", code);
    }
    if (code != 0 && code != SKIPPED) {
        printf("launch: %s after %.1f s:", how, seconds);
        for (char **word = command; *word; word++) printf(" %s", *word);
        printf("\n");
    }
    return code;
}

/* Of all processes that ended and were waited for. suite.py adds these lines up. */
static void print_usage(double seconds)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    const double processor = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                             (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("launch: processor %.2f s of %.2f s\n", processor, seconds);
}

int main(int argc, char **argv)
{
    char *rest;
    const double limit = argc < 3 ? 0 : strtod(argv[1], &rest);
    if (!(limit > 0) || *rest) {
        fprintf(stderr, "usage: mrt_launch SECONDS COMMAND ARGUMENT...\n");
        return 2;
    }
    sigset_t signals, plain;
    sigemptyset(&plain);
    sigemptyset(&signals);
    static const int waited_for[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t k = 0; k < sizeof waited_for / sizeof waited_for[0]; k++) sigaddset(&signals, waited_for[k]);
    signal(SIGCHLD, SIG_DFL); /* inherited as ignored, nobody could be waited for */
    sigprocmask(SIG_BLOCK, &signals, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    set_surroundings();

    char **command = argv + 2;
    const double begun = now_s();
    const pid_t pid = start(command, &plain);
    if (pid < 0) {
        printf("launch: cannot fork: %s\n", strerror(errno));
        remove_room();
        return 1;
    }
    const int status = wait_until(pid, begun + limit, &signals);
    if (status == -1) {
        printf("launch: not over after %.0f s. Its threads:\n", limit);
        print_where_it_hangs();
    }
    kill_all(status >= 0);
    remove_room();
    const double seconds = now_s() - begun;
    const int code = status == -2 ? 130 : tell(status, seconds, command);
    print_usage(seconds);
    return code;
}
