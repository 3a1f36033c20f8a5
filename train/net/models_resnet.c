/* train/net/models_resnet.c: residual networks (He et al. 2016a, b).
 *
 *   v1     in ─┬─ conv BN relu conv BN ─ + ─ relu ─►      v2     in ─┬─ BN relu conv BN relu conv ─ + ─►
 *              └───── in, or conv 1x1 BN ┘                           └───────── in, or conv 1x1 BN ┘
 *
 * A block changes the shape at the first block of a stage only; there the short cut is a 1x1 convolution with
 * batch normalisation, or every second pixel with channels of zeros around its own ("pad": as the benchmark
 * that named the CIFAR networks has it). The short cut comes first in the list of layers, so that the
 * normalisation that ends the other branch stands directly before the addition and the two can be one
 * operation. */
#include "train/net/models.h"

#define BN_MOMENTUM 0.9f
#define BN_EPSILON  1e-5f

static void conv(mr_net *net, uint32_t filters, uint32_t kernel, uint32_t stride)
{
    mr_net_conv(
        net, &(mr_conv){
                 .filters = filters, .kernel = kernel, .stride = stride, .pad = kernel / 2, .no_bias = true});
}

static void norm(mr_net *net, mr_activation activation)
{
    mr_net_batch_norm(net, BN_MOMENTUM, BN_EPSILON, activation);
}

static void conv_norm(mr_net *net, uint32_t filters, uint32_t kernel, uint32_t stride,
                      mr_activation activation)
{
    conv(net, filters, kernel, stride);
    norm(net, activation);
}

/* The point to add at the end of the block; the current point is where the block begins, again. */
static mr_point short_cut(mr_net *net, bool changes, uint32_t filters, uint32_t stride)
{
    const mr_point in = mr_net_here(net);
    if (!changes) return in;
    conv_norm(net, filters, 1, stride, MR_ACT_NONE);
    const mr_point out = mr_net_here(net);
    mr_net_from(net, in);
    return out;
}

static void basic_block(mr_net *net, uint32_t filters, uint32_t stride, bool changes)
{
    const mr_point cut = short_cut(net, changes, filters, stride);
    conv_norm(net, filters, 3, stride, MR_ACT_RELU);
    conv_norm(net, filters, 3, 1, MR_ACT_NONE);
    mr_net_add(net, cut, MR_ACT_RELU);
}

static void basic_block_v2(mr_net *net, uint32_t filters, uint32_t stride, bool changes)
{
    const mr_point cut = short_cut(net, changes, filters, stride);
    norm(net, MR_ACT_RELU);
    conv_norm(net, filters, 3, stride, MR_ACT_RELU);
    conv(net, filters, 3, 1);
    mr_net_add(net, cut, MR_ACT_NONE);
}

/* Without parameters in the short cut. */
static void basic_block_pad(mr_net *net, uint32_t filters, uint32_t stride, bool changes)
{
    const mr_point in = mr_net_here(net);
    mr_point cut = in;
    if (changes) {
        mr_net_avg_pool(net, 1, stride);
        mr_net_pad_channels(net, filters / 4, filters / 4); /* from half as many */
        cut = mr_net_here(net);
        mr_net_from(net, in);
    }
    conv_norm(net, filters, 3, stride, MR_ACT_RELU);
    conv_norm(net, filters, 3, 1, MR_ACT_NONE);
    mr_net_add(net, cut, MR_ACT_RELU);
}

/* N16, the network that won DAWNBench's race for 94 % (Page 2018, "How to train your ResNet"): five 3x3
 * convolutions, three of them halved by the largest of 2x2, and two residual blocks that no convolution
 * follows. The slope below 0 is that of its later versions. */
static void fast_layer(mr_net *net, uint32_t filters, bool halves)
{
    conv(net, filters, 3, 1);
    mr_net_batch_norm(net, 0.8f, BN_EPSILON, MR_ACT_LEAKY_RELU);
    if (halves) mr_net_max_pool(net, 2, 2);
}

