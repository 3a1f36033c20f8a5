/* kernels/op_describe.c: what an operation's description means on every device: shapes, parameters, amount of
 * arithmetic. Pure functions; a description that makes no sense is refused here with the field that is
 * wrong. */
#include <math.h>

#include "kernels/backend.h"

#define MAX_SIDE (1u << 20)

size_t mr_tensor_element_bytes(uint32_t dtype)
{
    switch (dtype) {
    case MR_TENSOR_U8: return 1;
    case MR_TENSOR_BF16:
    case MR_TENSOR_F16: return 2;
    case MR_TENSOR_I32:
    case MR_TENSOR_F32: return 4;
    default: return 0;
    }
}

static const char *const kind_names[] = {"input",   "conv2d",    "pool2d", "dense", "activation",
                                         "dropout", "batchnorm", "loss",   "add",   "one_hot"};

static int refuse(const mr_op_desc *d, mr_error *err, const char *what)
{
    return mr_error_set(err, MR_EINVAL, "%s: %s", kind_names[d->kind], what);
}

static bool is_float(uint32_t dtype)
{
    return dtype == MR_TENSOR_F32 || dtype == MR_TENSOR_BF16 || dtype == MR_TENSOR_F16;
}

/* The second input of an operation that takes two. Both, and the output, are one shape in one layout. */
static int check_second(const mr_op_desc *d, mr_error *err)
{
    const mr_tensor *a = &d->in, *b = &d->in2;
    if (a->h == b->h && a->w == b->w && a->c == b->c && a->dtype == b->dtype && a->layout == b->layout &&
        a->sample_bytes == b->sample_bytes)
        return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "%s: the second input is %u x %u x %u (type %u, layout %u, %zu bytes a sample), the first %u x "
        "%u x %u (type %u, layout %u, %zu bytes); they must be equal",
        kind_names[d->kind], b->h, b->w, b->c, b->dtype, b->layout, b->sample_bytes, a->h, a->w, a->c,
        a->dtype, a->layout, a->sample_bytes);
}

static int check_common(const mr_op_desc *d, mr_error *err)
{
    if ((unsigned)d->kind >= MRI_ARRAY_COUNT(kind_names))
        return mr_error_set(err, MR_EINVAL, "unknown operation %d", (int)d->kind);
    const mr_tensor *in = &d->in;
    if (in->h < 1 || in->w < 1 || in->c < 1 || in->h > MAX_SIDE || in->w > MAX_SIDE || in->c > MAX_SIDE)
        return mr_error_set(err, MR_EINVAL, "%s: input is %u x %u x %u; every side must be 1..%u",
                            kind_names[d->kind], in->h, in->w, in->c, MAX_SIDE);
    if (d->kind == MR_OP_INPUT && in->dtype != MR_TENSOR_U8) return refuse(d, err, "input must be uint8");
    if (d->kind == MR_OP_ONE_HOT && in->dtype != MR_TENSOR_I32) return refuse(d, err, "input must be int32");
    if (!mri_op_is_entry(d->kind) && !is_float(in->dtype))
        return refuse(d, err, "input must be f32, bf16 or f16");
    if (d->max_batch < 1 || d->max_batch > MAX_SIDE) return refuse(d, err, "max_batch must be 1..1048576");
    if ((unsigned)d->activation > MR_ACT_SELU) return refuse(d, err, "unknown activation");
    return MR_OK;
}

/* Of the op's own type, NHWC; false when the batch does not fit the address space comfortably (2^46
 * bytes). */
static bool set_output(const mr_op_desc *d, mr_op_info *info, uint32_t h, uint32_t w, uint32_t c)
{
    const uint32_t dtype = !mri_op_is_entry(d->kind) ? d->in.dtype
                           : d->out_dtype            ? d->out_dtype
                                                     : (uint32_t)MR_TENSOR_F32;
    size_t bytes = mr_tensor_element_bytes(dtype), batch;
    if (!mri_mul_size(bytes, h, &bytes) || !mri_mul_size(bytes, w, &bytes) ||
        !mri_mul_size(bytes, c, &bytes) || !mri_mul_size(bytes, d->max_batch, &batch) ||
        batch > (size_t)1 << 46)
        return false;
    info->out = (mr_tensor){h, w, c, dtype, MR_LAYOUT_NHWC, bytes};
    return true;
}

