/* train/net/names.c: names of layers and activations. */
#include "train/net/build.h"

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

const char *mri_layer_kind_name(mr_op_kind kind, bool average)
{
    switch (kind) {
    case MR_OP_CONV2D: return "conv2d";
    case MR_OP_POOL2D: return average ? "avg_pool" : "max_pool";
    case MR_OP_DENSE: return "dense";
    case MR_OP_ACTIVATION: return "activation";
    case MR_OP_DROPOUT: return "dropout";
    case MR_OP_BATCHNORM: return "batch_norm";
    case MR_OP_INPUT: return "input";
    case MR_OP_LOSS: return "loss";
    case MR_OP_ADD: return "add";
    case MR_OP_ONE_HOT: return "one_hot";
    case MR_OP_FIELD: return "field";
    case MR_OP_GROUPNORM: return "group_norm";
    case MR_OP_UPSAMPLE: return "upsample";
    case MR_OP_EMBEDDING: return "embedding";
    case MR_OP_CONCAT: return "concat";
    case MR_OP_PAD: return "pad";
    case MR_OP_GRU: return "gru";
    case MR_OP_LSTM: return "lstm";
    case MR_OP_CONV2D_TRANSPOSED: return "conv2d_transposed";
    case MR_OP_RESHAPE: return "reshape";
    case MR_OP_SAMPLE: return "sample";
    case MR_OP_PAIR_LOSS: return "pair_loss";
    case MR_OP_SCALE: return "scale";
    case MR_OP_LRN: return "lrn";
    case MR_OP_SOFTMAX: return "softmax";
    default: break; /* no layer is made of it */
    }
    return "?";
}
