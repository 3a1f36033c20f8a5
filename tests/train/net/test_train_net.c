/* Network builder: shapes, parameter counts, summaries, mistakes, the table of models. */
#include <math.h>

#include "mrt.h"
#include "train/net/net.h"

static mr_net *net_of(uint32_t h, uint32_t w, uint32_t c)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "test", h, w, c), MR_OK);
    return net;
}

static void test_models_have_their_published_size(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t params;
        uint32_t classes;
    } expected[] = {
        {"cifar-cnn", 1250858, 10},          {"cifar-cnn-small", 328586, 10},
        {"cifar-lrn", 1068298, 10},          {"mnist-cnn", 1199882, 10},
        {"mnist-cnn-small", 600810, 10},     {"noise-mlp", 41157101, 2},
        {"mnist-selu", 333066, 10},          {"mnist-vae", 3410058, 0},
        {"mnist-mlp5x1024", 5012490, 10},    {"mnist-mlp10x2048", 39395338, 10},
        {"mnist-mlp10x4096", 154288138, 10}, {"mnist-mlp", 407050, 10},
        {"notes-mlp", 3277440, 128},         {"gru-notes", 23028352, 128},
        {"lstm-notes", 30491264, 128},       {"cifar-resnet20", 272474, 10},
        {"cifar-resnet32", 466906, 10},      {"cifar-resnet44", 661338, 10},
        {"cifar-resnet56", 855770, 10},      {"cifar-resnet110", 1730714, 10},
        {"cifar-resnet20-v2", 272506, 10},   {"cifar-resnet32-v2", 466938, 10},
        {"cifar-resnet44-v2", 661370, 10},   {"cifar-resnet56-v2", 855802, 10},
        {"cifar-resnet110-v2", 1730746, 10}, {"cifar-resnet20-pad", 269722, 10},
        {"cifar-resnet32-pad", 464154, 10},  {"cifar-resnet44-pad", 658586, 10},
        {"cifar-resnet56-pad", 853018, 10},  {"cifar-resnet110-pad", 1727962, 10},
        {"cifar-fast", 6573130, 10},         {"densenet40", 357322, 10},
        {"densenet100", 2217002, 10},        {"resnet18", 11689512, 1000},
        {"resnet34", 21797672, 1000},        {"resnet50", 25557032, 1000},
        {"inception-v3", 23817352, 1000},    {"alexnet", 61838248, 1000},
        {"vgg16", 138357544, 1000},          {"vgg19", 143667240, 1000},
        {"mobilenet-v2", 3504872, 1000},     {"efficientnet-b0", 5288548, 1000},
    };
    enum { COUNT = sizeof expected / sizeof expected[0] };
    MRT_EQ(mr_model_count(), COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_net *net;
        const mr_model *m = mr_model_at(i);
        MRT_STR(m->name, expected[i].name);
        MRT_OK(mr_model_build(m, 0, 0, 0, 0, &net, &err), &err);
        MRT_EQ(mr_net_param_count(net), expected[i].params);
        MRT_EQ(m->param_count, expected[i].params);
        MRT_EQ(mr_net_class_count(net), expected[i].classes);
        MRT_STR(mr_net_name(net), m->name);
        MRT_TRUE(m->schedule.lr == m->update.lr && m->batch > 0 && m->epochs > 0);
        MRT_TRUE(mr_model_find(m->id) == m && mr_model_find(m->name) == m);
        mr_net_destroy(net);
    }
    MRT_TRUE(mr_model_at(COUNT) == NULL);
    MRT_TRUE(mr_model_find("resnet51") == NULL && mr_model_find(NULL) == NULL);
}

/* Some sources count running means and variances, too. */
static void test_models_have_their_published_size_with_statistics(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t all;
    } expected[] = {
        {"inception-v3", 23851784}, {"cifar-resnet20-pad", 271098}, {"cifar-resnet110-pad", 1736058},
        {"densenet40", 364602},     {"densenet100", 2259242},       {"mnist-cnn", 1199882},
        {"mobilenet-v2", 3538984},  {"efficientnet-b0", 5330564},
    };
    for (uint32_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_net *net;
        MRT_OK(mr_model_build(mr_model_find(expected[i].name), 0, 0, 0, 0, &net, &err), &err);
        MRT_EQ(mr_net_param_count(net) + mr_net_state_count(net), expected[i].all);
        mr_net_destroy(net);
    }
}