static mr_param_info vector_param(const char *name, uint32_t n)
{
    return (mr_param_info){
        .name = name, .ndim = 1, .dim = {n}, .count = n, .storage_count = n, .fan_in = n, .fan_out = n};
}

static int output_side(uint32_t in, uint32_t kernel, uint32_t stride, uint32_t before, uint32_t after,
                       uint32_t *out)
{
    if (kernel < 1 || stride < 1 || kernel > MAX_SIDE || stride > MAX_SIDE || before >= kernel ||
        after >= kernel)
        return MR_EINVAL;
    const uint64_t padded = (uint64_t)in + before + after;
    if (padded < kernel) return MR_EINVAL;
    *out = (uint32_t)((padded - kernel) / stride + 1);
    return MR_OK;
}

static int output_window(const mr_op_desc *d, uint32_t *oh, uint32_t *ow, mr_error *err)
{
    if (output_side(d->in.h, d->kernel_h, d->stride_h, d->pad_top, d->pad_bottom, oh) ||
        output_side(d->in.w, d->kernel_w, d->stride_w, d->pad_left, d->pad_right, ow))
        return mr_error_set(
            err, MR_EINVAL,
            "%s: a %u x %u window with stride %u x %u and padding %u %u %u %u does not fit an input "
            "of %u x %u; windows must fit and padding must be smaller than the window",
            kind_names[d->kind], d->kernel_h, d->kernel_w, d->stride_h, d->stride_w, d->pad_top, d->pad_left,
            d->pad_bottom, d->pad_right, d->in.h, d->in.w);
    return MR_OK;
}

static int describe_input(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    if (d->in.c > 4) return refuse(d, err, "at most 4 channels");
    for (uint32_t c = 0; c < d->in.c; c++)
        if (!isfinite(d->mean[c]) || !isfinite(d->std[c]) || d->std[c] == 0)
            return refuse(d, err, "mean must be finite, std finite and not 0");
    if (d->need_dx) return refuse(d, err, "there is no gradient to pixels");
    if (d->out_dtype && !is_float(d->out_dtype)) return refuse(d, err, "out_dtype must be f32, bf16 or f16");
    if ((unsigned)d->want > MR_WANT_NCHW) return refuse(d, err, "unknown wanted layout");
    if (d->want == MR_WANT_NCHW) info->out.layout = MR_LAYOUT_NCHW;
    return MR_OK;
}

static int describe_one_hot(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_tensor *in = &d->in;
    if (in->h != 1 || in->c != 1 || in->layout != MR_LAYOUT_NHWC ||
        in->sample_bytes != (size_t)in->w * sizeof(int32_t))
        return refuse(d, err, "input must be rows of int32 numbers without padding (1 x w x 1)");
    if (d->filters < 1 || d->filters > MAX_SIDE)
        return refuse(d, err, "classes (filters) must be 1..1048576");
    if (d->need_dx) return refuse(d, err, "there is no gradient to numbers");
    if (d->out_dtype && !is_float(d->out_dtype)) return refuse(d, err, "out_dtype must be f32, bf16 or f16");
    return set_output(d, info, 1, in->w, d->filters) ? MR_OK : refuse(d, err, "the batch is too large");
}

static int describe_conv2d(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    uint32_t oh, ow;
    const int rc = output_window(d, &oh, &ow, err);
    if (rc) return rc;
    if (d->filters < 1 || d->filters > MAX_SIDE) return refuse(d, err, "filters must be 1..1048576");
    if ((unsigned)d->want > MR_WANT_NHWC)
        return refuse(d, err, "the output is NHWC or what the device likes best");
    const uint64_t window = (uint64_t)d->kernel_h * d->kernel_w;
    if (window > (uint64_t)1 << 32 || window * d->in.c > ((uint64_t)1 << 40) / d->filters)
        return refuse(d, err, "the weights are too large");
    if (!set_output(d, info, oh, ow, d->filters)) return refuse(d, err, "the batch is too large");
    const uint64_t count = window * d->in.c * d->filters;
    info->param_count = d->no_bias ? 1 : 2;
    info->param[0] = (mr_param_info){.name = "weights",
                                     .ndim = 4,
                                     .dim = {d->filters, d->kernel_h, d->kernel_w, d->in.c},
                                     .count = count,
                                     .storage_count = count,
                                     .fan_in = window * d->in.c,
                                     .fan_out = window * d->filters};
    if (!d->no_bias) info->param[1] = vector_param("bias", d->filters);
    info->flops_per_sample = 2.0 * (double)count * oh * ow;
    return MR_OK;
}

