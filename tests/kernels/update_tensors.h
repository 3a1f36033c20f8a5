/* tests/kernels/update_tensors.h: what an update has to know of the tensors that the weights are of. */
#ifndef MRT_UPDATE_TENSORS_H
#define MRT_UPDATE_TENSORS_H

#include "tests/kernels/rig.h"

/* A table for cfg->args.count weights: tensors of 1, 2, 3, ... stretches (each: of one), and the arrays that
 * belong to it. */
static inline void set_tensors(struct rig *r, mr_update_config *cfg, uint64_t count, bool each)
{
    const uint64_t stretches = (count + MR_UPDATE_STRETCH - 1) / MR_UPDATE_STRETCH;
    uint32_t *tensors = rig_memory(r, (size_t)stretches * sizeof *tensors), tensor = 0;
    for (uint64_t s = 0, left = 1; s < stretches; s++, left--) {
        if (left == 0) left = each ? 1 : ++tensor + 1;
        tensors[s] = each ? (uint32_t)s : tensor;
    }
    cfg->tensors = tensors;
    cfg->tensor_count = tensors[stretches - 1] + 1;
    cfg->trust = rig_memory(r, (size_t)mr_update_trust_count(count, cfg->tensor_count) * sizeof *cfg->trust);
}

#endif