static void test_models_fit_other_pictures(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    MRT_OK(mr_model_build(mr_model_find("cifar-cnn"), 64, 48, 1, 100, &net, &err), &err);
    MRT_EQ(mr_net_class_count(net), 100);
    mr_net_destroy(net);
    MRT_EQ(mr_model_build(mr_model_find("cifar-cnn"), 4, 4, 3, 10, &net, &err), MR_EINVAL);
    MRT_TRUE(net == NULL);
    MRT_HAS(err.text, "window is larger");
    MRT_EQ(mr_model_build(mr_model_find("cifar-cnn"), 32, 32, 9, 10, &net, &err), MR_EINVAL);
    MRT_HAS(err.text, "32x32x9");
    MRT_EQ(mr_model_build(NULL, 32, 32, 3, 10, &net, &err), MR_EINVAL);
}

static void test_summary(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    MRT_OK(mr_model_build(mr_model_find("cifar-cnn"), 0, 0, 0, 0, &net, &err), &err);
    static const struct {
        const char *name, *output;
        uint64_t params;
    } rows[] = {
        {"conv2d 3x3/1 32 relu", "32x32x32", 896},
        {"conv2d 3x3/1 32 relu", "30x30x32", 9248},
        {"max_pool 2x2/2", "15x15x32", 0},
        {"dropout 0.25", "15x15x32", 0},
        {"conv2d 3x3/1 64 relu", "15x15x64", 18496},
        {"conv2d 3x3/1 64 relu", "13x13x64", 36928},
        {"max_pool 2x2/2", "6x6x64", 0},
        {"dropout 0.25", "6x6x64", 0},
        {"dense 512 relu", "1x1x512", 1180160},
        {"dropout 0.5", "1x1x512", 0},
        {"dense 10", "1x1x10", 5130},
    };
    mr_layer_row row;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        MRT_TRUE(mr_net_layer(net, i, &row));
        MRT_STR(row.name, rows[i].name);
        MRT_STR(row.output, rows[i].output);
        MRT_EQ(row.params, rows[i].params);
    }
    MRT_TRUE(!mr_net_layer(net, 11, &row));
    MRT_TRUE(mr_net_layer(net, 0, &row) && row.flops == 2.0 * 27 * 32 * 32 * 32);
    MRT_TRUE(mr_net_layer(net, 10, &row) && row.flops == 2.0 * 512 * 10);
    mr_net_destroy(net);
}

static void check_output(mr_net *net, uint32_t at, const char *output)
{
    mr_layer_row row;
    MRT_TRUE(mr_net_layer(net, at, &row));
    MRT_STR(row.output, output);
}

