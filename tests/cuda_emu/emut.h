/* tests/cuda_emu/emut.h: shared by the tests of the emulation: one GPU opened, and a program under test run
 * in a process with an environment of its own, since the emulation reads the environment once. */
#ifndef EMUT_H
#define EMUT_H

#include <cuda.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrt.h"
#include "tests/cuda_emu/emu.h"

#define EMUT_BYTES 1024u /* of every buffer */

/* The calls whose failing is not the point. */
#define EMUT_MUST(call)                                                                                      \
    do {                                                                                                     \
        const CUresult rc_ = (call);                                                                         \
        if (rc_ != CUDA_SUCCESS) {                                                                           \
            fprintf(stderr, "%s:%d: %s returns %d\n", __FILE__, __LINE__, #call, (int)rc_);                  \
            _exit(3);                                                                                        \
        }                                                                                                    \
    } while (0)
#define EMUT_CHECK(what)                                                                                     \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                               \
            _exit(4);                                                                                        \
        }                                                                                                    \
    } while (0)

struct emut_gpu {
    CUcontext context;
    CUmemoryPool pool;
    CUstream copy, compute;
    CUevent copied, used;
    CUdeviceptr a, b;        /* made on compute, known to be there */
    unsigned char *in, *out; /* pinned */
};
void emut_open(struct emut_gpu *g, int device);
void emut_close(struct emut_gpu *g); /* waits for all of it first */

/* Run program in a child with these settings ("MILLRACE_EMU_SEED=3 MILLRACE_EMU_ORDER=late"); its stderr goes
 * to text. Returns waitpid()'s status. The child ends with exit status 0, or 5 when violations were only
 * counted. */
int emut_run(void (*program)(void), const char *settings, char *text, size_t text_bytes);
/* No violation and a good end, for `seeds` seeds of each order. */
void emut_always_fine(void (*program)(void), unsigned seeds);
/* A violation in every order and seed whose text holds both parts. */
void emut_always_caught(void (*program)(void), const char *part, const char *other);

#endif
