/* train/net/init.c: initial weights as a pure function of (seed, layer, element), so that every replica,
 * device and run starts from the same bits. Uniform in +-sqrt(3 * variance); the variance is Glorot's,
 * He's, or given. Recurrent weights have orthogonal columns, so that a state keeps its length on its way
 * through the steps. */
#include <math.h>

#include "train/net/init.h"

static double limit_of(const mr_param_info *param, const mri_first *first)
{
    if (first->deviation > 0) return sqrt(3.0) * (double)first->deviation;
    switch (first->init) {
    case MR_INIT_GLOROT: break;
    case MR_INIT_HE_IN: return sqrt(6.0 / (double)param->fan_in);
    case MR_INIT_HE_OUT: return sqrt(6.0 / (double)param->fan_out);
    }
    return sqrt(6.0 / (double)(param->fan_in + param->fan_out));
}

static void fill_uniform(const mr_param_info *param, float limit, uint32_t layer, uint64_t seed, float *out)
{
    const uint64_t key = mri_mix64(seed ^ 0x1A17F111A17F111Au); /* apart from the keys of dropout and
                                                                   augmentation */
    mri_philox bits = {{0}};
    for (uint64_t i = 0; i < param->count; i++) {
        if (i % 4 == 0) bits = mri_philox4x32(key, i / 4, layer);
        out[i] = (2.0f * mri_unit_float(bits.v[i % 4]) - 1.0f) * limit;
    }
}

/* Two rows turned by 45 degrees, one way or the other. */
static void turn_rows(float *restrict a, float *restrict b, uint64_t count, bool back)
{
    const float half = 0.70710678f, sign = back ? -half : half;
    for (uint64_t i = 0; i < count; i++) {
        const float x = a[i], y = b[i];
        a[i] = x * half + y * sign;
        b[i] = y * half - x * sign;
    }
}

/* Pairs of rows, drawn anew each time, are turned until every row holds a share of every other: the columns
 * of the unit matrix, which are orthogonal, stay so. Twice as many rounds as it takes to reach all rows leave
 * values spread as normal ones. No function of a library is asked, so the bits are the same everywhere. */
static int fill_orthogonal(const mr_param_info *param, uint32_t layer, uint64_t seed, float *out)
{
    const uint64_t key = mri_mix64(seed ^ 0x0C7460417060417Cu);
    const uint32_t rows = (uint32_t)param->dim[0];
    const uint64_t columns = param->dim[1];
    uint32_t *order = malloc(rows * sizeof *order), reach = 1;
    if (!order) return MR_ENOMEM;
    while (1u << reach < rows) reach++;
    memset(out, 0, param->count * sizeof *out);
    for (uint64_t i = 0; i < columns; i++) out[i * columns + i] = 1;
    for (uint32_t i = 0; i < rows; i++) order[i] = i;
    for (uint32_t round = 0; round < 2 * reach + 2; round++) {
        const uint64_t from = (uint64_t)round << 32;
        for (uint32_t i = rows; i > 1; i--) {
            const uint32_t other = mri_below(mri_philox4x32(key, from + i, layer).v[0], i),
                           last = order[i - 1];
            order[i - 1] = order[other];
            order[other] = last;
        }
        for (uint32_t i = 0; i + 1 < rows; i += 2)
            turn_rows(out + order[i] * columns, out + order[i + 1] * columns, columns,
                      mri_philox4x32(key, from + i, layer).v[1] & 1);
    }
    free(order);
    return MR_OK;
}

/* Gates in the order i, f, g, o: a memory that begins by keeping its state (Jozefowicz et al. 2015). */
static void fill_gate_bias(const mr_param_info *param, float *out)
{
    const uint64_t units = param->count / 4;
    for (uint64_t i = 0; i < param->count; i++) out[i] = i / units == 1 ? 1.0f : 0.0f;
}

int mri_init_param(const mr_param_info *param, const mri_first *first, uint32_t layer, uint64_t seed,
                   float *out)
{
    const char *name = param->name;
    if (strcmp(name, "recurrent") == 0) return fill_orthogonal(param, layer, seed, out);
    if (strcmp(name, "weights") == 0) {
        fill_uniform(param, (float)limit_of(param, first), layer, seed, out);
    } else if (strcmp(name, "gate_bias") == 0) {
        fill_gate_bias(param, out);
    } else {
        const bool one = strcmp(name, "scale") == 0 || strcmp(name, "variance") == 0;
        const float value = one ? 1 : strcmp(name, "bias") == 0 ? first->bias : 0;
        for (uint64_t i = 0; i < param->count; i++) out[i] = value;
    }
    return MR_OK;
}