static void fast_block(mr_net *net, uint32_t filters)
{
    const mr_point in = mr_net_here(net);
    fast_layer(net, filters, false);
    fast_layer(net, filters, false);
    mr_net_add(net, in, MR_ACT_NONE);
}

void mri_build_cifar_fast(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    fast_layer(net, 64, false);
    for (uint32_t filters = 128; filters <= 512; filters *= 2) {
        fast_layer(net, filters, true);
        if (filters != 256) fast_block(net, filters);
    }
    mr_net_global_max_pool(net);
    mr_net_dense(net, classes, MR_ACT_NONE);
    mr_net_logit_factor(net, 0.125f);
}

/* "v1.5": the stride is in the 3x3 convolution, not in the 1x1 before it. */
static void bottleneck(mr_net *net, uint32_t filters, uint32_t stride, bool changes)
{
    const mr_point cut = short_cut(net, changes, 4 * filters, stride);
    conv_norm(net, filters, 1, 1, MR_ACT_RELU);
    conv_norm(net, filters, 3, stride, MR_ACT_RELU);
    conv_norm(net, 4 * filters, 1, 1, MR_ACT_NONE);
    mr_net_add(net, cut, MR_ACT_RELU);
}

static void head(mr_net *net, uint32_t classes)
{
    mr_net_global_avg_pool(net);
    mr_net_init(net, MR_INIT_GLOROT);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* Three stages of (depth - 2) / 6 blocks with 16, 32, 64 filters. */
static void cifar_stages(mr_net *net, uint32_t depth, void (*block)(mr_net *, uint32_t, uint32_t, bool))
{
    for (uint32_t stage = 0; stage < 3; stage++)
        for (uint32_t i = 0; i < (depth - 2) / 6; i++) {
            const bool changes = stage > 0 && i == 0;
            block(net, 16u << stage, changes ? 2 : 1, changes);
        }
}

void mri_build_cifar_resnet(mr_net *net, uint32_t depth, uint32_t classes)
{
    mr_net_init(net, MR_INIT_HE_IN);
    conv_norm(net, 16, 3, 1, MR_ACT_NONE); /* without relu, as in the source */
    cifar_stages(net, depth, basic_block);
    head(net, classes);
}

void mri_build_cifar_resnet_v2(mr_net *net, uint32_t depth, uint32_t classes)
{
    mr_net_init(net, MR_INIT_HE_IN);
    conv_norm(net, 16, 3, 1, MR_ACT_RELU);
    cifar_stages(net, depth, basic_block_v2);
    norm(net, MR_ACT_RELU);
    head(net, classes);
}

void mri_build_cifar_resnet_pad(mr_net *net, uint32_t depth, uint32_t classes)
{
    mr_net_init(net, MR_INIT_HE_IN);
    conv_norm(net, 16, 3, 1, MR_ACT_RELU);
    cifar_stages(net, depth, basic_block_pad);
    head(net, classes);
}

/* ImageNet's: 18 and 34 of basic blocks, 50 of bottlenecks. */
void mri_build_resnet(mr_net *net, uint32_t depth, uint32_t classes)
{
    static const uint32_t two[] = {2, 2, 2, 2}, more[] = {3, 4, 6, 3};
    const uint32_t *blocks = depth == 18 ? two : more;
    mr_net_init(net, MR_INIT_HE_OUT);
    conv_norm(net, 64, 7, 2, MR_ACT_RELU);
    mr_net_max_pool_padded(net, 3, 2, 1);
    for (uint32_t stage = 0; stage < 4; stage++)
        for (uint32_t i = 0; i < blocks[stage]; i++) {
            const uint32_t stride = stage > 0 && i == 0 ? 2 : 1;
            if (depth == 50) bottleneck(net, 64u << stage, stride, i == 0);
            else basic_block(net, 64u << stage, stride, stage > 0 && i == 0);
        }
    head(net, classes);
}
