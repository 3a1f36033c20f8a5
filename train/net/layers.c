/* train/net/layers.c: builder calls of layers that have no weights of their own: pooling and the
 * normalisation of responses. */
#include <math.h>

#include "train/net/build.h"

void mr_net_pool(mr_net *net, const mr_pool *p)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_POOL2D);
    const uint32_t kernel_w = p->kernel_w ? p->kernel_w : p->kernel;
    uint32_t h, w;
    if (!l) return;
    l->average = p->average;
    if (p->pad > 0 && p->padding != MR_PAD_VALID) {
        mri_layer_refuse(net, l, "padding of so many rows goes with \"valid\", not with \"same\"");
        return;
    }
    if (!mri_layer_place_window(net, l, p->kernel, kernel_w, p->stride, p->padding, p->pad, &h, &w)) return;
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