static void test_shapes(void **state)
{
    (void)state;
    mr_net *net = net_of(7, 10, 3);
    mr_net_conv2d(net, 5, 3, 2, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_batch_norm(net, 0.9f, 1e-5f, MR_ACT_RELU);
    mr_net_conv2d(net, 4, 2, 1, MR_PAD_SAME, MR_ACT_SELU);
    mr_net_avg_pool(net, 3, 1);
    mr_net_activation(net, MR_ACT_TANH);
    mr_net_dense(net, 2, MR_ACT_NONE);
    check_output(net, 0, "4x5x5");
    check_output(net, 1, "4x5x5");
    check_output(net, 2, "4x5x4");
    check_output(net, 3, "2x3x4");
    check_output(net, 5, "1x1x2");
    MRT_EQ(mr_net_check(net, NULL), MR_OK);
    MRT_EQ(mr_net_param_count(net), (27 + 1) * 5 + 10 + (20 + 1) * 4 + (24 + 1) * 2);
    mr_net_destroy(net);
}

static void expect_error(mr_net *net, const char *part)
{
    mr_error err = MR_ERROR_INIT;
    MRT_TRUE(mr_net_check(net, &err) < 0);
    MRT_HAS(err.text, part);
    mr_net_destroy(net);
}

static void test_first_mistake_sticks(void **state)
{
    (void)state;
    mr_net *net = net_of(8, 8, 1);
    mr_net_dense(net, 4, MR_ACT_RELU);
    mr_net_dropout(net, 1.0f);                             /* the mistake */
    mr_net_conv2d(net, 0, 3, 1, MR_PAD_SAME, MR_ACT_NONE); /* would be another */
    mr_net_dense(net, 2, MR_ACT_NONE);
    mr_layer_row row;
    MRT_TRUE(mr_net_layer(net, 0, &row) && !mr_net_layer(net, 1, &row));
    expect_error(net, "layer 1 (dropout)");
}

static mr_net *with_pool(const mr_pool *pool)
{
    mr_net *net = net_of(7, 24, 3);
    mr_net_pool(net, pool);
    return net;
}

/* The odd row of "same" stands behind, as the layer's own numbers tell. */
static void test_pools(void **state)
{
    (void)state;
    mr_layer_row row;
    mr_net *net = with_pool(&(mr_pool){.kernel = 3, .stride = 2, .padding = MR_PAD_SAME});
    mr_net_pool(net, &(mr_pool){.kernel = 2, .kernel_w = 3, .stride = 1, .average = true});
    MRT_TRUE(mr_net_layer(net, 0, &row));
    MRT_STR(row.name, "max_pool 3x3/2");
    MRT_STR(row.output, "4x12x3");
    const mr_op_window *window = &net->layers[0].op.pool2d.window;
    MRT_TRUE(window->pad_top == 1 && window->pad_bottom == 1);
    MRT_TRUE(window->pad_left == 0 && window->pad_right == 1);
    MRT_TRUE(mr_net_layer(net, 1, &row));
    MRT_STR(row.name, "avg_pool 2x3/1");
    MRT_STR(row.output, "3x10x3");
    mr_net_lrn(net, 4, 1, 1e-4f, 0.75f);
    MRT_TRUE(mr_net_layer(net, 2, &row));
    MRT_STR(row.name, "lrn 9");
    MRT_STR(row.output, "3x10x3");
    mr_net_softmax(net);
    MRT_TRUE(mr_net_layer(net, 3, &row));
    MRT_STR(row.name, "softmax");
    mr_net_log_softmax(net);
    MRT_TRUE(mr_net_layer(net, 4, &row));
    MRT_STR(row.name, "log_softmax");
    MRT_STR(row.output, "3x10x3");
    mr_net_destroy(net);
    expect_error(with_pool(&(mr_pool){.kernel = 3, .stride = 2, .padding = MR_PAD_SAME, .pad = 1}),
                 "goes with \"valid\"");
    expect_error(with_pool(&(mr_pool){.kernel = 3, .stride = 2, .pad = 3}), "smaller than the window");
    expect_error(with_pool(&(mr_pool){.kernel = 8, .stride = 1}), "larger than its input");
    for (int i = 0; i < 4; i++) {
        net = net_of(2, 2, 3);
        mr_net_lrn(net, i == 0 ? 65 : 1, i == 1 ? 0 : 1, i == 2 ? -1 : 1, i == 3 ? NAN : 1);
        expect_error(net, "a radius of 0..64 is needed");
    }
}

/* Every kind of layer has one row, a name of its own and a way back from its record; INPUT is no layer. */
static void test_kinds(void **state)
{
    (void)state;
    MRT_TRUE(!mri_layer_kind_of(MR_OP_INPUT) && !mri_layer_kind_of((mr_op_kind)MR_OP_KIND_COUNT));
    for (uint32_t op = 0; op < MR_OP_KIND_COUNT; op++) {
        const mri_layer_kind *kind = mri_layer_kind_of((mr_op_kind)op);
        if (!kind) continue;
        MRT_TRUE((uint32_t)kind->op == op && *kind->name && kind->build);
        for (uint32_t other = 0; other < op; other++) {
            const mri_layer_kind *before = mri_layer_kind_of((mr_op_kind)other);
            MRT_TRUE(!before || strcmp(before->name, kind->name) != 0);
        }
    }
}

/* One logit stands for two classes, with a loss that is named and without. */
static void test_one_logit(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        mr_error err = MR_ERROR_INIT;
        mr_net *net = net_of(4, 4, 1);
        mr_net_dense(net, 1, MR_ACT_NONE);
        if (named) mr_net_loss_labels(net, 1);
        MRT_OK(mr_net_check(net, &err), &err);
        MRT_EQ(mr_net_class_count(net), 2);
        mr_net_destroy(net);
    }
}

