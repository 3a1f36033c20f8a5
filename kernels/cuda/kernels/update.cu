/* kernels/cuda/kernels/update.cu: optimizer steps over flat f32 arrays, each rule one pass; and the scaling
 * of the loss around them:
 *
 *     overflow = 0 ──► check (any gradient not finite: overflow = 1) ──► update (does nothing on overflow)
 *                                                                           └──► end (the next scale)
 *
 * and the norm of all gradients before it, where that has a limit: squares (of stretches) ──► norm.
 *
 * Everything element by element in float, in the order of ops/update.c. */
#include "kernels/backend/update_rules.h"
#include "kernels/cuda/kernels/join.h"
#include "kernels/cuda/kernels/values.h"

template <int N> MRK_INLINE uint32_t infinite(const mrk_update_check_args &a, uint64_t at)
{
    float g[N];
    uint32_t found = 0;
    mrk_read<float, N>(a.grads, at, g);
    MRK_UNROLL for (int i = 0; i < N; i++) found |= (mrk_bits(g[i]) & 0x7F800000u) == 0x7F800000u;
    return found;
}

/* loss_scale->overflow = 1 when any of grads[count] is infinite or not a number; stays otherwise. Every
 * thread that found one writes the same value. Any grid. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_update_check(const struct mrk_update_check_args a)
{
    const uint64_t packs = a.vectors ? a.count / 4 : 0;
    uint32_t found = 0;
    MRK_UNROLL_SOME for (uint64_t i = mrk_thread(); i < packs; i += mrk_threads()) found |=
        infinite<4>(a, 4 * i);
    for (uint64_t i = 4 * packs + mrk_thread(); i < a.count; i += mrk_threads()) found |= infinite<1>(a, i);
    if (found) a.loss_scale->overflow = 1;
}

MRK_INLINE float unscaled_by(const mr_loss_scale *l) { return l ? 1 / l->scale : 1; }

/* Clamp to [-limit, limit]; a NaN stays a NaN. */
MRK_INLINE float clipped(float d, float limit)
{
    const float below = d > limit ? limit : d;
    return below < -limit ? -limit : below;
}

template <int N> MRK_INLINE double squares(const mrk_update_squares_args &a, float unscale, uint64_t at)
{
    float g[N];
    double sum = 0;
    mrk_read<float, N>(a.grads, at, g);
    for (int i = 0; i < N; i++) {
        const double d = clipped(g[i] * unscale, a.clip_value);
        sum += d * d;
    }
    return sum;
}

