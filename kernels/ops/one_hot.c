/* kernels/ops/one_hot.c: int32 numbers become rows with a single 1. Zeros are written first: of each row one
 * value differs. */
#include "kernels/host/host_op.h"
#include "kernels/ops/simd.h"

static int prepare(mri_host_op *op, mr_error *err)
{
    (void)op, (void)err;
    return MR_OK;
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

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)op, (void)a;
    return mr_error_set(err, MR_EINVAL, "one_hot: there is no gradient to numbers");
}

const struct mri_op_code mri_one_hot_code = {.prepare = prepare, .forward = forward, .backward = backward};
