/* kernels/backend/backend.h: the room of the interface between the public calls and the kinds of device.
 *
 *     public call  ──►  device.c stream.c op.c group.c  ──►  struct mri_backend of the device's kind
 *                       check arguments, know no device      cpu/, sim/, cuda/
 *
 * It uses nothing but base/. Gives the heads that every handle of kernels/ starts with (here), what each kind
 * of operation is (op_class.h) and device texts taken apart (spec.h). Callers: every file of kernels/.
 *
 * A kind of device allocates its own, larger structs and puts the head first. Its entries may rely on what
 * the callers above have checked: handles are not NULL and belong to this backend, sizes are not zero, out
 * pointers were cleared. */
#ifndef MRI_BACKEND_H
#define MRI_BACKEND_H

#include "base/util.h"
#include "millrace/kernels.h"

struct mri_backend;
struct mri_op_class;
struct mri_spec;

struct mr_device {
    const struct mri_backend *backend;
    uint32_t process;    /* that opened it (base/handle.h); set by the caller of open */
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
    const struct mri_op_class *is; /* what its kind is on every device */
    mr_op_desc desc;
    mr_op_info info;
};
struct mr_graph {
    mr_device *device;
};
/* Who holds which leaves of a group's sums: mr_group_config, checked and complete. */
struct mri_group_plan {
    mr_stream *const *streams; /* while the group is made */
    uint32_t count;            /* devices */
    uint32_t leaves, first;
    uint32_t *node_at; /* count + 1: node[node_at[i] ... node_at[i + 1]) are held by device i */
    mr_sum_node *node;
    mr_wire wire; /* size 1: nobody */
    bool nccl;    /* with others */
    int (*check)(void *context, mr_error *err);
    bool nccl_optional;
    double connect_s;
    uint32_t ranks_per_host; /* 1: not known, or of no use */
};
#define MRI_GROUP_NODES 16u /* of one device at most */

struct mr_group {
    const struct mri_backend *backend; /* a group may be destroyed after its streams */
    uint32_t process;                  /* set by the caller of create */
    struct mri_group_plan plan;        /* set by the caller of create, freed behind destroy */
    char no_nccl[448];                 /* why its sums do not go by NCCL as nccl_optional has it; else "" */
    uint32_t count;
    mr_stream *streams[]; /* count */
};

/* ---- a device kind provides one table for each type of handle, filled where the handle is created ----
 */

struct mri_memory_calls {
    int (*device_alloc)(mr_device *dev, size_t bytes, void **out, mr_error *err);
    void (*device_free)(mr_device *dev, void *address);
    int (*host_alloc)(mr_device *dev, size_t bytes, void **out, mr_error *err);
    void (*host_free)(mr_device *dev, void *address);
};

enum mri_copy_kind { MRI_COPY_H2D = 0, MRI_COPY_D2H = 1, MRI_COPY_D2D = 2 };

struct mri_copy_calls {
    int (*copy_async)(mr_stream *s, enum mri_copy_kind kind, void *dst, const void *src, size_t bytes);
    int (*fill_async)(mr_stream *s, void *dst, uint8_t byte, size_t bytes);
};

struct mri_stream_calls {
    int (*create)(mr_stream **out, mr_device *dev, mr_stream_role role, mr_error *err);
    void (*destroy)(mr_stream *s);
    int (*wait)(mr_stream *s, uint64_t timeout_ns, mr_error *err); /* MR_FOREVER: as long as it takes */
};

struct mri_event_calls {
    int (*create)(mr_event **out, mr_device *dev, mr_error *err);
    void (*destroy)(mr_event *e);
    int (*record)(mr_event *e, mr_stream *s);
    int (*queue_wait)(mr_stream *s, mr_event *e); /* mr_stream_wait_event() */
    int (*query)(mr_event *e);
    int (*wait)(mr_event *e, uint64_t timeout_ns, mr_error *err); /* MR_FOREVER: as long as it takes */
    int (*time_ns)(mr_event *e, uint64_t *out);
};

struct mri_op_calls {
    /* head: device, is and desc; info canonical (mri_op_describe), the backend sets layouts, storage counts,
     * saved and scratch bytes in its copy. */
    int (*create)(mr_op **out, const mr_op *head, mr_error *err);
    void (*destroy)(mr_op *op);
    int (*forward_async)(mr_op *op, mr_stream *s, const mr_op_args *args);
    int (*backward_async)(mr_op *op, mr_stream *s, const mr_op_args *args);
    int (*param_import)(mr_op *op, bool state, uint32_t which, void *address, const float *host,
                        mr_error *err);
    int (*param_export)(mr_op *op, bool state, uint32_t which, const void *address, float *host,
                        mr_error *err);
};

struct mri_group_calls {
    int (*create)(mr_group **out, const struct mri_group_plan *plan, mr_error *err);
    void (*destroy)(mr_group *g);
    int (*sum_async)(mr_group *g, float *const *values, uint64_t count); /* values: of all nodes */
    int (*broadcast_async)(mr_group *g, float *const *values, uint64_t count, uint32_t root);
    void (*abort)(mr_group *g);
};

struct mri_graph_calls {
    int (*begin)(mr_stream *s);
    int (*end)(mr_stream *s, mr_graph **out, mr_error *err);
    int (*launch_async)(mr_graph *g, mr_stream *s);
    void (*destroy)(mr_graph *g);
};

struct mri_backend {
    const char *kind;
    /* Interpret the numbers in the text and set spec->count. */
    int (*count)(struct mri_spec *spec, mr_error *err);
    /* Fill devices[0..spec->count). On failure none is left open. */
    int (*open)(mr_device **devices, const struct mri_spec *spec, const mr_devices_config *cfg,
                mr_error *err);
    void (*close)(mr_device *dev);
    bool (*list)(uint32_t at, mr_device_listing *out); /* devices of this kind, at from 0 */

    const struct mri_memory_calls *memory;
    const struct mri_copy_calls *copies;
    const struct mri_stream_calls *streams;
    const struct mri_event_calls *events;
    const struct mri_op_calls *ops;
    int (*update_async)(mr_stream *s, const mr_update_config *cfg);
    /* bytes of mr_update_config.room for a matrix stored in `stored` floats */
    uint64_t (*update_room)(const mr_device *dev, const mr_update_matrix *m, uint64_t stored);
    int (*average_async)(mr_stream *s, float *average, const float *from, uint64_t count, float decay);
    int (*add_async)(mr_stream *s, float *to, const float *from, uint64_t count);
    const struct mri_group_calls *groups;
    const struct mri_graph_calls *graphs; /* NULL: this kind does not record */
};

#endif