/* Settings for future layers apply to the layers added afterwards. */
static void test_what_layers_begin_with(void **state)
{
    (void)state;
    mr_net *net = net_of(8, 8, 1);
    mr_net_dense(net, 4, MR_ACT_RELU);
    MRT_TRUE(!mr_net_has_own_decay(net));
    mr_net_decay(net, MR_NET_DECAY_NONE);
    mr_net_activation(net, MR_ACT_RELU); /* which has nothing that decays */
    MRT_TRUE(!mr_net_has_own_decay(net));
    mr_net_decay(net, MR_NET_DECAY_WEIGHTS);
    mr_net_init_bias(net, 0.5f);
    mr_net_dense(net, 4, MR_ACT_NONE);
    MRT_TRUE(mr_net_has_own_decay(net));
    MRT_TRUE(net->layers[0].first.bias == 0 && net->layers[2].first.bias == 0.5f);
    mr_net_destroy(net);
    net = net_of(8, 8, 1);
    mr_net_init_deviation(net, 2);
    mr_net_dense(net, 4, MR_ACT_RELU);
    mr_net_init(net, MR_INIT_HE_IN);
    mr_net_dense(net, 4, MR_ACT_RELU);
    MRT_TRUE(net->layers[0].first.deviation == 2 && net->layers[1].first.deviation == 0);
    mr_net_init_deviation(net, 0);
    expect_error(net, "a finite number above 0");
    net = net_of(8, 8, 1);
    mr_net_init_bias(net, INFINITY);
    expect_error(net, "a finite number");
    net = net_of(8, 8, 1);
    mr_net_decay(net, (mr_net_decays)3);
    expect_error(net, "unknown choice 3 of what decays");
}

static void test_mistakes(void **state)
{
    (void)state;
    mr_net *net = net_of(8, 8, 1);
    expect_error(net, "no layers");
    net = net_of(8, 8, 1);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    expect_error(net, "ends in 8x8x4");
    net = net_of(8, 8, 1);
    mr_net_dense(net, 1, MR_ACT_SIGMOID);
    expect_error(net, "sigmoid: expected bare logits");
    net = net_of(8, 8, 1);
    mr_net_dense(net, 3, MR_ACT_RELU);
    expect_error(net, "relu: expected bare logits");
    for (int named = 0; named < 2; named++) {
        net = net_of(8, 8, 1);
        mr_net_dense(net, 3, MR_ACT_NONE);
        mr_net_softmax(net);
        if (named) mr_net_loss_labels(net, 1);
        expect_error(net, named ? "bare logits are needed" : "softmax: expected bare logits");
    }
    net = net_of(1, 1, 3);
    mr_net_dropout(net, 0.5f);
    expect_error(net, "nothing to train");
    net = net_of(8, 8, 1);
    mr_net_conv2d(net, 4, 9, 1, MR_PAD_VALID, MR_ACT_NONE);
    expect_error(net, "larger than its input");
    net = net_of(8, 8, 1);
    mr_net_max_pool(net, 2, 0);
    expect_error(net, "stride");
    net = net_of(8, 8, 1);
    mr_net_activation(net, (mr_activation)77);
    expect_error(net, "activation");
    net = net_of(8, 8, 1);
    mr_net_batch_norm(net, 0.9f, 0.0f, MR_ACT_NONE);
    expect_error(net, "epsilon");
    net = net_of(40000, 40000, 1);
    mr_net_conv2d(net, 1u << 20, 1, 1, MR_PAD_SAME, MR_ACT_NONE);
    expect_error(net, "too large");
    net = net_of(40000, 40000, 1);
    mr_net_dense(net, 1u << 20, MR_ACT_NONE);
    expect_error(net, "too many parameters");
    net = net_of(8, 8, 4);
    for (int i = 0; i < 5000; i++) mr_net_dropout(net, 0.1f);
    expect_error(net, "more than 4096 layers");
    net = (mr_net *)state;
    MRT_EQ(mr_net_create(&net, "x", 0, 8, 1), MR_EINVAL);
    MRT_TRUE(net == NULL);
    MRT_EQ(mr_net_create(&net, "x", 1u << 31, 1u << 31, 1), MR_EINVAL);
    MRT_EQ(mr_net_create(&net, "x", 8, 8, 5), MR_EINVAL);
}

/* Forward arithmetic as the literature counts it: ResNet-50 v1.5 4.1, ResNet-18 1.8, VGG16 15.5 billion
 * multiply-adds. */
static void test_amount_of_arithmetic(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double least, most;
    } cases[] = {
        {"resnet50", 4.0e9, 4.2e9},     {"resnet18", 1.78e9, 1.86e9},    {"vgg16", 15.3e9, 15.6e9},
        {"cifar-resnet20", 40e6, 42e6}, {"mobilenet-v2", 0.3e9, 0.33e9}, {"efficientnet-b0", 0.38e9, 0.42e9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_net *net;
        mr_layer_row row;
        double sum = 0;
        MRT_OK(mr_model_build(mr_model_find(cases[i].name), 0, 0, 0, 0, &net, &err), &err);
        for (uint32_t k = 0; mr_net_layer(net, k, &row); k++) sum += row.flops / 2;
        if (!(sum >= cases[i].least && sum <= cases[i].most)) fail_msg("%s: %g", cases[i].name, sum);
        mr_net_destroy(net);
    }
}

