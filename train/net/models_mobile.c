/* train/net/models_mobile.c: networks of inverted residual blocks, for little arithmetic.
 *
 *   MobileNetV2   in ─┬─ 1x1, wider ─ BN relu6 ─ depthwise 3x3 ─ BN relu6 ─ 1x1 ─ BN ─ + ─►
 *                     └────────────────────────────────────────────────────────────────┘
 *   EfficientNet  in ─┬─ 1x1, wider ─ BN SiLU ─ depthwise ─ BN SiLU ─┬─────────── x ─ 1x1 ─ BN ─ drop ─ + ─►
 *                     │                                              └─ squeeze ──┘                     │
 *                     └─────────────────────────────────────────────────────────────────────────────────┘
 *
 * The short cut is there where a block keeps the shape. Both are as torchvision builds them: Sandler et al.
 * 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks"; Tan & Le 2019, "EfficientNet: Rethinking
 * Model Scaling for Convolutional Neural Networks". The weights of convolutions begin as He's by fan_out,
 * which counts the filters of a group, not of the whole layer. */
#include "train/net/models.h"

#define BN_MOMENTUM 0.9f
#define BN_EPSILON  1e-5f

static void unit(mr_net *net, mr_conv conv, mr_activation activation)
{
    conv.pad = conv.kernel / 2;
    conv.no_bias = true;
    mr_net_conv(net, &conv);
    mr_net_batch_norm(net, BN_MOMENTUM, BN_EPSILON, activation);
}

static void pointwise(mr_net *net, uint32_t filters, mr_activation activation)
{
    unit(net, (mr_conv){.filters = filters, .kernel = 1, .stride = 1}, activation);
}

/* Every channel times what two dense layers make of the means of all (Hu et al. 2018). */
static void squeeze(mr_net *net, uint32_t channels, uint32_t between)
{
    const mr_point all = mr_net_here(net);
    mr_net_global_avg_pool(net);
    mr_net_dense(net, between, MR_ACT_SILU);
    mr_net_dense(net, channels, MR_ACT_SIGMOID);
    const mr_point factors = mr_net_here(net);
    mr_net_from(net, all);
    mr_net_scale(net, factors);
}

struct block {
    uint32_t widen, kernel, stride, in, out;
    mr_activation activation;
    bool squeezes;
    float drop; /* of samples */
};

static void inverted_residual(mr_net *net, const struct block *b)
{
    const mr_point in = mr_net_here(net);
    const uint32_t width = b->in * b->widen;
    if (b->widen > 1) pointwise(net, width, b->activation);
    unit(net, (mr_conv){.filters = width, .kernel = b->kernel, .stride = b->stride, .groups = width},
         b->activation);
    if (b->squeezes) squeeze(net, width, b->in / 4);
    pointwise(net, b->out, MR_ACT_NONE);
    if (b->stride > 1 || b->in != b->out) return;
    if (b->drop > 0) mr_net_drop_samples(net, b->drop);
    mr_net_add(net, in, MR_ACT_NONE);
}

struct stage {
    uint32_t widen, kernel, stride, out, blocks;
};

/* like: what all blocks have in common, the channels of the first, and the drop rate of samples after the
 * last.
 */
static void stages(mr_net *net, const struct stage *s, uint32_t count, const struct block *like)
{
    struct block b = *like;
    uint32_t at = 0, all = 0;
    for (uint32_t i = 0; i < count; i++) all += s[i].blocks;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < s[i].blocks; k++, at++) {
            b.widen = s[i].widen;
            b.kernel = s[i].kernel;
            b.stride = k == 0 ? s[i].stride : 1;
            b.out = s[i].out;
            b.drop = like->drop * (float)at / (float)all; /* the deeper, the more */
            inverted_residual(net, &b);
            b.in = b.out;
        }
}

static void head(mr_net *net, uint32_t classes, mr_activation activation)
{
    pointwise(net, 1280, activation);
    mr_net_global_avg_pool(net);
    mr_net_dropout(net, 0.2f);
    mr_net_init(net, MR_INIT_GLOROT);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

void mri_build_mobilenet_v2(mr_net *net, uint32_t depth, uint32_t classes)
{
    static const struct stage all[] = {{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2}, {6, 3, 2, 32, 3},
                                       {6, 3, 2, 64, 4}, {6, 3, 1, 96, 3}, {6, 3, 2, 160, 3},
                                       {6, 3, 1, 320, 1}};
    (void)depth;
    mr_net_init(net, MR_INIT_HE_OUT);
    unit(net, (mr_conv){.filters = 32, .kernel = 3, .stride = 2}, MR_ACT_RELU6);
    stages(net, all, MRI_ARRAY_COUNT(all), &(struct block){.in = 32, .activation = MR_ACT_RELU6});
    head(net, classes, MR_ACT_RELU6);
}

void mri_build_efficientnet_b0(mr_net *net, uint32_t depth, uint32_t classes)
{
    static const struct stage all[] = {{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},
                                       {6, 3, 2, 80, 3}, {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4},
                                       {6, 3, 1, 320, 1}};
    (void)depth;
    mr_net_init(net, MR_INIT_HE_OUT);
    unit(net, (mr_conv){.filters = 32, .kernel = 3, .stride = 2}, MR_ACT_SILU);
    stages(net, all, MRI_ARRAY_COUNT(all),
           &(struct block){.in = 32, .activation = MR_ACT_SILU, .squeezes = true, .drop = 0.2f});
    head(net, classes, MR_ACT_SILU);
}
