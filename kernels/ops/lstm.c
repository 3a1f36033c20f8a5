/* kernels/ops/lstm.c: what long short-term memory is (Hochreiter & Schmidhuber 1997 with forget gates, Gers
 * et al. 2000). The way through the steps is recurrent.c's. One bias: a second one would always get the same
 * gradient.
 *
 * kept: c. */
#include "kernels/ops/gate_functions.h"
#include "kernels/ops/recurrent.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    return mri_recurrent_describe(d, info, 4, false, "gate_bias", "lstm", err);
}

MRI_INLINE void step_body(float *restrict gates, const float *restrict product, const float *restrict bias,
                          float *restrict h, float *restrict c, float *restrict kept, size_t u, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const float i = mri_gate_sigmoid(gates[k] + product[k] + bias[k]),
                    f = mri_gate_sigmoid(gates[u + k] + product[u + k] + bias[u + k]),
                    g = mri_gate_tanh(gates[2 * u + k] + product[2 * u + k] + bias[2 * u + k]),
                    o = mri_gate_sigmoid(gates[3 * u + k] + product[3 * u + k] + bias[3 * u + k]);
        gates[k] = i;
        gates[u + k] = f;
        gates[2 * u + k] = g;
        gates[3 * u + k] = o;
        kept[k] = c[k] = f * c[k] + i * g;
        h[k] = o * mri_gate_tanh(c[k]);
    }
}
MRI_SIMD_LOOP(step,
              (float *restrict gates, const float *restrict product, const float *restrict bias,
               float *restrict h, float *restrict c, float *restrict kept, size_t u, size_t count),
              (gates, product, bias, h, c, kept, u, count))

MRI_INLINE void back_body(const float *restrict gates, const float *restrict kept,
                          const float *restrict before, float *restrict dh, float *restrict dc,
                          float *restrict dgates, size_t u, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const float i = gates[k], f = gates[u + k], g = gates[2 * u + k], o = gates[3 * u + k],
                    t = mri_gate_tanh(kept[k]), d = dh[k], d_c = dc[k] + d * o * (1.0f - t * t);
        dgates[k] = d_c * g * (i * (1.0f - i));
        dgates[u + k] = d_c * before[k] * (f * (1.0f - f));
        dgates[2 * u + k] = d_c * i * (1.0f - g * g);
        dgates[3 * u + k] = d * t * (o * (1.0f - o));
        dc[k] = d_c * f;
        dh[k] = 0; /* what flows back goes through the product */
    }
}
MRI_SIMD_LOOP(back,
              (const float *restrict gates, const float *restrict kept, const float *restrict before,
               float *restrict dh, float *restrict dc, float *restrict dgates, size_t u, size_t count),
              (gates, kept, before, dh, dc, dgates, u, count))

static void cell_forward(const struct mri_cell *c)
{
    step(c->gates, c->product, c->bias[0], c->h, c->c, c->kept, c->units, c->count);
}

static void cell_backward(const struct mri_cell *c)
{
    back(c->gates, c->kept, c->kept_before, c->h, c->c, c->dgates, c->units, c->count);
}

static const struct mri_cell_kind kind = {
    .gates = 4, .has_c = true, .forward = cell_forward, .backward = cell_backward};

static int prepare(mri_host_op *op, mr_error *err) { return mri_recurrent_prepare(op, &kind, err); }

static const struct mri_op_code reference = MRI_RECURRENT_CODE(prepare);
const struct mri_op_code mri_lstm_packed = MRI_RECURRENT_CODE(prepare);
const struct mri_op_class mri_lstm_class = {
    .name = "lstm", .takes_numbers = true, .describe = describe, .reference = &reference};
