/* train/net/models.h: the builders of the table of named networks (models.c), by family. */
#ifndef MRI_MODELS_H
#define MRI_MODELS_H

#include "train/net/net.h"

/* depth: which member of a family; 0 where there is one only. */
typedef void mri_build(mr_net *net, uint32_t depth, uint32_t classes);

/* models_classic.c: plain stacks */
mri_build mri_build_cifar_cnn, mri_build_cifar_cnn_small, mri_build_cifar_lrn, mri_build_mnist_cnn,
    mri_build_mnist_cnn_small, mri_build_mnist_selu, mri_build_noise_mlp, mri_build_mnist_mlp,
    mri_build_wide_mlp, mri_build_alexnet, mri_build_vgg;

/* models_recurrent.c: layers over the steps of a sequence */
mri_build mri_build_gru_notes, mri_build_lstm_notes;

/* models_generative.c: networks that are trained to reproduce their input */
mri_build mri_build_mnist_vae;

/* models_resnet.c: residual networks */
mri_build mri_build_cifar_resnet, mri_build_cifar_resnet_v2, mri_build_cifar_resnet_pad, mri_build_cifar_fast,
    mri_build_resnet;

/* models_branched.c: networks whose branches are put beside each other */
mri_build mri_build_inception, mri_build_densenet;

/* models_mobile.c: inverted residual blocks */
mri_build mri_build_mobilenet_v2, mri_build_efficientnet_b0;

#endif
