/* train/net/net.c: the network builder: shape inference, parameter counts and the rows of a summary.
 *
 *   mr_net_create ──► mr_net_conv2d, ... ──────────► mr_net_check
 *                     mr_net_here, _from, _add, _concat, _scale: branches
 *
 * Each call appends one layer, and its output shape is worked out at once.
 *
 * Builder calls return nothing: the first mistake is kept in the network with the number of the layer it
 * happened at, and everything after it is ignored, so that a network reads as a plain list. Does not know
 * devices, batches or weights. */
#include <math.h>
#include <stdio.h>

#include "base/abi.h"
#include "train/net/build.h"

static const char *const activation_names[] = {
    [MR_ACT_NONE] = "",           [MR_ACT_RELU] = "relu", [MR_ACT_TANH] = "tanh",
    [MR_ACT_SIGMOID] = "sigmoid", [MR_ACT_SELU] = "selu", [MR_ACT_LEAKY_RELU] = "leaky relu",
    [MR_ACT_RELU6] = "relu6",     [MR_ACT_SILU] = "silu", [MR_ACT_GELU] = "gelu",
};

/* "relu", ...; "" for none */
static const char *activation_name(mr_activation a)
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

int mr_net_create(mr_net **out, const char *name, uint32_t h, uint32_t w, uint32_t c)
{
    if (!out) return MR_EINVAL;
    *out = NULL;
    if (!name || h == 0 || w == 0 || c == 0 || c > 4)
        return MR_EINVAL; /* mr_op_desc has room for four channels' means */
    if ((uint64_t)h * w > MRI_NET_MAX_ELEMENTS / c) return MR_EINVAL;
    mr_net *net = calloc(1, sizeof *net);
    if (!net) return MR_ENOMEM;
    snprintf(net->name, sizeof net->name, "%s", name);
    net->h = h, net->w = w, net->c = c;
    net->error = (mr_error)MR_ERROR_INIT;
    *out = net;
    return MR_OK;
}

int mr_net_create_numbers(mr_net **out, const char *name, uint32_t length, uint32_t values)
{
    if (!out) return MR_EINVAL;
    *out = NULL;
    if (length == 0 || values == 0 || length > MRI_NET_MAX_ELEMENTS / values) return MR_EINVAL;
    const int rc = mr_net_create(out, name, 1, length, 1);
    if (rc) return rc;
    (*out)->c = values;
    (*out)->numbers = true;
    return MR_OK;
}

int mr_net_create_bare(mr_net **out, const char *name)
{
    const int rc = mr_net_create(out, name, 1, 1, 1);
    if (rc) return rc;
    (*out)->bare = true;
    (*out)->at = MRI_NO_POINT;
    return MR_OK;
}

bool mr_net_takes_numbers(const mr_net *net) { return net && net->numbers; }

void mr_net_destroy(mr_net *net)
{
    if (!net) return;
    free(net->layers);
    free(net);
}

static bool make_room(mr_net *net)
{
    if (net->layer_count == MRI_NET_MAX_LAYERS) {
        mr_error_set(&net->error, MR_ELIMIT, "network %s: more than %u layers", net->name,
                     MRI_NET_MAX_LAYERS);
        return false;
    }
    if (net->layer_count < net->layer_cap) return true;
    const uint32_t cap = net->layer_cap ? 2 * net->layer_cap : 16;
    mri_layer *grown = realloc(net->layers, cap * sizeof *grown);
    if (!grown) {
        mr_error_set(&net->error, MR_ENOMEM, "network %s: no memory for %u layers", net->name, cap);
        return false;
    }
    net->layers = grown;
    net->layer_cap = cap;
    return true;
}

void mri_layer_refuse(mr_net *net, const mri_layer *l, const char *what)
{
    mr_error_set(&net->error, MR_EINVAL, "network %s, layer %u (%s) on %ux%ux%u: %s", net->name,
                 net->layer_count, mri_layer_kind_name(l->kind, l->average), l->out_h, l->out_w, l->out_c,
                 what);
}

bool mri_layer_is_told(mr_net *net, const mri_layer *l, const void *settings)
{
    if (!settings) mri_layer_refuse(net, l, "it needs its settings, found NULL");
    return settings != NULL;
}

static uint32_t *takers_of(mr_net *net, mr_point p)
{
    return p ? &net->layers[p - 1].consumers : &net->picture_consumers;
}

mri_layer *mri_layer_begin(mr_net *net, mr_op_kind kind)
{
    if (!net || net->error.code != MR_OK || !make_room(net)) return NULL;
    mri_layer *l = &net->layers[net->layer_count];
    *l = (mri_layer){.kind = kind,
                     .number = net->layer_count,
                     .in = net->at,
                     .decay = net->decay,
                     .out_h = net->h,
                     .out_w = net->w,
                     .out_c = net->c};
    memcpy(l->block, net->block, sizeof l->block);
    if (mri_is_input(kind)) {
        l->in = MRI_NO_POINT;
    } else if (net->at == MRI_NO_POINT) {
        mri_layer_refuse(net, l, "a network without an input of its own begins with a field");
        return NULL;
    } else if (net->at > 0) {
        const mri_layer *from = &net->layers[net->at - 1];
        l->out_h = from->out_h, l->out_w = from->out_w, l->out_c = from->out_c;
    }
    return l;
}

