/* kernels/ops/update.c: optimizer steps, one loop a rule over flat arrays. Everything element by element in
 * float, the factors that depend on the step alone computed once in double.
 *
 *   gradient as backward left it ─ / loss scale ─ clipped by value ─ * factor of the norm ─ + decay ─► rule
 *
 * With a loss scale the gradients are first looked through for one that is infinite or not a number: then
 * nothing is updated. With a limit for the norm they are gone through once more, before the update. */
#include <math.h>

#include "kernels/backend/update_rules.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"
#include "kernels/ops/matrix/orthogonal.h"

struct update {
    float lr, momentum, rho, beta1, beta2, epsilon, decay;
    float rate, root; /* adam_rate and adam_root of the step */
    float unscale;    /* what gradients are multiplied with: 1 / the loss's scale, a power of two */
    float clip;       /* then brought into [-clip, clip]; infinity: left as they are */
    float factor;     /* then multiplied with; 1: left as they are */
    bool nesterov;
};

struct arrays {
    float *w, *s0, *s1;
    const float *g;
};

/* Clamp to the limits; a NaN stays a NaN. */
MRI_INLINE float clipped(struct update u, float g)
{
    const float d = g * u.unscale, below = d > u.clip ? u.clip : d;
    return below < -u.clip ? -u.clip : below;
}
MRI_INLINE float gradient(struct update u, float g) { return clipped(u, g) * u.factor; }

MRI_INLINE void sgd_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) w[i] -= u.lr * (gradient(u, g[i]) + u.decay * w[i]);
}

MRI_INLINE void momentum_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict v = a.s0;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float step = u.lr * (gradient(u, g[i]) + u.decay * w[i]);
        v[i] = u.momentum * v[i] - step;
        w[i] += u.nesterov ? u.momentum * v[i] - step : v[i];
    }
}

MRI_INLINE void rmsprop_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict s = a.s0;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = gradient(u, g[i]) + u.decay * w[i];
        s[i] = u.rho * s[i] + (1 - u.rho) * d * d;
        w[i] -= u.lr * d / (sqrtf(s[i]) + u.epsilon);
    }
}

MRI_INLINE void adam_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict m = a.s0, *restrict v = a.s1;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = gradient(u, g[i]) + u.decay * w[i];
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
        const float d = gradient(u, g[i]) + u.decay * w[i];
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
        const float d = gradient(u, g[i]) + u.decay * w[i];
        s[i] += d * d;
        w[i] -= u.lr * d / (sqrtf(s[i]) + u.epsilon);
    }
}

MRI_INLINE void adamax_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict m = a.s0, *restrict most = a.s1;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = gradient(u, g[i]) + u.decay * w[i], before = u.beta2 * most[i], now = fabsf(d);
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
        const float d = gradient(u, g[i]) + u.decay * w[i];
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
        const float d = gradient(u, g[i]);
        m[i] = u.beta1 * m[i] + (1 - u.beta1) * d;
        v[i] = u.beta2 * v[i] + (1 - u.beta2) * d * d;
        w[i] -= u.lr * (u.decay * w[i]) + u.rate * m[i] / (sqrtf(v[i]) * u.root + u.epsilon);
    }
}

MRI_INLINE void rmsprop_momentum_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w, *restrict s = a.s0, *restrict v = a.s1;
    const float *restrict g = a.g;
    for (size_t i = 0; i < n; i++) {
        const float d = gradient(u, g[i]) + u.decay * w[i];
        s[i] = u.rho * s[i] + (1 - u.rho) * d * d;
        v[i] = u.momentum * v[i] + u.lr * d / sqrtf(s[i] + u.root + u.epsilon);
        w[i] -= v[i];
    }
}

/* MUON for parameters outside of matrices. */
MRI_INLINE void muon_body(struct arrays a, struct update u, size_t n) { adamw_body(a, u, n); }

/* The momentum of a matrix; out: the matrix to orthogonalise. */
MRI_INLINE void muon_momentum_body(struct arrays a, struct update u, size_t n, float *restrict out)
{
    const float *restrict g = a.g;
    float *restrict m = a.s0;
    for (size_t i = 0; i < n; i++) {
        const float share = (1 - u.momentum) * gradient(u, g[i]);
        m[i] = u.momentum * m[i] + share;
        out[i] = u.nesterov ? u.momentum * m[i] + share : m[i];
    }
}
MRI_SIMD_LOOP(muon_momentum, (struct arrays a, struct update u, size_t n, float *out), (a, u, n, out))

