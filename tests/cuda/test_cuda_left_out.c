/* What happens when one wait is left out: the emulation says so, by the names of both operations, in every
 * schedule; with the wait in its place nothing is reported. The order is the one in which batches are staged:
 * copy stream, event, compute stream, and back. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/rig.h"

enum { COUNT = 1000, ROUNDS = 3, SEEDS = 8 };

enum left_out {
    NOTHING,
    READY,     /* the compute stream does not wait for the copy into its memory */
    CONSUMED,  /* the next copy does not wait until the memory was used */
    HOST_SLOT, /* the host writes the slot again before the copy out of it is over */
    FREED,     /* memory goes while queued work uses it */
    LEFT_OUT_COUNT
};

/* Batches through one device buffer, as the loader and the trainer do it. */
static int stage(enum left_out left_out)
{
    mr_error err = MR_ERROR_INIT;
    mr_device **devices;
    uint32_t count;
    mr_stream *copy, *compute;
    mr_event *ready, *consumed;
    uint8_t *host, *batch, *result;
    int rc = mr_devices_open(&devices, &count, "cuda:0", NULL, &err);
    if (!rc) rc = mr_stream_create(&copy, devices[0], MR_STREAM_COPY, &err);
    if (!rc) rc = mr_stream_create(&compute, devices[0], MR_STREAM_COMPUTE, &err);
    if (!rc) rc = mr_event_create(&ready, devices[0], &err);
    if (!rc) rc = mr_event_create(&consumed, devices[0], &err);
    if (!rc) rc = mr_host_alloc(devices[0], COUNT, (void **)&host, &err);
    if (!rc) rc = mr_device_alloc(devices[0], COUNT, (void **)&batch, &err);
    if (!rc) rc = mr_device_alloc(devices[0], COUNT, (void **)&result, &err);
    for (int round = 0; !rc && round < ROUNDS; round++) {
        memset(host, round, COUNT);
        if (left_out != CONSUMED) rc = mr_stream_wait_event(copy, consumed);
        if (!rc) rc = mr_copy_h2d_async(copy, batch, host, COUNT);
        if (!rc) rc = mr_event_record(ready, copy);
        if (!rc && left_out != READY) rc = mr_stream_wait_event(compute, ready);
        if (!rc) rc = mr_copy_d2d_async(compute, result, batch, COUNT);
        if (!rc) rc = mr_event_record(consumed, compute);
        if (!rc && left_out != HOST_SLOT) rc = mr_event_sync(ready, &err);
    }
    if (rc) return 1;
    if (left_out != FREED) mr_stream_sync(compute, NULL);
    mr_device_free(devices[0], result);
    mr_device_free(devices[0], batch);
    mr_stream_sync(copy, NULL);
    mr_stream_sync(compute, NULL);
    mr_host_free(devices[0], host);
    mr_event_destroy(ready);
    mr_event_destroy(consumed);
    mr_stream_destroy(copy);
    mr_stream_destroy(compute);
    mr_devices_close(devices, count);
    return 0;
}

/* In a process of its own, since the emulation reads its settings once and ends the process. Its exit status,
 * 128 + a signal; said: its output on stderr. */
static int in_child(enum left_out left_out, unsigned seed, char *said, size_t bytes)
{
    int ends[2];
    fflush(NULL);
    MRT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        char text[16];
        snprintf(text, sizeof text, "%u", seed);
        setenv("MILLRACE_EMU_SEED", text, 1);
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL); /* cmocka's is for the parent */
        alarm(mrt_seconds(60));
        _exit(stage(left_out));
    }
    close(ends[1]);
    size_t at = 0;
    ssize_t n;
    while ((n = read(ends[0], said + at, bytes - 1 - at)) > 0) at += (size_t)n;
    said[at] = '\0';
    close(ends[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void a_wait_left_out_is_named(void **state)
{
    (void)state;
    static const char *const names[LEFT_OUT_COUNT][2] = {
        [READY] = {"cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync"},
        [CONSUMED] = {"cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync"},
        [HOST_SLOT] = {"cuMemcpyHtoDAsync", "host memory"},
        [FREED] = {"cuMemFreeAsync", "cuMemcpyDtoDAsync"}};
    char said[4096];
    for (enum left_out which = NOTHING; which < LEFT_OUT_COUNT; which++) {
        unsigned seen = 0;
        for (unsigned seed = 0; seed < SEEDS; seed++) {
            const int status = in_child(which, seed, said, sizeof said);
            if (which == NOTHING && status != 0) fail_msg("status %d: %s", status, said);
            if (status == 0) continue;
            MRT_HAS(said, "emulated CUDA: ");
            for (int i = 0; which != NOTHING && i < 2; i++) MRT_HAS(said, names[which][i]);
            seen++;
        }
        /* a slot written too early shows in the bytes of the copy: not where copies run as they are
         * queued */
        if (which == HOST_SLOT) MRT_TRUE(seen >= SEEDS / 4);
        else MRT_EQ(seen, which == NOTHING ? 0 : SEEDS);
    }
}

int main(void)
{
    if (!getenv("MILLRACE_EMU_DEVICES")) {
        printf("SKIP: only on emulated GPUs\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_wait_left_out_is_named)};
    return mrt_run(tests);
}