/* Any number of layers take a point; channels come beside each other. */
static void test_channels_beside_each_other(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_layer_row row;
    mr_net *net = net_of(8, 6, 3);
    mr_point ends[3];
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    const mr_point in = mr_net_here(net);
    for (uint32_t i = 0; i < 3; i++) {
        mr_net_from(net, in);
        mr_net_conv(
            net,
            &(mr_conv){.filters = 5 + i, .kernel = 1, .kernel_w = 3, .stride = 1, .padding = MR_PAD_SAME});
        ends[i] = mr_net_here(net);
    }
    mr_net_concat(net, ends, 2);
    MRT_TRUE(mr_net_layer(net, 3, &row));
    MRT_STR(row.name, "conv2d 1x3/1 7 from 0");
    MRT_EQ(row.params, (4 * 3 + 1) * 7);
    MRT_TRUE(!row.takes_two && row.in == 1);
    MRT_TRUE(mr_net_layer(net, 4, &row));
    MRT_STR(row.name, "concat 1");
    MRT_TRUE(row.takes_two && row.in == 4 && row.in2 == 2);
    MRT_STR(row.output, "8x6x12");
    MRT_TRUE(mr_net_layer(net, 5, &row));
    MRT_STR(row.name, "concat 2");
    MRT_STR(row.output, "8x6x18");
    mr_net_pad_channels(net, 2, 3);
    mr_net_norm(net, &(mr_norm){.momentum = 0.9f, .epsilon = 1e-3f, .no_scale = true});
    mr_net_global_max_pool(net);
    MRT_TRUE(mr_net_layer(net, 6, &row));
    MRT_STR(row.name, "pad 2+3");
    MRT_TRUE(mr_net_layer(net, 7, &row));
    MRT_EQ(row.params, 23);
    MRT_TRUE(mr_net_layer(net, 8, &row));
    MRT_STR(row.name, "max_pool 8x6/1");
    MRT_STR(row.output, "1x1x23");
    mr_net_dense(net, 2, MR_ACT_NONE);
    MRT_OK(mr_net_check(net, &err), &err);
    MRT_EQ(mr_net_state_count(net), 46);
    mr_net_destroy(net);
}

/* A residual block with a short cut of its own. Points: 0 pictures, 1 conv, 2 short cut, 3 conv, 4 sum. */
static mr_net *block_net(void)
{
    mr_net *net = net_of(8, 8, 3);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    const mr_point in = mr_net_here(net);
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 1, .stride = 2, .no_bias = true});
    const mr_point cut = mr_net_here(net);
    mr_net_from(net, in);
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 3, .stride = 2, .pad = 1});
    mr_net_add(net, cut, MR_ACT_RELU);
    return net;
}

static void test_branches(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *net = block_net();
    mr_net_max_pool_padded(net, 3, 2, 1);
    mr_net_global_avg_pool(net);
    mr_net_dense(net, 2, MR_ACT_NONE);
    MRT_OK(mr_net_check(net, &err), &err);
    static const struct {
        const char *name, *output;
        uint64_t params;
    } rows[] = {
        {"conv2d 3x3/1 4 relu", "8x8x4", 28 * 4},
        {"conv2d 1x1/2 6", "4x4x6", 4 * 6},
        {"conv2d 3x3/2 6 from 0", "4x4x6", (36 + 1) * 6},
        {"add 1 relu", "4x4x6", 0},
        {"max_pool 3x3/2", "2x2x6", 0},
        {"avg_pool 2x2/1", "1x1x6", 0},
        {"dense 2", "1x1x2", 14},
    };
    mr_layer_row row;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        MRT_TRUE(mr_net_layer(net, i, &row));
        MRT_STR(row.name, rows[i].name);
        MRT_STR(row.output, rows[i].output);
        MRT_EQ(row.params, rows[i].params);
    }
    mr_net_destroy(net);
}

