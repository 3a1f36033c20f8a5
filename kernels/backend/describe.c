/* kernels/backend/describe.c: what holds of descriptions of every kind, and the pieces they share. Pure
 * functions; a description that makes no sense is refused with the field that is wrong. */
#include "kernels/backend/op_class.h"

size_t mr_tensor_element_bytes(uint32_t dtype)
{
    switch (dtype) {
    case MR_TENSOR_U8:
    case MR_TENSOR_I8: return 1;
    case MR_TENSOR_BF16:
    case MR_TENSOR_F16:
    case MR_TENSOR_I16: return 2;
    case MR_TENSOR_I32:
    case MR_TENSOR_F32: return 4;
    case MR_TENSOR_I64:
    case MR_TENSOR_F64: return 8;
    default: return 0;
    }
}

static bool is_float(uint32_t dtype)
{
    return dtype == MR_TENSOR_F32 || dtype == MR_TENSOR_BF16 || dtype == MR_TENSOR_F16;
}

static int check_common(const struct mri_op_class *is, const mr_op_desc *d, mr_error *err)
{
    const mr_tensor *in = &d->in;
    if (in->h < 1 || in->w < 1 || in->c < 1 || in->h > MRI_OP_MAX_SIDE || in->w > MRI_OP_MAX_SIDE ||
        in->c > MRI_OP_MAX_SIDE)
        return mr_error_set(err, MR_EINVAL, "%s: input is %u x %u x %u; every side must be 1..%u", is->name,
                            in->h, in->w, in->c, MRI_OP_MAX_SIDE);
    const bool numbers = is->takes_numbers && !is_float(in->dtype);
    if (!is->entry && !numbers && !is_float(in->dtype))
        return mr_error_set(err, MR_EINVAL, "%s: input must be f32, bf16 or f16", is->name);
    if ((is->entry || numbers) && d->need_dx)
        return mr_error_set(err, MR_EINVAL, "%s: there is no gradient to data", is->name);
    if (d->max_batch < 1 || d->max_batch > MRI_OP_MAX_SIDE)
        return mr_error_set(err, MR_EINVAL, "%s: max_batch must be 1..%u", is->name, MRI_OP_MAX_SIDE);
    if ((unsigned)d->activation >= MR_ACT_COUNT)
        return mr_error_set(err, MR_EINVAL, "%s: unknown activation", is->name);
    if (is->fuses && mr_activation_needs_x(d->activation))
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s: silu and gelu cannot be part of another operation, whose backward has "
                            "nothing but its output; put an activation after it",
                            is->name);
    return MR_OK;
}

int mri_op_describe(const struct mri_op_class *is, const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    *info = (mr_op_info){0};
    int rc = check_common(is, d, err);
    if (!rc) /* the output of most: as the input */
        rc = mri_op_set_output(d, info, d->in.h, d->in.w, d->in.c, d->in.dtype, is->name, err);
    return rc || !is->describe ? rc : is->describe(d, info, err);
}

bool mri_op_lacks(const mr_op *op, const mr_op_args *a, bool backward)
{
    if (backward) return !a->dy || (op->desc.need_dx && !a->dx);
    return !a->y || (mri_op_takes_two(op) && !a->x2);
}

int mri_op_set_output(const mr_op_desc *d, mr_op_info *info, uint32_t h, uint32_t w, uint32_t c,
                      uint32_t dtype, const char *name, mr_error *err)
{
    size_t bytes = mr_tensor_element_bytes(dtype), batch;
    if (!mri_mul_size(bytes, h, &bytes) || !mri_mul_size(bytes, w, &bytes) ||
        !mri_mul_size(bytes, c, &bytes) || !mri_mul_size(bytes, d->max_batch, &batch) ||
        batch > (size_t)1 << 46)
        return mr_error_set(err, MR_EINVAL, "%s: the batch is too large", name);
    info->out = (mr_tensor){h, w, c, dtype, MR_LAYOUT_NHWC, bytes};
    return MR_OK;
}

int mri_op_entry_dtype(uint32_t asked, uint32_t *out, const char *name, mr_error *err)
{
    if (asked && !is_float(asked))
        return mr_error_set(err, MR_EINVAL, "%s: out_dtype must be f32, bf16 or f16", name);
    *out = asked ? asked : (uint32_t)MR_TENSOR_F32;
    return MR_OK;
}

int mri_op_check_rows(const mr_op_desc *d, const char *name, mr_error *err)
{
    const mr_tensor *in = &d->in;
    const size_t bytes = mr_tensor_element_bytes(in->dtype) * in->h * in->w * in->c;
    if (in->layout == MR_LAYOUT_NHWC && in->sample_bytes == bytes) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "%s: data must be NHWC without padding, %zu bytes a sample; found layout %u with %zu",
                        name, bytes, in->layout, in->sample_bytes);
}

int mri_op_check_count(uint32_t count, const char *what, const char *name, mr_error *err)
{
    if (count >= 1 && count <= MRI_OP_MAX_SIDE) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "%s: %s must be 1..%u", name, what, MRI_OP_MAX_SIDE);
}

static bool window_side(uint32_t in, uint32_t kernel, uint32_t stride, uint32_t before, uint32_t after,
                        uint32_t *out)
{
    if (kernel < 1 || stride < 1 || kernel > MRI_OP_MAX_SIDE || stride > MRI_OP_MAX_SIDE ||
        before >= kernel || after >= kernel)
        return false;
    const uint64_t padded = (uint64_t)in + before + after;
    if (padded < kernel) return false;
    *out = (uint32_t)((padded - kernel) / stride + 1);
    return true;
}

int mri_op_window_output(const mr_tensor *in, const mr_op_window *w, uint32_t *out_h, uint32_t *out_w,
                         const char *name, mr_error *err)
{
    if (window_side(in->h, w->kernel_h, w->stride_h, w->pad_top, w->pad_bottom, out_h) &&
        window_side(in->w, w->kernel_w, w->stride_w, w->pad_left, w->pad_right, out_w))
        return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "%s: a %u x %u window with stride %u x %u and padding %u %u %u %u does not fit an input "
        "of %u x %u; windows must fit and padding must be smaller than the window",
        name, w->kernel_h, w->kernel_w, w->stride_h, w->stride_w, w->pad_top, w->pad_left, w->pad_bottom,
        w->pad_right, in->h, in->w);
}

int mri_op_check_second(const mr_op_desc *d, const char *name, mr_error *err)
{
    const mr_tensor *a = &d->in, *b = &d->in2;
    if (a->h == b->h && a->w == b->w && a->c == b->c && a->dtype == b->dtype && a->layout == b->layout &&
        a->sample_bytes == b->sample_bytes)
        return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "%s: the second input is %u x %u x %u (type %u, layout %u, %zu bytes a sample), the first %u x "
        "%u x %u (type %u, layout %u, %zu bytes); they must be equal",
        name, b->h, b->w, b->c, b->dtype, b->layout, b->sample_bytes, a->h, a->w, a->c, a->dtype, a->layout,
        a->sample_bytes);
}

mr_param_info mri_op_vector(const char *name, uint32_t n)
{
    return (mr_param_info){
        .name = name, .ndim = 1, .dim = {n}, .count = n, .storage_count = n, .fan_in = n, .fan_out = n};
}

void mri_op_set_weights(mr_op_info *info, const mr_param_info *weights, uint32_t outputs, bool no_bias)
{
    info->param_count = no_bias ? 1 : 2;
    info->param[0] = *weights;
    if (!no_bias) info->param[1] = mri_op_vector("bias", outputs);
}
