/* kernels/cuda/plan/plan_graph.c: the numbers of a convolution as a cuDNN operation graph of one operation.
 *
 *     x (n c h w)  w (k c r s)  y (n k p q)       tensors: dimensions in this order whatever the memory looks
 *           \          |          /               like; the strides say that it is NHWC, and
 *            \         |         /                [filters][kh][kw][c] for the weights. Groups are nowhere
 *             \        |        /                 stated: cuDNN derives them from the channels of x and w
 *       operation (forward | data | weights) ──── convolution: padding before and after, strides, dilation 1
 *                     |
 *                   graph
 *
 * Attribute types follow the descriptors of "cudnn_graph Library, Backend Descriptor Types" in NVIDIA's cuDNN
 * backend documentation; a wrong one is refused at run time (CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE). Sums are
 * float whatever the tensors are. Convolution in the sense of networks is cross-correlation. */
#include <stdio.h>

#include "kernels/cuda/plan/plan.h"

cudnnBackendDescriptor_t mri_cuda_descriptor_create(struct mri_cuda_descriptor_builder *m,
                                                    cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t d = NULL;
    if (m->status == CUDNN_STATUS_SUCCESS) m->status = m->api->cudnnBackendCreateDescriptor(type, &d);
    return m->status == CUDNN_STATUS_SUCCESS ? d : NULL;
}

void mri_cuda_descriptor_set(struct mri_cuda_descriptor_builder *m, cudnnBackendDescriptor_t d,
                             cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             int64_t count, const void *values)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = m->api->cudnnBackendSetAttribute(d, name, type, count, values);
}

void mri_cuda_descriptor_get(struct mri_cuda_descriptor_builder *m, cudnnBackendDescriptor_t d,
                             cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t room,
                             int64_t *count, void *values)
{
    int64_t found = 0;
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = m->api->cudnnBackendGetAttribute(d, name, type, room, &found, values);
    if (count) *count = m->status == CUDNN_STATUS_SUCCESS ? found : 0;
}

void mri_cuda_descriptor_finalize(struct mri_cuda_descriptor_builder *m, cudnnBackendDescriptor_t d)
{
    if (m->status == CUDNN_STATUS_SUCCESS) m->status = m->api->cudnnBackendFinalize(d);
}

void mri_cuda_descriptor_destroy(const struct mri_cuda_api *api, cudnnBackendDescriptor_t *d)
{
    if (*d) api->cudnnBackendDestroyDescriptor(*d);
    *d = NULL;
}

static cudnnDataType_t data_type(uint32_t dtype)
{
    return dtype == MR_TENSOR_BF16  ? CUDNN_DATA_BFLOAT16
           : dtype == MR_TENSOR_F16 ? CUDNN_DATA_HALF
                                    : CUDNN_DATA_FLOAT;
}

