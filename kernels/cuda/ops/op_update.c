/* kernels/cuda/ops/op_update.c: optimizer steps on a GPU (kernels/update.cu). Specification: ops/update.c.
 * What differs from step to step is read from device memory, so a recorded update can run again. */
#include <math.h>

#include "kernels/backend/update_rules.h"
#include "kernels/cuda/ops/grid.h"
#include "kernels/cuda/ops/linear_cuda.h"
#include "kernels/ops/matrix/orthogonal.h"

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

/* The update of `count` weights from `from` on, a multiple of MR_UPDATE_STRETCH. */
static struct mrk_update_args part_of(const struct mrk_update_args *all, uint64_t from, uint64_t count)
{
    struct mrk_update_args a = *all;
    a.count = count;
    a.weights += from;
    a.grads += from;
    if (a.state0) a.state0 += from;
    if (a.state1) a.state1 += from;
    if (a.decays) a.decays += from / MR_UPDATE_STRETCH;
    return a;
}

static int step_by_step(mri_cuda_stream *s, const struct mrk_update_args *a, mr_error *err)
{
    if (a->count == 0) return MR_OK;
    return mri_cuda_launch(s, MRK_update, mri_grid_flat(a->count, MR_TENSOR_F32, a->vectors), MRK_THREADS, 0,
                           a, err);
}

/* ---- MUON: matrices (ops/matrix/orthogonal.h) ---- */

/* Pieces of the room. */
struct muon {
    float *step, *next, *gram, *square;
    double *norm;
    uint64_t end; /* bytes */
};

static uint64_t piece(uint64_t *at, uint64_t bytes)
{
    const uint64_t from = *at;
    *at += mri_align_up(bytes, MR_DEVICE_ALIGN);
    return from;
}

static struct muon muon_of(void *room, uint64_t rows, uint64_t columns)
{
    const uint64_t small = rows < columns ? rows : columns, count = rows * columns;
    uint64_t end = 0;
    const uintptr_t at = (uintptr_t)room;
    struct muon m;
    m.step = (float *)(at + piece(&end, count * sizeof(float)));
    m.next = (float *)(at + piece(&end, count * sizeof(float)));
    m.gram = (float *)(at + piece(&end, small * small * sizeof(float)));
    m.square = (float *)(at + piece(&end, small * small * sizeof(float)));
    m.norm = (double *)(at + piece(&end, mr_update_norm_count(count) * sizeof(double)));
    m.end = end;
    return m;
}

uint64_t mri_cuda_update_room(const mr_device *dev, const mr_update_matrix *m, uint64_t stored)
{
    (void)dev, (void)stored;
    return muon_of(NULL, m->rows, m->columns).end;
}

static int blend(mri_cuda_stream *s, uint64_t count, float p, float *x, float q, const float *y,
                 mr_error *err)
{
    const struct mrk_muon_blend_args args = {.count = count, .p = p, .q = q, .x = x, .y = y};
    return mri_cuda_launch(s, MRK_muon_blend, mri_grid_blocks(count, MRK_THREADS), MRK_THREADS, 0, &args,
                           err);
}

/* A row-major matrix here is its transpose for cuBLAS, which is column-major: rows and columns are
 * swapped. */
static int orthogonalise(mri_cuda_stream *s, const struct muon *m, int rows, int columns, mr_error *err)
{
    const bool flat = rows <= columns;
    const int small = flat ? rows : columns, large = flat ? columns : rows;
    const uint64_t count = (uint64_t)rows * (uint64_t)columns, squares = (uint64_t)small * (uint64_t)small;
    const struct mri_cuda_matrix x = {m->step, CUDA_R_32F, columns, false},
                                 gram = {m->gram, CUDA_R_32F, small, false},
                                 square = {m->square, CUDA_R_32F, small, false},
                                 next = {m->next, CUDA_R_32F, columns, false};
    struct mri_cuda_matrix turned = x;
    turned.transposed = true;
    int rc = MR_OK;
    for (int step = 0; step < MRI_ORTHOGONAL_STEPS && rc == MR_OK; step++) {
        rc = mri_cuda_multiply(s, small, small, large, flat ? turned : x, flat ? x : turned, gram, "muon",
                               err);
        if (!rc) rc = mri_cuda_multiply(s, small, small, small, gram, gram, square, "muon", err);
        if (!rc) rc = blend(s, squares, MRI_ORTHOGONAL_B, m->gram, MRI_ORTHOGONAL_C, m->square, err);
        if (!rc)
            rc = mri_cuda_multiply(s, columns, rows, small, flat ? x : gram, flat ? gram : x, next, "muon",
                                   err);
        if (!rc) rc = blend(s, count, MRI_ORTHOGONAL_A, m->step, 1, m->next, err);
    }
    return rc;
}

