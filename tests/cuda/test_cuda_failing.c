/* kernels/cuda: every call of every foreign library fails once, in a run of its own: it ends, with one clear
 * error or with the right result, and leaks nothing (the address sanitizer looks). Emulated GPUs
 * only: they fail on request. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/rig.h"

enum { COUNT = 300, RAN = 0, SAID_SO = 3, WRONG = 4 };

struct run {
    mr_device **devices;
    uint32_t count;
    mr_stream *compute[2], *copy[2];
    mr_event *event[2];
    mr_group *group;
    mr_graph *graph;
    float *values[2], *host[2];
    mr_error err;
};

static int make(struct run *r)
{
    int rc = mr_devices_open(&r->devices, &r->count, "cuda:0,1", NULL, &r->err);
    for (uint32_t d = 0; !rc && d < 2; d++) {
        rc = mr_stream_create(&r->compute[d], r->devices[d], MR_STREAM_COMPUTE, &r->err);
        if (!rc) rc = mr_stream_create(&r->copy[d], r->devices[d], MR_STREAM_COPY, &r->err);
        if (!rc) rc = mr_event_create(&r->event[d], r->devices[d], &r->err);
        if (!rc) rc = mr_device_alloc(r->devices[d], COUNT * sizeof(float), (void **)&r->values[d], &r->err);
        if (!rc) rc = mr_host_alloc(r->devices[d], COUNT * sizeof(float), (void **)&r->host[d], &r->err);
    }
    return rc ? rc : mr_group_create(&r->group, r->compute, 2, &r->err);
}

/* The first error of calls that only queue; its text comes from the stream. */
static int reported(struct run *r, uint32_t d, int rc)
{
    if (!rc) return MR_OK;
    mr_error err = MR_ERROR_INIT;
    const int again = mr_stream_sync(r->compute[d], &err);
    if (again != rc || !err.text[0]) {
        fprintf(stderr, "a call returned %d, the stream then says %d: \"%s\"\n", rc, again, err.text);
        _exit(WRONG);
    }
    r->err = err;
    return rc;
}

static int queue(struct run *r)
{
    uint64_t ns;
    for (uint32_t d = 0; d < 2; d++) {
        for (int i = 0; i < COUNT; i++) r->host[d][i] = (float)(d + 1);
        int rc = mr_copy_h2d_async(r->copy[d], r->values[d], r->host[d], COUNT * sizeof(float));
        if (!rc) rc = mr_event_record(r->event[d], r->copy[d]);
        if (!rc) rc = mr_stream_wait_event(r->compute[d], r->event[d]);
        if (rc) return reported(r, d, rc);
    }
    int rc = mr_group_sum_async(r->group, r->values, COUNT);
    if (rc) return reported(r, 0, rc);
    rc = mr_graph_begin(r->compute[0]);
    if (rc) return reported(r, 0, rc);
    mr_fill_async(r->compute[0], r->values[0], 0, sizeof(float)); /* a failure here is reported at the end */
    rc = mr_graph_end(r->compute[0], &r->graph, &r->err);
    if (rc) return rc;
    rc = mr_graph_launch_async(r->graph, r->compute[0]);
    if (rc) return reported(r, 0, rc);
    for (uint32_t d = 0; d < 2; d++) {
        rc = mr_copy_d2h_async(r->compute[d], r->host[d], r->values[d], COUNT * sizeof(float));
        if (!rc) rc = mr_event_record(r->event[d], r->compute[d]);
        if (rc) return reported(r, d, rc);
        rc = mr_event_wait(r->event[d], 30000000000u, &r->err);
        if (rc) return rc;
        rc = mr_event_time_ns(r->event[d], &ns);
        if (rc) return mr_error_set(&r->err, rc, "no time");
        rc = mr_stream_sync(r->compute[d], &r->err);
        if (rc) return rc;
    }
    return MR_OK;
}

static bool right(const struct run *r)
{
    for (uint32_t d = 0; d < 2; d++)
        for (int i = 0; i < COUNT; i++)
            if (r->host[d][i] != (d == 0 && i == 0 ? 0.0f : 3.0f)) return false;
    return true;
}

static void unmake(struct run *r)
{
    for (uint32_t d = 0; d < r->count; d++) {
        if (r->copy[d]) mr_stream_sync(r->copy[d], NULL);
        if (r->compute[d]) mr_stream_sync(r->compute[d], NULL);
    }
    mr_graph_destroy(r->graph);
    mr_group_destroy(r->group);
    for (uint32_t d = 0; d < r->count; d++) {
        mr_stream_destroy(r->compute[d]);
        mr_stream_destroy(r->copy[d]);
        mr_event_destroy(r->event[d]);
        mr_device_free(r->devices[d], r->values[d]);
        mr_host_free(r->devices[d], r->host[d]);
    }
    mr_devices_close(r->devices, r->count);
    memset(r, 0, sizeof *r); /* or what leaked would still be known here */
}

static int run_once(void)
{
    static struct run r;
    r.err = (mr_error)MR_ERROR_INIT;
    int rc = make(&r);
    if (!rc) rc = queue(&r);
    int status = rc ? SAID_SO : right(&r) ? RAN : WRONG;
    if (rc && (rc > 0 || r.err.code != rc || !r.err.text[0])) {
        fprintf(stderr, "code %d with error %d \"%s\"\n", rc, r.err.code, r.err.text);
        status = WRONG;
    }
    if (rc) printf("%s\n", r.err.text);
    unmake(&r);
    return status;
}

/* One run in a process of its own, since the emulation reads its settings once. Returns its exit status. */
static int in_child(unsigned fail_at, const char *log)
{
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        char text[32];
        snprintf(text, sizeof text, "%u", fail_at);
        setenv("MILLRACE_EMU_FAIL_AT", text, 1);
        setenv("MILLRACE_EMU_LOG", log, 1);
        alarm(mrt_seconds(60)); /* a run that hangs dies of it */
        exit(run_once());
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    return 128 + WTERMSIG(status);
}

/* How many calls a run made, from the emulation's log: "NUMBER NAME ...". */
static unsigned calls_in(const char *log)
{
    size_t bytes;
    char *text = mrt_read_file(log, &bytes);
    unsigned last = 0;
    text = realloc(text, bytes + 1);
    text[bytes] = '\0';
    for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const unsigned n = (unsigned)strtoul(line, NULL, 10);
        if (n > last) last = n;
    }
    free(text);
    return last;
}

/* The log's line of call n; for a test that has failed. */
static const char *line_of(const char *log, unsigned n)
{
    for (char *line = strtok(mrt_read_file(log, NULL), "\n"); line; line = strtok(NULL, "\n"))
        if (strtoul(line, NULL, 10) == n) return line;
    return "";
}

static void each_call_fails_once(void **state)
{
    (void)state;
    const char *log = mrt_path("calls");
    MRT_EQ(in_child(0, log), RAN);
    const unsigned calls = calls_in(log);
    MRT_TRUE(calls > 100);
    unsigned said_so = 0;
    for (unsigned n = 1; n <= calls; n++) {
        const int status = in_child(n, log);
        if (status != RAN && status != SAID_SO)
            fail_msg("call %u of %u set to fail: exit status %d: %s", n, calls, status, line_of(log, n));
        said_so += status == SAID_SO;
    }
    printf("%u calls, each failed once: %u runs said so, %u came through\n", calls, said_so, calls - said_so);
    MRT_TRUE(said_so > calls / 4);
}

int main(void)
{
    if (!getenv("MILLRACE_EMU_DEVICES")) {
        printf("SKIP: only on emulated GPUs\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_call_fails_once)};
    return mrt_run(tests);
}
