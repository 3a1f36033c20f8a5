/* train/net/layers_joins.c: layers that take two points. */
#include <math.h>

#include "train/net/build.h"
#include "train/net/code.h"

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
    mri_layer *l = mri_layer_begin(net, MR_OP_ADD, mri_layers_joins);
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
    mri_layer_finish_with(net, l, l->out_h, l->out_w, l->out_c, activation);
}

void mr_net_concat(mr_net *net, const mr_point *others, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        mri_layer *l = mri_layer_begin(net, MR_OP_CONCAT, mri_layers_joins);
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
    mri_layer *l = mri_layer_begin(net, MR_OP_SAMPLE, mri_layers_joins);
    if (!l) return;
    if (!(factor > 0) || isinf(factor)) {
        mri_layer_refuse(net, l, "a finite factor above 0 is needed");
        return;
    }
    if (!mri_layer_take_like(net, l, log_variance)) return;
    l->op.sample = (mr_sample_desc){.factor = factor, .op_id = l->number};
    l->flops = 2 * mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_scale(mr_net *net, mr_point factors)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_SCALE, mri_layers_joins);
    uint32_t c;
    if (!l || !take_second_of(net, l, factors, 1, 1, &c)) return;
    if (c != l->out_c) {
        mri_layer_refuse(net, l, "the other point needs as many channels, a factor for each");
        return;
    }
    l->flops = mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

/* ---- rows ---- */

static void build_add(mr_net *net, const mri_layer_record *r)
{
    mr_net_add(net, r->in2, (mr_activation)r->activation);
}

static void build_concat(mr_net *net, const mri_layer_record *r) { mr_net_concat(net, &r->in2, 1); }

static void build_scale(mr_net *net, const mri_layer_record *r) { mr_net_scale(net, r->in2); }

static const mri_layer_setting sample_settings[] = {MRI_STORES(sample.factor, weight), {0}};

static void build_sample(mr_net *net, const mri_layer_record *r) { mr_net_sample(net, r->in2, r->weight); }

const mri_layer_kind mri_layers_joins[] = {
    {.op = MR_OP_ADD, .name = "add", .takes_two = true, .fuses = true, .build = build_add},
    {.op = MR_OP_CONCAT, .name = "concat", .takes_two = true, .build = build_concat},
    {.op = MR_OP_SCALE, .name = "scale", .takes_two = true, .build = build_scale},
    {.op = MR_OP_SAMPLE,
     .name = "sample",
     .takes_two = true,
     .needs_nhwc = true,
     .settings = sample_settings,
     .build = build_sample},
    {0},
};
