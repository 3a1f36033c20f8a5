/* kernels/cuda/ops/op_loss.c: MR_OP_LOSS on a GPU (kernels/loss.cu). Specification: ops/loss.c, but that a
 * label beyond the classes stops nothing: it is counted in metrics->bad and its sample gets no gradient.
 * scratch: loss and mark of each sample. `classes` here counts logits; one logit stands for two classes. */
#include "kernels/cuda/ops/grid.h"

static int prepare(mri_cuda_op *op, mr_error *err)
{
    (void)err;
    op->base.info.scratch_bytes = (size_t)op->base.desc.max_batch * (sizeof(double) + sizeof(uint32_t));
    return MR_OK;
}

static float factor_of(const mr_op_desc *d) { return d->loss.factor > 0 ? d->loss.factor : 1; }
static float weight_of(const mr_op_desc *d) { return d->loss.weight > 0 ? d->loss.weight : 1; }

static const float *class_weights_of(const mr_op_desc *d, const mr_op_args *a)
{
    return d->loss.class_weights && a->training ? a->class_weights : NULL;
}

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    double *losses = a->scratch;
    uint32_t *marks = (uint32_t *)(losses + d->max_batch);
    const struct mrk_loss_args loss = {.n = a->n,
                                       .classes = d->in.c,
                                       .dtype = d->in.dtype,
                                       .factor = factor_of(d),
                                       .smoothing = a->training ? d->loss.smoothing : 0,
                                       .weight = weight_of(d),
                                       .silent = d->loss.silent,
                                       .x = a->x,
                                       .y = a->y,
                                       .labels = a->labels,
                                       .labels2 = a->labels2,
                                       .share2 = a->share2,
                                       .class_weights = class_weights_of(d, a),
                                       .losses = losses,
                                       .marks = marks};
    const int rc = mri_cuda_launch(s, MRK_loss, a->n, mri_grid_row_threads(d->in.c), 0, &loss, err);
    if (rc) return rc;
    const struct mrk_loss_sum_args sum = {.n = a->n, .losses = losses, .marks = marks, .metrics = a->metrics};
    return mri_cuda_launch(s, MRK_loss_sum, 1, MRK_THREADS, 0, &sum, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const struct mrk_loss_backward_args args = {.n = a->n,
                                                .classes = d->in.c,
                                                .dtype = d->in.dtype,
                                                .factor = factor_of(d),
                                                .smoothing = a->training ? d->loss.smoothing : 0,
                                                .weight = weight_of(d),
                                                .x = a->x,
                                                .dx = a->dx,
                                                .labels = a->labels,
                                                .labels2 = a->labels2,
                                                .share2 = a->share2,
                                                .class_weights = class_weights_of(d, a),
                                                .values = a->values,
                                                .loss_scale = a->loss_scale};
    return mri_cuda_launch(s, MRK_loss_backward, a->n, mri_grid_row_threads(d->in.c), 0, &args, err);
}

/* There is no dy, so no second one. */
const struct mri_cuda_code mri_cuda_loss = {.forward_text = "loss forward",
                                            .backward_text = "loss backward",
                                            .prepare = prepare,
                                            .forward = forward,
                                            .backward = backward,
                                            .adds_dy2 = true};
