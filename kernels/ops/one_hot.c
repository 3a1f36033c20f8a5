/* kernels/ops/one_hot.c: int32 numbers become rows with a single 1. Zeros are written first: of each row one
 * value differs. */
#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_tensor *in = &d->in;
    if (in->dtype != MR_TENSOR_I32) return mr_error_set(err, MR_EINVAL, "one_hot: input must be int32");
    if (in->h != 1 || in->c != 1 || in->layout != MR_LAYOUT_NHWC ||
        in->sample_bytes != (size_t)in->w * sizeof(int32_t))
        return mr_error_set(err, MR_EINVAL,
                            "one_hot: input must be rows of int32 numbers without padding (1 x w x 1)");
    uint32_t dtype;
    int rc = mri_op_check_count(d->one_hot.classes, "classes", "one_hot", err);
    if (!rc) rc = mri_op_entry_dtype(d->one_hot.out_dtype, &dtype, "one_hot", err);
    return rc ? rc : mri_op_set_output(d, info, 1, in->w, d->one_hot.classes, dtype, "one_hot", err);
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_tensor *out = &op->base.info.out;
    const size_t rows = (size_t)out->w * a->n, classes = out->c;
    const int32_t *x = a->x;
    float *y = a->y;
#pragma omp parallel for schedule(static) if (rows * classes > MRI_PARALLEL_ELEMENTS)
    for (size_t r = 0; r < rows; r++) {
        memset(y + r * classes, 0, classes * sizeof *y);
        if (x[r] >= 0 && (size_t)x[r] < classes) y[r * classes + (size_t)x[r]] = 1;
    }
    return MR_OK;
}

static const struct mri_op_code reference = {.forward = forward};
const struct mri_op_class mri_one_hot_class = {
    .name = "one_hot", .entry = true, .describe = describe, .reference = &reference};