/* sums[b] = squares of stretch b. Grid: a block of MRK_THREADS for each stretch, or fewer that take turns.
 * Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_update_squares(const struct mrk_update_squares_args a)
{
    __shared__ double share[MRK_THREADS];
    const uint64_t each = MRI_UPDATE_NORM_FLOATS;
    const float unscale = unscaled_by(a.loss_scale);
    for (uint64_t b = blockIdx.x; b * each < a.count; b += gridDim.x) {
        const uint64_t from = b * each, to = a.count - from < each ? a.count : from + each;
        const uint64_t packed = a.vectors ? from + (to - from) / 4 * 4 : from;
        double sum = 0;
        for (uint64_t i = from + 4 * threadIdx.x; i < packed; i += 4 * MRK_THREADS)
            sum += squares<4>(a, unscale, i);
        for (uint64_t i = packed + threadIdx.x; i < to; i += MRK_THREADS) sum += squares<1>(a, unscale, i);
        sum = joined(sum, share, join_sum());
        if (threadIdx.x == 0) a.sums[b] = sum;
    }
}

/* One block of MRK_THREADS. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_update_norm(const struct mrk_update_norm_args a)
{
    __shared__ double share[MRK_THREADS];
    const double *sums = a.norm + MRI_UPDATE_NORM_HEAD;
    double sum = 0;
    for (uint64_t i = threadIdx.x; i < a.sums; i += MRK_THREADS) sum += sums[i];
    sum = joined(sum, share, join_sum());
    if (threadIdx.x > 0) return;
    const double norm = sqrt(sum), limit = a.clip_norm;
    a.norm[0] = sum;
    a.norm[1] = norm > limit ? limit / norm : 1;
}

struct settings {
    float lr, rate, root, unscale, factor;
};

MRK_INLINE settings settings_of(const mrk_update_args &a)
{
    settings s;
    s.lr = a.values->lr;
    s.rate = a.values->adam_rate;
    s.root = a.values->adam_root;
    s.unscale = unscaled_by(a.loss_scale);
    s.factor = a.norm ? (float)a.norm[1] : 1;
    return s;
}

/* w, s0, s1 and the gradient g of one weight. */
template <int KIND>
MRK_INLINE void step_of(const mrk_update_args &a, const settings &s, float decay, float g, float &w,
                        float &s0, float &s1)
{
    const float plain = clipped(g * s.unscale, a.clip_value) * s.factor;
    const bool apart = KIND == MR_UPDATE_ADAMW || KIND == MR_UPDATE_MUON; /* decay is no part of the gradient
                                                                           */
    const float d = apart ? plain : plain + decay * w;
    if (KIND == MR_UPDATE_SGD) {
        w -= s.lr * d;
    } else if (KIND == MR_UPDATE_MOMENTUM) {
        const float step = s.lr * d;
        s0 = a.momentum * s0 - step;
        w += a.nesterov ? a.momentum * s0 - step : s0;
    } else if (KIND == MR_UPDATE_RMSPROP) {
        s0 = a.rho * s0 + (1 - a.rho) * d * d;
        w -= s.lr * d / (sqrtf(s0) + a.epsilon);
    } else if (KIND == MR_UPDATE_RMSPROP_MOMENTUM) {
        s0 = a.rho * s0 + (1 - a.rho) * d * d;
        s1 = a.momentum * s1 + s.lr * d / sqrtf(s0 + s.root + a.epsilon);
        w -= s1;
    } else if (KIND == MR_UPDATE_ADADELTA) {
        s0 = a.rho * s0 + (1 - a.rho) * d * d;
        const float step = d * sqrtf(s1 + a.epsilon) / sqrtf(s0 + a.epsilon);
        s1 = a.rho * s1 + (1 - a.rho) * step * step;
        w -= s.lr * step;
    } else if (KIND == MR_UPDATE_ADAGRAD) {
        s0 += d * d;
        w -= s.lr * d / (sqrtf(s0) + a.epsilon);
    } else if (KIND == MR_UPDATE_ADAMAX) {
        const float before = a.beta2 * s1, now = fabsf(d);
        s0 = a.beta1 * s0 + (1 - a.beta1) * d;
        s1 = before > now ? before : now;
        w -= s.rate * s0 / (s1 + a.epsilon);
    } else if (KIND == MR_UPDATE_LAMB) { /* moments are there */
        w -= s.lr * (s.rate * s0 / (sqrtf(s1) * s.root + a.epsilon) + decay * w);
    } else { /* ADAM, NADAM, ADAMW; MUON for parameters outside of matrices */
        s0 = a.beta1 * s0 + (1 - a.beta1) * d;
        s1 = a.beta2 * s1 + (1 - a.beta2) * d * d;
        const float size = sqrtf(s1) * s.root + a.epsilon;
        const float decayed = apart ? s.lr * (decay * w) : 0;
        w -= decayed + (KIND == MR_UPDATE_NADAM ? s.rate * s0 + s.lr * d : s.rate * s0) / size;
    }
}

#define STATES_OF(kind, name, states) KIND == MR_UPDATE_##kind ? states:

/* The weight decay of a stretch. */
MRK_INLINE float decay_at(const mrk_update_args &a, uint64_t at)
{
    return a.decays && !a.decays[at / MR_UPDATE_STRETCH] ? 0 : a.weight_decay;
}
template <int KIND> MRK_INLINE settings settings_at(const mrk_update_args &a, settings s, uint64_t at)
{
    if (KIND == MR_UPDATE_LAMB) s.lr *= (float)a.trust[a.tensors[at / MR_UPDATE_STRETCH]];
    return s;
}