void mri_layer_finish(mr_net *net, mri_layer *l, uint64_t h, uint64_t w, uint64_t c)
{
    if (l->params > MRI_NET_MAX_PARAMS) {
        mri_layer_refuse(net, l, "too many parameters");
    } else if (h > MRI_NET_MAX_ELEMENTS || w > MRI_NET_MAX_ELEMENTS || c > MRI_NET_MAX_ELEMENTS ||
               h * w > MRI_NET_MAX_ELEMENTS / c) {
        mri_layer_refuse(net, l, "its output is too large");
    } else {
        l->out_h = (uint32_t)h, l->out_w = (uint32_t)w, l->out_c = (uint32_t)c;
        if (l->in != MRI_NO_POINT) ++*takers_of(net, l->in);
        if (mri_layer_takes_two(l)) ++*takers_of(net, l->in2);
        net->at = ++net->layer_count;
    }
}

/* A loss has no output, and the next layer takes what it would have taken without it. */
static void finish_loss(mr_net *net, mri_layer *l)
{
    ++*takers_of(net, l->in);
    if (mri_layer_takes_two(l)) ++*takers_of(net, l->in2);
    net->layer_count++;
    net->loss_count++;
}

/* The activation asked for behind a layer of another kind. One that cannot be part of its operation becomes a
 * layer of its own, once the other is finished. */
static void layer_finish_with(mr_net *net, mri_layer *l, uint64_t h, uint64_t w, uint64_t c,
                              mr_activation activation)
{
    const bool apart = mr_activation_needs_x(activation);
    l->activation = apart ? MR_ACT_NONE : activation;
    mri_layer_finish(net, l, h, w, c);
    if (apart) mr_net_activation(net, activation);
}

static bool known_activation(mr_activation a) { return (uint32_t)a < MRI_ARRAY_COUNT(activation_names); }

/* One axis of a window: output size and padding; false when the window does not fit. SAME puts the odd row
 * behind. */
static bool window(uint32_t in, uint32_t size, uint32_t stride, mr_padding padding, uint32_t pad,
                   uint32_t *out, uint32_t *before, uint32_t *after)
{
    *before = *after = pad;
    if (padding == MR_PAD_VALID) {
        const uint64_t padded = (uint64_t)in + 2 * (uint64_t)pad;
        if (padded < size || padded > UINT32_MAX) return false;
        *out = (uint32_t)((padded - size) / stride + 1);
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

bool mri_layer_place_window(mr_net *net, mri_layer *l, uint32_t size, uint32_t size_w, uint32_t stride,
                            mr_padding padding, uint32_t pad, uint32_t *h, uint32_t *w)
{
    l->kernel = size, l->kernel_w = size_w, l->stride = stride;
    if (size == 0 || stride == 0) {
        mri_layer_refuse(net, l, "window and stride must be at least 1");
        return false;
    }
    if ((uint32_t)padding > MR_PAD_SAME) {
        mri_layer_refuse(net, l, "unknown padding: expected valid (0) or same (1)");
        return false;
    }
    if (pad >= size || pad >= size_w) {
        mri_layer_refuse(net, l, "the padding must be smaller than the window");
        return false;
    }
    if (!window(l->out_h, size, stride, padding, pad, h, &l->pad_top, &l->pad_bottom) ||
        !window(l->out_w, size_w, stride, padding, pad, w, &l->pad_left, &l->pad_right)) {
        mri_layer_refuse(net, l,
                         "the window is larger than its input; use \"same\" padding or a larger picture");
        return false;
    }
    return true;
}

/* What holds of a convolution and of a transposed one: numbers in range, parameters, what follows from them.
 * Multiplications to *per_output: of an output channel, for a place of the window. */
static bool take_conv(mr_net *net, mri_layer *l, const mr_conv *c, double *per_output)
{
    const uint32_t kernel_w = c->kernel_w ? c->kernel_w : c->kernel;
    if (c->filters == 0 || c->filters > (1u << 24) || c->kernel > (1u << 12) || kernel_w > (1u << 12) ||
        !known_activation(c->activation)) {
        mri_layer_refuse(net, l, "filters 1..2^24, kernel 1..4096 and a known activation are needed");
        return false;
    }
    l->groups = c->groups ? c->groups : 1;
    if (l->out_c % l->groups != 0 || c->filters % l->groups != 0) {
        mri_layer_refuse(net, l, "groups must divide channels and filters");
        return false;
    }
    if (c->pad > 0 && c->padding != MR_PAD_VALID) {
        mri_layer_refuse(net, l, "padding of so many rows goes with \"valid\", not with \"same\"");
        return false;
    }
    l->filters = c->filters, l->no_bias = c->no_bias, l->first = net->first;
    const uint32_t seen = l->out_c / l->groups;
    *per_output = (double)c->kernel * kernel_w * seen;
    if (*per_output * c->filters > (double)MRI_NET_MAX_PARAMS) {
        mri_layer_refuse(net, l, "too many parameters");
        return false;
    }
    l->params = ((uint64_t)c->kernel * kernel_w * seen + !c->no_bias) * c->filters;
    return true;
}

void mr_net_conv(mr_net *net, const mr_conv *c)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_CONV2D);
    uint32_t h, w;
    double per_output;
    if (!l || !mri_layer_is_told(net, l, c) || !take_conv(net, l, c, &per_output)) return;
    if (!mri_layer_place_window(net, l, c->kernel, c->kernel_w ? c->kernel_w : c->kernel, c->stride,
                                c->padding, c->pad, &h, &w))
        return;
    l->flops = 2.0 * per_output * c->filters * h * w;
    layer_finish_with(net, l, h, w, c->filters, c->activation);
}

