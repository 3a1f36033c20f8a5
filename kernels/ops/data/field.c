/* kernels/ops/data/field.c: numbers of a data set, of whatever type, become floats: (x - mean) / std, worked
 * out in double, where every one of the types is exact but for the largest i64, and rounded once. */
#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/data/numbers.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_field_desc *f = &d->field;
    if (!mr_tensor_element_bytes(d->in.dtype))
        return mr_error_set(err, MR_EINVAL, "field: unknown type %u of its numbers", d->in.dtype);
    if (!isfinite(f->mean) || !isfinite(f->std))
        return mr_error_set(err, MR_EINVAL, "field: mean %g, std %g: expected finite numbers",
                            (double)f->mean, (double)f->std);
    uint32_t dtype;
    int rc = mri_op_check_rows(d, "field", err);
    if (!rc) rc = mri_op_entry_dtype(f->out_dtype, &dtype, "field", err);
    return rc ? rc : mri_op_set_output(d, info, d->in.h, d->in.w, d->in.c, dtype, "field", err);
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const double mean = (double)d->field.mean, std = d->field.std != 0 ? (double)d->field.std : 1;
    const size_t count = mri_tensor_floats(&op->base.info.out) * a->n;
    float *y = a->y;
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (size_t i = 0; i < count; i++) y[i] = (float)((mri_real_number(a->x, d->in.dtype, i) - mean) / std);
    return MR_OK;
}

static const struct mri_op_code reference = {.forward = forward};
const struct mri_op_class mri_field_class = {
    .name = "field", .entry = true, .describe = describe, .reference = &reference};