template <int KIND, int N> MRK_INLINE void step_at(const mrk_update_args &a, const settings &all, uint64_t at)
{
    const settings s = settings_at<KIND>(a, all, at);
    enum { STATES = MRI_UPDATE_RULES(STATES_OF) 0, FIRST = STATES > 0, SECOND = STATES > 1 };
    const mrk_raw<float, N> raw_w = mrk_load<float, N>(a.weights, at),
                            raw_g = mrk_load<float, N>(a.grads, at);
    const mrk_raw<float, N> raw_0 = FIRST ? mrk_load<float, N>(a.state0, at) : raw_w;
    const mrk_raw<float, N> raw_1 = SECOND ? mrk_load<float, N>(a.state1, at) : raw_w;
    const float decay = decay_at(a, at);
    float w[N], g[N], s0[N], s1[N];
    mrk_open(raw_w, w);
    mrk_open(raw_g, g);
    mrk_open(raw_0, s0);
    mrk_open(raw_1, s1);
    MRK_UNROLL for (int i = 0; i < N; i++) step_of<KIND>(a, s, decay, g[i], w[i], s0[i], s1[i]);
    mrk_write<float, N>(a.weights, at, w);
    if (FIRST) mrk_write<float, N>(a.state0, at, s0);
    if (SECOND) mrk_write<float, N>(a.state1, at, s1);
}

template <int KIND> MRK_INLINE void update(const mrk_update_args &a, const settings &s)
{
    const uint64_t packs = a.vectors ? a.count / 4 : 0;
    for (uint64_t i = mrk_thread(); i < packs; i += mrk_threads()) step_at<KIND, 4>(a, s, 4 * i);
    for (uint64_t i = 4 * packs + mrk_thread(); i < a.count; i += mrk_threads()) step_at<KIND, 1>(a, s, i);
}

/* One step of all weights[count]; gradients are divided by the scale of the loss, a power of two, and
 * clipped. Arrays do not overlap. Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS, 4) mrk_update(const struct mrk_update_args a)
{
    if (a.loss_scale && a.loss_scale->overflow) return;
    const settings s = settings_of(a);
#define CASE(kind, name, states)                                                                             \
    case MR_UPDATE_##kind: update<MR_UPDATE_##kind>(a, s); break;
    switch (a.kind) {
        MRI_UPDATE_RULES(CASE)
    }
#undef CASE
}

/* LAMB's moments, and the squares of each stretch. A sixteenth of the block's threads for each stretch, four
 * weights a thread. Grid: a block for 16 stretches. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_update_moments(const struct mrk_update_moments_args of)
{
    __shared__ double of_w[MRK_THREADS], of_x[MRK_THREADS];
    enum { LANES = MR_UPDATE_STRETCH / 4, EACH = MRK_THREADS / LANES };
    const mrk_update_args &a = of.of;
    if (a.loss_scale && a.loss_scale->overflow) return; /* all threads alike */
    const settings s = settings_of(a);
    const uint32_t lane = threadIdx.x % LANES;
    const uint64_t stretch = (uint64_t)blockIdx.x * EACH + threadIdx.x / LANES,
                   from = stretch * MR_UPDATE_STRETCH + 4 * lane;
    double squares_w = 0, squares_x = 0;
    for (uint64_t i = from; i < from + 4 && i < a.count; i++) {
        const float w = a.weights[i], d = clipped(a.grads[i] * s.unscale, a.clip_value) * s.factor;
        const float m = a.beta1 * a.state0[i] + (1 - a.beta1) * d,
                    v = a.beta2 * a.state1[i] + (1 - a.beta2) * d * d;
        const float x = s.rate * m / (sqrtf(v) * s.root + a.epsilon) + decay_at(a, i) * w;
        a.state0[i] = m;
        a.state1[i] = v;
        squares_w += (double)w * w;
        squares_x += (double)x * x;
    }
    of_w[threadIdx.x] = squares_w;
    of_x[threadIdx.x] = squares_x;
    for (uint32_t half = LANES / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane >= half) continue;
        of_w[threadIdx.x] += of_w[threadIdx.x + half];
        of_x[threadIdx.x] += of_x[threadIdx.x + half];
    }
    if (lane > 0 || stretch * MR_UPDATE_STRETCH >= a.count) return;
    of.sums[2 * stretch] = of_w[threadIdx.x];
    of.sums[2 * stretch + 1] = of_x[threadIdx.x];
}

