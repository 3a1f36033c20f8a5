/* kernels/backend.h: what a device kind brings, and the heads that every handle of this room starts with.
 *
 *     public call  ──►  device.c stream.c op.c update.c group.c  ──►  struct mri_backend of the device's kind
 *                       check arguments, know no device               cpu.c, sim.c; a GPU fits behind the
 *                                                                     same table
 *
 * A backend allocates its own, larger structs and puts the head first. Entries may rely on what the callers
 * above have checked: handles are not NULL and belong to this backend, sizes are not zero, out pointers were
 * cleared. */
#ifndef MRI_BACKEND_H
#define MRI_BACKEND_H

#include "base/util.h"
#include "millrace/kernels.h"

struct mri_backend;
struct mri_spec;

struct mr_device {
    const struct mri_backend *backend;
    mr_device_info info; /* name and hardware point at the arrays below */
    char name[96];
    char hardware[128];
};
struct mr_stream {
    mr_device *device;
    mr_stream_role role;
};
struct mr_event {
    mr_device *device;
};

struct mr_op {
    mr_device *device;
    mr_op_desc desc;
    mr_op_info info;
};
struct mr_graph {
    mr_device *device;
};
struct mr_group {
    const struct mri_backend *backend; /* a group may be destroyed after its streams */
    uint32_t count;
    mr_stream *streams[]; /* count */
};

enum mri_copy_kind { MRI_COPY_H2D = 0, MRI_COPY_D2H = 1, MRI_COPY_D2D = 2 };

struct mri_backend {
    const char *kind;
    /* What the numbers of the text mean: sets spec->count. */
    int (*count)(struct mri_spec *spec, mr_error *err);
    /* Fill devices[0..spec->count). On failure none is left open. */
    int (*open)(mr_device **devices, const struct mri_spec *spec, const mr_devices_config *cfg,
                mr_error *err);
    void (*close)(mr_device *dev);
    bool (*list)(uint32_t at, mr_device_listing *out); /* devices of this kind, at from 0 */

    int (*device_alloc)(mr_device *dev, size_t bytes, void **out, mr_error *err);
    void (*device_free)(mr_device *dev, void *address);
    int (*host_alloc)(mr_device *dev, size_t bytes, void **out, mr_error *err);
    void (*host_free)(mr_device *dev, void *address);

    int (*stream_create)(mr_stream **out, mr_device *dev, mr_stream_role role, mr_error *err);
    void (*stream_destroy)(mr_stream *s);
    int (*stream_sync)(mr_stream *s, mr_error *err);
    int (*stream_wait_event)(mr_stream *s, mr_event *e);

    int (*event_create)(mr_event **out, mr_device *dev, mr_error *err);
    void (*event_destroy)(mr_event *e);
    int (*event_record)(mr_event *e, mr_stream *s);
    int (*event_query)(mr_event *e);
    int (*event_wait)(mr_event *e, uint64_t timeout_ns, mr_error *err); /* MR_FOREVER: as long as it takes */
    int (*event_time_ns)(mr_event *e, uint64_t *out);

    int (*copy_async)(mr_stream *s, enum mri_copy_kind kind, void *dst, const void *src, size_t bytes);
    int (*fill_async)(mr_stream *s, void *dst, uint8_t byte, size_t bytes);

    /* info is canonical (mri_op_describe); the backend sets layouts, storage counts, saved and scratch
     * bytes. */
    int (*op_create)(mr_op **out, mr_device *dev, const mr_op_desc *desc, const mr_op_info *info,
                     mr_error *err);
    void (*op_destroy)(mr_op *op);
    int (*op_forward_async)(mr_op *op, mr_stream *s, const mr_op_args *args);
    int (*op_backward_async)(mr_op *op, mr_stream *s, const mr_op_args *args);
    int (*op_param_import)(mr_op *op, bool state, uint32_t which, void *address, const float *host,
                           mr_error *err);
    int (*op_param_export)(mr_op *op, bool state, uint32_t which, const void *address, float *host,
                           mr_error *err);

    int (*update_async)(mr_stream *s, const mr_update_desc *desc, const mr_update_args *args);

    int (*group_create)(mr_group **out, mr_stream *const *streams, uint32_t count, mr_error *err);
    void (*group_destroy)(mr_group *g);
    int (*group_sum_async)(mr_group *g, float *const *values, uint64_t count);
    int (*group_broadcast_async)(mr_group *g, float *const *values, uint64_t count, uint32_t root);
    void (*group_abort)(mr_group *g);

    /* All four NULL: this kind does not record. */
    int (*graph_begin)(mr_stream *s);
    int (*graph_end)(mr_stream *s, mr_graph **out, mr_error *err);
    int (*graph_launch_async)(mr_graph *g, mr_stream *s);
    void (*graph_destroy)(mr_graph *g);
};

extern const struct mri_backend mri_cpu_backend, mri_sim_backend;
extern const struct mri_backend mri_cuda_backend; /* in builds with MRI_CUDA */

/* ---- operations (op_describe.c) ---- */

/* Check desc and fill info with what holds on every device: shapes, parameters in canonical order (storage =
 * count), NHWC output, no saved, no scratch. Layouts of desc->in are the backend's to check. */
int mri_op_describe(const mr_op_desc *desc, mr_op_info *info, mr_error *err);
/* It takes data, not another operation's output, and has no gradient to it. */
static inline bool mri_op_is_entry(mr_op_kind kind) { return kind == MR_OP_INPUT || kind == MR_OP_ONE_HOT; }
static inline bool mri_op_takes_two(const mr_op_desc *d)
{
    return d->kind == MR_OP_ADD || (d->kind == MR_OP_BATCHNORM && d->residual);
}

/* ---- device texts (spec.c) ---- */

#define MRI_MAX_REPLICAS     256u
#define MRI_MAX_SPEC_OPTIONS 8u

struct mri_spec_option {
    char name[16], value[48];
};

/* "KIND[:NUMBER[,[KIND:]NUMBER]...][,NAME=VALUE]..." taken apart; what the numbers mean is the backend's
 * affair. */
struct mri_spec {
    char kind[16];
    uint32_t number_count, numbers[MRI_MAX_REPLICAS];
    uint32_t option_count;
    struct mri_spec_option options[MRI_MAX_SPEC_OPTIONS];
    uint32_t count; /* devices to open; set by the backend's count() */
};

int mri_spec_parse(struct mri_spec *out, const char *text, mr_error *err);
/* The single number is a replica count, 1 when there is none; sets spec->count. */
int mri_spec_replicas(struct mri_spec *spec, mr_error *err);
/* Each number names a device, the first when there is none; one that comes twice is opened twice. Sets
 * spec->count. */
int mri_spec_ordinals(struct mri_spec *spec, mr_error *err);
/* "3.1ms", "250us", "1s", "800ns" -> nanoseconds; "25GB/s", "800MB/s" -> bytes per second. Positive and
 * finite. */
int mri_spec_time(const struct mri_spec_option *o, double *out_ns, mr_error *err);
int mri_spec_rate(const struct mri_spec_option *o, double *out_bytes_per_s, mr_error *err);

/* Processor model as the system tells it. */
void mri_processor_name(char *out, size_t out_bytes);

#endif