/* rate: of the step that was made orthogonal. */
MRI_INLINE void muon_step_body(float *restrict w, const float *restrict step, struct update u, float rate,
                               size_t n)
{
    for (size_t i = 0; i < n; i++) w[i] -= u.lr * (u.decay * w[i]) + rate * step[i];
}
MRI_SIMD_LOOP(muon_step, (float *w, const float *step, struct update u, float rate, size_t n),
              (w, step, u, rate, n))

/* Before lr and the trust in it. */
MRI_INLINE float lamb_step(struct update u, float w, float m, float v)
{
    return u.rate * m / (sqrtf(v) * u.root + u.epsilon) + u.decay * w;
}

MRI_INLINE void lamb_body(struct arrays a, struct update u, size_t n)
{
    float *restrict w = a.w;
    const float *restrict m = a.s0, *restrict v = a.s1;
    for (size_t i = 0; i < n; i++) w[i] -= u.lr * lamb_step(u, w[i], m[i], v[i]);
}

/* Moments, and the squares of weights and steps of one stretch. */
MRI_INLINE void lamb_moments_body(struct arrays a, struct update u, size_t n, double *out)
{
    const float *restrict w = a.w, *restrict g = a.g;
    float *restrict m = a.s0, *restrict v = a.s1;
    double of_w[8] = {0}, of_x[8] = {0};
    for (size_t i = 0; i < n; i++) {
        const float d = gradient(u, g[i]);
        m[i] = u.beta1 * m[i] + (1 - u.beta1) * d;
        v[i] = u.beta2 * v[i] + (1 - u.beta2) * d * d;
        const double x = (double)lamb_step(u, w[i], m[i], v[i]), is = (double)w[i];
        of_w[i % 8] += is * is;
        of_x[i % 8] += x * x;
    }
    out[0] = ((of_w[0] + of_w[4]) + (of_w[2] + of_w[6])) + ((of_w[1] + of_w[5]) + (of_w[3] + of_w[7]));
    out[1] = ((of_x[0] + of_x[4]) + (of_x[2] + of_x[6])) + ((of_x[1] + of_x[5]) + (of_x[3] + of_x[7]));
}
MRI_SIMD_LOOP(lamb_moments, (struct arrays a, struct update u, size_t n, double *out), (a, u, n, out))

#define LOOP(kind, name, states) MRI_SIMD_LOOP(name, (struct arrays a, struct update u, size_t n), (a, u, n))
MRI_UPDATE_RULES(LOOP)
#undef LOOP

typedef void update_loop(struct arrays a, struct update u, size_t n);

#define ENTRY(kind, name, states) [MR_UPDATE_##kind] = name,
static update_loop *const loops[] = {MRI_UPDATE_RULES(ENTRY)};
#undef ENTRY

static struct update settings_of(const mr_update_config *c)
{
    const mr_update_desc *d = &c->rule;
    const mr_step_values *v = c->args.values;
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
                           .clip = c->clip_value > 0 ? c->clip_value : INFINITY,
                           .factor = 1,
                           .nesterov = d->nesterov};
}

#define BLOCK MRI_UPDATE_NORM_FLOATS
_Static_assert(BLOCK % MR_UPDATE_STRETCH == 0, "a block begins with a stretch");

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

/* Sum of the squares of n clipped gradients: eight sums side by side, whatever the instruction set, so that
 * all of them give the same bits. */
MRI_INLINE void squares_body(const float *g, struct update u, size_t n, double *out)
{
    double sum[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++) {
            const double d = (double)clipped(u, g[i + k]);
            sum[k] += d * d;
        }
    for (size_t k = 0; i < n; i++, k++) {
        const double d = (double)clipped(u, g[i]);
        sum[k] += d * d;
    }
    *out = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}
MRI_SIMD_LOOP(squares, (const float *g, struct update u, size_t n, double *out), (g, u, n, out))

