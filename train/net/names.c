/* train/net/names.c: names of layers and activations. */
#include <stdio.h>

#include "train/net/build.h"

const char *mri_layer_name(const mri_layer *l)
{
    return l->kind->name_of ? l->kind->name_of(l) : l->kind->name;
}

static const char *const activation_names[] = {
    [MR_ACT_NONE] = "",           [MR_ACT_RELU] = "relu", [MR_ACT_TANH] = "tanh",
    [MR_ACT_SIGMOID] = "sigmoid", [MR_ACT_SELU] = "selu", [MR_ACT_LEAKY_RELU] = "leaky relu",
    [MR_ACT_RELU6] = "relu6",     [MR_ACT_SILU] = "silu", [MR_ACT_GELU] = "gelu",
};

bool mri_activation_is_known(mr_activation a) { return (uint32_t)a < MRI_ARRAY_COUNT(activation_names); }

const char *mri_activation_name(mr_activation a)
{
    return mri_activation_is_known(a) ? activation_names[a] : "?";
}

void mri_layer_text_plain(const mri_layer *l, const char *name, char *out, size_t bytes)
{
    const char *act = mri_activation_name(l->op.activation), *gap = *act ? " " : "";
    char other[16] = "";
    if (l->kind->takes_two && l->in2) snprintf(other, sizeof other, " %u", l->in2 - 1);
    else if (l->kind->takes_two) snprintf(other, sizeof other, " input");
    snprintf(out, bytes, "%s%s%s%s", name, other, gap, act);
}
