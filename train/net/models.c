/* train/net/models.c: the networks with names, each with the settings its source trained it with.
 *
 * The table is what `--model` accepts. param_count is part of it on purpose: it is known from the source, and
 * a test holds the builders to it. */
#include "train/net/models.h"

typedef struct named_model {
    mr_model model;
    mri_build *build;
    uint32_t depth;
} named_model;

#define RMSPROP(rate)                                                                                        \
    {                                                                                                        \
        .kind = MR_UPDATE_RMSPROP, .lr = (rate), .rho = 0.9f, .epsilon = 1e-7f                               \
    }

#define MOMENTUM(rate, decay)                                                                                \
    {                                                                                                        \
        .kind = MR_UPDATE_MOMENTUM, .lr = (rate), .momentum = 0.9f, .weight_decay = (decay)                  \
    }
#define STEPS(rate, how_many, ...)                                                                           \
    {                                                                                                        \
        .kind = MR_LR_STEP, .lr = (rate), .factor = 0.1f, .milestone_count = (how_many), .milestones = {     \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

/* The study adds 1e-6 times the sum of squares of the recurrent layers' weights to the loss, whose slope is
 * 2e-6 w. */
#define NOTES_ADAM                                                                                           \
    {                                                                                                        \
        .kind = MR_UPDATE_ADAM, .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-7f,               \
        .weight_decay = 2e-6f                                                                                \
    }

/* N15. The source lowers the rate at epochs 82, 123 and 300; 200 epochs are what others train these networks
 * for. */
#define CIFAR_RESNET(version, builder, layers, count)                                                        \
    {                                                                                                        \
        {.name = "cifar-resnet" #layers version,                                                             \
         .id = "N15-" #layers version,                                                                       \
         .help = "CIFAR-10: residual network of " #layers " layers",                                         \
         .h = 32,                                                                                            \
         .w = 32,                                                                                            \
         .c = 3,                                                                                             \
         .classes = 10,                                                                                      \
         .param_count = (count),                                                                             \
         .batch = 128,                                                                                       \
         .epochs = 200,                                                                                      \
         .update = MOMENTUM(0.1f, 2e-4f),                                                                    \
         .schedule = STEPS(0.1f, 2, 82, 123),                                                                \
         .augment = "cifar"},                                                                                \
            builder, layers                                                                                  \
    }
#define CIFAR_V1(layers, count)  CIFAR_RESNET("", mri_build_cifar_resnet, layers, count)
#define CIFAR_V2(layers, count)  CIFAR_RESNET("-v2", mri_build_cifar_resnet_v2, layers, count)
#define CIFAR_PAD(layers, count) CIFAR_RESNET("-pad", mri_build_cifar_resnet_pad, layers, count)

#define DENSENET(layers, batch_size, count)                                                                  \
    {                                                                                                        \
        {.name = "densenet" #layers,                                                                         \
         .id = "N15-densenet" #layers,                                                                       \
         .help = "CIFAR-10: densely connected network of " #layers " layers, growth 12",                     \
         .h = 32,                                                                                            \
         .w = 32,                                                                                            \
         .c = 3,                                                                                             \
         .classes = 10,                                                                                      \
         .param_count = (count),                                                                             \
         .batch = (batch_size),                                                                              \
         .epochs = 300,                                                                                      \
         .update = MOMENTUM(0.1f, 1e-4f),                                                                    \
         .schedule = STEPS(0.1f, 2, 150, 225),                                                               \
         .augment = "cifar"},                                                                                \
            mri_build_densenet, layers                                                                       \
    }

#define ADADELTA(rate)                                                                                       \
    {                                                                                                        \
        .kind = MR_UPDATE_ADADELTA, .lr = (rate), .rho = 0.95f, .epsilon = 1e-7f                             \
    }
#define ADAM(rate)                                                                                           \
    {                                                                                                        \
        .kind = MR_UPDATE_ADAM, .lr = (rate), .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-7f               \
    }

/* N8 */
#define WIDE_MLP(layers, units, suffix, count)                                                               \
    {                                                                                                        \
        {.name = "mnist-mlp" #layers "x" #units,                                                             \
         .id = "N8" suffix,                                                                                  \
         .help = "MNIST: " #layers " dense layers of " #units " units",                                      \
         .h = 28,                                                                                            \
         .w = 28,                                                                                            \
         .c = 1,                                                                                             \
         .classes = 10,                                                                                      \
         .param_count = (count),                                                                             \
         .batch = 256,                                                                                       \
         .epochs = 20,                                                                                       \
         .update = RMSPROP(1e-3f),                                                                           \
         .schedule = {.kind = MR_LR_CONSTANT, .lr = 1e-3f},                                                  \
         .augment = "none"},                                                                                 \
            mri_build_wide_mlp, units                                                                        \
    }

/* He et al. 2016a with the crops that came later; the rate belongs to a batch of 256. */
#define RESNET(layers, count)                                                                                \
    {                                                                                                        \
        {.name = "resnet" #layers,                                                                           \
         .id = "resnet" #layers,                                                                             \
         .help = "ImageNet: residual network of " #layers " layers",                                         \
         .h = 224,                                                                                           \
         .w = 224,                                                                                           \
         .c = 3,                                                                                             \
         .classes = 1000,                                                                                    \
         .param_count = (count),                                                                             \
         .batch = 256,                                                                                       \
         .epochs = 90,                                                                                       \
         .update = MOMENTUM(0.1f, 1e-4f),                                                                    \
         .schedule = STEPS(0.1f, 2, 30, 60),                                                                 \
         .augment = "rrc224"},                                                                               \
            mri_build_resnet, layers                                                                         \
    }

#define VGG(layers, count)                                                                                   \
    {                                                                                                        \
        {.name = "vgg" #layers,                                                                              \
         .id = "vgg" #layers,                                                                                \
         .help = "ImageNet: " #layers " layers of 3x3 convolutions and dense",                               \
         .h = 224,                                                                                           \
         .w = 224,                                                                                           \
         .c = 3,                                                                                             \
         .classes = 1000,                                                                                    \
         .param_count = (count),                                                                             \
         .batch = 256,                                                                                       \
         .epochs = 74,                                                                                       \
         .update = MOMENTUM(0.01f, 5e-4f),                                                                   \
         .schedule = STEPS(0.01f, 2, 30, 60),                                                                \
         .augment = "rrc224"},                                                                               \
            mri_build_vgg, layers                                                                            \
    }

static const named_model models[] = {
    {{.name = "cifar-cnn",
      .id = "N1",
      .help = "CIFAR-10: four 3x3 convolutions, two dense layers",
      .h = 32,
      .w = 32,
      .c = 3,
      .classes = 10,
      .param_count = 1250858,
      .batch = 32,
      .epochs = 5,
      .update = RMSPROP(1e-4f),
      .schedule = {.kind = MR_LR_DECAY, .lr = 1e-4f, .decay = 1e-6f},
      .augment = "none"},
     mri_build_cifar_cnn,
     0},
    {{.name = "cifar-cnn-small",
      .id = "N2",
      .help = "CIFAR-10: one 3x3 convolution, one dense layer",
      .h = 32,
      .w = 32,
      .c = 3,
      .classes = 10,
      .param_count = 328586,
      .batch = 32,
      .epochs = 5,
      .update = RMSPROP(1e-4f),
      .schedule = {.kind = MR_LR_DECAY, .lr = 1e-4f, .decay = 1e-6f},
      .augment = "none"},
     mri_build_cifar_cnn_small,
     0},
    /* TensorFlow's tutorial (cifar10.py): a tenth of the rate every 350 epochs; its figures are for 100,000
     * steps, 256 epochs; 0.004 / 2 times the squares of two layers' weights (mr_net_decay()). */
    {{.name = "cifar-lrn",
      .id = "N6",
      .help = "CIFAR-10: two 5x5 convolutions, response normalisation, three dense layers",
      .h = 24,
      .w = 24,
      .c = 3,
      .classes = 10,
      .param_count = 1068298,
      .batch = 128,
      .epochs = 256,
      .update = {.kind = MR_UPDATE_SGD, .lr = 0.1f, .weight_decay = 4e-3f},
      .schedule = STEPS(0.1f, 3, 350, 700, 1050),
      .augment = "padcrop(0,24),flip,brightness(63),contrast(0.2:1.8),standardise"},
     mri_build_cifar_lrn,
     0},
    {{.name = "mnist-cnn",
      .id = "N3",
      .help = "MNIST: two 3x3 convolutions, two dense layers",
      .h = 28,
      .w = 28,
      .c = 1,
      .classes = 10,
      .param_count = 1199882,
      .batch = 128,
      .epochs = 5,
      .update = RMSPROP(2e-3f),
      .schedule = {.kind = MR_LR_DECAY, .lr = 2e-3f, .decay = 1e-5f},
      .augment = "none"},
     mri_build_mnist_cnn,
     0},
    {{.name = "mnist-cnn-small",
      .id = "N4",
      .help = "MNIST: two 3x3 convolutions of 32, two dense layers",
      .h = 28,
      .w = 28,
      .c = 1,
      .classes = 10,
      .param_count = 600810,
      .batch = 128,
      .epochs = 12,
      .update = ADADELTA(1.0f),
      .schedule = {.kind = MR_LR_CONSTANT, .lr = 1.0f},
      .augment = "none"},
     mri_build_mnist_cnn_small,
     0},
    {{.name = "noise-mlp",
      .id = "N7",
      .help = "8,000 numbers (pictures of 80 x 100): five dense layers, one logit for two classes",
      .h = 80,
      .w = 100,
      .c = 1,
      .classes = 2,
      .param_count = 41157101,
      .batch = 2048,
      .epochs = 1,
      .update = ADAM(1e-4f),
      .schedule = {.kind = MR_LR_CONSTANT, .lr = 1e-4f},
      .augment = "none"},
     mri_build_noise_mlp,
     0},
    {{.name = "mnist-selu",
      .id = "N10",
      .help = "MNIST: three 3x3 convolutions with selu, one dense layer",
      .h = 28,
      .w = 28,
      .c = 1,
      .classes = 10,
      .param_count = 333066,
      .batch = 256,
      .epochs = 10,
      .update = ADAM(1e-3f),
      .schedule = {.kind = MR_LR_CONSTANT, .lr = 1e-3f},
      .augment = "none"},
     mri_build_mnist_selu,
     0},
    {{.name = "mnist-vae",
      .id = "N5",
      .help = "MNIST: variational autoencoder, two latent numbers",
      .h = 28,
      .w = 28,
      .c = 1,
      .classes = 0,
      .param_count = 3410058,
      .batch = 128,
      .epochs = 5,
      .update = RMSPROP(1e-3f),
      .schedule = {.kind = MR_LR_CONSTANT, .lr = 1e-3f},
      .augment = "none"},
     mri_build_mnist_vae,
     2},
    WIDE_MLP(5, 1024, "", 5012490),
    WIDE_MLP(10, 2048, "-10x2048", 39395338),
    WIDE_MLP(10, 4096, "-10x4096", 154288138),
    {{.name = "mnist-mlp",
      .id = "N9",
      .help = "MNIST: two dense layers",
      .h = 28,
      .w = 28,
      .c = 1,
      .classes = 10,
      .param_count = 407050,
      .batch = 64,
      .epochs = 2,
      .update = {.kind = MR_UPDATE_SGD, .lr = 0.01f},
      .schedule = {.kind = MR_LR_CONSTANT, .lr = 0.01f},
      .augment = "none"},
     mri_build_mnist_mlp,
     0},
    {{.name = "notes-mlp",
      .id = "notes-mlp",
      .help = "sequences: 49 numbers from 0 to 127, two dense layers",
      .numbers = true,
      .h = 1,
      .w = 49,
      .c = 128,
      .classes = 128,
      .param_count = 3277440,
      .batch = 64,
      .epochs = 15,
      .update = {.kind = MR_UPDATE_ADAM, .lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-7f},
      .schedule = {.kind = MR_LR_CONSTANT, .lr = 1e-3f},
      .augment = "none"},
     mri_build_mnist_mlp,
     0},
    {{.name = "gru-notes",
      .id = "N11",
      .help = "sequences: 49 numbers from 0 to 127, four layers of 1,024 GRU",
      .numbers = true,
      .h = 1,
      .w = 49,
      .c = 128,
      .classes = 128,
      .param_count = 23028352,
      .batch = 64,
      .epochs = 15,
      .update = NOTES_ADAM,
      .schedule = {.kind = MR_LR_CONSTANT, .lr = 1e-3f},
      .augment = "none"},
     mri_build_gru_notes,
     0},
    {{.name = "lstm-notes",
      .id = "lstm-notes",
      .help = "sequences: 49 numbers from 0 to 127, four layers of 1,024 LSTM",
      .numbers = true,
      .h = 1,
      .w = 49,
      .c = 128,
      .classes = 128,
      .param_count = 30491264,
      .batch = 64,
      .epochs = 15,
      .update = NOTES_ADAM,
      .schedule = {.kind = MR_LR_CONSTANT, .lr = 1e-3f},
      .augment = "none"},
     mri_build_lstm_notes,
     0},
    CIFAR_V1(20, 272474),
    CIFAR_V1(32, 466906),
    CIFAR_V1(44, 661338),
    CIFAR_V1(56, 855770),
    CIFAR_V1(110, 1730714),
    CIFAR_V2(20, 272506),
    CIFAR_V2(32, 466938),
    CIFAR_V2(44, 661370),
    CIFAR_V2(56, 855802),
    CIFAR_V2(110, 1730746),
    CIFAR_PAD(20, 269722),
    CIFAR_PAD(32, 464154),
    CIFAR_PAD(44, 658586),
    CIFAR_PAD(56, 853018),
    CIFAR_PAD(110, 1727962),
    {{.name = "cifar-fast",
      .id = "N16",
      .help = "CIFAR-10: residual network of nine layers, for few epochs",
      .h = 32,
      .w = 32,
      .c = 3,
      .classes = 10,
      .param_count = 6573130,
      .batch = 512,
      .epochs = 24,
      .update =
          {.kind = MR_UPDATE_MOMENTUM, .nesterov = true, .lr = 0.4f, .momentum = 0.9f, .weight_decay = 5e-4f},
      .schedule = {.kind = MR_LR_LINEAR, .lr = 0.4f, .warmup_epochs = 5},
      .augment = "resize(32x32),padcrop(4,border=mirror),flip,cutout(8),"
                 "normalise(125.3:123:113.9/63:62.1:66.7)",
      .label_smoothing = 0.2f},
     mri_build_cifar_fast,
     0},
    DENSENET(40, 128, 357322),
    DENSENET(100, 64, 2217002),
    RESNET(18, 11689512),
    RESNET(34, 21797672),
    RESNET(50, 25557032),
    {{.name = "inception-v3",
      .id = "N13",
      .help = "ImageNet: Inception, third version",
      .h = 299,
      .w = 299,
      .c = 3,
      .classes = 1000,
      .param_count = 23817352,
      .batch = 32,
      .epochs = 90,
      .update = {.kind = MR_UPDATE_SGD, .lr = 0.045f},
      .schedule = {.kind = MR_LR_CONSTANT, .lr = 0.045f},
      .augment = "rrc(299),flip,normalise(imagenet)"},
     mri_build_inception,
     0},
    {{.name = "alexnet",
      .id = "N12",
      .help = "ImageNet: five convolutions, three dense layers",
      .h = 227,
      .w = 227,
      .c = 3,
      .classes = 1000,
      .param_count = 61838248,
      .batch = 256,
      .epochs = 90,
      .update = MOMENTUM(0.01f, 5e-4f),
      .schedule = STEPS(0.01f, 2, 30, 60),
      .augment = "rrc(227),flip,normalise(imagenet)"},
     mri_build_alexnet,
     0},
    VGG(16, 138357544),
    VGG(19, 143667240),
    /* Sandler et al. 2018; trained as torchvision did (references/classification): SGD, where the paper has
     * RMSprop, and a rate that falls by 2 % with every epoch. */
    {{.name = "mobilenet-v2",
      .id = "mobilenet-v2",
      .help = "ImageNet: inverted residuals, depthwise convolutions",
      .h = 224,
      .w = 224,
      .c = 3,
      .classes = 1000,
      .param_count = 3504872,
      .batch = 256,
      .epochs = 300,
      .update = MOMENTUM(0.045f, 4e-5f),
      .schedule = {.kind = MR_LR_EXPONENTIAL, .lr = 0.045f, .factor = 0.98f},
      .augment = "rrc224"},
     mri_build_mobilenet_v2,
     0},
    /* Tan & Le 2019, section 5.2, and the program they published: RMSprop with decay 0.9, momentum 0.9 and a
     * constant of 1e-3, 0.016 for every 256 samples of a batch, times 0.97 every 2.4 epochs (0.97^(1/2.4) =
     * 0.98739 an epoch). */
    {{.name = "efficientnet-b0",
      .id = "efficientnet-b0",
      .help = "ImageNet: inverted residuals with squeeze and excitation",
      .h = 224,
      .w = 224,
      .c = 3,
      .classes = 1000,
      .param_count = 5288548,
      .batch = 256,
      .epochs = 350,
      .update = {.kind = MR_UPDATE_RMSPROP_MOMENTUM,
                 .lr = 0.016f,
                 .momentum = 0.9f,
                 .rho = 0.9f,
                 .epsilon = 1e-3f,
                 .weight_decay = 1e-5f},
      .schedule = {.kind = MR_LR_EXPONENTIAL, .lr = 0.016f, .factor = 0.98739f, .warmup_epochs = 5},
      .augment = "rrc224",
      .label_smoothing = 0.1f},
     mri_build_efficientnet_b0,
     0},
};

uint32_t mr_model_count(void) { return (uint32_t)MRI_ARRAY_COUNT(models); }

const mr_model *mr_model_at(uint32_t at) { return at < MRI_ARRAY_COUNT(models) ? &models[at].model : NULL; }

const mr_model *mr_model_find(const char *name)
{
    for (uint32_t i = 0; name && i < MRI_ARRAY_COUNT(models); i++)
        if (strcmp(models[i].model.name, name) == 0 || strcmp(models[i].model.id, name) == 0)
            return &models[i].model;
    return NULL;
}

static const named_model *entry_of(const mr_model *m)
{
    for (uint32_t i = 0; i < MRI_ARRAY_COUNT(models); i++)
        if (m == &models[i].model || (m && m->name && strcmp(m->name, models[i].model.name) == 0))
            return &models[i];
    return NULL;
}

int mr_model_build(const mr_model *m, uint32_t h, uint32_t w, uint32_t c, uint32_t classes, mr_net **out,
                   mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, m);
    const named_model *entry = entry_of(m);
    if (!entry) return mr_error_set(err, MR_EINVAL, "no such model: expected one of mr_model_at()'s");
    if (h == 0 && w == 0) h = m->h, w = m->w;
    if (c == 0) c = m->c;
    if (classes == 0) classes = m->classes;
    mr_net *net;
    const int rc = entry->model.numbers ? mr_net_create_numbers(&net, m->name, w, c)
                                        : mr_net_create(&net, m->name, h, w, c);
    if (rc == MR_ENOMEM) return mr_error_set(err, rc, "no memory for model %s", m->name);
    if (rc && entry->model.numbers)
        return mr_error_set(err, rc, "model %s cannot take sequences of %u numbers from 0 to %u", m->name, w,
                            c - 1);
    if (rc)
        return mr_error_set(
            err, rc, "model %s cannot take pictures of %ux%ux%u: expected sizes from 1 and 1 to 4 channels",
            m->name, h, w, c);
    entry->build(net, entry->depth, classes);
    const int bad = mr_net_check(net, err);
    if (bad) {
        mr_net_destroy(net);
        return bad;
    }
    *out = net;
    return MR_OK;
}
