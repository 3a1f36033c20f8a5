/* tests/cuda_emu/emut.c: see emut.h. */
#include "tests/cuda_emu/emut.h"

#include <signal.h>

static const char *const orders[] = {"eager", "late", "starve", "random"};

void emut_open(struct emut_gpu *g, int device)
{
    CUdevice dev;
    EMUT_MUST(cuInit(0));
    EMUT_MUST(cuDeviceGet(&dev, device));
    EMUT_MUST(cuDevicePrimaryCtxRetain(&g->context, dev));
    EMUT_MUST(cuCtxSetCurrent(g->context));
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    EMUT_MUST(cuMemPoolCreate(&g->pool, &props));
    EMUT_MUST(cuStreamCreateWithPriority(&g->copy, CU_STREAM_NON_BLOCKING, 0));
    EMUT_MUST(cuStreamCreateWithPriority(&g->compute, CU_STREAM_NON_BLOCKING, -1));
    EMUT_MUST(cuEventCreate(&g->copied, CU_EVENT_DEFAULT));
    EMUT_MUST(cuEventCreate(&g->used, CU_EVENT_DEFAULT));
    EMUT_MUST(cuMemAllocFromPoolAsync(&g->a, EMUT_BYTES, g->pool, g->compute));
    EMUT_MUST(cuMemAllocFromPoolAsync(&g->b, EMUT_BYTES, g->pool, g->compute));
    EMUT_MUST(cuMemHostAlloc((void **)&g->in, EMUT_BYTES, CU_MEMHOSTALLOC_PORTABLE));
    EMUT_MUST(cuMemHostAlloc((void **)&g->out, EMUT_BYTES, CU_MEMHOSTALLOC_PORTABLE));
    EMUT_MUST(cuStreamSynchronize(g->compute));
}

void emut_close(struct emut_gpu *g)
{
    EMUT_MUST(cuCtxSetCurrent(g->context));
    EMUT_MUST(cuStreamSynchronize(g->copy));
    EMUT_MUST(cuStreamSynchronize(g->compute));
    EMUT_MUST(cuMemFreeAsync(g->a, g->compute));
    EMUT_MUST(cuMemFreeAsync(g->b, g->compute));
    EMUT_MUST(cuStreamSynchronize(g->compute));
    EMUT_MUST(cuMemFreeHost(g->in));
    EMUT_MUST(cuMemFreeHost(g->out));
    EMUT_MUST(cuEventDestroy(g->copied));
    EMUT_MUST(cuEventDestroy(g->used));
    EMUT_MUST(cuStreamDestroy(g->copy));
    EMUT_MUST(cuStreamDestroy(g->compute));
    EMUT_MUST(cuMemPoolDestroy(g->pool));
    int ordinal = emu_current_device();
    EMUT_MUST(cuDevicePrimaryCtxRelease(ordinal));
}

static void set_environment(const char *settings)
{
    static char copy[512]; /* putenv keeps it */
    snprintf(copy, sizeof copy, "%s", settings);
    for (char *one = strtok(copy, " "); one; one = strtok(NULL, " ")) putenv(one);
}

int emut_run(void (*program)(void), const char *settings, char *text, size_t text_bytes)
{
    int pipe_ends[2];
    MRT_EQ(pipe(pipe_ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    MRT_TRUE(child >= 0);
    if (child == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        close(pipe_ends[0]);
        set_environment(settings);
        for (int i = 1; i < NSIG; i++)
            signal(i, SIG_DFL); /* a crash is the child's, not the test program's */
        program();
        _exit(emu_violations() > 0 ? 5 : 0);
    }
    close(pipe_ends[1]);
    size_t have = 0;
    ssize_t got;
    char spill[256];
    do { /* to the end, or the child would wait for a reader */
        const bool room = have + 1 < text_bytes;
        got = read(pipe_ends[0], room ? text + have : spill, room ? text_bytes - 1 - have : sizeof spill);
        if (got > 0 && room) have += (size_t)got;
    } while (got > 0);
    text[have] = '\0';
    close(pipe_ends[0]);
    int status = -1;
    MRT_EQ(waitpid(child, &status, 0), child);
    return status;
}

void emut_always_fine(void (*program)(void), unsigned seeds)
{
#if defined(__SANITIZE_THREAD__)
    seeds = 1 + seeds / 25; /* threads of a block are fibers, which it makes slowly */
#endif
    for (unsigned seed = 1; seed <= seeds; seed++) {
        for (size_t o = 0; o < 4; o++) {
            char settings[160], text[1024];
            snprintf(settings, sizeof settings, "MILLRACE_EMU_SEED=%u MILLRACE_EMU_ORDER=%s", seed,
                     orders[o]);
            const int status = emut_run(program, settings, text, sizeof text);
            if (status != 0) fprintf(stderr, "%s: status %d: %s\n", settings, status, text);
            MRT_EQ(status, 0);
        }
    }
}

void emut_always_caught(void (*program)(void), const char *part, const char *other)
{
    for (unsigned seed = 1; seed <= 6; seed++) {
        for (size_t o = 0; o < 4; o++) {
            char settings[160], text[1024];
            snprintf(settings, sizeof settings,
                     "MILLRACE_EMU_SEED=%u MILLRACE_EMU_ORDER=%s MILLRACE_EMU_VIOLATION=count", seed,
                     orders[o]);
            const int status = emut_run(program, settings, text, sizeof text);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 5)
                fprintf(stderr, "%s: status %d: %s\n", settings, status, text);
            MRT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
            MRT_HAS(text, "emulated CUDA: ");
            MRT_HAS(text, part);
            MRT_HAS(text, other);
        }
    }
}
