/* kernels/backend/spec.h: device texts such as "cpu:4" and "sim:8,step=3.1ms,h2d=25GB/s" taken apart. */
#ifndef MRI_SPEC_H
#define MRI_SPEC_H

#include "kernels/backend/backend.h"

#define MRI_MAX_REPLICAS     256u
#define MRI_MAX_SPEC_OPTIONS 8u

struct mri_spec_option {
    char name[16], value[48];
};

/* "KIND[:NUMBER[,[KIND:]NUMBER]...][,NAME=VALUE]...", or "KIND:all", split into fields; the backend
 * interprets the numbers. */
struct mri_spec {
    char kind[16];
    uint32_t number_count, numbers[MRI_MAX_REPLICAS];
    bool all; /* in place of numbers */
    uint32_t option_count;
    struct mri_spec_option options[MRI_MAX_SPEC_OPTIONS];
    uint32_t count; /* devices to open; set by the backend's count() */
};

int mri_spec_parse(struct mri_spec *out, const char *text, mr_error *err);
/* The single number is a replica count, by default 1; sets spec->count. */
int mri_spec_replicas(struct mri_spec *spec, mr_error *err);
/* Each number names a device, by default the first; a repeated number opens the device again. Sets
 * spec->count. there: devices, which "all" names. */
int mri_spec_ordinals(struct mri_spec *spec, uint32_t there, mr_error *err);
/* "3.1ms", "250us", "1s", "800ns" -> nanoseconds; "25GB/s", "800MB/s" -> bytes per second. Positive and
 * finite. */
int mri_spec_time(const struct mri_spec_option *o, double *out_ns, mr_error *err);
int mri_spec_rate(const struct mri_spec_option *o, double *out_bytes_per_s, mr_error *err);

#endif
