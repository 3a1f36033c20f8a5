/* train/init.c: initial weights as a pure function of (seed, layer, element), so that every replica, device and run starts
 * from the same bits. Glorot & Bengio 2010: uniform in +-sqrt(6 / (fan_in + fan_out)). */
#include <math.h>

#include "train/replica.h"

static void glorot_uniform(const mr_param_info *param, uint32_t layer, uint64_t seed, float *out)
{
    const float    limit = (float)sqrt(6.0 / (double)(param->fan_in + param->fan_out));
    const uint64_t key = mri_mix64(seed ^ 0x1A17F111A17F111Au); /* apart from the keys of dropout and augmentation */
    mri_philox     bits = {{0}};
    for (uint64_t i = 0; i < param->count; i++) {
        if (i % 4 == 0) bits = mri_philox4x32(key, i / 4, layer);
        out[i] = (2.0f * mri_unit_float(bits.v[i % 4]) - 1.0f) * limit;
    }
}

void mri_init_param(const mr_param_info *param, uint32_t layer, uint64_t seed, float *out)
{
    if (strcmp(param->name, "weights") == 0) {
        glorot_uniform(param, layer, seed, out);
        return;
    }
    const bool one = strcmp(param->name, "scale") == 0 || strcmp(param->name, "variance") == 0;
    for (uint64_t i = 0; i < param->count; i++) out[i] = one ? 1.0f : 0.0f;
}