/* One axis of a transposed window. SAME leaves out the odd row behind, as the convolution it turns around
 * adds it there. */
static bool turned_window(uint32_t in, uint32_t size, uint32_t stride, const mr_conv *c, uint64_t *out,
                          uint32_t *before, uint32_t *after)
{
    const uint64_t reach = (uint64_t)(in - 1) * stride + size;
    *before = *after = c->pad;
    if (c->padding == MR_PAD_SAME) {
        if (size < stride) return false;
        const uint32_t cut = size - stride;
        *before = cut / 2, *after = cut - cut / 2;
    }
    if (*before >= size || *after >= size || reach <= (uint64_t)*before + *after) return false;
    *out = reach - *before - *after;
    return true;
}

void mr_net_conv_transposed(mr_net *net, const mr_conv *c)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_CONV2D_TRANSPOSED);
    uint64_t h, w;
    double per_output;
    if (!l || !mri_layer_is_told(net, l, c) || !take_conv(net, l, c, &per_output)) return;
    if (l->groups > 1) {
        mri_layer_refuse(net, l, "there are no groups of transposed convolutions");
        return;
    }
    l->kernel = c->kernel, l->kernel_w = c->kernel_w ? c->kernel_w : c->kernel, l->stride = c->stride;
    if (c->kernel == 0 || c->stride == 0 || c->stride > (1u << 12) || (uint32_t)c->padding > MR_PAD_SAME ||
        !turned_window(l->out_h, l->kernel, l->stride, c, &h, &l->pad_top, &l->pad_bottom) ||
        !turned_window(l->out_w, l->kernel_w, l->stride, c, &w, &l->pad_left, &l->pad_right)) {
        mri_layer_refuse(
            net, l,
            "window and stride must be at least 1, the padding smaller than the window and than what it "
            "makes, "
            "and with \"same\" the window no smaller than the stride");
        return;
    }
    l->flops = 2.0 * per_output * c->filters * l->out_h * l->out_w;
    layer_finish_with(net, l, h, w, c->filters, c->activation);
}

void mr_net_conv2d(mr_net *net, uint32_t filters, uint32_t kernel, uint32_t stride, mr_padding padding,
                   mr_activation activation)
{
    mr_net_conv(net, &(mr_conv){.filters = filters,
                                .kernel = kernel,
                                .stride = stride,
                                .padding = padding,
                                .activation = activation});
}

void mr_net_dense(mr_net *net, uint32_t units, mr_activation activation)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_DENSE);
    if (!l) return;
    if (units == 0 || units > (1u << 28) || !known_activation(activation)) {
        mri_layer_refuse(net, l, "units 1..2^28 and a known activation are needed");
        return;
    }
    l->filters = units, l->first = net->first;
    l->params = ((uint64_t)mri_layer_elements(l) + 1) * units; /* below 2^60: no overflow */
    l->flops = 2.0 * mri_layer_elements(l) * units;
    layer_finish_with(net, l, 1, 1, units, activation);
}

static void recurrent(mr_net *net, mr_op_kind kind, uint32_t gates, uint32_t biases, uint32_t units,
                      bool sequences)
{
    mri_layer *l = mri_layer_begin(net, kind);
    if (!l) return;
    if (units == 0 || units > (1u << 20)) {
        mri_layer_refuse(net, l, "units 1..2^20 are needed");
        return;
    }
    if (l->out_h != 1) {
        mri_layer_refuse(net, l, "a sequence is needed, 1 x steps x values");
        return;
    }
    const uint64_t rows = (uint64_t)gates * units;
    const bool looked_up = net->numbers && l->in == 0;
    l->filters = units, l->sequences = sequences;
    l->params = rows * ((uint64_t)l->out_c + units + biases); /* below 2^22 * 2^32 */
    l->flops = (double)l->out_w * (double)rows * ((looked_up ? 1.0 : 2.0 * l->out_c) + 2.0 * units);
    mri_layer_finish(net, l, 1, sequences ? l->out_w : 1, units);
}

void mr_net_gru(mr_net *net, uint32_t units, bool sequences)
{
    recurrent(net, MR_OP_GRU, 3, 2, units, sequences);
}