static int move_matrix(mri_cuda_stream *s, const mr_update_config *c, const struct mrk_update_args *all,
                       const mr_update_matrix *matrix, mr_error *err)
{
    const uint64_t count = matrix->rows * matrix->columns;
    const struct muon m = muon_of(c->room, matrix->rows, matrix->columns);
    const uint32_t blocks = mri_grid_blocks(count, MRK_THREADS);
    if (matrix->rows > INT32_MAX || matrix->columns > INT32_MAX)
        return mr_error_set(err, MR_ELIMIT, "muon: a matrix of %llu x %llu is too large",
                            (unsigned long long)matrix->rows, (unsigned long long)matrix->columns);
    const struct mrk_muon_momentum_args momentum = {part_of(all, matrix->at, count), m.step};
    const struct mrk_update_squares_args squares = {.count = count,
                                                    .vectors = 1,
                                                    .clip_value = INFINITY,
                                                    .grads = m.step,
                                                    .sums = m.norm + MRI_UPDATE_NORM_HEAD};
    const struct mrk_update_norm_args norm = {
        .sums = mr_update_norm_count(count) - MRI_UPDATE_NORM_HEAD, .clip_norm = INFINITY, .norm = m.norm};
    const struct mrk_muon_scale_args scale = {
        .count = count, .epsilon = all->epsilon, .x = m.step, .norm = m.norm};
    const struct mrk_muon_step_args step = {
        momentum.of, MRI_MUON_SCALE * sqrtf((float)mri_max_u64(matrix->rows, matrix->columns)), m.step};
    int rc = mri_cuda_launch(s, MRK_muon_momentum, blocks, MRK_THREADS, 0, &momentum, err);
    if (!rc)
        rc = mri_cuda_launch(s, MRK_update_squares, mri_grid_blocks(norm.sums, 1), MRK_THREADS, 0, &squares,
                             err);
    if (!rc) rc = mri_cuda_launch(s, MRK_update_norm, 1, MRK_THREADS, 0, &norm, err);
    if (!rc) rc = mri_cuda_launch(s, MRK_muon_scale, blocks, MRK_THREADS, 0, &scale, err);
    if (!rc) rc = orthogonalise(s, &m, (int)matrix->rows, (int)matrix->columns, err);
    return rc ? rc : mri_cuda_launch(s, MRK_muon_step, blocks, MRK_THREADS, 0, &step, err);
}

/* Matrices, and what lies between them. */
static int muon(mri_cuda_stream *s, const mr_update_config *c, const struct mrk_update_args *all,
                mr_error *err)
{
    uint64_t from = 0;
    for (uint32_t i = 0; i < c->matrix_count; i++) {
        const mr_update_matrix *m = &c->matrices[i];
        const struct mrk_update_args between = part_of(all, from, m->at - from);
        int rc = step_by_step(s, &between, err);
        if (!rc) rc = move_matrix(s, c, all, m, err);
        if (rc) return rc;
        from = mri_min_u64(mri_align_up(m->at + m->rows * m->columns, MR_UPDATE_STRETCH), all->count);
    }
    const struct mrk_update_args rest = part_of(all, from, all->count - from);
    return step_by_step(s, &rest, err);
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
    return d->kind == MR_UPDATE_MUON ? muon(s, c, &args, err) : step_by_step(s, &args, err);
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
