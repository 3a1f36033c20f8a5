/* kernels/ops/gru.c: what gated recurrent units are (Cho et al. 2014; the reset gate acts on the product, as
 * in cuDNN and Keras' reset_after). The way through the steps is recurrent.c's.
 *
 * kept: U_n h + d_n. */
#include "kernels/ops/gate_functions.h"
#include "kernels/ops/recurrent.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    return mri_recurrent_describe(d, info, 3, true, "bias", "gru", err);
}

MRI_INLINE void step_body(float *restrict gates, const float *restrict product, const float *restrict bias,
                          const float *restrict product_bias, float *restrict h, float *restrict kept,
                          size_t u, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float r = mri_gate_sigmoid(gates[i] + bias[i] + (product[i] + product_bias[i])),
                    z = mri_gate_sigmoid(gates[u + i] + bias[u + i] + (product[u + i] + product_bias[u + i])),
                    own = product[2 * u + i] + product_bias[2 * u + i],
                    n = mri_gate_tanh(gates[2 * u + i] + bias[2 * u + i] + r * own);
        gates[i] = r;
        gates[u + i] = z;
        gates[2 * u + i] = n;
        kept[i] = own;
        h[i] = (1.0f - z) * n + z * h[i];
    }
}
MRI_SIMD_LOOP(step,
              (float *restrict gates, const float *restrict product, const float *restrict bias,
               const float *restrict product_bias, float *restrict h, float *restrict kept, size_t u,
               size_t count),
              (gates, product, bias, product_bias, h, kept, u, count))

MRI_INLINE void back_body(const float *restrict gates, const float *restrict kept,
                          const float *restrict before, float *restrict dh, float *restrict dgates,
                          float *restrict dproduct, size_t u, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float r = gates[i], z = gates[u + i], n = gates[2 * u + i], d = dh[i];
        const float dn = d * (1.0f - z) * (1.0f - n * n), dz = d * (before[i] - n) * (z * (1.0f - z)),
                    dr = dn * kept[i] * (r * (1.0f - r));
        dgates[i] = dproduct[i] = dr;
        dgates[u + i] = dproduct[u + i] = dz;
        dgates[2 * u + i] = dn;
        dproduct[2 * u + i] = dn * r;
        dh[i] = d * z;
    }
}
MRI_SIMD_LOOP(back,
              (const float *restrict gates, const float *restrict kept, const float *restrict before,
               float *restrict dh, float *restrict dgates, float *restrict dproduct, size_t u, size_t count),
              (gates, kept, before, dh, dgates, dproduct, u, count))

static void cell_forward(const struct mri_cell *c)
{
    step(c->gates, c->product, c->bias[0], c->bias[1], c->h, c->kept, c->units, c->count);
}

static void cell_backward(const struct mri_cell *c)
{
    back(c->gates, c->kept, c->h_before, c->h, c->dgates, c->dproduct, c->units, c->count);
}

static const struct mri_cell_kind kind = {
    .gates = 3, .two_biases = true, .forward = cell_forward, .backward = cell_backward};

static int prepare(mri_host_op *op, mr_error *err) { return mri_recurrent_prepare(op, &kind, err); }

static const struct mri_op_code reference = MRI_RECURRENT_CODE(prepare);
const struct mri_op_code mri_gru_packed = MRI_RECURRENT_CODE(prepare);
const struct mri_op_class mri_gru_class = {
    .name = "gru", .takes_numbers = true, .describe = describe, .reference = &reference};
