/* train/net/layers_windows.c: layers that slide a window over pixels: convolutions and pools. */
#include <stdio.h>

#include "train/net/build.h"
#include "train/net/code.h"

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
static bool place_window(mr_net *net, mri_layer *l, mr_op_window *win, uint32_t size, uint32_t size_w,
                         uint32_t stride, mr_padding padding, uint32_t pad, uint32_t *h, uint32_t *w)
{
    *win = (mr_op_window){.kernel_h = size, .kernel_w = size_w, .stride_h = stride, .stride_w = stride};
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
    if (!window(l->out_h, size, stride, padding, pad, h, &win->pad_top, &win->pad_bottom) ||
        !window(l->out_w, size_w, stride, padding, pad, w, &win->pad_left, &win->pad_right)) {
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
    mr_conv2d_desc *d = &l->op.conv2d;
    d->groups = c->groups ? c->groups : 1;
    if (l->out_c % d->groups != 0 || c->filters % d->groups != 0) {
        mri_layer_refuse(net, l, "groups must divide channels and filters");
        return false;
    }
    if (c->pad > 0 && c->padding != MR_PAD_VALID) {
        mri_layer_refuse(net, l, "padding by a number of rows goes with \"valid\", not with \"same\"");
        return false;
    }
    d->filters = c->filters, d->no_bias = c->no_bias, l->first = net->first;
    const uint32_t seen = l->out_c / d->groups;
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
    mri_layer *l = mri_layer_begin(net, MR_OP_CONV2D, mri_layers_windows);
    uint32_t h, w;
    double per_output;
    if (!l || !mri_layer_is_told(net, l, c) || !take_conv(net, l, c, &per_output)) return;
    if (!place_window(net, l, &l->op.conv2d.window, c->kernel, c->kernel_w ? c->kernel_w : c->kernel,
                      c->stride, c->padding, c->pad, &h, &w))
        return;
    l->flops = 2.0 * per_output * c->filters * h * w;
    mri_layer_finish_with(net, l, h, w, c->filters, c->activation);
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
    mri_layer *l = mri_layer_begin(net, MR_OP_CONV2D_TRANSPOSED, mri_layers_windows);
    uint64_t h, w;
    double per_output;
    if (!l || !mri_layer_is_told(net, l, c) || !take_conv(net, l, c, &per_output)) return;
    if (l->op.conv2d.groups > 1) {
        mri_layer_refuse(net, l, "there are no groups of transposed convolutions");
        return;
    }
    mr_op_window *win = &l->op.conv2d.window;
    *win = (mr_op_window){.kernel_h = c->kernel,
                          .kernel_w = c->kernel_w ? c->kernel_w : c->kernel,
                          .stride_h = c->stride,
                          .stride_w = c->stride};
    if (c->kernel == 0 || c->stride == 0 || c->stride > (1u << 12) || (uint32_t)c->padding > MR_PAD_SAME ||
        !turned_window(l->out_h, win->kernel_h, c->stride, c, &h, &win->pad_top, &win->pad_bottom) ||
        !turned_window(l->out_w, win->kernel_w, c->stride, c, &w, &win->pad_left, &win->pad_right)) {
        mri_layer_refuse(
            net, l,
            "window and stride must be at least 1, the padding smaller than the window and than what it "
            "makes, and with \"same\" the window no smaller than the stride");
        return;
    }
    l->flops = 2.0 * per_output * c->filters * l->out_h * l->out_w;
    mri_layer_finish_with(net, l, h, w, c->filters, c->activation);
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

void mr_net_pool(mr_net *net, const mr_pool *p)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_POOL2D, mri_layers_windows);
    uint32_t h, w;
    if (!l || !mri_layer_is_told(net, l, p)) return;
    const uint32_t kernel_w = p->kernel_w ? p->kernel_w : p->kernel;
    l->op.pool2d.average = p->average;
    if (p->pad > 0 && p->padding != MR_PAD_VALID) {
        mri_layer_refuse(net, l, "padding by a number of rows goes with \"valid\", not with \"same\"");
        return;
    }
    if (!place_window(net, l, &l->op.pool2d.window, p->kernel, kernel_w, p->stride, p->padding, p->pad, &h,
                      &w))
        return;
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
    mri_layer *l = mri_layer_begin(net, MR_OP_POOL2D, mri_layers_windows);
    if (!l) return;
    l->op.pool2d.average = average;
    l->op.pool2d.window =
        (mr_op_window){.kernel_h = l->out_h, .kernel_w = l->out_w, .stride_h = 1, .stride_w = 1};
    l->flops = mri_layer_elements(l);
    mri_layer_finish(net, l, 1, 1, l->out_c);
}

