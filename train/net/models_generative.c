/* train/net/models_generative.c: networks that learn to reproduce their input. */
#include "train/net/models.h"

/* N5: a variational autoencoder (Kingma & Welling 2014) of two latent numbers, convolutions down and
 * transposed ones up, for pictures of even sides. Its loss is the pixels' loss, a sum, plus the mean
 * divergence of the latent numbers; its source spreads draws by exp(log variance), not by the root of it. */
void mri_build_mnist_vae(mr_net *net, uint32_t depth, uint32_t classes)
{
    const uint32_t c = net->c, h = net->h, w = net->w, latent = depth;
    (void)classes;
    mr_net_conv2d(net, c, 2, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_conv2d(net, 64, 2, 2, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_conv2d(net, 64, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_conv2d(net, 64, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_dense(net, 128, MR_ACT_RELU);
    const mr_point code = mr_net_here(net);
    mr_net_dense(net, latent, MR_ACT_NONE);
    const mr_point log_variance = mr_net_here(net);
    mr_net_from(net, code);
    mr_net_dense(net, latent, MR_ACT_NONE);
    mr_net_loss_pair(net, MR_PAIR_DIVERGENCE, log_variance, 1.0f / (float)latent);
    mr_net_sample(net, log_variance, 1);

    mr_net_dense(net, 128, MR_ACT_RELU);
    mr_net_dense(net, (h + 1) / 2 * ((w + 1) / 2) * 64, MR_ACT_RELU);
    mr_net_reshape(net, (h + 1) / 2, (w + 1) / 2, 64);
    mr_conv up = {.filters = 64, .kernel = 3, .stride = 1, .padding = MR_PAD_SAME, .activation = MR_ACT_RELU};
    mr_net_conv_transposed(net, &up);
    mr_net_conv_transposed(net, &up);
    up.stride = 2, up.padding = MR_PAD_VALID;
    mr_net_conv_transposed(net, &up);
    mr_net_conv2d(net, c, 2, 1, MR_PAD_VALID, MR_ACT_NONE);
    mr_net_loss_pair(net, MR_PAIR_CROSS_ENTROPY, 0, 1);
}
