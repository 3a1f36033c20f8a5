/* kernels/ops/update.c: optimizer steps, one loop a rule over flat arrays. Everything element by element in
 * float, the factors that depend on the step alone computed once in double.
 *
 * With a loss scale the gradients are first looked through for one that is infinite or not a number: then
 * nothing is updated. */
#include <math.h>

#include "kernels/backend/update_rules.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

struct update {
    float lr, momentum, rho, beta1, beta2, epsilon, decay;
    float rate, root; /* adam_rate and adam_root of the step */
    float unscale;    /* what gradients are multiplied with: 1 / the loss's scale, a power of two */
    bool nesterov;
};

struct arrays {
    float *w, *s0, *s1;
    const float *g;
};

MRI_INLINE void sgd_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) w[i] -= u.lr * (g[i] * u.unscale + u.decay * w[i]);
}

MRI_INLINE void momentum_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict v = a.s0;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float step = u.lr * (g[i] * u.unscale + u.decay * w[i]);
        v[i] = u.momentum * v[i] - step;
        w[i] += u.nesterov ? u.momentum * v[i] - step : v[i];
    }
}

MRI_INLINE void rmsprop_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict s = a.s0;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] * u.unscale + u.decay * w[i];
        s[i] = u.rho * s[i] + (1 - u.rho) * d * d;
        w[i] -= u.lr * d / (sqrtf(s[i]) + u.epsilon);
    }
}

MRI_INLINE void adam_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict m = a.s0, *restrict v = a.s1;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] * u.unscale + u.decay * w[i];
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
        const float d = g[i] * u.unscale + u.decay * w[i];
        s[i] = u.rho * s[i] + (1 - u.rho) * d * d;
        const float step = d * sqrtf(t[i] + u.epsilon) / sqrtf(s[i] + u.epsilon);
        t[i] = u.rho * t[i] + (1 - u.rho) * step * step;
        w[i] -= u.lr * step;
    }
}

MRI_INLINE void adagrad_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict s = a.s0;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] * u.unscale + u.decay * w[i];
        s[i] += d * d;
        w[i] -= u.lr * d / (sqrtf(s[i]) + u.epsilon);
    }
}

MRI_INLINE void adamax_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict m = a.s0, *restrict most = a.s1;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] * u.unscale + u.decay * w[i], before = u.beta2 * most[i], now = fabsf(d);
        m[i] = u.beta1 * m[i] + (1 - u.beta1) * d;
        most[i] = before > now ? before : now;
        w[i] -= u.rate * m[i] / (most[i] + u.epsilon);
    }
}

MRI_INLINE void nadam_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict m = a.s0, *restrict v = a.s1;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] * u.unscale + u.decay * w[i];
        m[i] = u.beta1 * m[i] + (1 - u.beta1) * d;
        v[i] = u.beta2 * v[i] + (1 - u.beta2) * d * d;
        w[i] -= (u.rate * m[i] + u.lr * d) / (sqrtf(v[i]) * u.root + u.epsilon);
    }
}

MRI_INLINE void adamw_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict m = a.s0, *restrict v = a.s1;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] * u.unscale;
        m[i] = u.beta1 * m[i] + (1 - u.beta1) * d;
        v[i] = u.beta2 * v[i] + (1 - u.beta2) * d * d;
        w[i] -= u.lr * (u.decay * w[i]) + u.rate * m[i] / (sqrtf(v[i]) * u.root + u.epsilon);
    }
}

#define LOOP(kind, name, states) MRI_SIMD_LOOP(name, (struct arrays a, struct update u, size_t n), (a, u, n))
MRI_UPDATE_RULES(LOOP)
#undef LOOP

typedef void update_loop(struct arrays a, struct update u, size_t n);

#define ENTRY(kind, name, states) [MR_UPDATE_##kind] = name,
static update_loop *const loops[] = {MRI_UPDATE_RULES(ENTRY)};
#undef ENTRY

static struct update settings_of(const mr_update_desc *d, const mr_step_values *v)
{
    return (struct update){.lr = v->lr,
                           .momentum = d->momentum,
                           .rho = d->rho,
                           .beta1 = d->beta1,
                           .beta2 = d->beta2,
                           .epsilon = d->epsilon,
                           .decay = d->weight_decay,
                           .rate = v->adam_rate,
                           .root = v->adam_root,
                           .unscale = 1,
                           .nesterov = d->nesterov};
}

#define BLOCK 16384u

struct update_args {
    mr_update_desc desc;
    mr_update_args args;
};

/* 1 when any of g is infinite or not a number: then its exponent is all ones. */
MRI_INLINE void overflow_body(const float *g, size_t n, uint32_t *out)
{
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, g + i, sizeof bits);
        found |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    *out = found;
}
MRI_SIMD_LOOP(overflow, (const float *g, size_t n, uint32_t *out), (g, n, out))

static uint32_t any_overflow(const float *g, uint64_t count)
{
    uint32_t found = 0;
#pragma omp parallel for schedule(static) reduction(| : found) if (count > MRI_PARALLEL_ELEMENTS)
    for (uint64_t at = 0; at < count; at += BLOCK) {
        uint32_t here;
        overflow(g + at, (size_t)mri_min_u64(BLOCK, count - at), &here);
        found |= here;
    }
    return found;
}

#define MOST_LOSS_SCALE 16777216.0f /* 2^24 */

/* After an update, or one that was skipped. */
static void adapt(mr_loss_scale *l, bool skipped)
{
    if (skipped) {
        l->skipped++;
        l->good = 0;
        if (l->growth_steps && l->scale > 1) l->scale *= 0.5f;
    } else if (++l->good >= l->growth_steps && l->growth_steps) {
        l->good = 0;
        if (l->scale < MOST_LOSS_SCALE) l->scale *= 2;
    }
}

static int run_update(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)err;
    const struct update_args *a = args;
    struct update u = settings_of(&a->desc, a->args.values);
    mr_loss_scale *const scale = a->args.loss_scale;
    const struct arrays all = {a->args.weights, a->args.state[0], a->args.state[1], a->args.grads};
    update_loop *const loop = loops[a->desc.kind];
    const uint64_t count = a->args.count;
    if (scale && any_overflow(a->args.grads, count)) {
        adapt(scale, true);
        return MR_OK;
    }
    if (scale) u.unscale = 1 / scale->scale;
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (uint64_t at = 0; at < count; at += BLOCK) {
        const struct arrays part = {all.w + at, all.s0 ? all.s0 + at : NULL, all.s1 ? all.s1 + at : NULL,
                                    all.g + at};
        loop(part, u, (size_t)mri_min_u64(BLOCK, count - at));
    }
    if (scale) adapt(scale, false);
    return MR_OK;
}

int mri_host_update_async(mr_stream *s, const mr_update_desc *desc, const mr_update_args *args)
{
    const struct update_args a = {*desc, *args};
    return mri_host_push((mri_host_stream *)s, run_update, &a, sizeof a, 0, NULL);
}
