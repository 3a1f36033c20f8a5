/* kernels/backend/update_rules.c: what holds of updates on every device. */
#include <math.h>

#include "kernels/backend/backend.h"

uint32_t mr_update_state_count(mr_update_kind kind)
{
    switch (kind) {
    case MR_UPDATE_SGD: return 0;
    case MR_UPDATE_MOMENTUM:
    case MR_UPDATE_RMSPROP: return 1;
    case MR_UPDATE_ADAM:
    case MR_UPDATE_ADADELTA: return 2;
    }
    return 0;
}

int mr_update_values(const mr_update_desc *desc, mr_step_values *out)
{
    out->lr = desc->lr;
    out->adam_rate = out->adam_root = 0;
    if (desc->kind != MR_UPDATE_ADAM) return MR_OK;
    if (desc->step < 1) return MR_EINVAL;
    /* apart, because epsilon is added between them */
    out->adam_rate = (float)((double)desc->lr / (1 - pow((double)desc->beta1, (double)desc->step)));
    out->adam_root = (float)(1 / sqrt(1 - pow((double)desc->beta2, (double)desc->step)));
    return MR_OK;
}
