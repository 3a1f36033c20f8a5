/* train/net/models_branched.c: networks whose branches are put beside each other.
 *
 *   Inception   in ─┬─ 1x1 ──────────── concat ─►      DenseNet   in ─┬─ BN relu conv 3x3 ─ concat ─►
 *                   ├─ 1x1 ─ 5x5 ─────────┤                           └───────────────────────┘
 *                   ├─ 1x1 ─ 3x3 ─ 3x3 ───┤
 *                   └─ avg pool ─ 1x1 ────┘ */
#include "train/net/models.h"

/* ------------------------------------------------------------------------------ InceptionV3 */

/* A convolution of h x w, normalised without a scale, then relu. */
static void unit(mr_net *net, uint32_t filters, uint32_t h, uint32_t w, uint32_t stride, mr_padding padding)
{
    mr_net_conv(net, &(mr_conv){.filters = filters,
                                .kernel = h,
                                .kernel_w = w,
                                .stride = stride,
                                .padding = padding,
                                .no_bias = true});
    mr_net_norm(net,
                &(mr_norm){.momentum = 0.99f, .epsilon = 1e-3f, .activation = MR_ACT_RELU, .no_scale = true});
}

static void same(mr_net *net, uint32_t filters, uint32_t h, uint32_t w)
{
    unit(net, filters, h, w, 1, MR_PAD_SAME);
}

/* The end of a branch; the next one begins where this one did. */
static mr_point end_branch(mr_net *net, mr_point in)
{
    const mr_point out = mr_net_here(net);
    mr_net_from(net, in);
    return out;
}

/* The channels of all branches, the first one's first. */
static void join(mr_net *net, const mr_point *branches, uint32_t count)
{
    mr_net_from(net, branches[0]);
    mr_net_concat(net, branches + 1, count - 1);
}

static void pooled(mr_net *net, uint32_t filters)
{
    mr_net_avg_pool_padded(net, 3, 1, 1);
    same(net, filters, 1, 1);
}

/* 35 x 35 */
static void block_35(mr_net *net, uint32_t pool_filters)
{
    const mr_point in = mr_net_here(net);
    mr_point ends[4];
    same(net, 64, 1, 1);
    ends[0] = end_branch(net, in);
    same(net, 48, 1, 1);
    same(net, 64, 5, 5);
    ends[1] = end_branch(net, in);
    same(net, 64, 1, 1);
    same(net, 96, 3, 3);
    same(net, 96, 3, 3);
    ends[2] = end_branch(net, in);
    pooled(net, pool_filters);
    ends[3] = end_branch(net, in);
    join(net, ends, 4);
}

/* 17 x 17: windows of one row or one column. */
static void block_17(mr_net *net, uint32_t filters)
{
    const mr_point in = mr_net_here(net);
    mr_point ends[4];
    same(net, 192, 1, 1);
    ends[0] = end_branch(net, in);
    same(net, filters, 1, 1);
    same(net, filters, 1, 7);
    same(net, 192, 7, 1);
    ends[1] = end_branch(net, in);
    same(net, filters, 1, 1);
    for (int i = 0; i < 2; i++) {
        same(net, filters, 7, 1);
        same(net, i ? 192 : filters, 1, 7);
    }
    ends[2] = end_branch(net, in);
    pooled(net, 192);
    ends[3] = end_branch(net, in);
    join(net, ends, 4);
}

/* A row and a column side by side. */
static void cross(mr_net *net, uint32_t filters)
{
    const mr_point in = mr_net_here(net);
    mr_point ends[2];
    same(net, filters, 1, 3);
    ends[0] = end_branch(net, in);
    same(net, filters, 3, 1);
    ends[1] = end_branch(net, in);
    join(net, ends, 2);
}

