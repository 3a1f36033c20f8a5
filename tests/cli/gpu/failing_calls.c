/* failing_calls MILLRACE: a short training on emulated GPUs, again and again; each time another call of the
 * driver or a library fails, until a run has no such call any more. A run ends soon, with status 1 and one
 * line that names what failed, or, where the call is one that may fail, with the weights of the run in which
 * nothing failed. The address sanitizer, where the program has it, sees to it that nothing is left behind.
 *
 *   FAILING_DEVICES  1 (default) or more
 *   FAILING_EVERY    only every Nth call (default 1),
 *   FAILING_FIRST    from this one on (default 1) */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/mrt.h"

enum { JOBS_MOST = 16, NAME = 64, TEXT = 4096, SECONDS = 120, HARMLESS_MOST = 64 };

typedef struct job {
    pid_t pid;
    unsigned fail_at;
} job;

static const char *millrace, *place;
static unsigned devices, failures, reported, harmless_runs;
static char weights[NAME];
static struct {
    char name[NAME];
    unsigned runs;
} harmless[HARMLESS_MOST];

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text && *text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void die(const char *what)
{
    fprintf(stderr, "failing_calls: %s: %s\n", what, strerror(errno));
    exit(1);
}

static const char *path_of(char *out, unsigned fail_at, const char *what)
{
    snprintf(out, TEXT, "%s/%u.%s", place, fail_at, what);
    return out;
}

/* The end of a file as text. */
static void read_end(unsigned fail_at, const char *what, char *out)
{
    char path[TEXT];
    FILE *f = fopen(path_of(path, fail_at, what), "rbe");
    out[0] = '\0';
    if (!f) return;
    if (fseek(f, -(TEXT - 1), SEEK_END) != 0) rewind(f);
    out[fread(out, 1, TEXT - 1, f)] = '\0';
    fclose(f);
}

static void redirect(int to, unsigned fail_at, const char *what)
{
    char path[TEXT];
    const int fd = open(path_of(path, fail_at, what), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || dup2(fd, to) < 0) _exit(127);
}

/* fail_at 0: none. */
static job start(unsigned fail_at)
{
    const job j = {.pid = fork(), .fail_at = fail_at};
    if (j.pid < 0) die("fork");
    if (j.pid > 0) return j;
    char text[32], log[TEXT], list[2 * 8 + 8] = "cuda:0";
    for (unsigned d = 1; d < devices && d < 8; d++) snprintf(list + strlen(list), 4, ",%u", d);
    snprintf(text, sizeof text, "%u", fail_at);
    setenv("MILLRACE_EMU_FAIL_AT", text, 1);
    setenv("MILLRACE_EMU_DEVICES", "8", 1);
    setenv("MILLRACE_EMU_LOG", path_of(log, fail_at, "log"), 1);
    redirect(1, fail_at, "out");
    redirect(2, fail_at, "err");
    alarm(mrt_seconds(SECONDS)); /* a run that hangs dies of it */
    execl(millrace, millrace, "train", "data", "--model", "mnist-mlp", "--batch", "9", "--epochs", "1",
          "--seed", "1", "--devices", list, "--val", "data", "--deterministic", "--bucket", "100K",
          "--prefetch", fail_at % 2 ? "off" : "2", "--json", "--quiet", (char *)NULL);
    _exit(127);
}

static int wait_for(const job *jobs, unsigned count, unsigned *which)
{
    for (;;) {
        int status;
        const pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno != EINTR) die("waitpid");
        for (unsigned i = 0; i < count; i++) {
            if (jobs[i].pid != pid) continue;
            *which = i;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
}

/* The name of the call that failed in a run, from its log; false when fail_at is past the last call. */
static bool failed_call(unsigned fail_at, char *name)
{
    char line[TEXT], path[TEXT];
    bool found = false;
    FILE *f = fopen(path_of(path, fail_at, "log"), "re");
    if (!f) die(path);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, " set to fail") && sscanf(line, "%*u %63s", name) == 1;
    fclose(f);
    return found;
}