/* The factor of each gradient that follows from the norm of all. */
static float norm_factor(const mr_update_config *c, struct update u)
{
    const uint64_t count = c->args.count, blocks = mr_update_norm_count(count) - MRI_UPDATE_NORM_HEAD;
    double *const sums = c->norm + MRI_UPDATE_NORM_HEAD;
    double total = 0;
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (uint64_t b = 0; b < blocks; b++)
        squares(c->args.grads + b * BLOCK, u, (size_t)mri_min_u64(BLOCK, count - b * BLOCK), &sums[b]);
    for (uint64_t b = 0; b < blocks; b++) total += sums[b];
    const double norm = sqrt(total), limit = (double)c->clip_norm;
    c->norm[0] = total;
    c->norm[1] = norm > limit ? limit / norm : 1;
    return (float)c->norm[1];
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

static struct arrays behind(struct arrays a, uint64_t at)
{
    return (struct arrays){a.w + at, a.s0 ? a.s0 + at : NULL, a.s1 ? a.s1 + at : NULL, a.g + at};
}

static bool decaying(const mr_update_config *c, uint64_t at)
{
    return !c->decays || c->decays[at / MR_UPDATE_STRETCH];
}

/* The stretch that is updated alike from `at` on. */
static uint64_t alike_until(const mr_update_config *c, uint64_t at, uint64_t to)
{
    const bool lamb = c->rule.kind == MR_UPDATE_LAMB;
    if (!c->decays && !lamb) return to;
    uint64_t end = at + MR_UPDATE_STRETCH;
    while (end < to && decaying(c, end) == decaying(c, at) &&
           (!lamb || c->tensors[end / MR_UPDATE_STRETCH] == c->tensors[at / MR_UPDATE_STRETCH]))
        end += MR_UPDATE_STRETCH;
    return mri_min_u64(end, to);
}

static void run_block(const mr_update_config *c, struct arrays all, struct update u, uint64_t from,
                      uint64_t to)
{
    const float decay = u.decay, lr = u.lr;
    for (uint64_t at = from, end; at < to; at = end) {
        end = alike_until(c, at, to);
        u.decay = decaying(c, at) ? decay : 0;
        if (c->rule.kind == MR_UPDATE_LAMB) u.lr = lr * (float)c->trust[c->tensors[at / MR_UPDATE_STRETCH]];
        loops[c->rule.kind](behind(all, at), u, (size_t)(end - at));
    }
}

/* LAMB: moments, and how far each tensor may go. */
static void find_trust(const mr_update_config *c, struct arrays all, struct update u)
{
    const uint64_t count = c->args.count, each = MR_UPDATE_STRETCH, stretches = (count + each - 1) / each;
    double *const ratios = c->trust, *const sums = c->trust + c->tensor_count;
    const float decay = u.decay;
#pragma omp parallel for schedule(static) firstprivate(u) if (count > MRI_PARALLEL_ELEMENTS)
    for (uint64_t s = 0; s < stretches; s++) {
        u.decay = decaying(c, s * each) ? decay : 0;
        lamb_moments(behind(all, s * each), u, (size_t)mri_min_u64(each, count - s * each), sums + 2 * s);
    }
    for (uint64_t s = 0; s < stretches;) {
        const uint32_t tensor = c->tensors[s];
        double of_w = 0, of_x = 0;
        for (; s < stretches && c->tensors[s] == tensor; s++) {
            of_w += sums[2 * s];
            of_x += sums[2 * s + 1];
        }
        ratios[tensor] = of_w > 0 && of_x > 0 ? sqrt(of_w) / sqrt(of_x) : 1;
    }
}

static void run_all(const mr_update_config *c, struct arrays all, struct update u, uint64_t from, uint64_t to)
{
#pragma omp parallel for schedule(static) if (to - from > MRI_PARALLEL_ELEMENTS)
    for (uint64_t at = from; at < to; at += BLOCK) run_block(c, all, u, at, mri_min_u64(at + BLOCK, to));
}

/* ---- MUON: matrices ---- */

static uint64_t stored(const mr_update_matrix *m)
{
    return m->op ? m->op->info.param[m->which].storage_count : m->rows * m->columns;
}

static uint64_t step_floats(uint64_t count) { return mri_align_up(count, MRI_CACHE_LINE / sizeof(float)); }

/* Room: the step as it is stored, a copy in canonical order where that differs, and scratch to orthogonalise
 * it. */
uint64_t mri_host_update_room(const mr_device *dev, const mr_update_matrix *m, uint64_t count)
{
    return sizeof(float) * (step_floats(count) + (m->op ? step_floats(m->rows * m->columns) : 0) +
                            mri_orthogonal_floats(m->rows, m->columns, dev->info.threads));
}

static int move_matrix(const mr_update_config *c, const mr_update_matrix *m, struct arrays a, struct update u,
                       mr_error *err)
{
    const uint64_t count = stored(m);
    const struct mri_op_calls *const calls = m->op ? m->op->device->backend->ops : NULL;
    float *const step = c->room, *const plain = m->op ? step + step_floats(count) : step,
                 *const room = plain + step_floats(m->rows * m->columns);
    const float rate = u.lr * MRI_MUON_SCALE * sqrtf((float)mri_max_u64(m->rows, m->columns));
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (uint64_t at = 0; at < count; at += BLOCK)
        muon_momentum(behind(a, at), u, (size_t)mri_min_u64(BLOCK, count - at), step + at);
    int rc = m->op ? calls->param_export(m->op, false, m->which, step, plain, err) : MR_OK;
    if (rc == MR_OK) mri_orthogonalise(plain, m->rows, m->columns, u.epsilon, room);
    if (rc == MR_OK && m->op) rc = calls->param_import(m->op, false, m->which, step, plain, err);
    if (rc) return rc;
#pragma omp parallel for schedule(static) if (count > MRI_PARALLEL_ELEMENTS)
    for (uint64_t from = 0; from < count; from += BLOCK) {
        struct update mine = u;
        for (uint64_t at = from, end, to = mri_min_u64(from + BLOCK, count); at < to; at = end) {
            end = alike_until(c, m->at + at, m->at + to) - m->at;
            mine.decay = decaying(c, m->at + at) ? u.decay : 0;
            muon_step(a.w + at, step + at, mine, rate, (size_t)(end - at));
        }
    }
    return MR_OK;
}

/* Matrices, and what lies between them. */
static int run_muon(const mr_update_config *c, struct arrays all, struct update u, mr_error *err)
{
    uint64_t from = 0;
    for (uint32_t i = 0; i < c->matrix_count; i++) {
        const mr_update_matrix *m = &c->matrices[i];
        run_all(c, all, u, from, m->at);
        const int rc = move_matrix(c, m, behind(all, m->at), u, err);
        if (rc) return rc;
        from = mri_min_u64(mri_align_up(m->at + stored(m), MR_UPDATE_STRETCH), c->args.count);
    }
    run_all(c, all, u, from, c->args.count);
    return MR_OK;
}

static int run_update(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s;
    const mr_update_config *c = args;
    const mr_update_args *a = &c->args;
    struct update u = settings_of(c);
    mr_loss_scale *const scale = a->loss_scale;
    const struct arrays all = {a->weights, a->state[0], a->state[1], a->grads};
    const uint64_t count = a->count;
    if (scale && any_overflow(a->grads, count)) {
        adapt(scale, true);
        return MR_OK;
    }
    if (scale) u.unscale = 1 / scale->scale;
    if (c->clip_norm > 0) u.factor = norm_factor(c, u);
    if (c->rule.kind == MR_UPDATE_LAMB) find_trust(c, all, u);
    int rc = MR_OK;
    if (c->rule.kind == MR_UPDATE_MUON) rc = run_muon(c, all, u, err);
    else run_all(c, all, u, 0, count);
    if (scale) adapt(scale, false);
    return rc;
}

int mri_host_update_async(mr_stream *s, const mr_update_config *cfg)
{
    return mri_host_push((mri_host_stream *)s, run_update, cfg, sizeof *cfg, 0, NULL);
}

/* ------------------------------------------------------------------------------ averages */

MRI_INLINE void average_body(float *restrict to, const float *restrict from, float share, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += share * (from[i] - to[i]);
}
MRI_SIMD_LOOP(average, (float *to, const float *from, float share, size_t n), (to, from, share, n))

struct average_args {
    float *average;
    const float *from;
    uint64_t count;
    float share;
};

static int run_average(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)err;
    const struct average_args *a = args;
#pragma omp parallel for schedule(static) if (a->count > MRI_PARALLEL_ELEMENTS)
    for (uint64_t at = 0; at < a->count; at += BLOCK)
        average(a->average + at, a->from + at, a->share, (size_t)mri_min_u64(BLOCK, a->count - at));
    return MR_OK;
}

int mri_host_average_async(mr_stream *s, float *to, const float *from, uint64_t count, float decay)
{
    const struct average_args args = {to, from, count, 1 - decay};
    return mri_host_push((mri_host_stream *)s, run_average, &args, sizeof args, 0, NULL);
}