/* 8 x 8 */
static void block_8(mr_net *net)
{
    const mr_point in = mr_net_here(net);
    mr_point ends[4];
    same(net, 320, 1, 1);
    ends[0] = end_branch(net, in);
    same(net, 384, 1, 1);
    cross(net, 384);
    ends[1] = end_branch(net, in);
    same(net, 448, 1, 1);
    same(net, 384, 3, 3);
    cross(net, 384);
    ends[2] = end_branch(net, in);
    pooled(net, 192);
    ends[3] = end_branch(net, in);
    join(net, ends, 4);
}

/* Two branches and a pooling that halve the sides. */
static void reduce_35(mr_net *net)
{
    const mr_point in = mr_net_here(net);
    mr_point ends[3];
    unit(net, 384, 3, 3, 2, MR_PAD_VALID);
    ends[0] = end_branch(net, in);
    same(net, 64, 1, 1);
    same(net, 96, 3, 3);
    unit(net, 96, 3, 3, 2, MR_PAD_VALID);
    ends[1] = end_branch(net, in);
    mr_net_max_pool(net, 3, 2);
    ends[2] = end_branch(net, in);
    join(net, ends, 3);
}

static void reduce_17(mr_net *net)
{
    const mr_point in = mr_net_here(net);
    mr_point ends[3];
    same(net, 192, 1, 1);
    unit(net, 320, 3, 3, 2, MR_PAD_VALID);
    ends[0] = end_branch(net, in);
    same(net, 192, 1, 1);
    same(net, 192, 1, 7);
    same(net, 192, 7, 1);
    unit(net, 192, 3, 3, 2, MR_PAD_VALID);
    ends[1] = end_branch(net, in);
    mr_net_max_pool(net, 3, 2);
    ends[2] = end_branch(net, in);
    join(net, ends, 3);
}

/* N13: Szegedy et al. 2016 as Keras builds it; without the second classifier. */
void mri_build_inception(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    unit(net, 32, 3, 3, 2, MR_PAD_VALID);
    unit(net, 32, 3, 3, 1, MR_PAD_VALID);
    same(net, 64, 3, 3);
    mr_net_max_pool(net, 3, 2);
    unit(net, 80, 1, 1, 1, MR_PAD_VALID);
    unit(net, 192, 3, 3, 1, MR_PAD_VALID);
    mr_net_max_pool(net, 3, 2);
    block_35(net, 32);
    block_35(net, 64);
    block_35(net, 64);
    reduce_35(net);
    block_17(net, 128);
    block_17(net, 160);
    block_17(net, 160);
    block_17(net, 192);
    reduce_17(net);
    block_8(net);
    block_8(net);
    mr_net_global_avg_pool(net);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* ------------------------------------------------------------------------------ DenseNet */

static void norm_relu(mr_net *net) { mr_net_batch_norm(net, 0.9f, 1e-5f, MR_ACT_RELU); }

static void dense_layer(mr_net *net, uint32_t growth)
{
    const mr_point in = mr_net_here(net);
    norm_relu(net);
    mr_net_conv2d(net, growth, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    const mr_point grown = mr_net_here(net);
    mr_net_from(net, in);
    mr_net_concat(net, &grown, 1);
}

/* N15: Huang et al. 2017 for CIFAR-10, three blocks of (depth - 4) / 3 layers that add 12 channels each. As
 * in the benchmark whose counts these are, a transition leaves 24 channels; the paper's leaves all of them.
 */
void mri_build_densenet(mr_net *net, uint32_t depth, uint32_t classes)
{
    const uint32_t growth = 12;
    mr_net_init(net, MR_INIT_HE_OUT);
    mr_net_conv2d(net, 16, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    for (uint32_t block = 0; block < 3; block++) {
        for (uint32_t i = 0; i < (depth - 4) / 3; i++) dense_layer(net, growth);
        norm_relu(net);
        if (block == 2) break;
        mr_net_conv2d(net, 2 * growth, 1, 1, MR_PAD_SAME, MR_ACT_RELU);
        mr_net_avg_pool(net, 2, 2);
    }
    mr_net_global_avg_pool(net);
    mr_net_init(net, MR_INIT_GLOROT);
    mr_net_dense(net, classes, MR_ACT_NONE);
}
