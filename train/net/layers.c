/* train/net/layers.c: builder calls of layers: with weights; over pixels or channels as they are; further
 * inputs and tables in which whole numbers are looked up; joins of two points. */
#include <math.h>
#include <stdio.h>

#include "train/net/build.h"

/* ---- layers with weights, activations ---- */

/* Finish the layer, and a layer with this activation if the operation of l cannot apply it. */
static void finish_with(mr_net *net, mri_layer *l, uint64_t h, uint64_t w, uint64_t c,
                        mr_activation activation)
{
    const bool apart = mr_activation_needs_x(activation);
    l->activation = apart ? MR_ACT_NONE : activation;
    mri_layer_finish(net, l, h, w, c);
    if (apart) mr_net_activation(net, activation);
}

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

/* Window and padding of l, whose input is as l's output stands; *h and *w: windows that fit. false: refused.
 */
static bool place_window(mr_net *net, mri_layer *l, uint32_t size, uint32_t size_w, uint32_t stride,
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
        !mri_activation_is_known(c->activation)) {
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
    if (!place_window(net, l, c->kernel, c->kernel_w ? c->kernel_w : c->kernel, c->stride, c->padding, c->pad,
                      &h, &w))
        return;
    l->flops = 2.0 * per_output * c->filters * h * w;
    finish_with(net, l, h, w, c->filters, c->activation);
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
    finish_with(net, l, h, w, c->filters, c->activation);
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
    if (units == 0 || units > (1u << 28) || !mri_activation_is_known(activation)) {
        mri_layer_refuse(net, l, "units 1..2^28 and a known activation are needed");
        return;
    }
    l->filters = units, l->first = net->first;
    l->params = ((uint64_t)mri_layer_elements(l) + 1) * units; /* below 2^60: no overflow */
    l->flops = 2.0 * mri_layer_elements(l) * units;
    finish_with(net, l, 1, 1, units, activation);
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
    if (!mri_activation_is_known(activation) || activation == MR_ACT_NONE) {
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
        !mri_activation_is_known(n->activation)) {
        mri_layer_refuse(net, l, "momentum in [0, 1), epsilon above 0 and a known activation are needed");
        return;
    }
    l->momentum = n->momentum, l->epsilon = n->epsilon;
    l->no_scale = n->no_scale;
    l->params = (2 - (uint64_t)n->no_scale) * l->out_c;
    l->states = 2 * (uint64_t)l->out_c;
    l->flops = 2.0 * mri_layer_elements(l);
    finish_with(net, l, l->out_h, l->out_w, l->out_c, n->activation);
}

void mr_net_batch_norm(mr_net *net, float momentum, float epsilon, mr_activation activation)
{
    mr_net_norm(net, &(mr_norm){.momentum = momentum, .epsilon = epsilon, .activation = activation});
}

/* ---- pixels and channels, inputs, tables ---- */

void mr_net_pool(mr_net *net, const mr_pool *p)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_POOL2D);
    uint32_t h, w;
    if (!l || !mri_layer_is_told(net, l, p)) return;
    const uint32_t kernel_w = p->kernel_w ? p->kernel_w : p->kernel;
    l->average = p->average;
    if (p->pad > 0 && p->padding != MR_PAD_VALID) {
        mri_layer_refuse(net, l, "padding of so many rows goes with \"valid\", not with \"same\"");
        return;
    }
    if (!place_window(net, l, p->kernel, kernel_w, p->stride, p->padding, p->pad, &h, &w)) return;
    l->flops = (double)p->kernel * kernel_w * h * w * l->out_c;
    mri_layer_finish(net, l, h, w, l->out_c);
}

static void pool(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad, bool average)
{
    mr_net_pool(net, &(mr_pool){.kernel = size, .stride = stride, .pad = pad, .average = average});
}

void mr_net_max_pool(mr_net *net, uint32_t size, uint32_t stride) { pool(net, size, stride, 0, false); }
void mr_net_avg_pool(mr_net *net, uint32_t size, uint32_t stride) { pool(net, size, stride, 0, true); }
void mr_net_max_pool_padded(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad)
{
    pool(net, size, stride, pad, false);
}

void mr_net_avg_pool_padded(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad)
{
    pool(net, size, stride, pad, true);
}

/* One window over the whole, which need not be square. */
static void global_pool(mr_net *net, bool average)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_POOL2D);
    if (!l) return;
    l->average = average;
    l->kernel = l->out_h, l->kernel_w = l->out_w, l->stride = 1;
    l->flops = mri_layer_elements(l);
    mri_layer_finish(net, l, 1, 1, l->out_c);
}

void mr_net_global_avg_pool(mr_net *net) { global_pool(net, true); }
void mr_net_global_max_pool(mr_net *net) { global_pool(net, false); }

void mr_net_lrn(mr_net *net, uint32_t radius, float bias, float alpha, float beta)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_LRN);
    if (!l) return;
    l->lrn = (mr_lrn_desc){.radius = radius, .bias = bias, .alpha = alpha, .beta = beta};
    if (radius > MR_LRN_MOST_RADIUS || !(bias > 0) || !(alpha >= 0) || !(beta >= 0) || isinf(bias) ||
        isinf(alpha) || isinf(beta)) {
        mri_layer_refuse(
            net, l,
            "a radius of 0..64 is needed, and finite numbers: a bias above 0, alpha and beta not "
            "below");
        return;
    }
    l->flops = mri_layer_elements(l) * (2 * radius + 5);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

