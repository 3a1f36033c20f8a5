/* tools/foreign/gpu.c: see gpu.h. The few declarations of NVML that are needed stand here, so that it builds
 * without its header and runs without its library. */
#include "tools/foreign/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVML_OK = 0, PROCESSES_MOST = 256 };

typedef void *nvml_device;
typedef struct nvml_utilization {
    unsigned gpu, memory; /* percent, over the last sixth of a second to a second */
} nvml_utilization;
typedef struct nvml_process {
    unsigned pid;
    unsigned long long memory_bytes;
    unsigned gpu_instance, compute_instance;
} nvml_process;

struct gpu_watch {
    gpu_figures *figures;
    void *library;
    int (*shutdown)(void);
    int (*utilization)(nvml_device, nvml_utilization *);
    int (*processes)(nvml_device, unsigned *, nvml_process *);
    nvml_device device[GPUS_MOST];
    bool by_process; /* a process of the program was found by its number, so that numbers can be believed */
    bool own[GPUS_MOST];
    double busy[GPUS_MOST], memory[GPUS_MOST]; /* sums */
};

/* dlsym() gives no function by the letter of C; POSIX does. */
static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_functions(gpu_watch *g, int (**init)(void), int (**count)(unsigned *),
                           int (**handle)(unsigned, nvml_device *),
                           int (**name)(nvml_device, char *, unsigned))
{
    if (!find(g->library, "nvmlDeviceGetComputeRunningProcesses_v3", &g->processes) &&
        !find(g->library, "nvmlDeviceGetComputeRunningProcesses_v2", &g->processes))
        g->processes = NULL;
    return find(g->library, "nvmlInit_v2", init) && find(g->library, "nvmlShutdown", &g->shutdown) &&
           find(g->library, "nvmlDeviceGetCount_v2", count) &&
           find(g->library, "nvmlDeviceGetHandleByIndex_v2", handle) &&
           find(g->library, "nvmlDeviceGetName", name) &&
           find(g->library, "nvmlDeviceGetUtilizationRates", &g->utilization);
}

static bool open_devices(gpu_watch *g, gpu_figures *f)
{
    int (*init)(void), (*count)(unsigned *), (*handle)(unsigned, nvml_device *),
        (*name)(nvml_device, char *, unsigned);
    unsigned found = 0;
    int rc;
    if (!find_functions(g, &init, &count, &handle, &name)) {
        snprintf(f->why, sizeof f->why, "libnvidia-ml.so.1 lacks functions that are needed");
        return false;
    }
    if ((rc = init()) != NVML_OK) {
        snprintf(f->why, sizeof f->why, "NVML cannot be started (its error %d)", rc);
        return false;
    }
    if ((rc = count(&found)) != NVML_OK)
        snprintf(f->why, sizeof f->why, "NVML counts no GPUs (its error %d)", rc);
    for (unsigned i = 0; rc == NVML_OK && i < found && f->count < GPUS_MOST; i++) {
        gpu_figure *one = &f->gpu[f->count];
        if (handle(i, &g->device[f->count]) != NVML_OK) continue;
        if (name(g->device[f->count], one->name, sizeof one->name) != NVML_OK) one->name[0] = '\0';
        one->name[sizeof one->name - 1] = '\0';
        f->count++;
    }
    if (f->count) return true;
    if (!f->why[0]) snprintf(f->why, sizeof f->why, "NVML sees none");
    g->shutdown();
    return false;
}

gpu_watch *gpu_open(gpu_figures *figures)
{
    memset(figures, 0, sizeof *figures);
    gpu_watch *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->figures = figures;
    g->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!g->library) snprintf(figures->why, sizeof figures->why, "there is no libnvidia-ml.so.1");
    if (g->library && open_devices(g, figures)) return g;
    if (g->library) dlclose(g->library);
    free(g);
    return NULL;
}

/* Is a process of the program on it? In a container NVML may tell the numbers of the machine, or none. */
static bool runs_on(gpu_watch *g, uint32_t i, const int32_t *pids, uint32_t count)
{
    nvml_process list[PROCESSES_MOST];
    unsigned n = PROCESSES_MOST;
    if (!g->processes || g->processes(g->device[i], &n, list) != NVML_OK) return false;
    for (unsigned k = 0; k < n && k < PROCESSES_MOST; k++)
        for (uint32_t p = 0; p < count; p++)
            if (list[k].pid == (unsigned)pids[p]) return true;
    return false;
}

void gpu_look(gpu_watch *g, const int32_t *pids, uint32_t count)
{
    if (!g) return;
    for (uint32_t i = 0; i < g->figures->count; i++) {
        gpu_figure *f = &g->figures->gpu[i];
        nvml_utilization u;
        if (runs_on(g, i, pids, count)) g->by_process = g->own[i] = true;
        if (g->utilization(g->device[i], &u) != NVML_OK) continue;
        if (!f->looks && !g->own[i] && u.gpu == 0) continue; /* nothing began yet */
        f->looks++;
        g->busy[i] += 0.01 * (u.gpu < 100 ? u.gpu : 100);
        g->memory[i] += 0.01 * (u.memory < 100 ? u.memory : 100);
    }
}

void gpu_close(gpu_watch *g)
{
    if (!g) return;
    for (uint32_t i = 0; i < g->figures->count; i++) {
        gpu_figure *f = &g->figures->gpu[i];
        f->used = g->by_process ? g->own[i] : f->looks > 0 && g->busy[i] > 0;
        if (!f->looks) continue;
        f->busy = g->busy[i] / (double)f->looks;
        f->memory = g->memory[i] / (double)f->looks;
    }
    g->shutdown();
    dlclose(g->library);
    free(g);
}