static int describe_pool2d(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    uint32_t oh, ow;
    const int rc = output_window(d, &oh, &ow, err);
    if (rc) return rc;
    if ((uint64_t)d->kernel_h * d->kernel_w > 65536)
        return mr_error_set(err, MR_EUNSUPPORTED, "pool2d: a window of %u x %u has more than 65536 places",
                            d->kernel_h, d->kernel_w);
    if (!set_output(d, info, oh, ow, d->in.c)) return refuse(d, err, "the batch is too large");
    info->flops_per_sample = (double)d->kernel_h * d->kernel_w * oh * ow * d->in.c;
    return MR_OK;
}

static int describe_dense(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    if (d->filters < 1 || d->filters > MAX_SIDE) return refuse(d, err, "units (filters) must be 1..1048576");
    const uint64_t inputs = (uint64_t)d->in.h * d->in.w * d->in.c; /* below 2^60 */
    if (inputs > ((uint64_t)1 << 40) / d->filters) return refuse(d, err, "the weights are too large");
    if (!set_output(d, info, 1, 1, d->filters)) return refuse(d, err, "the batch is too large");
    info->param_count = d->no_bias ? 1 : 2;
    info->param[0] = (mr_param_info){.name = "weights",
                                     .ndim = 2,
                                     .dim = {d->filters, inputs},
                                     .count = inputs * d->filters,
                                     .storage_count = inputs * d->filters,
                                     .fan_in = inputs,
                                     .fan_out = d->filters};
    if (!d->no_bias) info->param[1] = vector_param("bias", d->filters);
    info->flops_per_sample = 2.0 * (double)info->param[0].count;
    return MR_OK;
}

static int describe_batchnorm(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    if (!(d->epsilon > 0) || !isfinite(d->epsilon)) return refuse(d, err, "epsilon must be above 0");
    if (!(d->momentum >= 0 && d->momentum <= 1)) return refuse(d, err, "momentum must be 0..1");
    info->param_count = info->state_count = 2;
    info->param[0] = vector_param("scale", d->in.c);
    info->param[1] = vector_param("shift", d->in.c);
    info->state[0] = vector_param("mean", d->in.c);
    info->state[1] = vector_param("variance", d->in.c);
    info->flops_per_sample = (d->residual ? 5.0 : 4.0) * d->in.h * d->in.w * d->in.c;
    return d->residual ? check_second(d, err) : MR_OK;
}

int mri_op_describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    *info = (mr_op_info){0};
    const int rc = check_common(d, err);
    if (rc) return rc;
    /* the output of most: as the input */
    if (!set_output(d, info, d->in.h, d->in.w, d->in.c)) return refuse(d, err, "the batch is too large");
    switch (d->kind) {
    case MR_OP_INPUT: return describe_input(d, info, err);
    case MR_OP_ONE_HOT: return describe_one_hot(d, info, err);
    case MR_OP_CONV2D: return describe_conv2d(d, info, err);
    case MR_OP_POOL2D: return describe_pool2d(d, info, err);
    case MR_OP_DENSE: return describe_dense(d, info, err);
    case MR_OP_ACTIVATION: info->inplace = true; return MR_OK;
    case MR_OP_DROPOUT:
        if (!(d->rate >= 0 && d->rate < 1)) return refuse(d, err, "rate must be at least 0 and below 1");
        info->inplace = true;
        return MR_OK;
    case MR_OP_BATCHNORM: return describe_batchnorm(d, info, err);
    case MR_OP_ADD: info->flops_per_sample = (double)d->in.h * d->in.w * d->in.c; return check_second(d, err);
    case MR_OP_LOSS:
        if (d->in.h != 1 || d->in.w != 1) return refuse(d, err, "logits must be a vector (1 x 1 x classes)");
        return MR_OK;
    }
    return mr_error_set(err, MR_EINVAL, "unknown operation %d", (int)d->kind);
}
