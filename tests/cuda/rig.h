/* tests/cuda/rig.h: the GPUs of this machine, or emulated ones, opened with streams. A test program says at
 * its start with cuda_or_skip() that it is about GPUs; without any it is skipped. */
#ifndef MRT_CUDA_RIG_H
#define MRT_CUDA_RIG_H

#include "kernels/cuda/ops/cuda_op.h"
#include "mrt.h"

#define RIG_MAX_DEVICES 8

/* The number of GPUs; without any, ends the program as skipped. */
static inline uint32_t cuda_or_skip(void)
{
    mr_device_listing line;
    uint32_t ready = 0;
    char why[256] = "";
    for (uint32_t at = 0; mr_device_list(at, &line); at++) {
        if (strcmp(line.kind, "cuda") != 0) continue;
        if (strcmp(line.state, "ready") == 0) ready++;
        else snprintf(why, sizeof why, "%s", line.state);
    }
    if (ready > 0) return ready < RIG_MAX_DEVICES ? ready : RIG_MAX_DEVICES;
    printf("SKIP: no GPU: %s\n", why);
    exit(77);
}

struct rig {
    mr_device **devices;
    uint32_t count;
    mr_stream *compute[RIG_MAX_DEVICES], *copy[RIG_MAX_DEVICES];
};

static inline void rig_open_as(struct rig *r, uint32_t count, const mr_devices_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    char spec[64] = "cuda:0";
    for (uint32_t i = 1; i < count; i++) snprintf(spec + strlen(spec), sizeof spec - strlen(spec), ",%u", i);
    memset(r, 0, sizeof *r);
    MRT_OK(mr_devices_open(&r->devices, &r->count, spec, cfg, &err), &err);
    MRT_EQ(r->count, count);
    for (uint32_t i = 0; i < count; i++) {
        MRT_OK(mr_stream_create(&r->compute[i], r->devices[i], MR_STREAM_COMPUTE, &err), &err);
        MRT_OK(mr_stream_create(&r->copy[i], r->devices[i], MR_STREAM_COPY, &err), &err);
        MRT_TRUE(mr_stream_device(r->copy[i]) == r->devices[i]);
    }
}

static inline void rig_open(struct rig *r, uint32_t count) { rig_open_as(r, count, NULL); }

static inline void rig_close(struct rig *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        mr_stream_destroy(r->compute[i]);
        mr_stream_destroy(r->copy[i]);
    }
    mr_devices_close(r->devices, r->count);
}

static inline void *rig_memory(struct rig *r, uint32_t device, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    void *p;
    MRT_OK(mr_device_alloc(r->devices[device], bytes, &p, &err), &err);
    MRT_TRUE(p != NULL && (uintptr_t)p % MR_DEVICE_ALIGN == 0);
    return p;
}

static inline void *rig_pinned(struct rig *r, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    void *p;
    MRT_OK(mr_host_alloc(r->devices[0], bytes, &p, &err), &err);
    MRT_TRUE(p != NULL && (uintptr_t)p % MR_DEVICE_ALIGN == 0);
    return p;
}

#endif