void mr_net_lstm(mr_net *net, uint32_t units, bool sequences)
{
    recurrent(net, MR_OP_LSTM, 4, 1, units, sequences);
}

void mr_net_activation(mr_net *net, mr_activation activation)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_ACTIVATION);
    if (!l) return;
    if (!known_activation(activation) || activation == MR_ACT_NONE) {
        mri_layer_refuse(net, l, "a known activation is needed");
        return;
    }
    l->activation = activation;
    l->flops = mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_reshape(mr_net *net, uint32_t h, uint32_t w, uint32_t c)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_RESHAPE);
    if (!l) return;
    if (h == 0 || w == 0 || c == 0 || (uint64_t)h * w > MRI_NET_MAX_ELEMENTS ||
        (uint64_t)h * w * c != (uint64_t)l->out_h * l->out_w * l->out_c) {
        mri_layer_refuse(net, l, "the new shape must have as many values as the old one");
        return;
    }
    mri_layer_finish(net, l, h, w, c);
}

static void dropout(mr_net *net, float rate, bool whole_samples)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_DROPOUT);
    if (!l) return;
    l->whole_samples = whole_samples;
    if (!(rate >= 0.0f && rate < 1.0f)) {
        mri_layer_refuse(net, l, "the rate must be in [0, 1)");
        return;
    }
    l->rate = rate;
    l->flops = mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_dropout(mr_net *net, float rate) { dropout(net, rate, false); }
void mr_net_drop_samples(mr_net *net, float rate) { dropout(net, rate, true); }

void mr_net_norm(mr_net *net, const mr_norm *n)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_BATCHNORM);
    if (!l || !mri_layer_is_told(net, l, n)) return;
    if (!(n->momentum >= 0.0f && n->momentum < 1.0f) || !(n->epsilon > 0.0f) || !isfinite(n->epsilon) ||
        !known_activation(n->activation)) {
        mri_layer_refuse(net, l, "momentum in [0, 1), epsilon above 0 and a known activation are needed");
        return;
    }
    l->momentum = n->momentum, l->epsilon = n->epsilon;
    l->no_scale = n->no_scale;
    l->params = (2 - (uint64_t)n->no_scale) * l->out_c;
    l->states = 2 * (uint64_t)l->out_c;
    l->flops = 2.0 * mri_layer_elements(l);
    layer_finish_with(net, l, l->out_h, l->out_w, l->out_c, n->activation);
}

void mr_net_batch_norm(mr_net *net, float momentum, float epsilon, mr_activation activation)
{
    mr_net_norm(net, &(mr_norm){.momentum = momentum, .epsilon = epsilon, .activation = activation});
}

/* ------------------------------------------------------------------------------ parts */

void mri_layer_copy(mr_net *part, const mri_layer *l, mr_point in, mr_point in2)
{
    mri_layer *to = &part->layers[part->layer_count++];
    *to = *l;
    to->in = in, to->in2 = in2;
    to->consumers = 0;
    if (in != MRI_NO_POINT) ++*takers_of(part, in);
    if (mri_layer_takes_two(l)) ++*takers_of(part, in2);
    part->loss_count += mri_is_loss(l->kind);
}

void mri_layer_port(mr_net *part, const mr_net *whole, mr_point p, mri_port port, mr_point in)
{
    mri_layer l = {.kind = MR_OP_ACTIVATION, .port = port, .number = whole->layer_count};
    mr_net_shape(whole, p, &l.out_h, &l.out_w, &l.out_c);
    mri_layer_copy(part, &l, in, 0);
}

/* ------------------------------------------------------------------------------ branches */

void mr_net_logit_factor(mr_net *net, float factor)
{
    if (!net) return;
    if (net->error.code != MR_OK) return;
    if (!(factor > 0) || isinf(factor))
        mr_error_set(&net->error, MR_EINVAL, "network %s: logit factor %g: expected a finite number above 0",
                     net->name, (double)factor);
    if (net->logit_factor > 0)
        mr_error_set(&net->error, MR_EINVAL, "network %s: a second factor of the logits", net->name);
    net->logit_factor = factor;
}

bool mr_net_logits(const mr_net *net, mr_point *out)
{
    if (!net || !out) return false;
    if (mr_net_class_count(net) == 0) return false;
    *out = net->layer_count;
    for (uint32_t i = 0; net->loss_count > 0 && i < net->layer_count; i++) {
        if (net->layers[i].kind != MR_OP_LOSS) continue;
        *out = net->layers[i].in;
        break;
    }
    return true;
}

void mr_net_init(mr_net *net, mr_init init)
{
    if (!net) return;
    if (net->error.code == MR_OK && (uint32_t)init > MR_INIT_HE_OUT)
        mr_error_set(&net->error, MR_EINVAL, "network %s: unknown initial weights %d", net->name, (int)init);
    net->first.init = init;
    net->first.deviation = 0;
}

