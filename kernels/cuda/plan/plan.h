/* kernels/cuda/plan/plan.h: cuDNN plans: one pass of one convolution, with the algorithm chosen and ready to
 * run.
 *
 * Takes the numbers of a pass, a device and a limit of workspace. Gives a plan that queues the pass on a
 * stream. Caller: cuda/ops/op_conv2d.c. It stands on cuda/host/.
 *
 *   struct mri_cuda_conv   the numbers of a pass
 *        │ plan_graph.c    they become an operation graph: tensors, convolution, operation
 *        ▼
 *   plan.c                 heuristics list algorithms; allowed ones are tried; the best becomes
 *        │                 the plan
 *        │ plan_table.c    which one that was is remembered for the process, so that the next pass of the
 *        ▼                 same numbers asks nobody
 *   mri_cuda_plan          runs on any stream of its device, from one thread at a time
 *
 * Choosing. Heuristics of mode A give a list, best guess first; if little of it can be used, the fallback
 * list follows. An algorithm is skipped when its notes say that it rounds where exact results are required
 * (refused() in plan.c), when it does not finalise here, or when it needs more workspace than the limit.
 * Deterministic devices, and plans made without measuring, take the first that is left. Otherwise the first
 * few are run on real memory and timed with events, and the fastest that a CUDA graph can record is kept. */
#ifndef MRI_CUDA_PLAN_H
#define MRI_CUDA_PLAN_H

#include "kernels/cuda/host/gpu.h"

enum mri_cuda_pass { MRI_CUDA_FORWARD, MRI_CUDA_DATA, MRI_CUDA_WEIGHTS, MRI_CUDA_PASSES };

/* Every number of a pass. Only uint32_t, so that two are the same when their bytes are. x is the input (DATA:
 * its gradient, written), y the output (DATA and WEIGHTS: its gradient, read), w the weights (WEIGHTS: their
 * gradient, written). */
struct mri_cuda_conv {
    uint32_t pass, n, h, w, c, filters, groups, kernel_h, kernel_w, stride_h, stride_w;
    uint32_t pad_top, pad_left, pad_bottom, pad_right, out_h, out_w;
    uint32_t dtype; /* of all three */
    uint32_t tf32, deterministic;
};

typedef struct mri_cuda_plan mri_cuda_plan;

#define MRI_CUDA_PLAN_ALIGN 16u /* bytes: x, w and y start at multiples */

/* Choose, or take the earlier choice for the same numbers.
 *
 * workspace_limit  bytes; the plan needs no more
 * measure          try and time several; needs device memory for x, w, y and workspace while it lasts, and
 *                  skips measuring when memory is short. Ignored on a deterministic device
 *
 * MR_EUNSUPPORTED names the convolution that cuDNN has nothing for. Not while a stream of this thread
 * records. */
int mri_cuda_plan_create(mri_cuda_plan **out, mri_cuda_device *dev, const struct mri_cuda_conv *conv,
                         size_t workspace_limit, bool measure, mr_error *err);
void mri_cuda_plan_destroy(mri_cuda_plan *p); /* accepts NULL; nothing queued, nothing recorded may use it */

size_t mri_cuda_plan_workspace(const mri_cuda_plan *p);

/* Queue it. what: "conv2d forward", for errors. MR_EINVAL: an address is not aligned. */
int mri_cuda_plan_run(mri_cuda_plan *p, mri_cuda_stream *s, const void *x, const void *w, const void *y,
                      void *workspace, const char *what, mr_error *err);

/* Plans need a cuDNN handle and a stream of their own while they are chosen; both are kept as long as
 * somebody holds them. Whoever creates plans holds them from before the first until after the last. */
int mri_cuda_planner_ref(mri_cuda_device *dev, mr_error *err);
void mri_cuda_planner_unref(mri_cuda_device *dev);

/* ---- plan_graph.c ---- */

/* Descriptors made one after another; the first failure stays in status and the rest is skipped. */
struct mri_cuda_descriptor_builder {
    const struct mri_cuda_api *api;
    cudnnStatus_t status;
};

/* NULL after a failure */
cudnnBackendDescriptor_t mri_cuda_descriptor_create(struct mri_cuda_descriptor_builder *m,
                                                    cudnnBackendDescriptorType_t type);
void mri_cuda_descriptor_set(struct mri_cuda_descriptor_builder *m, cudnnBackendDescriptor_t d,
                             cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             int64_t count, const void *values);
/* One value, or up to `room` values; *count may be NULL. */
void mri_cuda_descriptor_get(struct mri_cuda_descriptor_builder *m, cudnnBackendDescriptor_t d,
                             cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room,
                             int64_t *count, void *values);
void mri_cuda_descriptor_finalize(struct mri_cuda_descriptor_builder *m, cudnnBackendDescriptor_t d);
void mri_cuda_descriptor_destroy(const struct mri_cuda_api *api, cudnnBackendDescriptor_t *d); /* accepts NULL
                                                                                      inside; clears */

enum {
    MRI_CUDA_ID_X = 'x',
    MRI_CUDA_ID_W = 'w',
    MRI_CUDA_ID_Y = 'y'
}; /* how a plan's tensors are distinguished */

struct mri_cuda_conv_graph {
    cudnnBackendDescriptor_t x, w, y, conv, operation, graph;
};
cudnnStatus_t mri_cuda_conv_graph_make(struct mri_cuda_conv_graph *g, const struct mri_cuda_api *api,
                                       cudnnHandle_t handle, const struct mri_cuda_conv *conv);
void mri_cuda_conv_graph_free(struct mri_cuda_conv_graph *g, const struct mri_cuda_api *api);
size_t mri_cuda_conv_bytes(const struct mri_cuda_conv *conv, int which); /* of the tensor MRI_CUDA_ID_... */
/* "weight gradient of 32 x 28 x 28 x 64 bf16, 128 filters of 3 x 3, stride 2 x 2, padding 1 1 1 1". Returns
 * buf. */
const char *mri_cuda_conv_text(const struct mri_cuda_conv *conv, char *buf, size_t buf_bytes);

/* ---- plan_table.c ---- */

/* Identifies an algorithm: the engine's number and its knob settings. */
struct mri_cuda_choice {
    int64_t engine;
    int64_t knob_count;
    cudnnBackendKnobType_t knob[CUDNN_KNOB_TYPE_COUNTS];
    int64_t value[CUDNN_KNOB_TYPE_COUNTS];
    float milliseconds; /* 0: not measured */
};

/* True when a choice for conv on this GPU and cuDNN is known, and measured if required. */
bool mri_cuda_choice_find(const mri_cuda_device *dev, const struct mri_cuda_conv *conv, bool measured,
                          struct mri_cuda_choice *out);
/* Keep a choice. Returns false when another thread was first: *choice then holds that thread's choice, to be
 * used instead. Without memory nothing is kept. */
bool mri_cuda_choice_keep(const mri_cuda_device *dev, const struct mri_cuda_conv *conv,
                          struct mri_cuda_choice *choice);
/* Forget one that cannot be built any more. */
void mri_cuda_choice_forget(const mri_cuda_device *dev, const struct mri_cuda_conv *conv);

#endif