void mr_net_global_avg_pool(mr_net *net) { global_pool(net, true); }
void mr_net_global_max_pool(mr_net *net) { global_pool(net, false); }

/* ---- rows ---- */

static void text_of_conv(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    const mr_conv2d_desc *d = &l->op.conv2d;
    const char *act = mri_activation_name(l->op.activation);
    char groups[24] = "";
    (void)net;
    if (d->groups > 1) snprintf(groups, sizeof groups, " in %u groups", d->groups);
    snprintf(out, bytes, "%s %ux%u/%u %u%s%s%s", l->kind->name, d->window.kernel_h, d->window.kernel_w,
             d->window.stride_h, d->filters, groups, *act ? " " : "", act);
}

static const mri_layer_setting conv_settings[] = {
    MRI_STORES(conv2d.filters, window.filters),
    MRI_STORES(conv2d.groups, window.groups),
    MRI_STORES_FLAG(conv2d.no_bias, MRI_CODE_NO_BIAS),
    {0},
};

static mr_padding padding_of(const mri_layer_record *r)
{
    return r->flags & MRI_CODE_SAME ? MR_PAD_SAME : MR_PAD_VALID;
}

static void build_conv(mr_net *net, const mri_layer_record *r)
{
    const mr_conv c = {.filters = r->window.filters,
                       .kernel = r->window.kernel,
                       .kernel_w = r->window.kernel_w,
                       .stride = r->window.stride,
                       .padding = padding_of(r),
                       .pad = r->window.pad,
                       .no_bias = (r->flags & MRI_CODE_NO_BIAS) != 0,
                       .activation = (mr_activation)r->activation,
                       .groups = r->window.groups};
    if (r->kind == MR_OP_CONV2D) mr_net_conv(net, &c);
    else mr_net_conv_transposed(net, &c);
}

static const char *name_of_pool(const mri_layer *l) { return l->op.pool2d.average ? "avg_pool" : "max_pool"; }

static void text_of_pool(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    const mr_op_window *win = &l->op.pool2d.window;
    (void)net;
    snprintf(out, bytes, "%s %ux%u/%u", name_of_pool(l), win->kernel_h, win->kernel_w, win->stride_h);
}

static const mri_layer_setting pool_settings[] = {MRI_STORES_FLAG(pool2d.average, MRI_CODE_AVERAGE), {0}};

static void build_pool(mr_net *net, const mri_layer_record *r)
{
    mr_net_pool(net, &(mr_pool){.kernel = r->window.kernel,
                                .kernel_w = r->window.kernel_w,
                                .stride = r->window.stride,
                                .padding = padding_of(r),
                                .pad = r->window.pad,
                                .average = (r->flags & MRI_CODE_AVERAGE) != 0});
}

const mri_layer_kind mri_layers_windows[] = {
    {.op = MR_OP_CONV2D,
     .name = "conv2d",
     .fuses = true,
     .text = text_of_conv,
     .settings = conv_settings,
     .window = offsetof(mr_op_desc, conv2d.window),
     .build = build_conv},
    {.op = MR_OP_CONV2D_TRANSPOSED,
     .name = "conv2d_transposed",
     .fuses = true,
     .text = text_of_conv,
     .settings = conv_settings,
     .window = offsetof(mr_op_desc, conv2d.window),
     .build = build_conv},
    {.op = MR_OP_POOL2D,
     .name = "pool",
     .name_of = name_of_pool,
     .text = text_of_pool,
     .settings = pool_settings,
     .window = offsetof(mr_op_desc, pool2d.window),
     .build = build_pool},
    {0},
};
