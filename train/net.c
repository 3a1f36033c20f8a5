/* train/net.c: the network builder: shape inference, parameter counts and the rows of a summary.
 *
 *   mr_net_create ──► mr_net_conv2d, ... (each appends one layer, its output shape worked out at once) ──► mr_net_check
 *
 * Builder calls return nothing: the first mistake is kept in the network with the number of the layer it happened at, and
 * everything after it is ignored, so that a network reads as a plain list. Does not know devices, batches or weights. */
#include <math.h>
#include <stdio.h>

#include "train/net.h"

static const char *const activation_names[] = {
    [MR_ACT_NONE] = "", [MR_ACT_RELU] = "relu", [MR_ACT_TANH] = "tanh", [MR_ACT_SIGMOID] = "sigmoid", [MR_ACT_SELU] = "selu",
};

const char *mri_activation_name(mr_activation a)
{
    return (uint32_t)a < MRI_ARRAY_COUNT(activation_names) ? activation_names[a] : "?";
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
    }
    return "?";
}

int mr_net_create(mr_net **out, const char *name, uint32_t h, uint32_t w, uint32_t c)
{
    *out = NULL;
    if (!name || h == 0 || w == 0 || c == 0 || c > 4) return MR_EINVAL; /* mr_op_desc has room for four channels' means */
    if ((uint64_t)h * w > MRI_NET_MAX_ELEMENTS / c) return MR_EINVAL;
    mr_net *net = calloc(1, sizeof *net);
    if (!net) return MR_ENOMEM;
    snprintf(net->name, sizeof net->name, "%s", name);
    net->h = h, net->w = w, net->c = c;
    net->error = (mr_error)MR_ERROR_INIT;
    *out = net;
    return MR_OK;
}

void mr_net_destroy(mr_net *net)
{
    if (!net) return;
    free(net->layers);
    free(net);
}

/* A layer of this kind on top of what is there, its output shape that of its input; NULL once an error is kept. */
static mri_layer *begin(mr_net *net, mr_op_kind kind)
{
    if (net->error.code != MR_OK) return NULL;
    if (net->layer_count == MRI_NET_MAX_LAYERS) {
        mr_error_set(&net->error, MR_ELIMIT, "network %s: more than %u layers", net->name, MRI_NET_MAX_LAYERS);
        return NULL;
    }
    if (net->layer_count == net->layer_cap) {
        const uint32_t cap = net->layer_cap ? 2 * net->layer_cap : 16;
        mri_layer *grown = realloc(net->layers, cap * sizeof *grown);
        if (!grown) {
            mr_error_set(&net->error, MR_ENOMEM, "network %s: no memory for %u layers", net->name, cap);
            return NULL;
        }
        net->layers = grown;
        net->layer_cap = cap;
    }
    mri_layer *l = &net->layers[net->layer_count];
    memset(l, 0, sizeof *l);
    l->kind = kind;
    if (net->layer_count == 0) {
        l->out_h = net->h, l->out_w = net->w, l->out_c = net->c;
    } else {
        const mri_layer *before = l - 1;
        l->out_h = before->out_h, l->out_w = before->out_w, l->out_c = before->out_c;
    }
    return l;
}

static void refuse(mr_net *net, const mri_layer *l, const char *what)
{
    mr_error_set(&net->error, MR_EINVAL, "network %s, layer %u (%s) on %ux%ux%u: %s", net->name, net->layer_count,
                 mri_layer_kind_name(l->kind, l->average), l->out_h, l->out_w, l->out_c, what);
}

/* Give the layer its output shape and count it, or refuse what no device could hold. */
static void finish(mr_net *net, mri_layer *l, uint64_t h, uint64_t w, uint64_t c)
{
    if (l->params > MRI_NET_MAX_PARAMS) {
        refuse(net, l, "too many parameters");
    } else if (h > MRI_NET_MAX_ELEMENTS || w > MRI_NET_MAX_ELEMENTS || c > MRI_NET_MAX_ELEMENTS ||
               h * w > MRI_NET_MAX_ELEMENTS / c) {
        refuse(net, l, "its output is too large");
    } else {
        l->out_h = (uint32_t)h, l->out_w = (uint32_t)w, l->out_c = (uint32_t)c;
        net->layer_count++;
    }
}

