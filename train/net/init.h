/* train/net/init.h: the values that parameters begin with. Private to train/ and its tests. */
#ifndef MRI_INIT_H
#define MRI_INIT_H

#include "train/net/net.h"

/* Initial values of a parameter of a layer, in canonical order: "weights" and "bias" as first says,
 * "recurrent" with orthogonal columns, "gate_bias" one for the forget gate and zero else, one for "scale" and
 * "variance", zero for the rest. Depends on (first, seed, layer, place in the parameter) only. MR_ENOMEM. */
int mri_init_param(const mr_param_info *param, const mri_first *first, uint32_t layer, uint64_t seed,
                   float *out);

#endif
