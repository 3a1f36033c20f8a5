/* kernels/cuda/ops/op_update.c: optimizer steps on a GPU (kernels/update.cu). Specification: ops/update.c.
 * What differs from step to step is read from device memory, so a recorded update can run again. */
#include <math.h>

#include "kernels/backend/update_rules.h"
#include "kernels/cuda/ops/grid.h"

#define CHECK_EACH 8u /* blocks on a multiprocessor */

static int check_gradients(mri_cuda_stream *s, const mr_update_args *u, mr_error *err)
{
    mri_cuda_device *dev = mri_cuda_of_stream(s);
    const int rc = mri_cuda_check(dev,
                                  dev->api->cuMemsetD8Async((CUdeviceptr)(uintptr_t)&u->loss_scale->overflow,
                                                            0, sizeof u->loss_scale->overflow, s->handle),
                                  "update", err);
    if (rc) return rc;
    const struct mrk_update_check_args args = {.count = u->count,
                                               .vectors = MRI_GRID_ALIGNED(u->grads),
                                               .grads = u->grads,
                                               .loss_scale = u->loss_scale};
    const uint32_t needed = mri_grid_flat(u->count, MR_TENSOR_F32, args.vectors),
                   full = dev->multiprocessors * CHECK_EACH;
    return mri_cuda_launch(s, MRK_update_check, needed < full ? needed : full, MRK_THREADS, 0, &args, err);
}

/* What gradients are multiplied with, because of their norm. */
static int find_norm(mri_cuda_stream *s, const mr_update_config *c, float clip_value, mr_error *err)
{
    const mr_update_args *u = &c->args;
    const uint64_t stretches = mr_update_norm_count(u->count) - MRI_UPDATE_NORM_HEAD;
    const struct mrk_update_squares_args squares = {.count = u->count,
                                                    .vectors = MRI_GRID_ALIGNED(u->grads),
                                                    .clip_value = clip_value,
                                                    .grads = u->grads,
                                                    .sums = c->norm + MRI_UPDATE_NORM_HEAD,
                                                    .loss_scale = u->loss_scale};
    const struct mrk_update_norm_args norm = {.sums = stretches, .clip_norm = c->clip_norm, .norm = c->norm};
    const int rc =
        mri_cuda_launch(s, MRK_update_squares, mri_grid_blocks(stretches, 1), MRK_THREADS, 0, &squares, err);
    return rc ? rc : mri_cuda_launch(s, MRK_update_norm, 1, MRK_THREADS, 0, &norm, err);
}

/* LAMB: moments, and how far each tensor may go. */
static int find_trust(mri_cuda_stream *s, const mr_update_config *c, struct mrk_update_args *args,
                      mr_error *err)
{
    enum { EACH = MRK_THREADS / (MR_UPDATE_STRETCH / 4) };
    const uint64_t stretches = args->count / MR_UPDATE_STRETCH + (args->count % MR_UPDATE_STRETCH != 0);
    const struct mrk_update_moments_args moments = {*args, c->trust + c->tensor_count};
    const struct mrk_update_trust_args trust = {.stretches = stretches,
                                                .tensor_count = c->tensor_count,
                                                .tensors = c->tensors,
                                                .sums = moments.sums,
                                                .trust = c->trust};
    if (stretches > (uint64_t)MRI_GRID_MAX_BLOCKS * EACH)
        return mr_error_set(err, MR_ELIMIT, "lamb: %llu weights are too many",
                            (unsigned long long)args->count);
    args->tensors = c->tensors;
    args->trust = c->trust;
    args->tensor_count = c->tensor_count;
    const int rc = mri_cuda_launch(s, MRK_update_moments, mri_grid_blocks(stretches, EACH), MRK_THREADS, 0,
                                   &moments, err);
    return rc ? rc : mri_cuda_launch(s, MRK_update_trust, c->tensor_count, MRK_THREADS, 0, &trust, err);
}

static int update(mri_cuda_stream *s, const mr_update_config *c, mr_error *err)
{
    const mr_update_desc *d = &c->rule;
    const mr_update_args *u = &c->args;
    const uint32_t states = mr_update_state_count(d->kind);
    struct mrk_update_args args = {.count = u->count,
                                   .kind = d->kind,
                                   .nesterov = d->nesterov,
                                   .momentum = d->momentum,
                                   .rho = d->rho,
                                   .beta1 = d->beta1,
                                   .beta2 = d->beta2,
                                   .epsilon = d->epsilon,
                                   .weight_decay = d->weight_decay,
                                   .clip_value = c->clip_value > 0 ? c->clip_value : INFINITY,
                                   .weights = u->weights,
                                   .state0 = states > 0 ? u->state[0] : NULL,
                                   .state1 = states > 1 ? u->state[1] : NULL,
                                   .grads = u->grads,
                                   .values = u->values,
                                   .loss_scale = u->loss_scale,
                                   .norm = c->clip_norm > 0 ? c->norm : NULL,
                                   .decays = c->decays};
    args.vectors = MRI_GRID_ALIGNED(args.weights, args.grads, args.state0, args.state1);
    int rc = args.norm ? find_norm(s, c, args.clip_value, err) : MR_OK;
    if (rc == MR_OK && d->kind == MR_UPDATE_LAMB) rc = find_trust(s, c, &args, err);
    if (rc) return rc;
    return mri_cuda_launch(s, MRK_update, mri_grid_flat(u->count, MR_TENSOR_F32, args.vectors), MRK_THREADS,
                           0, &args, err);
}

static int update_scaled(mri_cuda_stream *s, const mr_update_config *c, mr_error *err)
{
    int rc = check_gradients(s, &c->args, err);
    if (!rc) rc = update(s, c, err);
    const struct mrk_update_end_args end = {.loss_scale = c->args.loss_scale};
    return rc ? rc : mri_cuda_launch(s, MRK_update_end, 1, 32, 0, &end, err);
}

int mri_cuda_update_async(mr_stream *stream, const mr_update_config *cfg)
{
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(mri_cuda_of_stream(s), &err);
    if (!rc) rc = cfg->args.loss_scale ? update_scaled(s, cfg, &err) : update(s, cfg, &err);
    return mri_cuda_queued(s, rc, "update", &err);
}

int mri_cuda_average_async(mr_stream *stream, float *average, const float *from, uint64_t count, float decay)
{
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mr_error err = MR_ERROR_INIT;
    const struct mrk_average_args args = {.count = count,
                                          .vectors = MRI_GRID_ALIGNED(average, from),
                                          .share = 1 - decay,
                                          .average = average,
                                          .from = from};
    int rc = mri_cuda_enter(mri_cuda_of_stream(s), &err);
    if (!rc)
        rc = mri_cuda_launch(s, MRK_average, mri_grid_flat(count, MR_TENSOR_F32, args.vectors), MRK_THREADS,
                             0, &args, &err);
    return mri_cuda_queued(s, rc, "average", &err);
}

int mri_cuda_add_async(mr_stream *stream, float *to, const float *from, uint64_t count)
{
    mri_cuda_stream *s = (mri_cuda_stream *)stream;
    mr_error err = MR_ERROR_INIT;
    int rc = mri_cuda_enter(mri_cuda_of_stream(s), &err);
    if (!rc) rc = mri_cuda_accumulate(s, count, MR_TENSOR_F32, to, from, &err);
    return mri_cuda_queued(s, rc, "addition", &err);
}
