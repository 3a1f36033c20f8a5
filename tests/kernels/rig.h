/* tests/kernels/rig.h: one cpu device with a stream, and device memory with guard bytes after it. */
#ifndef MRT_KERNELS_RIG_H
#define MRT_KERNELS_RIG_H

#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/ops/host_op.h"
#include "mrt.h"

struct rig {
    mr_device **devices;
    uint32_t count;
    mr_device *dev;
    mr_stream *s;
    void *blocks[64];
    size_t bytes[64];
    int block_count;
};

/* MRT_KERNEL_THREADS: OpenMP threads; 1 under the thread sanitizer, which does not understand OpenMP's own
 * waiting. */
static inline uint32_t rig_threads(void)
{
    const char *text = getenv("MRT_KERNEL_THREADS");
    return text ? (uint32_t)atoi(text) : 2;
}

static inline void rig_open(struct rig *r, const char *spec, bool reference)
{
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    memset(r, 0, sizeof *r);
    mr_devices_defaults(&cfg);
    cfg.compute_threads = rig_threads();
    cfg.reference = reference;
    MRT_OK(mr_devices_open(&r->devices, &r->count, spec, &cfg, &err), &err);
    r->dev = r->devices[0];
    MRT_OK(mr_stream_create(&r->s, r->dev, MR_STREAM_COMPUTE, &err), &err);
}

#define GUARD_BYTES 256
#define GUARD       0xA5

/* Zeroed device memory, guarded; freed and checked by rig_release(). */
static inline void *rig_memory(struct rig *r, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    uint8_t *p;
    MRT_TRUE(r->block_count < 64);
    MRT_OK(mr_device_alloc(r->dev, bytes + GUARD_BYTES, (void **)&p, &err), &err);
    memset(p, 0, bytes);
    memset(p + bytes, GUARD, GUARD_BYTES);
    r->blocks[r->block_count] = p;
    r->bytes[r->block_count++] = bytes;
    return p;
}

static inline void rig_release(struct rig *r)
{
    while (r->block_count-- > 0) {
        const uint8_t *p = r->blocks[r->block_count];
        for (int i = 0; i < GUARD_BYTES; i++)
            if (p[r->bytes[r->block_count] + (size_t)i] != GUARD)
                fail_msg("byte %d past a buffer was written", i);
        mr_device_free(r->dev, r->blocks[r->block_count]);
    }
    r->block_count = 0;
}

static inline void rig_close(struct rig *r)
{
    rig_release(r);
    mr_stream_destroy(r->s);
    mr_devices_close(r->devices, r->count);
}

/* Floats in (-1, 1). */
static inline void rig_noise(float *out, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)((double)(mri_mix64(seed * 1000003u + i) >> 40) / 8388608.0 - 1.0);
}

static inline mr_tensor rig_tensor(uint32_t h, uint32_t w, uint32_t c, uint32_t layout)
{
    mr_tensor t = {h, w, c, MR_TENSOR_F32, layout, 0};
    mri_tensor_set_layout(&t, layout);
    return t;
}

/* Canonical NHWC floats to and from a layout. */
static inline void rig_store(const mr_tensor *t, uint32_t n, float *stored, const float *canonical)
{
    const size_t pixels = (size_t)t->h * t->w;
    for (uint32_t i = 0; i < n; i++)
        for (size_t p = 0; p < pixels; p++)
            for (uint32_t c = 0; c < t->c; c++)
                stored[i * mri_tensor_floats(t) + mri_tensor_index(t, p, c)] =
                    canonical[(i * pixels + p) * t->c + c];
}

static inline void rig_load(const mr_tensor *t, uint32_t n, const float *stored, float *canonical)
{
    const size_t pixels = (size_t)t->h * t->w;
    for (uint32_t i = 0; i < n; i++)
        for (size_t p = 0; p < pixels; p++)
            for (uint32_t c = 0; c < t->c; c++)
                canonical[(i * pixels + p) * t->c + c] =
                    stored[i * mri_tensor_floats(t) + mri_tensor_index(t, p, c)];
}

static inline void rig_padding_is_zero(const mr_tensor *t, uint32_t n, const float *stored)
{
    double all = 0, real = 0;
    for (size_t i = 0; i < mri_tensor_floats(t) * n; i++) all += fabs((double)stored[i]);
    for (uint32_t i = 0; i < n; i++)
        for (size_t p = 0; p < (size_t)t->h * t->w; p++)
            for (uint32_t c = 0; c < t->c; c++)
                real += fabs((double)stored[i * mri_tensor_floats(t) + mri_tensor_index(t, p, c)]);
    if (fabs(all - real) > 1e-9 * (all + 1)) fail_msg("padding holds something: %g", all - real);
}

#endif