/* CUDNN_BACKEND_TENSOR_DESCRIPTOR: count, channels, height, width; channels are neighbours in memory. */
static cudnnBackendDescriptor_t make_tensor(struct mri_cuda_descriptor_builder *m, int64_t id, uint32_t dtype,
                                            int64_t n, int64_t c, int64_t h, int64_t w)
{
    const cudnnDataType_t type = data_type(dtype);
    const int64_t dims[4] = {n, c, h, w}, strides[4] = {h * w * c, 1, w * c, c}, align = MRI_CUDA_PLAN_ALIGN;
    cudnnBackendDescriptor_t d = mri_cuda_descriptor_create(m, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    mri_cuda_descriptor_finalize(m, d);
    return d;
}

/* CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: two spatial dimensions, height first. */
static cudnnBackendDescriptor_t make_convolution(struct mri_cuda_descriptor_builder *m,
                                                 const struct mri_cuda_conv *c)
{
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t spatial = 2, dilation[2] = {1, 1}, stride[2] = {c->stride_h, c->stride_w};
    const int64_t before[2] = {c->pad_top, c->pad_left}, after[2] = {c->pad_bottom, c->pad_right};
    cudnnBackendDescriptor_t d = mri_cuda_descriptor_create(m, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
    mri_cuda_descriptor_set(m, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
    mri_cuda_descriptor_finalize(m, d);
    return d;
}

/* The attribute names of the same six things in the three operations. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
} operations[MRI_CUDA_PASSES] = {
    [MRI_CUDA_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [MRI_CUDA_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [MRI_CUDA_WEIGHTS] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

/* alpha and beta are floats because the computation is (they would be doubles for a double one). */
static cudnnBackendDescriptor_t make_operation(struct mri_cuda_descriptor_builder *m,
                                               const struct mri_cuda_conv_graph *g, uint32_t pass)
{
    const float alpha = 1, beta = 0;
    cudnnBackendDescriptor_t d = mri_cuda_descriptor_create(m, operations[pass].type);
    mri_cuda_descriptor_set(m, d, operations[pass].conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->conv);
    mri_cuda_descriptor_set(m, d, operations[pass].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->x);
    mri_cuda_descriptor_set(m, d, operations[pass].w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->w);
    mri_cuda_descriptor_set(m, d, operations[pass].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->y);
    mri_cuda_descriptor_set(m, d, operations[pass].alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    mri_cuda_descriptor_set(m, d, operations[pass].beta, CUDNN_TYPE_FLOAT, 1, &beta);
    mri_cuda_descriptor_finalize(m, d);
    return d;
}

cudnnStatus_t mri_cuda_conv_graph_make(struct mri_cuda_conv_graph *g, const struct mri_cuda_api *api,
                                       cudnnHandle_t handle, const struct mri_cuda_conv *c)
{
    struct mri_cuda_descriptor_builder m = {.api = api, .status = CUDNN_STATUS_SUCCESS};
    g->x = make_tensor(&m, MRI_CUDA_ID_X, c->dtype, c->n, c->c, c->h, c->w);
    g->w = make_tensor(&m, MRI_CUDA_ID_W, c->dtype, c->filters, c->c / c->groups, c->kernel_h, c->kernel_w);
    g->y = make_tensor(&m, MRI_CUDA_ID_Y, c->dtype, c->n, c->filters, c->out_h, c->out_w);
    g->conv = make_convolution(&m, c);
    g->operation = make_operation(&m, g, c->pass);
    g->graph = mri_cuda_descriptor_create(&m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    mri_cuda_descriptor_set(&m, g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            &g->operation);
    /* says which GPU is meant; later cuDNN 9 also take the thread's current device */
    mri_cuda_descriptor_set(&m, g->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    mri_cuda_descriptor_finalize(&m, g->graph);
    return m.status;
}

void mri_cuda_conv_graph_free(struct mri_cuda_conv_graph *g, const struct mri_cuda_api *api)
{
    mri_cuda_descriptor_destroy(api, &g->graph);
    mri_cuda_descriptor_destroy(api, &g->operation);
    mri_cuda_descriptor_destroy(api, &g->conv);
    mri_cuda_descriptor_destroy(api, &g->y);
    mri_cuda_descriptor_destroy(api, &g->w);
    mri_cuda_descriptor_destroy(api, &g->x);
}

size_t mri_cuda_conv_bytes(const struct mri_cuda_conv *c, int which)
{
    switch (which) {
    case MRI_CUDA_ID_X: return (size_t)c->n * c->h * c->w * c->c * mr_tensor_element_bytes(c->dtype);
    case MRI_CUDA_ID_Y:
        return (size_t)c->n * c->out_h * c->out_w * c->filters * mr_tensor_element_bytes(c->dtype);
    default:
        return (size_t)c->filters * c->kernel_h * c->kernel_w * (c->c / c->groups) *
               mr_tensor_element_bytes(c->dtype);
    }
}

static const char *type_text(uint32_t dtype)
{
    return dtype == MR_TENSOR_BF16 ? "bf16" : dtype == MR_TENSOR_F16 ? "f16" : "f32";
}

const char *mri_cuda_conv_text(const struct mri_cuda_conv *c, char *buf, size_t buf_bytes)
{
    static const char *const names[MRI_CUDA_PASSES] = {"forward pass", "data gradient", "weight gradient"};
    char groups[32] = "";
    if (c->groups > 1) snprintf(groups, sizeof groups, " in %u groups", c->groups);
    snprintf(buf, buf_bytes,
             "%s of %u x %u x %u x %u %s, %u filters%s of %u x %u, stride %u x %u, padding %u %u %u %u%s%s",
             names[c->pass], c->n, c->h, c->w, c->c, type_text(c->dtype), c->filters, groups, c->kernel_h,
             c->kernel_w, c->stride_h, c->stride_w, c->pad_top, c->pad_left, c->pad_bottom, c->pad_right,
             c->deterministic ? ", deterministic" : "",
             c->dtype == MR_TENSOR_F32 && !c->tf32 ? ", no TF32" : "");
    return buf;
}