static void test_branch_mistakes(void **state)
{
    (void)state;
    mr_net *net = block_net();
    mr_net_from(net, 2);
    mr_net_dense(net, 2, MR_ACT_NONE); /* the sum leads nowhere */
    expect_error(net, "nothing takes point 4");
    net = block_net();
    mr_net_concat(net, &(mr_point){1}, 1);
    expect_error(net, "another shape");
    net = block_net();
    mr_net_concat(net, &(mr_point){4}, 1);
    expect_error(net, "another point");
    net = block_net();
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 3, .kernel_w = 1, .stride = 1, .pad = 1});
    expect_error(net, "smaller than the window");
    net = block_net();
    mr_net_from(net, 3);
    expect_error(net, "goes back to point 3");
    net = block_net();
    mr_net_from(net, 9);
    expect_error(net, "no point 9 after 4");
    net = block_net();
    mr_net_add(net, 1, MR_ACT_NONE);
    expect_error(net, "another shape");
    net = block_net();
    mr_net_add(net, mr_net_here(net), MR_ACT_NONE);
    expect_error(net, "another point");
    net = block_net();
    mr_net_add(net, 77, MR_ACT_NONE);
    expect_error(net, "another point");
    net = block_net();
    mr_net_max_pool_padded(net, 3, 2, 3);
    expect_error(net, "smaller than the window");
    net = block_net();
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 3, .stride = 2, .pad = 1, .padding = MR_PAD_SAME});
    expect_error(net, "\"valid\"");
    net = block_net();
    mr_net_init(net, (mr_init)9);
    expect_error(net, "unknown initial weights");
}

/* An encoder of two numbers, a draw, a decoder; all that is named of losses. */
static mr_net *coder(void)
{
    mr_net *net = net_of(6, 4, 1);
    mr_net_dense(net, 8, MR_ACT_RELU);
    const mr_point code = mr_net_here(net);
    mr_net_dense(net, 2, MR_ACT_NONE);
    const mr_point log_variance = mr_net_here(net);
    mr_net_from(net, code);
    mr_net_dense(net, 2, MR_ACT_NONE);
    mr_net_loss_pair(net, MR_PAIR_DIVERGENCE, log_variance, 0.5f);
    mr_net_sample(net, log_variance, 1);
    mr_net_dense(net, 3 * 2 * 5, MR_ACT_RELU);
    mr_net_reshape(net, 3, 2, 5);
    mr_net_conv_transposed(net, &(mr_conv){.filters = 1, .kernel = 3, .stride = 2, .padding = MR_PAD_SAME});
    return net;
}

static void test_losses(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *net = coder();
    mr_net_loss_pair(net, MR_PAIR_CROSS_ENTROPY, 0, 1);
    MRT_OK(mr_net_check(net, &err), &err);
    MRT_EQ(mr_net_class_count(net), 0);
    static const struct {
        const char *name, *output;
        uint64_t params;
    } rows[] = {
        {"dense 8 relu", "1x1x8", 200},
        {"dense 2", "1x1x2", 18},
        {"dense 2 from 0", "1x1x2", 18},
        {"divergence 1", "loss x 0.5", 0},
        {"sample 1 from 2", "1x1x2", 0},
        {"dense 30 relu", "1x1x30", 90},
        {"reshape", "3x2x5", 0},
        {"conv2d_transposed 3x3/2 1", "6x4x1", 46},
        {"cross_entropy input", "loss x 1", 0},
    };
    mr_layer_row row;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        MRT_TRUE(mr_net_layer(net, i, &row));
        MRT_STR(row.name, rows[i].name);
        MRT_STR(row.output, rows[i].output);
        MRT_EQ(row.params, rows[i].params);
    }
    mr_net_destroy(net);

    net = coder(); /* and a classifier of the drawn values */
    mr_net_loss_pair(net, MR_PAIR_SQUARES, 0, 1);
    mr_net_dense(net, 3, MR_ACT_NONE);
    mr_net_loss_labels(net, 0.1f);
    MRT_OK(mr_net_check(net, &err), &err);
    MRT_EQ(mr_net_class_count(net), 3);
    mr_net_destroy(net);
}

static void test_transposed_shapes(void **state)
{
    (void)state;
    mr_net *net = net_of(5, 3, 2);
    mr_conv c = {.filters = 4, .kernel = 3, .stride = 2};
    mr_net_conv_transposed(net, &c); /* (5 - 1) * 2 + 3 */
    check_output(net, 0, "11x7x4");
    c.pad = 1;
    mr_net_conv_transposed(net, &c);
    check_output(net, 1, "21x13x4");
    c.pad = 0, c.padding = MR_PAD_SAME, c.kernel_w = 5;
    mr_net_conv_transposed(net, &c);
    check_output(net, 2, "42x26x4");
    mr_net_destroy(net);
}

