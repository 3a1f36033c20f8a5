/* tests/cli/watch/fake_nvml.c: a libnvidia-ml.so.1 with GPUs that are not there, for `millrace watch`.
 *
 *   FAKE_NVML_INIT   what nvmlInit_v2() returns (0)
 *   FAKE_NVML_COUNT  GPUs (1)
 *   FAKE_NVML_BUSY   percent of the time in which GPU 0 is busy (0); the others never are
 *   FAKE_NVML_SEEN   a file that is made when GPU 0 has been looked at LOOKS times */
#include <stdio.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default"))) /* the build hides unmarked symbols */

enum { LOOKS = 8 };

typedef struct utilization {
    unsigned gpu, memory;
} utilization;

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

EXPORTED int nvmlInit_v2(void);
EXPORTED int nvmlShutdown(void);
EXPORTED int nvmlDeviceGetCount_v2(unsigned *count);
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device);
EXPORTED int nvmlDeviceGetName(void *device, char *name, unsigned bytes);
EXPORTED int nvmlDeviceGetUtilizationRates(void *device, utilization *out);

static int gpus[8];

int nvmlInit_v2(void) { return number("FAKE_NVML_INIT", 0); }
int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)number("FAKE_NVML_COUNT", 1);
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device)
{
    if (i >= sizeof gpus / sizeof *gpus) return 2;
    *device = &gpus[i];
    return 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned bytes)
{
    snprintf(name, bytes, "Fake %d", (int)((int *)device - gpus));
    return 0;
}

static void count_look(void)
{
    static int looks;
    const char *path = getenv("FAKE_NVML_SEEN");
    FILE *f = path && ++looks == LOOKS ? fopen(path, "we") : NULL;
    if (f) fclose(f);
}

int nvmlDeviceGetUtilizationRates(void *device, utilization *out)
{
    if (device == &gpus[0]) count_look();
    out->gpu = device == &gpus[0] ? (unsigned)number("FAKE_NVML_BUSY", 0) : 0;
    out->memory = out->gpu / 2;
    return 0;
}
