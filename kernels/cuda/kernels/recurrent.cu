/* kernels/cuda/kernels/recurrent.cu: the cells of recurrent layers, one step at a time: the arithmetic
 * between the products. Formulas: ops/gru.c, ops/lstm.c; in float, values of tensors rounded once. */
#include "kernels/cuda/kernels/values.h"

MRK_INLINE float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/* Where unit u of sample i is: among states, in rows of all steps, in rows of gates, in y. */
struct place {
    uint64_t state, row, gates, product, y;
    uint32_t unit;
};

MRK_INLINE place place_of(const mrk_recurrent &r, uint64_t at)
{
    const uint64_t sample = at / r.units, row = sample * r.steps + r.step,
                   wide = (uint64_t)r.units * (r.lstm ? 4 : 3);
    place p;
    p.unit = (uint32_t)(at - sample * r.units);
    p.state = at;
    p.row = row * r.units + p.unit;
    p.gates = row * wide + p.unit;
    p.product = sample * wide + p.unit;
    p.y = r.sequences ? p.row : at;
    return p;
}

/* Sum of gate g before its function; own: the recurrent part of it. */
MRK_INLINE float sum_of(const mrk_recurrent_forward_args &a, const place &p, uint32_t g, float *own)
{
    const uint32_t at = g * a.r.units, bias = at + p.unit;
    *own = (a.product ? a.product[p.product + at] : 0) + (a.recurrent_bias ? a.recurrent_bias[bias] : 0);
    return a.gates[p.gates + at] + a.bias[bias];
}

MRK_INLINE float gru_forward(const mrk_recurrent_forward_args &a, const place &p, float h, float *kept)
{
    const uint32_t u = a.r.units;
    float own;
    float r = sum_of(a, p, 0, &own);
    r = sigmoid(r + own);
    float z = sum_of(a, p, 1, &own);
    z = sigmoid(z + own);
    float n = sum_of(a, p, 2, &own);
    n = tanhf(n + r * own);
    a.gates[p.gates] = r;
    a.gates[p.gates + u] = z;
    a.gates[p.gates + 2 * u] = n;
    *kept = own;
    return (1 - z) * n + z * h;
}

MRK_INLINE float lstm_forward(const mrk_recurrent_forward_args &a, const place &p, float *kept)
{
    const uint32_t u = a.r.units;
    float v[4], own;
    MRK_UNROLL for (uint32_t g = 0; g < 4; g++)
    {
        v[g] = sum_of(a, p, g, &own);
        v[g] = g == 2 ? tanhf(v[g] + own) : sigmoid(v[g] + own);
        a.gates[p.gates + g * u] = v[g];
    }
    const float c = v[1] * (a.r.step > 0 ? a.c[p.state] : 0) + v[0] * v[2];
    a.c[p.state] = *kept = c;
    return v[3] * tanhf(c);
}

template <class T> MRK_INLINE void forward(const mrk_recurrent_forward_args &a)
{
    const uint64_t count = (uint64_t)a.r.n * a.r.units;
    for (uint64_t at = mrk_thread(); at < count; at += mrk_threads()) {
        const place p = place_of(a.r, at);
        const float h = a.r.step > 0 ? a.h[at] : 0;
        float kept;
        const float next = a.r.lstm ? lstm_forward(a, p, &kept) : gru_forward(a, p, h, &kept);
        a.h[at] = next;
        mrk_round(next, (T *)a.factor + at);
        if (a.kept) a.kept[p.row] = kept;
        if (a.before) mrk_round(h, (T *)a.before + p.row);
        if (a.y) mrk_round(next, (T *)a.y + p.y);
    }
}

/* A step forward. Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_recurrent_forward(const struct mrk_recurrent_forward_args a)
{
    if (a.r.dtype == MR_TENSOR_BF16) forward<mrk_bf16>(a);
    else if (a.r.dtype == MR_TENSOR_F16) forward<mrk_f16>(a);
    else forward<float>(a);
}

template <class T> MRK_INLINE void gru_backward(const mrk_recurrent_backward_args &a, const place &p, float d)
{
    const uint32_t u = a.r.units;
    const float r = a.gates[p.gates], z = a.gates[p.gates + u], n = a.gates[p.gates + 2 * u],
                before = mrk_float(((const T *)a.before)[p.row]);
    const float dn = d * (1 - z) * (1 - n * n), dz = d * (before - n) * (z * (1 - z)),
                dr = dn * a.kept[p.row] * (r * (1 - r));
    T *const to[2] = {(T *)a.dgates + p.gates, (T *)a.dproduct + p.gates};
    MRK_UNROLL for (int k = 0; k < 2; k++)
    {
        mrk_round(dr, to[k]);
        mrk_round(dz, to[k] + u);
        mrk_round(k ? dn * r : dn, to[k] + 2 * u);
    }
    a.dh[p.state] = d * z;
}

template <class T>
MRK_INLINE void lstm_backward(const mrk_recurrent_backward_args &a, const place &p, float d)
{
    const uint32_t u = a.r.units;
    const float i = a.gates[p.gates], f = a.gates[p.gates + u], g = a.gates[p.gates + 2 * u],
                o = a.gates[p.gates + 3 * u], t = tanhf(a.kept[p.row]);
    const float dc = (a.through ? a.dc[p.state] : 0) + d * o * (1 - t * t),
                before = a.r.step > 0 ? a.kept[p.row - u] : 0;
    T *const to = (T *)a.dgates + p.gates;
    mrk_round(dc * g * (i * (1 - i)), to);
    mrk_round(dc * before * (f * (1 - f)), to + u);
    mrk_round(dc * i * (1 - g * g), to + 2 * u);
    mrk_round(d * t * (o * (1 - o)), to + 3 * u);
    a.dc[p.state] = dc * f;
    a.dh[p.state] = 0; /* what flows back goes through the product */
}

template <class T> MRK_INLINE void backward(const mrk_recurrent_backward_args &a)
{
    const uint64_t count = (uint64_t)a.r.n * a.r.units;
    for (uint64_t at = mrk_thread(); at < count; at += mrk_threads()) {
        const place p = place_of(a.r, at);
        const float d =
            (a.through ? a.dh[at] + a.through[at] : 0) + (a.dy ? mrk_float(((const T *)a.dy)[p.y]) : 0);
        if (a.r.lstm) lstm_backward<T>(a, p, d);
        else gru_backward<T>(a, p, d);
    }
}

/* A step backward. Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_recurrent_backward(const struct mrk_recurrent_backward_args a)
{
    if (a.r.dtype == MR_TENSOR_BF16) backward<mrk_bf16>(a);
    else if (a.r.dtype == MR_TENSOR_F16) backward<mrk_f16>(a);
    else backward<float>(a);
}