void mr_net_init_deviation(mr_net *net, float deviation)
{
    if (!net) return;
    if (net->error.code == MR_OK && (!(deviation > 0) || isinf(deviation)))
        mr_error_set(&net->error, MR_EINVAL,
                     "network %s: weights that begin with deviation %g: expected a finite number above 0",
                     net->name, (double)deviation);
    net->first.deviation = deviation;
}

void mr_net_init_bias(mr_net *net, float value)
{
    if (!net) return;
    if (net->error.code == MR_OK && !isfinite(value))
        mr_error_set(&net->error, MR_EINVAL, "network %s: biases that begin at %g: expected a finite number",
                     net->name, (double)value);
    net->first.bias = value;
}

void mr_net_decay(mr_net *net, mr_net_decays on)
{
    if (!net) return;
    if (net->error.code == MR_OK && (uint32_t)on > MR_NET_DECAY_NONE)
        mr_error_set(&net->error, MR_EINVAL, "network %s: unknown choice %d of what decays", net->name,
                     (int)on);
    net->decay = on;
}

bool mr_net_has_own_decay(const mr_net *net)
{
    if (!net) return false;
    for (uint32_t i = 0; i < net->layer_count; i++)
        if (net->layers[i].params > 0 && net->layers[i].decay != MR_NET_DECAY_AS_TOLD) return true;
    return false;
}

void mr_net_block(mr_net *net, const char *name)
{
    const size_t bytes = name ? strlen(name) : 0;
    if (!net || net->error.code != MR_OK) return;
    if (!name) mr_error_set(&net->error, MR_EINVAL, "network %s: a block without a name", net->name);
    else if (bytes >= sizeof net->block || strpbrk(name, "=,") || (name[0] >= '0' && name[0] <= '9'))
        mr_error_set(&net->error, MR_EINVAL,
                     "network %s: block \"%s\": expected a name of up to 15 letters and digits that begins "
                     "with a letter",
                     net->name, name);
    else memcpy(net->block, name, bytes + 1);
}

uint32_t mr_net_layer_count(const mr_net *net) { return net ? net->layer_count : 0; }

mr_point mr_net_here(const mr_net *net) { return net ? net->at : 0; }

void mr_net_from(mr_net *net, mr_point point)
{
    if (!net) return;
    if (net->error.code != MR_OK) return;
    if (!mri_net_has_tensor(net, point))
        mr_error_set(&net->error, MR_EINVAL, "network %s: there is no point %u after %u layers", net->name,
                     point, net->layer_count);
    else net->at = point;
}

/* The second point that l takes is there, and is h x w. Its channels to *c. */
static bool take_second_of(mr_net *net, mri_layer *l, mr_point other, uint32_t h, uint32_t w, uint32_t *c)
{
    if (!mri_net_has_tensor(net, other) || other == l->in) {
        mri_layer_refuse(net, l, "it needs another point that is there already");
        return false;
    }
    const mri_layer *o = other ? &net->layers[other - 1] : NULL;
    l->in2 = other;
    *c = o ? o->out_c : net->c;
    if ((o ? o->out_h : net->h) == h && (o ? o->out_w : net->w) == w) return true;
    mri_layer_refuse(net, l, "the other point has another shape");
    return false;
}

/* It has as many pixels as l's. */
static bool take_second(mr_net *net, mri_layer *l, mr_point other, uint32_t *c)
{
    return take_second_of(net, l, other, l->out_h, l->out_w, c);
}

void mr_net_add(mr_net *net, mr_point other, mr_activation activation)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_ADD);
    uint32_t c;
    if (!l) return;
    if (!known_activation(activation)) {
        mri_layer_refuse(net, l, "a known activation is needed");
        return;
    }
    if (!take_second(net, l, other, &c)) return;
    if (c != l->out_c) {
        mri_layer_refuse(net, l, "the other point has another shape");
        return;
    }
    l->flops = mri_layer_elements(l);
    layer_finish_with(net, l, l->out_h, l->out_w, l->out_c, activation);
}

void mr_net_concat(mr_net *net, const mr_point *others, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        mri_layer *l = mri_layer_begin(net, MR_OP_CONCAT);
        uint32_t c;
        if (!l || !mri_layer_is_told(net, l, others) || !take_second(net, l, others[i], &c)) return;
        mri_layer_finish(net, l, l->out_h, l->out_w, (uint64_t)l->out_c + c);
    }
}

/* The second point, of the same shape. */
static bool take_like(mr_net *net, mri_layer *l, mr_point other)
{
    uint32_t c;
    if (!take_second(net, l, other, &c)) return false;
    if (c == l->out_c) return true;
    mri_layer_refuse(net, l, "the other point has another shape");
    return false;
}

void mr_net_sample(mr_net *net, mr_point log_variance, float factor)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_SAMPLE);
    if (!l) return;
    if (!(factor > 0) || isinf(factor)) {
        mri_layer_refuse(net, l, "a finite factor above 0 is needed");
        return;
    }
    if (!take_like(net, l, log_variance)) return;
    l->weight = factor;
    l->flops = 2 * mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