static void weights_of(unsigned fail_at, char *out)
{
    char text[TEXT];
    read_end(fail_at, "out", text);
    const char *at = strstr(text, "\"weights\": \"");
    out[0] = '\0';
    if (at) sscanf(at + 12, "%63[0-9a-f]", out);
}

static void failed(unsigned fail_at, const char *name, int status, const char *why)
{
    char err[TEXT];
    read_end(fail_at, "err", err);
    printf("FAILED: call %u (%s) failing: status %d: %s\n%s\n", fail_at, name, status, why, err);
    failures++;
}

/* "cuda:1: copy to the device: ...", or the driver, when it does not even start. */
static const char *fault_in_message(const char *err)
{
    const char *end = strchr(err, '\n');
    if (!end) return "no message";
    if (end[1] != '\0') return "more than one line";
    if (strncmp(err, "millrace: ", 10) != 0) return "not a message of millrace";
    const char *device = strstr(err, "cuda:");
    if (!device && !strstr(err, "driver")) return "no device is named";
    if (device && !isdigit((unsigned char)device[5])) return "no device is named";
    return strlen(err) > 30 && strstr(err, ": ") ? NULL : "the operation is not named";
}

static void passed_all_the_same(unsigned fail_at, const char *name)
{
    char found[NAME];
    weights_of(fail_at, found);
    if (strcmp(found, weights) != 0)
        failed(fail_at, name, 0, "status 0 with other weights than without the failure");
    harmless_runs++;
    for (unsigned i = 0; i < HARMLESS_MOST; i++) {
        if (harmless[i].runs > 0 && strcmp(harmless[i].name, name) != 0) continue;
        snprintf(harmless[i].name, NAME, "%s", name);
        harmless[i].runs++;
        return;
    }
}

/* False: that run had no such call. */
static bool judge(unsigned fail_at, int status)
{
    char name[NAME], err[TEXT];
    if (!failed_call(fail_at, name)) {
        if (status != 0) failed(fail_at, "none", status, "no call was set to fail");
        return false;
    }
    read_end(fail_at, "err", err);
    if (status == 0) passed_all_the_same(fail_at, name);
    else if (status != 1) failed(fail_at, name, status, "expected 1");
    else if (fault_in_message(err)) failed(fail_at, name, status, fault_in_message(err));
    reported += status == 1;
    return true;
}

static void clean(unsigned fail_at)
{
    char path[TEXT];
    static const char *const kinds[] = {"out", "err", "log"};
    for (int i = 0; i < 3; i++) unlink(path_of(path, fail_at, kinds[i]));
}

static void run_all(unsigned first, unsigned every, unsigned at_once)
{
    job jobs[JOBS_MOST];
    unsigned running = 0, next = first;
    bool more = true;
    while (more || running > 0) {
        while (more && running < at_once) {
            jobs[running++] = start(next);
            next += every;
        }
        unsigned which = 0;
        const int status = wait_for(jobs, running, &which);
        if (!judge(jobs[which].fail_at, status)) more = false;
        clean(jobs[which].fail_at);
        jobs[which] = jobs[--running];
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    millrace = argv[1];
    place = argv[2];
    devices = setting("FAILING_DEVICES", 1);
    const unsigned every = setting("FAILING_EVERY", 1), first = setting("FAILING_FIRST", 1);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (every == 0 || first == 0) return 2;

    const job whole = start(0);
    unsigned which;
    if (wait_for(&whole, 1, &which) != 0) failed(0, "none", 1, "a training without failures");
    weights_of(0, weights);
    if (!weights[0]) failed(0, "none", 0, "no weights are printed");
    clean(0);
    if (failures == 0)
        run_all(first, every, cores > 0 && cores < JOBS_MOST / 2 ? 2 * (unsigned)cores : JOBS_MOST);
    printf("%u devices, every %u calls from %u: %u runs said what failed, %u came through", devices, every,
           first, reported, harmless_runs);
    for (unsigned i = 0; i < HARMLESS_MOST && harmless[i].runs > 0; i++)
        printf("%s%s x%u", i ? ", " : " (", harmless[i].name, harmless[i].runs);
    printf("%s; %u failures\n", harmless_runs ? ")" : "", failures);
    return failures > 0 || reported == 0;
}
