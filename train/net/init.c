/* train/net/init.c: initial weights as a pure function of (seed, layer, element), so that every replica,
 * device and run starts from the same bits. Uniform in +-sqrt(3 * variance); the variance is Glorot's or
 * He's. */
#include <math.h>

#include "train/net/init.h"

static double limit_of(const mr_param_info *param, mr_init init)
{
    switch (init) {
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

void mri_init_param(const mr_param_info *param, mr_init init, uint32_t layer, uint64_t seed, float *out)
{
    if (strcmp(param->name, "weights") == 0) {
        fill_uniform(param, (float)limit_of(param, init), layer, seed, out);
        return;
    }
    const bool one = strcmp(param->name, "scale") == 0 || strcmp(param->name, "variance") == 0;
    for (uint64_t i = 0; i < param->count; i++) out[i] = one ? 1.0f : 0.0f;
}