static bool takes_weight(mr_net *net, mri_layer *l, float weight)
{
    l->weight = weight;
    if (weight > 0 && !isinf(weight)) return true;
    mri_layer_refuse(net, l, "a finite weight above 0 is needed");
    return false;
}

/* Is what l takes the bare output of its layer? Its loss brings the sigmoid or softmax. */
/* Probabilities: their logarithms are logits, they are not. */
static bool is_softmax(const mri_layer *l) { return l->kind == MR_OP_SOFTMAX && !l->log; }

static bool takes_logits(mr_net *net, mri_layer *l)
{
    const mri_layer *of = l->in ? &net->layers[l->in - 1] : NULL;
    if (!of || (of->activation == MR_ACT_NONE && !is_softmax(of))) return true;
    mri_layer_refuse(net, l, "bare logits are needed: no activation before this loss, which brings its own");
    return false;
}

void mr_net_loss_labels(mr_net *net, float weight)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_LOSS);
    if (!l || !takes_weight(net, l, weight) || !takes_logits(net, l)) return;
    if (l->out_h != 1 || l->out_w != 1) {
        mri_layer_refuse(net, l, "a vector of logits is needed");
        return;
    }
    finish_loss(net, l);
}

void mr_net_loss_pair(mr_net *net, mr_pair_loss kind, mr_point other, float weight)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_PAIR_LOSS);
    if (!l || !takes_weight(net, l, weight)) return;
    l->pair = kind;
    if ((uint32_t)kind >= MR_PAIR_COUNT) {
        mri_layer_refuse(net, l, "unknown loss");
        return;
    }
    if ((kind == MR_PAIR_CROSS_ENTROPY || kind == MR_PAIR_CLASSES) && !takes_logits(net, l)) return;
    if (take_like(net, l, other)) finish_loss(net, l);
}

/* A loss of each kind, and the current point, which stays the current one, with its field. */
static void add_targets(mr_net *net, mr_target_loss kind, const char *field)
{
    static const mr_pair_loss pairs[] = {[MR_TARGET_LABELS] = MR_PAIR_CROSS_ENTROPY,
                                         [MR_TARGET_SQUARES] = MR_PAIR_SQUARES,
                                         [MR_TARGET_ABSOLUTE] = MR_PAIR_ABSOLUTE,
                                         [MR_TARGET_HUBER] = MR_PAIR_HUBER};
    const mr_point of = net->at;
    uint32_t h, w, c;
    if (!mr_net_shape(net, of, &h, &w, &c)) return;
    mr_net_field(net, &(mr_field_input){.name = field, .h = h, .w = w, .c = c});
    const mr_point wanted = net->at;
    mr_net_from(net, of);
    mr_net_loss_pair(net, pairs[kind], wanted, 1.0f / ((float)h * (float)w * (float)c));
    if (net->error.code == MR_OK) net->layers[net->layer_count - 1].targets = true;
}

void mr_net_targets(mr_net *net, mr_target_loss kind, const char *field)
{
    if (!net || net->error.code != MR_OK) return;
    const char *wrong = (uint32_t)kind >= MR_TARGET_COUNT || !kind ? "unknown loss against targets"
                        : net->layer_count == 0                    ? "there is no output yet"
                        : net->target_loss                         ? "it is compared with targets already"
                        : net->loss_count > 0                      ? "it has losses of its own"
                                                                   : NULL;
    if (wrong) {
        mr_error_set(&net->error, MR_EINVAL, "network %s, targets: %s", net->name, wrong);
        return;
    }
    net->target_loss = kind, net->target_of = net->at;
    if (field) add_targets(net, kind, field);
    else net->open_end = true;
}

double mr_target_pad(const mr_field *f)
{
    if (!f || f->type != MR_TYPE_TENSOR) return 0;
    const bool real = f->dtype == MR_F16 || f->dtype == MR_BF16 || f->dtype == MR_F32 || f->dtype == MR_F64;
    return real ? (double)NAN : f->dtype == MR_U8 ? 255 : -1;
}

mr_target_loss mr_net_target_loss(const mr_net *net)
{
    if (!net) return MR_TARGET_NONE;
    return net->target_loss;
}

uint32_t mr_net_target_count(const mr_net *net)
{
    if (!net) return 0;
    uint32_t h, w, c;
    return net->target_loss && mr_net_shape(net, net->target_of, &h, &w, &c) ? h * w * c : 0;
}

bool mr_net_outputs(const mr_net *net, mr_point *out)
{
    if (!net || !out) return false;
    if (!net->target_loss) return mr_net_logits(net, out);
    *out = net->target_of;
    return true;
}

const char *mri_net_target_field(const mr_net *net)
{
    for (uint32_t i = 0; i < net->layer_count; i++)
        if (net->layers[i].targets) return net->input[net->layers[net->layers[i].in2 - 1].input].name;
    return "";
}

uint32_t mri_net_answers(const mr_net *net)
{
    if (mr_net_class_count(net)) return 1;
    return net->target_loss == MR_TARGET_LABELS ? mr_net_target_count(net) : 0;
}

