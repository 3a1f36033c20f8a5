/* tools/foreign/gpu.h: how busy the GPUs of this machine are, by NVML (libnvidia-ml.so.1), which is loaded
 * when it is there. No GPU, no library: nothing, and that is no error. */
#ifndef TOOLS_GPU_H
#define TOOLS_GPU_H

#include <stdbool.h>
#include <stdint.h>

enum { GPUS_MOST = 32 };

typedef struct gpu_figure {
    char name[96];
    bool used;      /* a process of the program was seen on it; or, where that is unknown, it was busy */
    uint64_t looks; /* from the first at which it was used */
    double busy;    /* mean of what NVML says: part of the time with a kernel on it, 0..1 */
    double memory;  /* the same of its memory */
} gpu_figure;

typedef struct gpu_figures {
    uint32_t count;
    gpu_figure gpu[GPUS_MOST];
    char why[160]; /* the reason for no GPU */
} gpu_figures;

typedef struct gpu_watch gpu_watch;

/* NULL without GPUs; figures->why has the reason. figures outlives the watch. */
gpu_watch *gpu_open(gpu_figures *figures);
void gpu_look(gpu_watch *g, const int32_t *pids, uint32_t count); /* pids of the program; g may be NULL */
void gpu_close(gpu_watch *g);                                     /* accepts NULL */

#endif