static void test_loss_mistakes(void **state)
{
    (void)state;
    mr_net *net = coder();
    expect_error(net, "nothing takes point 8"); /* its last output leads to no loss */
    net = coder();
    mr_net_loss_pair(net, MR_PAIR_CROSS_ENTROPY, 0, 0);
    expect_error(net, "weight above 0");
    net = coder();
    mr_net_loss_pair(net, MR_PAIR_SQUARES, 1, 1);
    expect_error(net, "another shape");
    net = coder();
    mr_net_loss_pair(net, (mr_pair_loss)MR_PAIR_COUNT, 0, 1);
    expect_error(net, "unknown loss");
    net = coder();
    mr_net_activation(net, MR_ACT_SIGMOID);
    mr_net_loss_pair(net, MR_PAIR_CROSS_ENTROPY, 0, 1);
    expect_error(net, "bare logits");
    net = coder();
    mr_net_loss_labels(net, 1);
    expect_error(net, "a vector of logits");
    net = coder();
    mr_net_from(net, 4); /* a loss */
    expect_error(net, "no point 4");
    net = coder();
    mr_net_reshape(net, 6, 4, 2);
    expect_error(net, "as many values");
    net = coder();
    mr_net_sample(net, 0, NAN);
    expect_error(net, "factor above 0");
    net = coder();
    mr_net_conv_transposed(net, &(mr_conv){.filters = 1, .kernel = 2, .stride = 3, .padding = MR_PAD_SAME});
    expect_error(net, "no smaller than the stride");
    net = net_of(4, 4, 1);
    mr_net_dense(net, 3, MR_ACT_RELU);
    mr_net_loss_labels(net, 1);
    expect_error(net, "bare logits");
}

static void test_groups(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_layer_row row;
    mr_net *net = net_of(8, 6, 4);
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 3, .stride = 1, .groups = 2});
    mr_net_conv(
        net,
        &(mr_conv){.filters = 12, .kernel = 3, .kernel_w = 1, .stride = 1, .no_bias = true, .groups = 6});
    mr_net_dense(net, 2, MR_ACT_NONE);
    MRT_OK(mr_net_check(net, &err), &err);
    MRT_TRUE(mr_net_layer(net, 0, &row));
    MRT_STR(row.name, "conv2d 3x3/1 6 in 2 groups");
    MRT_EQ(row.params, (2 * 9 + 1) * 6);
    MRT_TRUE(row.flops == 2.0 * 2 * 9 * 6 * 6 * 4);
    MRT_TRUE(mr_net_layer(net, 1, &row));
    MRT_STR(row.name, "conv2d 3x1/1 12 in 6 groups");
    MRT_EQ(row.params, 3 * 12);
    mr_net_destroy(net);
    net = net_of(8, 8, 4);
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 1, .stride = 1, .groups = 4});
    expect_error(net, "groups must divide");
    net = net_of(8, 8, 3);
    mr_net_conv(net, &(mr_conv){.filters = 4, .kernel = 1, .stride = 1, .groups = 2});
    expect_error(net, "groups must divide");
}

static void test_factors_and_dropped_samples(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_layer_row row;
    mr_net *net = net_of(8, 6, 3);
    static const char *const names[] = {"conv2d 3x3/1 4", "avg_pool 8x6/1",       "dense 4 sigmoid",
                                        "scale 2 from 0", "dropout samples 0.25", "add 0",
                                        "dense 2"};
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    const mr_point in = mr_net_here(net);
    mr_net_global_avg_pool(net);
    mr_net_dense(net, 4, MR_ACT_SIGMOID);
    const mr_point factors = mr_net_here(net);
    mr_net_from(net, in);
    mr_net_scale(net, factors);
    mr_net_drop_samples(net, 0.25f);
    mr_net_add(net, in, MR_ACT_NONE);
    mr_net_dense(net, 2, MR_ACT_NONE);
    MRT_OK(mr_net_check(net, &err), &err);
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        MRT_TRUE(mr_net_layer(net, i, &row));
        MRT_STR(row.name, names[i]);
    }
    MRT_TRUE(mr_net_layer(net, 3, &row) && row.flops == 8.0 * 6 * 4);
    MRT_STR(row.output, "8x6x4");
    mr_net_destroy(net);
    net = net_of(8, 8, 3);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_scale(net, 0); /* not 1 x 1 */
    expect_error(net, "another shape");
    net = net_of(1, 1, 3);
    mr_net_conv2d(net, 4, 1, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_scale(net, 0);
    expect_error(net, "a factor for each");
    net = net_of(1, 1, 3);
    mr_net_scale(net, 0);
    expect_error(net, "another point");
    net = net_of(8, 8, 3);
    mr_net_drop_samples(net, 1);
    expect_error(net, "rate");
}