static double elements(const mri_layer *l) { return (double)l->out_h * l->out_w * l->out_c; }

static bool known_activation(mr_activation a) { return (uint32_t)a < MRI_ARRAY_COUNT(activation_names); }

/* One axis of a window: output size and padding; false when the window does not fit. SAME puts the odd row behind. */
static bool window(uint32_t in, uint32_t size, uint32_t stride, mr_padding padding, uint32_t *out, uint32_t *before,
                   uint32_t *after)
{
    *before = *after = 0;
    if (padding == MR_PAD_VALID) {
        if (in < size) return false;
        *out = (in - size) / stride + 1;
        return true;
    }
    *out = (in - 1) / stride + 1;
    const uint64_t reach = (uint64_t)(*out - 1) * stride + size;
    const uint64_t total = reach > in ? reach - in : 0;
    if (total > UINT32_MAX) return false;
    *before = (uint32_t)(total / 2);
    *after = (uint32_t)(total - total / 2);
    return true;
}

static bool place_window(mr_net *net, mri_layer *l, uint32_t size, uint32_t stride, mr_padding padding, uint32_t *h,
                         uint32_t *w)
{
    l->kernel = size, l->stride = stride;
    if (size == 0 || stride == 0) {
        refuse(net, l, "window and stride must be at least 1");
        return false;
    }
    if (!window(l->out_h, size, stride, padding, h, &l->pad_top, &l->pad_bottom) ||
        !window(l->out_w, size, stride, padding, w, &l->pad_left, &l->pad_right)) {
        refuse(net, l, "the window is larger than its input; use \"same\" padding or a larger picture");
        return false;
    }
    return true;
}

void mr_net_conv2d(mr_net *net, uint32_t filters, uint32_t kernel, uint32_t stride, mr_padding padding,
                   mr_activation activation)
{
    mri_layer *l = begin(net, MR_OP_CONV2D);
    uint32_t   h, w;
    if (!l) return;
    if (filters == 0 || filters > (1u << 24) || kernel > (1u << 12) || !known_activation(activation)) {
        refuse(net, l, "filters 1..2^24, kernel 1..4096 and a known activation are needed");
        return;
    }
    if (!place_window(net, l, kernel, stride, padding, &h, &w)) return;
    l->filters = filters, l->activation = activation;
    const double per_output = (double)kernel * kernel * l->out_c;
    if (per_output * filters > (double)MRI_NET_MAX_PARAMS) {
        refuse(net, l, "too many parameters");
        return;
    }
    l->params = ((uint64_t)kernel * kernel * l->out_c + 1) * filters;
    l->flops = 2.0 * per_output * filters * h * w;
    finish(net, l, h, w, filters);
}

static void pool(mr_net *net, uint32_t size, uint32_t stride, bool average)
{
    mri_layer *l = begin(net, MR_OP_POOL2D);
    uint32_t   h, w;
    if (!l) return;
    l->average = average;
    if (!place_window(net, l, size, stride, MR_PAD_VALID, &h, &w)) return;
    l->flops = (double)size * size * h * w * l->out_c;
    finish(net, l, h, w, l->out_c);
}

void mr_net_max_pool(mr_net *net, uint32_t size, uint32_t stride) { pool(net, size, stride, false); }
void mr_net_avg_pool(mr_net *net, uint32_t size, uint32_t stride) { pool(net, size, stride, true); }

void mr_net_dense(mr_net *net, uint32_t units, mr_activation activation)
{
    mri_layer *l = begin(net, MR_OP_DENSE);
    if (!l) return;
    if (units == 0 || units > (1u << 28) || !known_activation(activation)) {
        refuse(net, l, "units 1..2^28 and a known activation are needed");
        return;
    }
    l->filters = units, l->activation = activation;
    l->params = ((uint64_t)elements(l) + 1) * units; /* below 2^60: no overflow */
    l->flops = 2.0 * elements(l) * units;
    finish(net, l, 1, 1, units);
}

