/* kernels/ops/data/one_hot.c: whole numbers become rows with a single 1. Zeros are written first: of each row
 * one value differs. */
#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/data/numbers.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_tensor *in = &d->in;
    if (!mri_is_whole_type(in->dtype))
        return mr_error_set(err, MR_EINVAL, "one_hot: input must be whole numbers (u8, i8, i16, i32, i64)");
    if (in->c != 1)
        return mr_error_set(err, MR_EINVAL, "one_hot: input has %u channels: expected 1, a number a pixel",
                            in->c);
    uint32_t dtype;
    int rc = mri_op_check_rows(d, "one_hot", err);
    if (!rc) rc = mri_op_check_count(d->one_hot.classes, "classes", "one_hot", err);
    if (!rc) rc = mri_op_entry_dtype(d->one_hot.out_dtype, &dtype, "one_hot", err);
    return rc ? rc : mri_op_set_output(d, info, in->h, in->w, d->one_hot.classes, dtype, "one_hot", err);
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_tensor *out = &op->base.info.out;
    const size_t rows = (size_t)out->h * out->w * a->n, classes = out->c;
    const uint32_t dtype = op->base.desc.in.dtype;
    float *y = a->y;
#pragma omp parallel for schedule(static) if (rows * classes > MRI_PARALLEL_ELEMENTS)
    for (size_t r = 0; r < rows; r++) {
        const int64_t number = mri_whole_number(a->x, dtype, r);
        memset(y + r * classes, 0, classes * sizeof *y);
        if (number >= 0 && (uint64_t)number < classes) y[r * classes + (size_t)number] = 1;
    }
    return MR_OK;
}

static const struct mri_op_code reference = {.forward = forward};
const struct mri_op_class mri_one_hot_class = {
    .name = "one_hot", .entry = true, .describe = describe, .reference = &reference};
