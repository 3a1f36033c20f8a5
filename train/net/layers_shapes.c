/* train/net/layers_shapes.c: layers without weights over one point: value by value, and in another shape. */
#include <stdio.h>

#include "train/net/build.h"
#include "train/net/code.h"

void mr_net_activation(mr_net *net, mr_activation activation)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_ACTIVATION, mri_layers_shapes);
    if (!l) return;
    if (!mri_activation_is_known(activation) || activation == MR_ACT_NONE) {
        mri_layer_refuse(net, l, "a known activation is needed");
        return;
    }
    l->op.activation = activation;
    l->flops = mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mri_layer_finish_with(mr_net *net, mri_layer *l, uint64_t h, uint64_t w, uint64_t c,
                           mr_activation activation)
{
    const bool apart = mr_activation_needs_x(activation);
    l->op.activation = apart ? MR_ACT_NONE : activation;
    mri_layer_finish(net, l, h, w, c);
    if (apart) mr_net_activation(net, activation);
}

static void dropout(mr_net *net, float rate, bool whole_samples)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_DROPOUT, mri_layers_shapes);
    if (!l) return;
    if (!(rate >= 0.0f && rate < 1.0f)) {
        mri_layer_refuse(net, l, "the rate must be in [0, 1)");
        return;
    }
    l->op.dropout = (mr_dropout_desc){.rate = rate, .op_id = l->number, .whole_samples = whole_samples};
    l->flops = mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_dropout(mr_net *net, float rate) { dropout(net, rate, false); }
void mr_net_drop_samples(mr_net *net, float rate) { dropout(net, rate, true); }

void mr_net_reshape(mr_net *net, uint32_t h, uint32_t w, uint32_t c)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_RESHAPE, mri_layers_shapes);
    if (!l) return;
    if (h == 0 || w == 0 || c == 0 || (uint64_t)h * w > MRI_NET_MAX_ELEMENTS ||
        (uint64_t)h * w * c != (uint64_t)l->out_h * l->out_w * l->out_c) {
        mri_layer_refuse(net, l, "the new shape must have as many values as the old one");
        return;
    }
    l->op.reshape = (mr_reshape_desc){h, w, c};
    mri_layer_finish(net, l, h, w, c);
}

void mr_net_upsample(mr_net *net, uint32_t factor, bool bilinear)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_UPSAMPLE, mri_layers_shapes);
    if (!l) return;
    if (factor == 0) {
        mri_layer_refuse(net, l, "a factor of at least 1 is needed");
        return;
    }
    l->op.upsample = (mr_upsample_desc){.factor = factor, .bilinear = bilinear};
    l->flops = (bilinear ? 8.0 : 1.0) * mri_layer_elements(l) * factor * factor;
    mri_layer_finish(net, l, (uint64_t)l->out_h * factor, (uint64_t)l->out_w * factor, l->out_c);
}

void mr_net_pad_channels(mr_net *net, uint32_t before, uint32_t behind)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_PAD, mri_layers_shapes);
    if (!l) return;
    l->op.pad = (mr_pad_desc){.before = before, .behind = behind};
    mri_layer_finish(net, l, l->out_h, l->out_w, (uint64_t)before + l->out_c + behind);
}

/* ---- rows ---- */

static void build_activation(mr_net *net, const mri_layer_record *r)
{
    mr_net_activation(net, (mr_activation)r->activation);
}

static void text_of_dropout(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    const mr_dropout_desc *d = &l->op.dropout;
    (void)net;
    snprintf(out, bytes, "%s%s %g", l->kind->name, d->whole_samples ? " samples" : "", (double)d->rate);
}

static const mri_layer_setting dropout_settings[] = {
    MRI_STORES(dropout.rate, rate), MRI_STORES_FLAG(dropout.whole_samples, MRI_CODE_WHOLE_SAMPLES), {0}};

static void build_dropout(mr_net *net, const mri_layer_record *r)
{
    dropout(net, r->rate, (r->flags & MRI_CODE_WHOLE_SAMPLES) != 0);
}

static const mri_layer_setting reshape_settings[] = {
    MRI_STORES(reshape.h, shape.h), MRI_STORES(reshape.w, shape.w), MRI_STORES(reshape.c, shape.c), {0}};

static void build_reshape(mr_net *net, const mri_layer_record *r)
{
    mr_net_reshape(net, r->shape.h, r->shape.w, r->shape.c);
}

static void text_of_upsample(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    const mr_upsample_desc *d = &l->op.upsample;
    (void)net;
    snprintf(out, bytes, "%s %u%s", l->kind->name, d->factor, d->bilinear ? " bilinear" : "");
}

static const mri_layer_setting upsample_settings[] = {
    MRI_STORES(upsample.factor, window.stride), MRI_STORES_FLAG(upsample.bilinear, MRI_CODE_BILINEAR), {0}};

static void build_upsample(mr_net *net, const mri_layer_record *r)
{
    mr_net_upsample(net, r->window.stride, (r->flags & MRI_CODE_BILINEAR) != 0);
}

static void text_of_pad(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    (void)net;
    snprintf(out, bytes, "%s %u+%u", l->kind->name, l->op.pad.before, l->op.pad.behind);
}

static const mri_layer_setting pad_settings[] = {
    MRI_STORES(pad.before, before), MRI_STORES(pad.behind, behind), {0}};

static void build_pad(mr_net *net, const mri_layer_record *r)
{
    mr_net_pad_channels(net, r->before, r->behind);
}

const mri_layer_kind mri_layers_shapes[] = {
    {.op = MR_OP_ACTIVATION, .name = "activation", .build = build_activation},
    {.op = MR_OP_DROPOUT,
     .name = "dropout",
     .text = text_of_dropout,
     .settings = dropout_settings,
     .build = build_dropout},
    {.op = MR_OP_RESHAPE,
     .name = "reshape",
     .needs_nhwc = true,
     .settings = reshape_settings,
     .build = build_reshape},
    {.op = MR_OP_UPSAMPLE,
     .name = "upsample",
     .text = text_of_upsample,
     .settings = upsample_settings,
     .build = build_upsample},
    {.op = MR_OP_PAD, .name = "pad", .text = text_of_pad, .settings = pad_settings, .build = build_pad},
    {0},
};
