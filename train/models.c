/* train/models.c: the networks with names, each with the settings its source trained it with.
 *
 * The table is what `--model` accepts. param_count is part of it on purpose: it is known from the source, and a test holds
 * the builders to it. */
#include <stdio.h>

#include "train/net.h"

/* N1: two blocks of two 3x3 convolutions, the second of each without padding. */
static void build_cifar_cnn(mr_net *net, uint32_t classes)
{
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

/* N3 */
static void build_mnist_cnn(mr_net *net, uint32_t classes)
{
    mr_net_conv2d(net, 32, 3, 1, MR_PAD_VALID, MR_ACT_RELU);
    mr_net_conv2d(net, 64, 3, 1, MR_PAD_VALID, MR_ACT_RELU);
    mr_net_max_pool(net, 2, 2);
    mr_net_dropout(net, 0.25f);
    mr_net_dense(net, 128, MR_ACT_RELU);
    mr_net_dropout(net, 0.5f);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

/* N9 */
static void build_mnist_mlp(mr_net *net, uint32_t classes)
{
    mr_net_dense(net, 512, MR_ACT_RELU);
    mr_net_dense(net, classes, MR_ACT_NONE);
}

typedef struct named_model {
    mr_model model;
    void   (*build)(mr_net *net, uint32_t classes);
} named_model;

#define RMSPROP(rate) {.kind = MR_UPDATE_RMSPROP, .lr = (rate), .rho = 0.9f, .epsilon = 1e-7f}

static const named_model models[] = {
    {{.name = "cifar-cnn", .id = "N1", .help = "CIFAR-10: four 3x3 convolutions, two dense layers",
      .h = 32, .w = 32, .c = 3, .classes = 10, .param_count = 1250858, .batch = 32, .epochs = 5,
      .update = RMSPROP(1e-4f), .schedule = {.kind = MR_LR_DECAY, .lr = 1e-4f, .decay = 1e-6f}, .augment = "none"},
     build_cifar_cnn},
    {{.name = "mnist-cnn", .id = "N3", .help = "MNIST: two 3x3 convolutions, two dense layers",
      .h = 28, .w = 28, .c = 1, .classes = 10, .param_count = 1199882, .batch = 128, .epochs = 5,
      .update = RMSPROP(2e-3f), .schedule = {.kind = MR_LR_DECAY, .lr = 2e-3f, .decay = 1e-5f}, .augment = "none"},
     build_mnist_cnn},
    {{.name = "mnist-mlp", .id = "N9", .help = "MNIST: two dense layers",
      .h = 28, .w = 28, .c = 1, .classes = 10, .param_count = 407050, .batch = 64, .epochs = 2,
      .update = {.kind = MR_UPDATE_SGD, .lr = 0.01f}, .schedule = {.kind = MR_LR_CONSTANT, .lr = 0.01f}, .augment = "none"},
     build_mnist_mlp},
};

uint32_t mr_model_count(void) { return (uint32_t)MRI_ARRAY_COUNT(models); }

const mr_model *mr_model_at(uint32_t at) { return at < MRI_ARRAY_COUNT(models) ? &models[at].model : NULL; }

const mr_model *mr_model_find(const char *name)
{
    for (uint32_t i = 0; name && i < MRI_ARRAY_COUNT(models); i++)
        if (strcmp(models[i].model.name, name) == 0 || strcmp(models[i].model.id, name) == 0) return &models[i].model;
    return NULL;
}

static const named_model *entry_of(const mr_model *m)
{
    for (uint32_t i = 0; i < MRI_ARRAY_COUNT(models); i++)
        if (m == &models[i].model || (m && m->name && strcmp(m->name, models[i].model.name) == 0)) return &models[i];
    return NULL;
}

int mr_model_build(const mr_model *m, uint32_t h, uint32_t w, uint32_t c, uint32_t classes, mr_net **out, mr_error *err)
{
    *out = NULL;
    const named_model *entry = entry_of(m);
    if (!entry) return mr_error_set(err, MR_EINVAL, "no such model: expected one of mr_model_at()'s");
    if (h == 0 && w == 0) h = m->h, w = m->w;
    if (c == 0) c = m->c;
    if (classes == 0) classes = m->classes;
    mr_net *net;
    const int rc = mr_net_create(&net, m->name, h, w, c);
    if (rc)
        return mr_error_set(err, rc, "model %s cannot take pictures of %ux%ux%u: expected sizes from 1 and 1 to 4 channels",
                            m->name, h, w, c);
    entry->build(net, classes);
    const int bad = mr_net_check(net, err);
    if (bad) {
        mr_net_destroy(net);
        return bad;
    }
    *out = net;
    return MR_OK;
}
