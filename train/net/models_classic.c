/* train/net/models_classic.c: networks that are one stack of layers: the small ones of MNIST and CIFAR-10,
 * AlexNet, VGG. */
#include "train/net/models.h"

/* N1: two blocks of two 3x3 convolutions, the second of each without padding. */
void mri_build_cifar_cnn(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    for (uint32_t filters = 32; filters <= 64; filters *= 2) {
        mr_net_conv2d(net, filters, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
        mr_net_conv2d(net, filters, 3, 1, MR_PAD_VALID, MR_ACT_RELU);
        mr_net_max_pool(net, 2, 2);
        mr_net_dropout(net, 0.25f);
    }
    mr_net_dense(net, 512, MR_ACT_RELU);
    mr_net_dropout(net, 0.5f);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N2: one convolution. */
void mri_build_cifar_cnn_small(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    mr_net_conv2d(net, 32, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N6. 24 -> 12 -> 6. The source draws weights from normal distributions of 0.05, 0.04 and, in the last layer,
 * 1 / 192, cut off at two deviations, which leaves 0.88 of them. Its rate of 0.1 needs them as small as that.
 * Layers between the first and the last begin with biases of 0.1. */
void mri_build_cifar_lrn(mr_net *net, uint32_t depth, uint32_t classes)
{
    const float cut = 0.88f;
    const mr_pool half = {.kernel = 3, .stride = 2, .padding = MR_PAD_SAME};
    (void)depth;
    mr_net_decay(net, MR_NET_DECAY_NONE);
    mr_net_init_deviation(net, 0.05f * cut);
    mr_net_conv2d(net, 64, 5, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_pool(net, &half);
    mr_net_lrn(net, 4, 1, 0.001f / 9, 0.75f);
    mr_net_init_bias(net, 0.1f);
    mr_net_conv2d(net, 64, 5, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_lrn(net, 4, 1, 0.001f / 9, 0.75f);
    mr_net_pool(net, &half);
    mr_net_decay(net, MR_NET_DECAY_WEIGHTS);
    mr_net_init_deviation(net, 0.04f * cut);
    mr_net_dense(net, 384, MR_ACT_RELU);
    mr_net_dense(net, 192, MR_ACT_RELU);
    mr_net_decay(net, MR_NET_DECAY_NONE);
    mr_net_init_deviation(net, cut / 192);
    mr_net_init_bias(net, 0);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N3 and N4 differ in the filters of the second convolution. */
static void two_convolutions(mr_net *net, uint32_t filters, uint32_t classes)
{
    mr_net_conv2d(net, 32, 3, 1, MR_PAD_VALID, MR_ACT_RELU);
    mr_net_conv2d(net, filters, 3, 1, MR_PAD_VALID, MR_ACT_RELU);
    mr_net_max_pool(net, 2, 2);
    mr_net_dropout(net, 0.25f);
    mr_net_dense(net, 128, MR_ACT_RELU);
    mr_net_dropout(net, 0.5f);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N3 */
void mri_build_mnist_cnn(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    two_convolutions(net, 64, classes);
}

/* N4 */
void mri_build_mnist_cnn_small(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    two_convolutions(net, 32, classes);
}

/* N10: nothing makes the picture smaller but the windows. */
void mri_build_mnist_selu(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    for (uint32_t filters = 16; filters <= 64; filters *= 2) {
        mr_net_conv2d(net, filters, 3, 1, MR_PAD_VALID, MR_ACT_SELU);
        mr_net_dropout(net, 0.3f);
    }
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N9 */
void mri_build_mnist_mlp(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    mr_net_dense(net, 512, MR_ACT_RELU);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N8: five layers of 1024 units, or ten of 2048 or 4096; depth: the units. */
void mri_build_wide_mlp(mr_net *net, uint32_t depth, uint32_t classes)
{
    const uint32_t units = depth, layers = units == 1024 ? 5 : 10;
    for (uint32_t i = 0; i < layers; i++) {
        mr_net_dense(net, units, MR_ACT_RELU);
        mr_net_dropout(net, 0.2f);
    }
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N7. Its source ends in the sigmoid of one number, which the loss brings. */
void mri_build_noise_mlp(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    mr_net_dense(net, 4000, MR_ACT_TANH);
    mr_net_dense(net, 2000, MR_ACT_RELU);
    mr_net_dense(net, 500, MR_ACT_RELU);
    mr_net_dense(net, 300, MR_ACT_RELU);
    mr_net_dense(net, classes == 2 ? 1 : classes, MR_ACT_NONE);
}

/* The two wide layers that AlexNet and VGG end in; the last keeps the small weights of Glorot. */
static void wide_head(mr_net *net, uint32_t classes)
{
    for (int i = 0; i < 2; i++) {
        mr_net_dense(net, 4096, MR_ACT_RELU);
        mr_net_dropout(net, 0.5f);
    }
    mr_net_init(net, MR_INIT_GLOROT);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N12: one column, without response normalisation. 227 -> 55 -> 27 -> 13 -> 6. */
void mri_build_alexnet(mr_net *net, uint32_t depth, uint32_t classes)
{
    (void)depth;
    mr_net_init(net, MR_INIT_HE_IN);
    mr_net_conv2d(net, 64, 11, 4, MR_PAD_VALID, MR_ACT_RELU);
    mr_net_max_pool(net, 3, 2);
    mr_net_conv2d(net, 192, 5, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_max_pool(net, 3, 2);
    mr_net_conv2d(net, 384, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_conv2d(net, 384, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_conv2d(net, 256, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_max_pool(net, 3, 2);
    wide_head(net, classes);
}

/* Simonyan & Zisserman 2015, columns D (16) and E (19): the last three stages have three or four
 * convolutions. */
void mri_build_vgg(mr_net *net, uint32_t depth, uint32_t classes)
{
    static const uint32_t filters[] = {64, 128, 256, 512, 512};
    mr_net_init(net, MR_INIT_HE_OUT);
    for (uint32_t stage = 0; stage < 5; stage++) {
        const uint32_t convolutions = stage < 2 ? 2 : depth == 19 ? 4 : 3;
        const char name[] = {'b', 'l', 'o', 'c', 'k', (char)('1' + stage), '\0'};
        mr_net_block(net, name);
        for (uint32_t i = 0; i < convolutions; i++)
            mr_net_conv2d(net, filters[stage], 3, 1, MR_PAD_SAME, MR_ACT_RELU);
        mr_net_max_pool(net, 2, 2);
    }
    mr_net_init(net, MR_INIT_HE_IN);
    mr_net_block(net, "dense");
    wide_head(net, classes);
}
