/* tests/kernels/crowd.h: some devices of one kind, a stream on each, and their group. */
#ifndef MRT_CROWD_H
#define MRT_CROWD_H

#include "tests/kernels/rig.h"

enum { CROWD_MOST = 7 };

struct crowd {
    mr_device **devices;
    uint32_t count;
    mr_stream *streams[CROWD_MOST];
    mr_group *group;
};

static inline void crowd_open(struct crowd *c, const char *kind, uint32_t count)
{
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    char spec[32];
    mr_devices_defaults(&cfg);
    cfg.compute_threads = 1;
    snprintf(spec, sizeof spec, "%s:%u", kind, count);
    MRT_OK(mr_devices_open(&c->devices, &c->count, spec, &cfg, &err), &err);
    for (uint32_t i = 0; i < count; i++)
        MRT_OK(mr_stream_create(&c->streams[i], c->devices[i], MR_STREAM_COMPUTE, &err), &err);
    MRT_OK(mr_group_create(&c->group, c->streams, count, &err), &err);
}

static inline void crowd_close(struct crowd *c)
{
    for (uint32_t i = 0; i < c->count; i++) mr_stream_destroy(c->streams[i]);
    mr_group_destroy(c->group);
    mr_devices_close(c->devices, c->count);
}

#endif
