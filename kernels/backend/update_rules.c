/* kernels/backend/update_rules.c: what holds of updates on every device: names, constants, and the factors
 * that depend on the step alone. */
#include "kernels/backend/update_rules.h"

#include <math.h>

#include "base/abi.h"
#include "base/floats.h"

/* Constants: Adam and its kin, RMSprop and Adagrad as Keras has them, AdamW's decay as PyTorch has it,
 * Adadelta's rho and LAMB's as their authors, RMSprop's with momentum as EfficientNet's, Muon's as PyTorch
 * has them. */
#define ADAM_CONSTANTS .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-7f
static const mr_update_rule rules[] = {
    {"sgd", {.kind = MR_UPDATE_SGD}},
    {"momentum", {.kind = MR_UPDATE_MOMENTUM, .momentum = 0.9f}},
    {"nesterov", {.kind = MR_UPDATE_MOMENTUM, .momentum = 0.9f, .nesterov = true}},
    {"rmsprop", {.kind = MR_UPDATE_RMSPROP, .rho = 0.9f, .epsilon = 1e-7f}},
    {"adam", {.kind = MR_UPDATE_ADAM, ADAM_CONSTANTS}},
    {"adadelta", {.kind = MR_UPDATE_ADADELTA, .rho = 0.95f, .epsilon = 1e-7f}},
    {"adagrad", {.kind = MR_UPDATE_ADAGRAD, .epsilon = 1e-7f}},
    {"adamax", {.kind = MR_UPDATE_ADAMAX, ADAM_CONSTANTS}},
    {"nadam", {.kind = MR_UPDATE_NADAM, ADAM_CONSTANTS}},
    {"adamw", {.kind = MR_UPDATE_ADAMW, ADAM_CONSTANTS, .weight_decay = 0.01f}},
    {"lamb",
     {.kind = MR_UPDATE_LAMB, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-6f, .weight_decay = 0.01f}},
    {"rmsprop-momentum",
     {.kind = MR_UPDATE_RMSPROP_MOMENTUM, .rho = 0.9f, .momentum = 0.9f, .epsilon = 1e-3f}},
    {"muon",
     {.kind = MR_UPDATE_MUON, .nesterov = true, .momentum = 0.95f, ADAM_CONSTANTS, .weight_decay = 0.1f}},
};
enum { RULES = sizeof rules / sizeof *rules };

const mr_update_rule *mr_update_rule_at(uint32_t at) { return at < RULES ? &rules[at] : NULL; }

const mr_update_rule *mr_update_rule_find(const char *name)
{
    for (uint32_t i = 0; name && i < RULES; i++)
        if (strcmp(rules[i].name, name) == 0) return &rules[i];
    return NULL;
}

const char *mr_update_name(const mr_update_desc *desc)
{
    const bool two = desc && desc->kind == MR_UPDATE_MOMENTUM; /* names, with nesterov and without */
    for (uint32_t i = 0; desc && i < RULES; i++)
        if (rules[i].desc.kind == desc->kind && (!two || rules[i].desc.nesterov == desc->nesterov))
            return rules[i].name;
    return "an unknown rule";
}

uint32_t mr_update_state_count(mr_update_kind kind)
{
#define STATES(kind, name, states) [MR_UPDATE_##kind] = (states),
    static const uint8_t counts[] = {MRI_UPDATE_RULES(STATES)};
#undef STATES
    _Static_assert(sizeof counts == MR_UPDATE_KIND_COUNT, "MRI_UPDATE_RULES names every kind");
    return (unsigned)kind < MR_UPDATE_KIND_COUNT ? counts[kind] : 0;
}

uint64_t mr_update_norm_count(uint64_t count)
{
    const uint64_t each = MRI_UPDATE_NORM_FLOATS;
    return MRI_UPDATE_NORM_HEAD + count / each + (count % each != 0);
}

uint64_t mr_update_trust_count(uint64_t count, uint32_t tensor_count)
{
    return tensor_count + 2 * (count / MR_UPDATE_STRETCH + (count % MR_UPDATE_STRETCH != 0));
}

void mr_update_defaults_sized(mr_update_config *cfg, size_t struct_size)
{
    const mr_update_config all = {.clip_value = 0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

/* ------------------------------------------------------------------------------ factors of a step */

static double left_of(float beta, uint64_t step) { return 1 - pow((double)beta, (double)step); }

/* Nadam's momentum rises from half of beta1 to beta1: b_t = beta1 (1 - 0.5 * 0.96^(t / 250)). The product of
 * all so far is worked out anew each time, so that a step depends on its number alone; below 2^-54, after
 * some 400 steps with beta1 = 0.9, it no longer changes 1 minus the product. */
static void nadam_values(const mr_update_desc *d, mr_step_values *out)
{
    const double root = pow(0.96, 1.0 / 250), beta = (double)d->beta1;
    double fading = 1, product = 1;
    for (uint64_t t = 1; t <= d->step && product >= 0x1p-54; t++) {
        fading *= root;
        product *= beta * (1 - 0.5 * fading);
    }
    const double now = beta * (1 - 0.5 * pow(0.96, (double)d->step / 250)),
                 next = beta * (1 - 0.5 * pow(0.96, (double)(d->step + 1) / 250));
    out->lr = (float)((double)d->lr * (1 - now) / (1 - product));
    out->adam_rate = (float)((double)d->lr * next / (1 - product * next));
    out->adam_root = (float)(1 / sqrt(left_of(d->beta2, d->step)));
}

int mr_update_values(const mr_update_desc *desc, mr_step_values *out)
{
    MRI_DEFAULT_FLOATS;
    MRI_GIVEN(NULL, desc);
    MRI_GIVEN(NULL, out);
    out->lr = desc->lr;
    out->adam_rate = out->adam_root = 0;
    switch (desc->kind) {
    case MR_UPDATE_ADAM:
    case MR_UPDATE_ADAMAX:
    case MR_UPDATE_NADAM:
    case MR_UPDATE_ADAMW:
    case MR_UPDATE_LAMB:
    case MR_UPDATE_RMSPROP_MOMENTUM:
    case MR_UPDATE_MUON: break;
    default: return MR_OK;
    }
    if (desc->step < 1) return MR_EINVAL;
    if (desc->kind == MR_UPDATE_RMSPROP_MOMENTUM) { /* the remaining share of the mean's initial 1 */
        out->adam_root = (float)pow((double)desc->rho, (double)desc->step);
        return MR_OK;
    }
    if (desc->kind == MR_UPDATE_NADAM) {
        nadam_values(desc, out);
        return MR_OK;
    }
    /* apart, because epsilon is added between them */
    const double lr = desc->kind == MR_UPDATE_LAMB ? 1 : (double)desc->lr;
    out->adam_rate = (float)(lr / left_of(desc->beta1, desc->step));
    out->adam_root = (float)(1 / sqrt(left_of(desc->beta2, desc->step)));
    return MR_OK;
}