static void softmax(mr_net *net, bool log)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_SOFTMAX);
    if (!l) return;
    l->log = log;
    l->flops = 5 * mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_softmax(mr_net *net) { softmax(net, false); }
void mr_net_log_softmax(mr_net *net) { softmax(net, true); }

static void group_norm(mr_net *net, uint32_t groups, bool each_pixel, float epsilon)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_GROUPNORM);
    if (!l) return;
    if (!(epsilon > 0) || isinf(epsilon) || groups == 0 || l->out_c % groups != 0) {
        mri_layer_refuse(net, l,
                         "epsilon above 0 and a number of groups that divides the channels are needed");
        return;
    }
    l->groups = groups, l->each_pixel = each_pixel, l->epsilon = epsilon;
    l->params = 2 * (uint64_t)l->out_c;
    l->flops = 8 * mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_group_norm(mr_net *net, uint32_t groups, float epsilon)
{
    group_norm(net, groups, false, epsilon);
}
void mr_net_layer_norm(mr_net *net, float epsilon) { group_norm(net, 1, true, epsilon); }

void mr_net_upsample(mr_net *net, uint32_t factor, bool bilinear)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_UPSAMPLE);
    if (!l) return;
    if (factor == 0) {
        mri_layer_refuse(net, l, "a factor of at least 1 is needed");
        return;
    }
    l->stride = factor, l->bilinear = bilinear;
    l->flops = (bilinear ? 8.0 : 1.0) * mri_layer_elements(l) * factor * factor;
    mri_layer_finish(net, l, (uint64_t)l->out_h * factor, (uint64_t)l->out_w * factor, l->out_c);
}

static bool check_field(mr_net *net, const mri_layer *l, const mr_field_input *f)
{
    const char *wrong = NULL;
    if (!f->name || !*f->name || strlen(f->name) > MR_MAX_NAME) wrong = "a name of 1 to 63 bytes is needed";
    else if (net->input_count == MR_LOADER_MAX_FIELDS ||
             (net->numbers && net->input_count + 1 == MR_LOADER_MAX_FIELDS))
        wrong = "a network takes four fields at most";
    else if (!isfinite(f->mean) || !isfinite(f->std)) wrong = "mean and std must be finite";
    else if (f->values > 0 && f->c > 1) wrong = "whole numbers are one a pixel: c must be 1";
    for (uint32_t i = 0; !wrong && i < net->input_count; i++)
        if (strcmp(net->input[i].name, f->name) == 0)
            wrong = "it takes this field already; mr_net_from() its point";
    if (wrong) mri_layer_refuse(net, l, wrong);
    return !wrong;
}

void mr_net_field(mr_net *net, const mr_field_input *f)
{
    mri_layer *l = mri_layer_begin(net, f && f->values ? MR_OP_ONE_HOT : MR_OP_FIELD);
    if (!l || !mri_layer_is_told(net, l, f) || !check_field(net, l, f)) return;
    const uint64_t h = f->h ? f->h : 1, w = f->w ? f->w : 1, c = f->c ? f->c : 1;
    mri_net_input *input = &net->input[net->input_count];
    *input = (mri_net_input){.whole = f->values > 0, .mean = f->mean, .std = f->std};
    snprintf(input->name, sizeof input->name, "%s", f->name);
    l->input = net->input_count;
    mri_layer_finish(net, l, h, w, f->values ? f->values : c);
    if (net->error.code != MR_OK) return;
    input->numbers = h * w * c;
    net->input_count++;
}

void mr_net_embedding(mr_net *net, uint32_t units)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_EMBEDDING);
    if (!l) return;
    if (units == 0 || units > (1u << 24)) {
        mri_layer_refuse(net, l, "units must be 1..2^24");
        return;
    }
    if (!mri_net_is_numbers(net, l->in)) {
        mri_layer_refuse(net, l, "it takes whole numbers: those of the data, or of a field with values");
        return;
    }
    l->filters = units, l->first = net->first;
    l->params = (uint64_t)l->out_c * units;
    mri_layer_finish(net, l, l->out_h, l->out_w, units);
}

bool mr_net_field_at(const mr_net *net, uint32_t at, mr_field_input *out)
{
    if (!net || !out) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const mri_layer *l = &net->layers[i];
        if (!mri_is_input(l->kind) || l->input != at) continue;
        const mri_net_input *input = &net->input[at];
        *out = (mr_field_input){.name = input->name,
                                .h = l->out_h,
                                .w = l->out_w,
                                .c = input->whole ? 1 : l->out_c,
                                .values = input->whole ? l->out_c : 0,
                                .mean = input->mean,
                                .std = input->std};
        return true;
    }
    return false;
}

/* ---- two points ---- */

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
    if (!mri_activation_is_known(activation)) {
        mri_layer_refuse(net, l, "a known activation is needed");
        return;
    }
    if (!take_second(net, l, other, &c)) return;
    if (c != l->out_c) {
        mri_layer_refuse(net, l, "the other point has another shape");
        return;
    }
    l->flops = mri_layer_elements(l);
    finish_with(net, l, l->out_h, l->out_w, l->out_c, activation);
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

bool mri_layer_take_like(mr_net *net, mri_layer *l, mr_point other)
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
    if (!mri_layer_take_like(net, l, log_variance)) return;
    l->weight = factor;
    l->flops = 2 * mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
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
