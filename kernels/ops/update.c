/* kernels/ops/update.c: optimizer steps, one loop a rule over flat arrays. Everything element by element in float, the factors
 * that depend on the step alone computed once in double. */
#include <math.h>

#include "kernels/host_op.h"
#include "kernels/simd.h"

struct update {
    float lr, momentum, rho, beta1, beta2, epsilon, decay;
    float rate, root; /* adam: lr / (1 - beta1^t) and 1 / sqrt(1 - beta2^t). Apart, because epsilon is added between them */
    bool  nesterov;
};

struct arrays {
    float       *w, *s0, *s1;
    const float *g;
};

MRI_INLINE void sgd_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) w[i] -= u.lr * (g[i] + u.decay * w[i]);
}

MRI_INLINE void momentum_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict v = a.s0;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float step = u.lr * (g[i] + u.decay * w[i]);
        v[i] = u.momentum * v[i] - step;
        w[i] += u.nesterov ? u.momentum * v[i] - step : v[i];
    }
}

MRI_INLINE void rmsprop_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict s = a.s0;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] + u.decay * w[i];
        s[i] = u.rho * s[i] + (1 - u.rho) * d * d;
        w[i] -= u.lr * d / (sqrtf(s[i]) + u.epsilon);
    }
}

MRI_INLINE void adam_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict m = a.s0, *restrict v = a.s1;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] + u.decay * w[i];
        m[i] = u.beta1 * m[i] + (1 - u.beta1) * d;
        v[i] = u.beta2 * v[i] + (1 - u.beta2) * d * d;
        w[i] -= u.rate * m[i] / (sqrtf(v[i]) * u.root + u.epsilon);
    }
}

MRI_INLINE void adadelta_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict s = a.s0, *restrict t = a.s1;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] + u.decay * w[i];
        s[i] = u.rho * s[i] + (1 - u.rho) * d * d;
        const float step = d * sqrtf(t[i] + u.epsilon) / sqrtf(s[i] + u.epsilon);
        t[i] = u.rho * t[i] + (1 - u.rho) * step * step;
        w[i] -= u.lr * step;
    }
}

MRI_SIMD_LOOP(sgd, (struct arrays a, struct update u, size_t n), (a, u, n))
MRI_SIMD_LOOP(momentum, (struct arrays a, struct update u, size_t n), (a, u, n))
MRI_SIMD_LOOP(rmsprop, (struct arrays a, struct update u, size_t n), (a, u, n))
MRI_SIMD_LOOP(adam, (struct arrays a, struct update u, size_t n), (a, u, n))
MRI_SIMD_LOOP(adadelta, (struct arrays a, struct update u, size_t n), (a, u, n))

typedef void update_loop(struct arrays a, struct update u, size_t n);

static update_loop *const loops[] = {
    [MR_UPDATE_SGD] = sgd,   [MR_UPDATE_MOMENTUM] = momentum, [MR_UPDATE_RMSPROP] = rmsprop,
    [MR_UPDATE_ADAM] = adam, [MR_UPDATE_ADADELTA] = adadelta,
};

static struct update settings_of(const mr_update_desc *d)
{
    struct update u = {.lr = d->lr, .momentum = d->momentum, .rho = d->rho, .beta1 = d->beta1, .beta2 = d->beta2,
                       .epsilon = d->epsilon, .decay = d->weight_decay, .nesterov = d->nesterov};
    if (d->kind == MR_UPDATE_ADAM) {
        u.rate = (float)((double)d->lr / (1 - pow((double)d->beta1, (double)d->step)));
        u.root = (float)(1 / sqrt(1 - pow((double)d->beta2, (double)d->step)));
    }
    return u;
}

#define BLOCK 16384u

struct update_args {
    mr_update_desc desc;
    uint64_t       count;
    struct arrays  arrays;
};

static int run_update(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)err;
    const struct update_args *a = args;
    const struct update       u = settings_of(&a->desc);
    const struct arrays       all = a->arrays;
    update_loop *const        loop = loops[a->desc.kind];
    const uint64_t            count = a->count;
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (uint64_t at = 0; at < count; at += BLOCK) {
        const struct arrays part = {all.w + at, all.s0 ? all.s0 + at : NULL, all.s1 ? all.s1 + at : NULL, all.g + at};
        loop(part, u, (size_t)mri_min_u64(BLOCK, count - at));
    }
    return MR_OK;
}

int mri_host_update_async(mr_stream *s, const mr_update_desc *desc, uint64_t count, float *weights, const float *grads,
                          float *state0, float *state1)
{
    const struct update_args args = {*desc, count, {weights, state0, state1, grads}};
    return mri_host_push((mri_host_stream *)s, run_update, &args, sizeof args, 0, NULL);
}