void mr_net_scale(mr_net *net, mr_point factors)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_SCALE);
    uint32_t c;
    if (!l || !take_second_of(net, l, factors, 1, 1, &c)) return;
    if (c != l->out_c) {
        mri_layer_refuse(net, l, "the other point needs as many channels, a factor for each");
        return;
    }
    l->flops = mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_pad_channels(mr_net *net, uint32_t before, uint32_t behind)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_PAD);
    if (!l) return;
    l->before = before, l->behind = behind;
    mri_layer_finish(net, l, l->out_h, l->out_w, (uint64_t)before + l->out_c + behind);
}

/* Every point is taken, but the last where no loss is named: then the network ends where its list does. */
static int check_points(const mr_net *net, mr_error *err)
{
    if (net->loss_count == 0 && net->at != net->layer_count)
        return mr_error_set(err, MR_EINVAL, "network %s goes back to point %u and adds nothing to it",
                            net->name, net->at);
    const uint32_t end = net->layer_count + (net->loss_count > 0);
    for (mr_point p = 0; p < end; p++)
        if (mri_net_has_tensor(net, p) && mri_net_consumers(net, p) == 0)
            return p ? mr_error_set(err, MR_EINVAL,
                                    "network %s: nothing takes point %u, the output of layer %u (%s)",
                                    net->name, p, p - 1,
                                    mri_layer_kind_name(net->layers[p - 1].kind, net->layers[p - 1].average))
                     : mr_error_set(err, MR_EINVAL, "network %s: nothing takes its input", net->name);
    return MR_OK;
}

static int check_logits(const mr_net *net, mr_error *err)
{
    const mri_layer *last = &net->layers[net->layer_count - 1];
    if (last->out_h != 1 || last->out_w != 1)
        return mr_error_set(err, MR_EINVAL,
                            "network %s ends in %ux%ux%u: expected a vector of logits; end it with dense",
                            net->name, last->out_h, last->out_w, last->out_c);
    if (last->activation != MR_ACT_NONE || is_softmax(last))
        return mr_error_set(
            err, MR_EINVAL,
            "network %s ends in %s: expected bare logits, the loss brings the softmax or sigmoid", net->name,
            is_softmax(last) ? "softmax" : activation_name(last->activation));
    return MR_OK;
}

int mr_net_check(const mr_net *net, mr_error *err)
{
    if (!net)
        return mr_error_set(err, MR_EINVAL,
                            "there is no network: mr_net_create() expects a name, pictures of at least 1 x 1 "
                            "with 1 to 4 channels, out of memory apart");
    if (net->error.code != MR_OK) {
        if (err) *err = net->error;
        return net->error.code;
    }
    if (net->layer_count == 0) return mr_error_set(err, MR_EINVAL, "network %s has no layers", net->name);
    int rc = check_points(net, err);
    if (rc == MR_OK && net->loss_count == 0) rc = check_logits(net, err);
    if (rc) return rc;
    if (mr_net_param_count(net) == 0)
        return mr_error_set(err, MR_EINVAL, "network %s has nothing to train", net->name);
    return MR_OK;
}

uint64_t mr_net_param_count(const mr_net *net)
{
    if (!net) return 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < net->layer_count; i++) sum += net->layers[i].params;
    return sum;
}

uint64_t mr_net_state_count(const mr_net *net)
{
    if (!net) return 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < net->layer_count; i++) sum += net->layers[i].states;
    return sum;
}

/* One logit tells two classes apart. */
static uint32_t classes_of(uint32_t logits) { return logits > 1 ? logits : 2; }

uint32_t mr_net_class_count(const mr_net *net)
{
    if (!net) return 0;
    if (net->open_end && net->target_loss) return 0;
    for (uint32_t i = 0; i < net->layer_count && net->loss_count; i++)
        if (net->layers[i].kind == MR_OP_LOSS) return classes_of(net->layers[i].out_c);
    return net->layer_count && !net->loss_count ? classes_of(net->layers[net->layer_count - 1].out_c) : 0;
}

const char *mr_net_name(const mr_net *net) { return net ? net->name : NULL; }

static const char *const pair_names[] = {[MR_PAIR_CROSS_ENTROPY] = "cross_entropy",
                                         [MR_PAIR_CLASSES] = "classes",
                                         [MR_PAIR_SQUARES] = "squares",
                                         [MR_PAIR_ABSOLUTE] = "absolute",
                                         [MR_PAIR_HUBER] = "huber",
                                         [MR_PAIR_DIVERGENCE] = "divergence"};