/* The first stretch whose tensor is not below. */
MRK_INLINE uint64_t first_of(const mrk_update_trust_args &a, uint32_t tensor)
{
    uint64_t low = 0, high = a.stretches;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (a.tensors[middle] < tensor) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* trust[t] = |w| / |x| of tensor t. Grid: a block of MRK_THREADS for each tensor. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_update_trust(const struct mrk_update_trust_args a)
{
    __shared__ double share[MRK_THREADS];
    const uint64_t from = first_of(a, blockIdx.x), to = first_of(a, blockIdx.x + 1);
    double of_w = 0, of_x = 0;
    for (uint64_t i = from + threadIdx.x; i < to; i += MRK_THREADS)
        of_w += a.sums[2 * i], of_x += a.sums[2 * i + 1];
    of_w = joined(of_w, share, join_sum());
    of_x = joined(of_x, share, join_sum());
    if (threadIdx.x == 0) a.trust[blockIdx.x] = of_w > 0 && of_x > 0 ? sqrt(of_w) / sqrt(of_x) : 1;
}

/* ---- MUON: a matrix at a time (ops/matrix/orthogonal.h) ---- */

/* Any grid, here and below. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_muon_momentum(const struct mrk_muon_momentum_args m)
{
    const mrk_update_args &a = m.of;
    if (a.loss_scale && a.loss_scale->overflow) return;
    const settings s = settings_of(a);
    for (uint64_t i = mrk_thread(); i < a.count; i += mrk_threads()) {
        const float share = (1 - a.momentum) * (clipped(a.grads[i] * s.unscale, a.clip_value) * s.factor),
                    now = a.momentum * a.state0[i] + share;
        a.state0[i] = now;
        m.step[i] = a.nesterov ? a.momentum * now + share : now;
    }
}

extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_muon_scale(const struct mrk_muon_scale_args a)
{
    const double norm = sqrt(a.norm[0]);
    const float share = (float)(1 / (norm > (double)a.epsilon ? norm : (double)a.epsilon));
    for (uint64_t i = mrk_thread(); i < a.count; i += mrk_threads()) a.x[i] *= share;
}

extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_muon_blend(const struct mrk_muon_blend_args a)
{
    for (uint64_t i = mrk_thread(); i < a.count; i += mrk_threads()) a.x[i] = a.p * a.x[i] + a.q * a.y[i];
}

extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_muon_step(const struct mrk_muon_step_args m)
{
    const mrk_update_args &a = m.of;
    if (a.loss_scale && a.loss_scale->overflow) return;
    const float lr = a.values->lr, rate = lr * m.scale;
    for (uint64_t i = mrk_thread(); i < a.count; i += mrk_threads())
        a.weights[i] -= lr * (decay_at(a, i) * a.weights[i]) + rate * m.step[i];
}

/* What follows from the update: half the scale and a skip counted after an overflow, twice the scale after
 * growth_steps good ones in a row; between 1 and 2^24. One thread. */
extern "C" __global__ void mrk_update_end(const struct mrk_update_end_args a)
{
    mr_loss_scale *l = a.loss_scale;
    if (threadIdx.x > 0 || blockIdx.x > 0) return;
    const bool fixed = l->growth_steps == 0;
    if (l->overflow) {
        l->overflow = 0;
        l->skipped++;
        l->good = 0;
        if (!fixed && l->scale > 1) l->scale /= 2;
    } else if (!fixed && ++l->good >= l->growth_steps) {
        l->good = 0;
        if (l->scale < 16777216.0f) l->scale *= 2;
    }
}

template <int N> MRK_INLINE void average_at(const mrk_average_args &a, uint64_t at)
{
    const mrk_raw<float, N> mine = mrk_load<float, N>(a.average, at), other = mrk_load<float, N>(a.from, at);
    float v[N], u[N];
    mrk_open(mine, v);
    mrk_open(other, u);
    MRK_UNROLL for (int i = 0; i < N; i++) v[i] += a.share * (u[i] - v[i]);
    mrk_write<float, N>(a.average, at, v);
}

/* average[i] += share * (from[i] - average[i]). Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_average(const struct mrk_average_args a)
{
    const uint64_t packs = a.vectors ? a.count / 4 : 0;
    for (uint64_t i = mrk_thread(); i < packs; i += mrk_threads()) average_at<4>(a, 4 * i);
    for (uint64_t i = 4 * packs + mrk_thread(); i < a.count; i += mrk_threads()) average_at<1>(a, i);
}