/* They need their input for backward: where other activations are part of a layer, they are a layer after
 * it. */
static void test_smooth_activations_stand_apart(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_layer_row row;
    mr_net *net = net_of(8, 6, 4);
    static const char *const names[] = {"conv2d 3x3/1 4",  "activation silu", "batch_norm",
                                        "activation gelu", "add 1",           "activation silu",
                                        "dense 5",         "activation gelu", "dense 3"};
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_SILU);
    const mr_point in = mr_net_here(net);
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_GELU);
    mr_net_add(net, in, MR_ACT_SILU);
    mr_net_dense(net, 5, MR_ACT_GELU);
    mr_net_dense(net, 3, MR_ACT_NONE);
    MRT_OK(mr_net_check(net, &err), &err);
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        MRT_TRUE(mr_net_layer(net, i, &row));
        MRT_STR(row.name, names[i]);
    }
    mr_net_destroy(net);
    net = net_of(8, 8, 1);
    mr_net_dense(net, 3, MR_ACT_SILU);
    expect_error(net, "ends in silu");
}

static void test_recurrent_layers(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    MRT_EQ(mr_net_create_numbers(&net, "test", 7, 12), MR_OK);
    mr_net_gru(net, 5, true);
    mr_net_lstm(net, 6, true);
    mr_net_gru(net, 4, false);
    mr_net_dense(net, 3, MR_ACT_NONE);
    MRT_OK(mr_net_check(net, &err), &err);
    static const struct {
        const char *name, *output;
        uint64_t params;
        double flops;
    } rows[] = {
        {"gru 5", "1x7x5", 15 * (12 + 5 + 2), 7 * 15.0 * (1 + 2 * 5)}, /* looked up: an addition a gate */
        {"lstm 6", "1x7x6", 24 * (5 + 6 + 1), 7 * 24.0 * 2 * (5 + 6)},
        {"gru 4", "1x1x4", 12 * (6 + 4 + 2), 7 * 12.0 * 2 * (6 + 4)},
        {"dense 3", "1x1x3", 15, 24},
    };
    mr_layer_row row;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        MRT_TRUE(mr_net_layer(net, i, &row));
        MRT_STR(row.name, rows[i].name);
        MRT_STR(row.output, rows[i].output);
        MRT_EQ(row.params, rows[i].params);
        MRT_TRUE(row.flops == rows[i].flops);
    }
    mr_net_destroy(net);
    net = net_of(8, 8, 1);
    mr_net_gru(net, 4, true);
    expect_error(net, "a sequence is needed");
    net = net_of(1, 8, 1);
    mr_net_lstm(net, 0, true);
    expect_error(net, "units 1..2^20");
    net = net_of(1, 8, 1);
    mr_net_gru(net, (1u << 20) + 1, true);
    expect_error(net, "units 1..2^20");
    MRT_EQ(mr_net_create_numbers(&net, "x", 2000, 1u << 20), MR_OK);
    mr_net_lstm(net, 1u << 20, true);
    expect_error(net, "too many parameters");
}

static void test_allocation_failures(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        mr_net *net = (mr_net *)state;
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        const int rc = mr_model_build(mr_model_find("cifar-cnn"), 0, 0, 0, 0, &net, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            mr_net_destroy(net);
            MRT_TRUE(n >= 2);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(net == NULL);
        MRT_HAS(err.text, "no memory");
    }
    mr_net_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_have_their_published_size),
        cmocka_unit_test(test_models_have_their_published_size_with_statistics),
        cmocka_unit_test(test_models_fit_other_pictures),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_transposed_shapes),
        cmocka_unit_test(test_loss_mistakes),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_factors_and_dropped_samples),
        cmocka_unit_test(test_smooth_activations_stand_apart),
        cmocka_unit_test(test_recurrent_layers),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_first_mistake_sticks),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_one_logit),
        cmocka_unit_test(test_what_layers_begin_with),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_amount_of_arithmetic),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_channels_beside_each_other),
        cmocka_unit_test(test_branch_mistakes),
        cmocka_unit_test(test_allocation_failures),
    };
    return mrt_run(tests);
}