void mr_net_activation(mr_net *net, mr_activation activation)
{
    mri_layer *l = begin(net, MR_OP_ACTIVATION);
    if (!l) return;
    if (!known_activation(activation) || activation == MR_ACT_NONE) {
        refuse(net, l, "a known activation is needed");
        return;
    }
    l->activation = activation;
    l->flops = elements(l);
    finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_dropout(mr_net *net, float rate)
{
    mri_layer *l = begin(net, MR_OP_DROPOUT);
    if (!l) return;
    if (!(rate >= 0.0f && rate < 1.0f)) {
        refuse(net, l, "the rate must be in [0, 1)");
        return;
    }
    l->rate = rate;
    l->flops = elements(l);
    finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_batch_norm(mr_net *net, float momentum, float epsilon, mr_activation activation)
{
    mri_layer *l = begin(net, MR_OP_BATCHNORM);
    if (!l) return;
    if (!(momentum >= 0.0f && momentum < 1.0f) || !(epsilon > 0.0f) || !isfinite(epsilon) || !known_activation(activation)) {
        refuse(net, l, "momentum in [0, 1), epsilon above 0 and a known activation are needed");
        return;
    }
    l->momentum = momentum, l->epsilon = epsilon, l->activation = activation;
    l->params = 2 * (uint64_t)l->out_c;
    l->flops = 2.0 * elements(l);
    finish(net, l, l->out_h, l->out_w, l->out_c);
}

int mr_net_check(const mr_net *net, mr_error *err)
{
    if (net->error.code != MR_OK) {
        if (err) *err = net->error;
        return net->error.code;
    }
    if (net->layer_count == 0) return mr_error_set(err, MR_EINVAL, "network %s has no layers", net->name);
    const mri_layer *last = &net->layers[net->layer_count - 1];
    if (last->out_h != 1 || last->out_w != 1)
        return mr_error_set(err, MR_EINVAL, "network %s ends in %ux%ux%u: expected a vector of logits; end it with dense",
                            net->name, last->out_h, last->out_w, last->out_c);
    if (last->out_c < 2)
        return mr_error_set(err, MR_EINVAL, "network %s ends in one number: expected at least 2 logits", net->name);
    if (last->activation != MR_ACT_NONE)
        return mr_error_set(err, MR_EINVAL, "network %s ends in %s: expected bare logits, the loss brings the softmax",
                            net->name, mri_activation_name(last->activation));
    if (mr_net_param_count(net) == 0)
        return mr_error_set(err, MR_EINVAL, "network %s has nothing to train", net->name);
    return MR_OK;
}

uint64_t mr_net_param_count(const mr_net *net)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < net->layer_count; i++) sum += net->layers[i].params;
    return sum;
}

uint32_t mr_net_class_count(const mr_net *net)
{
    return net->layer_count ? net->layers[net->layer_count - 1].out_c : 0;
}

const char *mr_net_name(const mr_net *net) { return net->name; }

bool mr_net_layer(const mr_net *net, uint32_t at, mr_layer_row *out)
{
    if (at >= net->layer_count) return false;
    const mri_layer *l = &net->layers[at];
    const char *kind = mri_layer_kind_name(l->kind, l->average), *act = mri_activation_name(l->activation);
    const char *gap = *act ? " " : "";
    switch (l->kind) {
    case MR_OP_CONV2D:
        snprintf(out->name, sizeof out->name, "%s %ux%u/%u %u%s%s", kind, l->kernel, l->kernel, l->stride, l->filters, gap,
                 act);
        break;
    case MR_OP_POOL2D: snprintf(out->name, sizeof out->name, "%s %ux%u/%u", kind, l->kernel, l->kernel, l->stride); break;
    case MR_OP_DENSE: snprintf(out->name, sizeof out->name, "%s %u%s%s", kind, l->filters, gap, act); break;
    case MR_OP_DROPOUT: snprintf(out->name, sizeof out->name, "%s %g", kind, (double)l->rate); break;
    default: snprintf(out->name, sizeof out->name, "%s%s%s", kind, gap, act); break;
    }
    snprintf(out->output, sizeof out->output, "%ux%ux%u", l->out_h, l->out_w, l->out_c);
    out->params = l->params;
    out->flops = l->flops;
    return true;
}
