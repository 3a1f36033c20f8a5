/* train/net/layers_norms.c: layers that normalise: over a batch, a sample, channels nearby, and softmax. */
#include <math.h>
#include <stdio.h>

#include "train/net/build.h"
#include "train/net/code.h"

void mr_net_norm(mr_net *net, const mr_norm *n)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_BATCHNORM, mri_layers_norms);
    if (!l || !mri_layer_is_told(net, l, n)) return;
    if (!(n->momentum >= 0.0f && n->momentum < 1.0f) || !(n->epsilon > 0.0f) || !isfinite(n->epsilon) ||
        !mri_activation_is_known(n->activation)) {
        mri_layer_refuse(net, l, "momentum in [0, 1), epsilon above 0 and a known activation are needed");
        return;
    }
    l->op.batchnorm =
        (mr_batchnorm_desc){.momentum = n->momentum, .epsilon = n->epsilon, .no_scale = n->no_scale};
    l->params = (2 - (uint64_t)n->no_scale) * l->out_c;
    l->states = 2 * (uint64_t)l->out_c;
    l->flops = 2.0 * mri_layer_elements(l);
    mri_layer_finish_with(net, l, l->out_h, l->out_w, l->out_c, n->activation);
}

void mr_net_batch_norm(mr_net *net, float momentum, float epsilon, mr_activation activation)
{
    mr_net_norm(net, &(mr_norm){.momentum = momentum, .epsilon = epsilon, .activation = activation});
}

static void group_norm(mr_net *net, uint32_t groups, bool each_pixel, float epsilon)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_GROUPNORM, mri_layers_norms);
    if (!l) return;
    if (!(epsilon > 0) || isinf(epsilon) || groups == 0 || l->out_c % groups != 0) {
        mri_layer_refuse(net, l,
                         "epsilon above 0 and a number of groups that divides the channels are needed");
        return;
    }
    l->op.groupnorm = (mr_groupnorm_desc){.groups = groups, .each_pixel = each_pixel, .epsilon = epsilon};
    l->params = 2 * (uint64_t)l->out_c;
    l->flops = 8 * mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_group_norm(mr_net *net, uint32_t groups, float epsilon)
{
    group_norm(net, groups, false, epsilon);
}
void mr_net_layer_norm(mr_net *net, float epsilon) { group_norm(net, 1, true, epsilon); }

void mr_net_lrn(mr_net *net, uint32_t radius, float bias, float alpha, float beta)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_LRN, mri_layers_norms);
    if (!l) return;
    l->op.lrn = (mr_lrn_desc){.radius = radius, .bias = bias, .alpha = alpha, .beta = beta};
    if (radius > MR_LRN_MOST_RADIUS || !(bias > 0) || !(alpha >= 0) || !(beta >= 0) || isinf(bias) ||
        isinf(alpha) || isinf(beta)) {
        mri_layer_refuse(
            net, l,
            "a radius of 0..64 is needed, and finite numbers: a bias above 0, alpha and beta not below");
        return;
    }
    l->flops = mri_layer_elements(l) * (2 * radius + 5);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

static void softmax(mr_net *net, bool log)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_SOFTMAX, mri_layers_norms);
    if (!l) return;
    l->op.softmax.log = log;
    l->flops = 5 * mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_softmax(mr_net *net) { softmax(net, false); }
void mr_net_log_softmax(mr_net *net) { softmax(net, true); }

/* ---- rows ---- */

static const mri_layer_setting norm_settings[] = {
    MRI_STORES(batchnorm.momentum, momentum),
    MRI_STORES(batchnorm.epsilon, epsilon),
    MRI_STORES_FLAG(batchnorm.no_scale, MRI_CODE_NO_SCALE),
    {0},
};

static void build_norm(mr_net *net, const mri_layer_record *r)
{
    mr_net_norm(net, &(mr_norm){.momentum = r->momentum,
                                .epsilon = r->epsilon,
                                .activation = (mr_activation)r->activation,
                                .no_scale = (r->flags & MRI_CODE_NO_SCALE) != 0});
}

static void text_of_group_norm(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    (void)net;
    if (l->op.groupnorm.each_pixel) snprintf(out, bytes, "layer_norm");
    else snprintf(out, bytes, "%s %u", l->kind->name, l->op.groupnorm.groups);
}

static const mri_layer_setting group_norm_settings[] = {
    MRI_STORES(groupnorm.groups, window.groups),
    MRI_STORES(groupnorm.epsilon, epsilon),
    MRI_STORES_FLAG(groupnorm.each_pixel, MRI_CODE_EACH_PIXEL),
    {0},
};

static void build_group_norm(mr_net *net, const mri_layer_record *r)
{
    if (r->flags & MRI_CODE_EACH_PIXEL) mr_net_layer_norm(net, r->epsilon);
    else mr_net_group_norm(net, r->window.groups, r->epsilon);
}

static void text_of_lrn(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    (void)net;
    snprintf(out, bytes, "%s %u", l->kind->name, 2 * l->op.lrn.radius + 1);
}

static const mri_layer_setting lrn_settings[] = {
    MRI_STORES(lrn.radius, lrn.radius),
    MRI_STORES(lrn.bias, lrn.bias),
    MRI_STORES(lrn.alpha, lrn.alpha),
    MRI_STORES(lrn.beta, lrn.beta),
    {0},
};

static void build_lrn(mr_net *net, const mri_layer_record *r)
{
    mr_net_lrn(net, r->lrn.radius, r->lrn.bias, r->lrn.alpha, r->lrn.beta);
}

static void text_of_softmax(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    (void)net;
    snprintf(out, bytes, "%s%s", l->op.softmax.log ? "log_" : "", l->kind->name);
}

static const mri_layer_setting softmax_settings[] = {MRI_STORES_FLAG(softmax.log, MRI_CODE_LOG), {0}};

static void build_softmax(mr_net *net, const mri_layer_record *r)
{
    softmax(net, (r->flags & MRI_CODE_LOG) != 0);
}

const mri_layer_kind mri_layers_norms[] = {
    {.op = MR_OP_BATCHNORM,
     .name = "batch_norm",
     .fuses = true,
     .settings = norm_settings,
     .build = build_norm},
    {.op = MR_OP_GROUPNORM,
     .name = "group_norm",
     .text = text_of_group_norm,
     .settings = group_norm_settings,
     .build = build_group_norm},
    {.op = MR_OP_LRN, .name = "lrn", .text = text_of_lrn, .settings = lrn_settings, .build = build_lrn},
    {.op = MR_OP_SOFTMAX,
     .name = "softmax",
     .text = text_of_softmax,
     .settings = softmax_settings,
     .build = build_softmax},
    {0},
};
