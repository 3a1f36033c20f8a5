/* kernels/ops/data/embedding.c: each whole number becomes its row of a trained table: the result of a dense
 * layer on ONE_HOT rows, without computing either. A number outside of the table gives a row of zeros, and
 * has no gradient.
 *
 * The gradient of a row of the table is the sum over its number's places, in their order: threads share the
 * columns, not the places. */
#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/data/numbers.h"
#include "kernels/ops/host_op.h"

enum { COLUMNS = 16 }; /* that one thread adds up at a time */

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_embedding_desc *e = &d->embedding;
    const mr_tensor *in = &d->in;
    uint32_t dtype;
    if (!mri_is_whole_type(in->dtype) || in->c != 1)
        return mr_error_set(
            err, MR_EINVAL,
            "embedding: expected whole numbers (u8, i8, i16, i32, i64), one a pixel; found type %u "
            "with %u channels",
            in->dtype, in->c);
    int rc = mri_op_check_rows(d, "embedding", err);
    if (!rc) rc = mri_op_check_count(e->classes, "classes", "embedding", err);
    if (!rc) rc = mri_op_check_count(e->units, "units", "embedding", err);
    if (!rc) rc = mri_op_entry_dtype(e->out_dtype, &dtype, "embedding", err);
    if (!rc) rc = mri_op_set_output(d, info, in->h, in->w, e->units, dtype, "embedding", err);
    if (rc) return rc;
    const uint64_t count = (uint64_t)e->classes * e->units;
    const mr_param_info weights = {.name = "weights",
                                   .ndim = 2,
                                   .dim = {e->classes, e->units},
                                   .count = count,
                                   .storage_count = count,
                                   .fan_in = e->classes,
                                   .fan_out = e->units};
    info->param_count = 1;
    info->param[0] = weights;
    return MR_OK;
}

static int64_t number_at(const mr_op_desc *d, const mr_op_args *a, size_t place)
{
    const int64_t number = mri_whole_number(a->x, d->in.dtype, place);
    return number >= 0 && number < (int64_t)d->embedding.classes ? number : -1;
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t places = (size_t)d->in.h * d->in.w * a->n, units = d->embedding.units;
    float *y = a->y;
#pragma omp parallel for schedule(static) if (places * units > MRI_PARALLEL_ELEMENTS)
    for (size_t p = 0; p < places; p++) {
        const int64_t number = number_at(d, a, p);
        if (number < 0) memset(y + p * units, 0, units * sizeof *y);
        else memcpy(y + p * units, a->param[0] + (size_t)number * units, units * sizeof *y);
    }
    return MR_OK;
}

static int backward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_op_desc *d = &op->base.desc;
    const size_t places = (size_t)d->in.h * d->in.w * a->n, units = d->embedding.units;
    const float *dy = a->dy;
    float *dw = a->dparam[0];
#pragma omp parallel for schedule(static) if (places * units > MRI_PARALLEL_ELEMENTS)
    for (size_t first = 0; first < units; first += COLUMNS) {
        const size_t end = first + COLUMNS < units ? first + COLUMNS : units;
        for (size_t k = 0; k < d->embedding.classes; k++)
            memset(dw + k * units + first, 0, (end - first) * sizeof *dw);
        for (size_t p = 0; p < places; p++) {
            const int64_t number = number_at(d, a, p);
            if (number < 0) continue;
            float *to = dw + (size_t)number * units;
            for (size_t u = first; u < end; u++) to[u] += dy[p * units + u];
        }
    }
    return MR_OK;
}

static const struct mri_op_code reference = {.forward = forward, .backward = backward};
const struct mri_op_class mri_embedding_class = {
    .name = "embedding", .takes_numbers = true, .describe = describe, .reference = &reference};