static bool describe_layer(const mr_net *net, uint32_t at, mr_layer_row *out)
{
    if (at >= net->layer_count) return false;
    const mri_layer *l = &net->layers[at];
    const char *kind = mri_layer_kind_name(l->kind, l->average), *act = activation_name(l->activation);
    const char *gap = *act ? " " : "";
    char *name = out->name, groups[24] = "";
    const size_t room = sizeof out->name;
    if (l->groups > 1 && l->kind != MR_OP_GROUPNORM)
        snprintf(groups, sizeof groups, " in %u groups", l->groups);
    switch (l->kind) {
    case MR_OP_FIELD:
    case MR_OP_ONE_HOT: snprintf(name, room, "%s %.36s", kind, net->input[l->input].name); break;
    case MR_OP_CONV2D:
    case MR_OP_CONV2D_TRANSPOSED:
        snprintf(name, room, "%s %ux%u/%u %u%s%s%s", kind, l->kernel, l->kernel_w, l->stride, l->filters,
                 groups, gap, act);
        break;
    case MR_OP_POOL2D: snprintf(name, room, "%s %ux%u/%u", kind, l->kernel, l->kernel_w, l->stride); break;
    case MR_OP_GROUPNORM:
        if (l->each_pixel) snprintf(name, room, "layer_norm");
        else snprintf(name, room, "%s %u", kind, l->groups);
        break;
    case MR_OP_UPSAMPLE:
        snprintf(name, room, "%s %u%s", kind, l->stride, l->bilinear ? " bilinear" : "");
        break;
    case MR_OP_EMBEDDING:
    case MR_OP_GRU:
    case MR_OP_LSTM:
    case MR_OP_DENSE: snprintf(name, room, "%s %u%s%s", kind, l->filters, gap, act); break;
    case MR_OP_DROPOUT:
        snprintf(name, room, "%s%s %g", kind, l->whole_samples ? " samples" : "", (double)l->rate);
        break;
    case MR_OP_SOFTMAX: snprintf(name, room, "%s%s", l->log ? "log_" : "", kind); break;
    case MR_OP_LRN: snprintf(name, room, "%s %u", kind, 2 * l->lrn.radius + 1); break;
    case MR_OP_PAD: snprintf(name, room, "%s %u+%u", kind, l->before, l->behind); break;
    case MR_OP_PAIR_LOSS: kind = pair_names[l->pair]; /* fall through */
    case MR_OP_ADD:
    case MR_OP_SAMPLE:
    case MR_OP_SCALE:
    case MR_OP_CONCAT:
        if (l->in2) snprintf(name, room, "%s %u%s%s", kind, l->in2 - 1, gap, act);
        else snprintf(name, room, "%s input%s%s", kind, gap, act);
        break;
    default: snprintf(name, room, "%s%s%s", kind, gap, act); break;
    }
    const size_t used = strlen(name);
    if (l->in == MRI_NO_POINT) out->is_input = true;
    else if (l->in != at && l->in) snprintf(name + used, room - used, " from %u", l->in - 1);
    else if (l->in != at) snprintf(name + used, room - used, " from input");
    if (mri_is_loss(l->kind)) snprintf(out->output, sizeof out->output, "loss x %g", (double)l->weight);
    else snprintf(out->output, sizeof out->output, "%ux%ux%u", l->out_h, l->out_w, l->out_c);
    out->params = l->params;
    out->flops = l->flops;
    out->in = out->is_input ? 0 : l->in, out->in2 = l->in2, out->takes_two = mri_layer_takes_two(l);
    return true;
}

bool mr_net_layer_sized(const mr_net *net, uint32_t at, mr_layer_row *out)
{
    if (!net || !out) return false;
    mr_layer_row row = {0};
    const bool found = describe_layer(net, at, &row);
    if (found) mri_result_give(out, &row, sizeof row);
    return found;
}

bool mr_net_loss_sized(const mr_net *net, uint32_t at, mr_loss_row *out)
{
    if (!net || !out) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const mri_layer *l = &net->layers[i];
        if (!mri_is_loss(l->kind) || at-- > 0) continue;
        const mr_loss_row row = {.labels = l->kind == MR_OP_LOSS,
                                 .pair = l->pair,
                                 .in = l->in,
                                 .other = l->in2,
                                 .weight = l->weight};
        mri_result_give(out, &row, sizeof row);
        return true;
    }
    return false;
}

bool mr_net_drawn(const mr_net *net, mr_point *out)
{
    if (!net || !out) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        if (net->layers[i].kind != MR_OP_SAMPLE) continue;
        *out = i + 1;
        return true;
    }
    return false;
}

bool mr_net_shape(const mr_net *net, mr_point point, uint32_t *h, uint32_t *w, uint32_t *c)
{
    if (!net || !h || !w || !c) return false;
    if (!mri_net_has_tensor(net, point)) return false;
    const mri_layer *l = point ? &net->layers[point - 1] : NULL;
    *h = l ? l->out_h : net->h, *w = l ? l->out_w : net->w, *c = l ? l->out_c : net->c;
    return true;
}

bool mri_net_takes_any_size(const mr_net *net)
{
    if (net->numbers || net->bare || net->input_count) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const mri_layer *l = &net->layers[i],
                        *in = l->in && l->in != MRI_NO_POINT ? &net->layers[l->in - 1] : NULL;
        const bool one_place = in ? in->out_h == 1 && in->out_w == 1 : net->h == 1 && net->w == 1;
        if (l->kind == MR_OP_RESHAPE || (l->kind == MR_OP_DENSE && !one_place)) return false;
    }
    return true;
}
