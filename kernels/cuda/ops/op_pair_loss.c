/* kernels/cuda/ops/op_pair_loss.c: MR_OP_PAIR_LOSS on a GPU (kernels/loss.cu). Specification:
 * ops/pair_loss.c; sums run in another order. scratch: loss and mark of each sample. */
#include "kernels/cuda/ops/grid.h"

static int prepare(mri_cuda_op *op, mr_error *err)
{
    (void)err;
    op->base.info.scratch_bytes = (size_t)op->base.desc.max_batch * (sizeof(double) + sizeof(uint32_t));
    return MR_OK;
}

/* Threads of a sample's block: a power of two. */
static uint32_t threads_for(uint64_t elements) { return elements <= 128 ? 32 : MRK_THREADS; }

static float weight_of(const mr_op_desc *d) { return d->pair_loss.weight > 0 ? d->pair_loss.weight : 1; }

static int forward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const uint64_t elements = mri_grid_elements(&d->in, 1);
    double *losses = a->scratch;
    uint32_t *marks = (uint32_t *)(losses + d->max_batch);
    const struct mrk_pair_loss_args loss = {.elements = elements,
                                            .classes = d->in.c,
                                            .n = a->n,
                                            .dtype = d->in.dtype,
                                            .kind = d->pair_loss.kind,
                                            .silent = d->pair_loss.silent,
                                            .targets = d->pair_loss.targets,
                                            .weight = weight_of(d),
                                            .x = a->x,
                                            .x2 = a->x2,
                                            .labels = a->labels,
                                            .losses = losses,
                                            .marks = marks};
    const int rc = mri_cuda_launch(s, MRK_pair_loss, a->n, threads_for(elements), 0, &loss, err);
    if (rc) return rc;
    const struct mrk_loss_sum_args sum = {.n = a->n, .losses = losses, .marks = marks, .metrics = a->metrics};
    return mri_cuda_launch(s, MRK_loss_sum, 1, MRK_THREADS, 0, &sum, err);
}

static int backward(mri_cuda_op *op, mri_cuda_stream *s, const mr_op_args *a, mr_error *err)
{
    const mr_op_desc *d = &op->base.desc;
    const uint64_t elements = mri_grid_elements(&d->in, 1);
    const struct mrk_pair_loss_backward_args args = {.elements = elements,
                                                     .classes = d->in.c,
                                                     .n = a->n,
                                                     .dtype = d->in.dtype,
                                                     .kind = d->pair_loss.kind,
                                                     .targets = d->pair_loss.targets,
                                                     .weight = weight_of(d),
                                                     .x = a->x,
                                                     .x2 = a->x2,
                                                     .dx = d->need_dx ? a->dx : NULL,
                                                     .dx2 = a->dx2,
                                                     .labels = a->labels,
                                                     .values = a->values,
                                                     .loss_scale = a->loss_scale};
    return mri_cuda_launch(s, MRK_pair_loss_backward, a->n, threads_for(elements), 0, &args, err);
}

/* There is no dy, so no second one. */
const struct mri_cuda_code mri_cuda_pair_loss = {.forward_text = "pair_loss forward",
                                                 .backward_text = "pair_loss backward",
                                                 .prepare = prepare,
                                                 .forward = forward,
                                                 .backward = backward,
                                                 .adds_dy2 = true};
