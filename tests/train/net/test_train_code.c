/* Networks as bytes: a written network is read as the same network, other bytes are refused, and the kinds of
 * networks that a checkpoint stores. */
#include "tests/train/rig.h"
#include "train/net/code.h"

static const mr_op_window *window_of(const mri_layer *l)
{
    if (l->op.kind == MR_OP_POOL2D) return &l->op.pool2d.window;
    const bool conv = l->op.kind == MR_OP_CONV2D || l->op.kind == MR_OP_CONV2D_TRANSPOSED;
    return conv ? &l->op.conv2d.window : NULL;
}

static void check_same_padding(const mri_layer *a, const mri_layer *b)
{
    const mr_op_window *x = window_of(a), *y = window_of(b);
    if (!x || !y) return;
    MRT_TRUE(x->pad_top == y->pad_top && x->pad_left == y->pad_left && x->pad_bottom == y->pad_bottom &&
             x->pad_right == y->pad_right);
}

static void check_same(const mr_net *a, const mr_net *b)
{
    mr_layer_row one, other;
    mr_field_input in, from;
    uint32_t i = 0;
    for (; mr_net_layer(a, i, &one); i++) {
        MRT_TRUE(mr_net_layer(b, i, &other));
        MRT_STR(one.name, other.name);
        MRT_STR(one.output, other.output);
        MRT_TRUE(one.params == other.params && one.flops == other.flops && one.in == other.in &&
                 one.in2 == other.in2 && one.is_input == other.is_input);
        const mri_layer *x = &a->layers[i], *y = &b->layers[i];
        check_same_padding(x, y);
        MRT_TRUE(x->states == y->states && x->consumers == y->consumers);
        MRT_TRUE(x->first.init == y->first.init && x->first.deviation == y->first.deviation &&
                 x->first.bias == y->first.bias && x->decay == y->decay && strcmp(x->block, y->block) == 0);
    }
    MRT_TRUE(!mr_net_layer(b, i, &other));
    for (i = 0; mr_net_field_at(a, i, &in); i++) {
        MRT_TRUE(mr_net_field_at(b, i, &from) && strcmp(in.name, from.name) == 0);
        MRT_TRUE(in.h == from.h && in.w == from.w && in.c == from.c && in.values == from.values &&
                 in.mean == from.mean && in.std == from.std);
    }
    MRT_TRUE(!mr_net_field_at(b, i, &from));
    MRT_EQ(mr_net_class_count(a), mr_net_class_count(b));
    MRT_EQ(mr_net_takes_numbers(a), mr_net_takes_numbers(b));
    MRT_TRUE(a->logit_factor == b->logit_factor && a->bare == b->bare && a->loss_count == b->loss_count);
}

static mr_net *copy_of(const mr_net *net)
{
    mr_error err = MR_ERROR_INIT;
    mr_net *copy;
    void *bytes;
    size_t count;
    MRT_OK(mr_net_encode(net, &bytes, &count, &err), &err);
    MRT_OK(mr_net_decode(&copy, mr_net_name(net), bytes, count, &err), &err);
    free(bytes);
    return copy;
}

static bool is_kept(const mr_net *net, uint32_t classes)
{
    mr_error err = MR_ERROR_INIT;
    bool kept;
    MRT_OK(mri_net_wants_keeping(net, classes, &kept, &err), &err);
    return kept;
}

/* Named networks round-trip and are not stored in checkpoints, for any size, classes and targets. */
static void test_named_networks_come_back_and_are_not_kept(void **state)
{
    (void)state;
    static const uint32_t classes[] = {0, 2, 7};
    for (uint32_t i = 0; i < mr_model_count(); i++)
        for (uint32_t k = 0; k < 3; k++) {
            mr_error err = MR_ERROR_INIT;
            mr_net *net;
            const mr_model *m = mr_model_at(i);
            const uint32_t count = m->classes ? classes[k] : 0, w = m->numbers && k ? 20 : 0;
            MRT_OK(mr_model_build(m, 0, w, 0, count, &net, &err), &err);
            mr_net *copy = copy_of(net);
            MRT_OK(mr_net_check(copy, &err), &err);
            check_same(net, copy);
            MRT_TRUE(!is_kept(net, mri_net_told(net)));
            mr_net_destroy(copy);
            if (m->classes) mr_net_targets(net, MR_TARGET_LABELS, "marks");
            MRT_TRUE(!is_kept(net, mri_net_told(net)));
            mr_net_destroy(net);
        }
}

/* Layers of the builder that the trainer tests do not use. */
static mr_net *net_of_all(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "all", 9, 7, 3), MR_OK);
    mr_net_block(net, "first");
    mr_net_init(net, MR_INIT_HE_OUT);
    mr_net_init_bias(net, 0.25f);
    mr_net_conv(net, &(mr_conv){.filters = 4,
                                .kernel = 4,
                                .kernel_w = 3,
                                .stride = 2,
                                .padding = MR_PAD_SAME,
                                .activation = MR_ACT_LEAKY_RELU});
    mr_net_init_deviation(net, 0.02f);
    mr_net_decay(net, MR_NET_DECAY_WEIGHTS);
    mr_net_conv(net,
                &(mr_conv){.filters = 6, .kernel = 3, .stride = 1, .pad = 2, .no_bias = true, .groups = 2});
    mr_net_block(net, "");
    mr_net_init(net, MR_INIT_GLOROT);
    mr_net_decay(net, MR_NET_DECAY_NONE);
    mr_net_avg_pool_padded(net, 3, 2, 1);
    mr_net_conv_transposed(
        net, &(mr_conv){.filters = 5, .kernel = 4, .stride = 2, .pad = 1, .activation = MR_ACT_GELU});
    mr_net_pool(net, &(mr_pool){.kernel = 2, .kernel_w = 3, .stride = 1, .padding = MR_PAD_SAME});
    mr_net_norm(net, &(mr_norm){.momentum = 0.75f, .epsilon = 1e-3f, .no_scale = true});
    mr_net_upsample(net, 2, true);
    mr_net_lrn(net, 2, 1.5f, 0.1f, 0.75f);
    mr_net_layer_norm(net, 1e-5f);
    mr_net_group_norm(net, 5, 1e-5f);
    mr_net_dropout(net, 0.25f);
    mr_net_drop_samples(net, 0.125f);
    mr_net_pad_channels(net, 1, 2);
    mr_net_softmax(net);
    mr_net_log_softmax(net);
    mr_net_global_max_pool(net);
    const mr_point seen = mr_net_here(net);
    mr_net_field(net, &(mr_field_input){.name = "soft", .h = 2, .c = 3, .mean = 0.5f, .std = 2});
    mr_net_reshape(net, 1, 1, 6);
    const mr_point soft = mr_net_here(net);
    mr_net_field(net, &(mr_field_input){.name = "kind", .h = 1, .w = 4, .values = 5});
    mr_net_embedding(net, 3);
    mr_net_gru(net, 4, true);
    mr_net_lstm(net, 6, false);
    mr_net_concat(net, (const mr_point[]){seen, soft}, 2);
    mr_net_dense(net, 8, MR_ACT_SILU);
    const mr_point means = mr_net_here(net);
    mr_net_dense(net, 8, MR_ACT_NONE);
    const mr_point variances = mr_net_here(net);
    mr_net_from(net, means);
    mr_net_sample(net, variances, 0.5f);
    mr_net_scale(net, means);
    mr_net_from(net, means);
    mr_net_loss_pair(net, MR_PAIR_DIVERGENCE, variances, 0.125f);
    mr_net_from(net, net->layer_count - 1); /* the scaled value */
    mr_net_dense(net, 3, MR_ACT_NONE);
    mr_net_loss_labels(net, 0.5f);
    mr_net_logit_factor(net, 0.125f);
    return net;
}

static mr_net *net_of_numbers(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create_numbers(&net, "words", 12, 30), MR_OK);
    mr_net_gru(net, 4, true);
    mr_net_gru(net, 4, false);
    mr_net_dense(net, 30, MR_ACT_NONE);
    return net;
}

static mr_net *net_of_fields(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create_bare(&net, "bare"), MR_OK);
    mr_net_field(net, &(mr_field_input){.name = "soft", .c = MRT_SOFT});
    mr_net_dense(net, 3, MR_ACT_TANH);
    mr_net_dense(net, 1, MR_ACT_NONE);
    return net;
}

static mr_net *(*const builders[])(void) = {net_of_all,     net_of_numbers,   net_of_fields,  mrt_net_conv,
                                            mrt_net_norm,   mrt_net_dense,    mrt_net_branch, mrt_net_coder,
                                            mrt_net_fields, mrt_net_residual, mrt_net_mobile};
enum { BUILDERS = sizeof builders / sizeof builders[0] };

static void test_networks_of_the_builder_come_back_and_are_kept(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < BUILDERS; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_net *net = builders[i]();
        MRT_OK(mr_net_check(net, &err), &err);
        mr_net *copy = copy_of(net);
        MRT_OK(mr_net_check(copy, &err), &err);
        check_same(net, copy);
        MRT_TRUE(is_kept(net, mri_net_told(net)));
        mr_net_destroy(copy);
        mr_net_destroy(net);
    }
}

/* A name does not make it one of ours. */
static void test_another_network_of_a_known_name_is_kept(void **state)
{
    (void)state;
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "mnist-mlp", 28, 28, 1), MR_OK);
    mr_net_dense(net, 10, MR_ACT_NONE);
    MRT_TRUE(is_kept(net, 10));
    mr_net_destroy(net);
}

static void test_targets_stay_outside(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *plain = mrt_net_dense(), *net = mrt_net_dense();
    mr_net_targets(net, MR_TARGET_HUBER, "soft");
    MRT_OK(mr_net_check(net, &err), &err);
    MRT_TRUE(is_kept(net, mri_net_told(net)));
    mr_net *copy = copy_of(net);
    check_same(plain, copy);
    mr_net_targets(copy, MR_TARGET_HUBER, "soft");
    check_same(net, copy);
    MRT_EQ(mr_net_target_count(copy), mr_net_target_count(net));
    mr_net_destroy(copy);

    mr_net_dense(net, 2, MR_ACT_NONE); /* after them */
    mr_net_loss_labels(net, 1);
    MRT_OK(mr_net_check(net, &err), &err);
    void *bytes = &err;
    size_t count = 1;
    MRT_EQ(mr_net_encode(net, &bytes, &count, &err), MR_EUNSUPPORTED);
    MRT_TRUE(bytes == NULL && count == 0 && strstr(err.text, "behind its targets"));
    MRT_TRUE(!is_kept(net, 2));
    mr_net_destroy(net);
    mr_net_destroy(plain);

    MRT_EQ(mr_net_create(&net, "wrong", 8, 8, 1), MR_OK);
    mr_net_dense(net, 0, MR_ACT_NONE);
    MRT_EQ(mr_net_encode(net, &bytes, &count, &err), MR_EUNSUPPORTED);
    MRT_TRUE(strstr(err.text, "units") != NULL);
    mr_net_destroy(net);
}

/* Every bit matters: with another one it is no network, or another network, which has these bytes. */
static void test_no_byte_is_ignored(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *net = net_of_all();
    void *bytes, *again;
    size_t count, again_count, taken = 0;
    MRT_OK(mr_net_encode(net, &bytes, &count, &err), &err);
    for (size_t i = 0; i < 8 * count; i++) {
        mr_net *other = net;
        uint8_t *at = (uint8_t *)bytes + i / 8;
        *at ^= (uint8_t)(1 << i % 8);
        const int rc = mr_net_decode(&other, "all", bytes, count, &err);
        if (rc) {
            MRT_TRUE(rc == MR_EFORMAT && !other && strstr(err.text, "damaged network"));
        } else {
            taken++;
            MRT_OK(mr_net_encode(other, &again, &again_count, &err), &err);
            MRT_TRUE(again_count == count && memcmp(again, bytes, count) == 0);
            free(again);
            mr_net_destroy(other);
        }
        *at ^= (uint8_t)(1 << i % 8);
    }
    MRT_TRUE(taken > 100 && taken < 4 * count); /* rates, factors, names; most of it is refused */
    for (size_t n = 0; n < count; n += 1 + n / 3) {
        mr_net *other;
        MRT_EQ(mr_net_decode(&other, "all", bytes, n, &err), MR_EFORMAT);
    }
    free(bytes);
    mr_net_destroy(net);
}

static void test_no_memory(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *net = net_of_all(), *copy = net;
    void *bytes;
    size_t count;
    bool kept;
    int rc = MR_ENOMEM;
    for (long n = 0; rc; n += MRT_TURN) {
        mrt_fail_alloc_at(n);
        rc = mr_net_encode(net, &bytes, &count, &err);
        mrt_fail_alloc_at(-1);
        MRT_TRUE(rc == MR_OK || (rc == MR_ENOMEM && !bytes));
    }
    rc = MR_ENOMEM;
    for (long n = 0; rc; n++) {
        mrt_fail_alloc_at(n);
        rc = mr_net_decode(&copy, "all", bytes, count, &err);
        mrt_fail_alloc_at(-1);
        MRT_TRUE(rc == MR_OK || (rc == MR_ENOMEM && !copy));
    }
    free(bytes);
    mr_net_destroy(copy);
    mr_net_destroy(net);
    MRT_OK(mr_model_build(mr_model_find("mnist-cnn"), 0, 0, 0, 0, &net, &err), &err);
    rc = MR_ENOMEM;
    for (long n = 0; rc; n += MRT_TURN) {
        mrt_fail_alloc_at(n);
        rc = mri_net_wants_keeping(net, 10, &kept, &err);
        mrt_fail_alloc_at(-1);
        MRT_TRUE(rc == MR_OK || rc == MR_ENOMEM);
    }
    MRT_TRUE(!kept);
    mr_net_destroy(net);
}

/* ---- in a checkpoint ---- */

static void save(mrt_rig *rig, const char *path)
{
    mr_error err = MR_ERROR_INIT;
    const mr_checkpoint_info info = {.struct_size = sizeof info, .batch = 32};
    MRT_OK(mr_trainer_save(rig->t, path, &info, &err), &err);
}

static mr_net *kept_net; /* builders of rigs take no argument */
static mr_net *take_kept(void)
{
    mr_net *net = kept_net;
    kept_net = NULL;
    return net;
}

/* With the network of the file, which is all that another program has, the weights are taken. */
static void test_a_checkpoint_brings_its_network(void **state)
{
    (void)state;
    static mr_net *(*const some[])(void) = {mrt_net_conv,   mrt_net_norm,     mrt_net_branch,
                                            mrt_net_fields, mrt_net_residual, mrt_net_mobile};
    for (uint32_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_checkpoint_info info;
        mrt_rig rig, other;
        uint64_t low[2], high[2];
        const char *path = mrt_path("own%u.mrck", i);
        mrt_rig_open(&rig, &(mrt_rig_options){.net = some[i], .seed = 5});
        save(&rig, path);
        MRT_OK(mr_checkpoint_net(path, &kept_net, &err), &err);
        check_same(rig.net, kept_net);
        mrt_rig_open(&other, &(mrt_rig_options){.net = take_kept, .seed = 6});
        MRT_OK(mr_trainer_load(other.t, path, &info, &err), &err);
        MRT_TRUE(info.net_bytes > 0 && strcmp(info.model, mr_net_name(rig.net)) == 0);
        MRT_OK(mr_trainer_weights_hash(rig.t, 0, &low[0], &high[0], &err), &err);
        MRT_OK(mr_trainer_weights_hash(other.t, 0, &low[1], &high[1], &err), &err);
        MRT_TRUE(low[0] == low[1] && high[0] == high[1]);
        save(&other, mrt_path("again%u.mrck", i));
        size_t bytes[2];
        void *one = mrt_read_file(path, &bytes[0]),
             *two = mrt_read_file(mrt_path("again%u.mrck", i), &bytes[1]);
        MRT_TRUE(bytes[0] == bytes[1] && memcmp(one, two, bytes[0]) == 0);
        free(one);
        free(two);
        mrt_rig_close(&other);
        mrt_rig_close(&rig);
    }
}

static mr_net *soft_out(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "soft-out", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_dense(net, MRT_SOFT, MR_ACT_NONE);
    return net;
}

static mr_net *soft_targets(void)
{
    mr_net *net = soft_out();
    mr_net_targets(net, MR_TARGET_SQUARES, "soft");
    return net;
}

static void test_checkpoints_of_networks_with_targets(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mr_net *net, *plain = soft_out();
    mrt_rig_open(&rig, &(mrt_rig_options){.net = soft_targets});
    save(&rig, mrt_path("targets.mrck"));
    MRT_OK(mr_checkpoint_net(mrt_path("targets.mrck"), &net, &err), &err);
    check_same(plain, net);
    mr_net_destroy(net);
    mr_net_destroy(plain);
    mrt_rig_close(&rig);
}

/* Old files and files of named networks store no network. */
static mr_net *named(void)
{
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    MRT_OK(mr_model_build(mr_model_find("mnist-mlp"), MRT_SIDE, MRT_SIDE, 1, MRT_CLASSES, &net, &err), &err);
    return net;
}

static void test_without_one_the_name_says_it(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info;
    mrt_rig rig;
    mr_net *net, *same = named();
    const char *path = mrt_path("named.mrck");
    char found[4096];
    mrt_rig_open(&rig, &(mrt_rig_options){.net = named});
    save(&rig, path);
    MRT_OK(mr_checkpoint_find(path, found, sizeof found, &info, NULL, 0, &err), &err);
    MRT_EQ(info.net_bytes, 0);
    MRT_OK(mr_checkpoint_net(path, &net, &err), &err);
    check_same(same, net);
    mr_net_destroy(net);
    mr_net_destroy(same);
    mrt_rig_close(&rig);

    size_t bytes; /* as a version before wrote one of a program's own */
    uint8_t *file = mrt_read_file(path, &bytes);
    memcpy(file + 128, "a-name", 7);
    memset(file + 135, 0, 57);
    mri_put_le32(file + 1020, mr_crc32c(0, file, 1020));
    mrt_write_file(mrt_path("older.mrck"), file, bytes);
    free(file);
    net = (mr_net *)&info; /* cleared */
    MRT_EQ(mr_checkpoint_net(mrt_path("older.mrck"), &net, &err), MR_EUNSUPPORTED);
    MRT_TRUE(!net && strstr(err.text, "a-name") && strstr(err.file, "older.mrck"));
}

/* ---- damage ---- */

static void change(const uint8_t *file, size_t bytes, size_t at, uint8_t what, bool repair, int expected)
{
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    uint8_t *p = malloc(bytes);
    assert_non_null(p);
    memcpy(p, file, bytes);
    p[at] ^= what;
    const uint32_t count = mri_le32(p + 1000);
    if (repair) {
        if (count <= bytes) mri_put_le32(p + 1004, mr_crc32c(0, p + bytes - count, count));
        mri_put_le32(p + 1020, mr_crc32c(0, p, 1020));
    }
    const char *path = mrt_path("changed.mrck");
    mrt_write_file(path, p, bytes);
    MRT_EQ(mr_checkpoint_net(path, &net, &err), expected);
    MRT_TRUE(!net && strstr(err.file, "changed.mrck"));
    free(p);
}

static void test_a_damaged_network_is_refused(void **state)
{
    (void)state;
    mrt_rig rig;
    size_t bytes;
    mrt_rig_open(&rig, &(mrt_rig_options){.net = mrt_net_conv});
    save(&rig, mrt_path("whole.mrck"));
    mrt_rig_close(&rig);
    uint8_t *file = mrt_read_file(mrt_path("whole.mrck"), &bytes);
    const size_t net = mri_le32(file + 1000), at = bytes - net;
    MRT_TRUE(net > 64 && net % 64 == 0);
    for (size_t k = 0; k < net; k += 37) change(file, bytes, at + k, 0x10, false, MR_ECHECKSUM);
    change(file, bytes, at, 4, true, MR_EFORMAT);           /* the kind of its input */
    change(file, bytes, at + 4, 1, true, MR_EFORMAT);       /* another height than the header's */
    change(file, bytes, at + 16, 1, true, MR_EFORMAT);      /* layers */
    change(file, bytes, at + 63, 1, true, MR_EFORMAT);      /* a byte that should be zero */
    change(file, bytes, at + 64, 0x80, true, MR_EFORMAT);   /* a kind of layer */
    change(file, bytes, at + 64 + 32, 1, true, MR_EFORMAT); /* filters: other parameters than the header's */
    change(file, bytes, at + 64 + 255, 1, true, MR_EFORMAT);
    change(file, bytes, 1000, 1, true, MR_EFORMAT); /* how long it is */
    change(file, bytes, 1001, 1, true, MR_EFORMAT);
    change(file, bytes, 1003, 0x40, true, MR_EFORMAT);
    change(file, bytes, 1008, 1, true, MR_EFORMAT);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_networks_come_back_and_are_not_kept),
        cmocka_unit_test(test_networks_of_the_builder_come_back_and_are_kept),
        cmocka_unit_test(test_another_network_of_a_known_name_is_kept),
        cmocka_unit_test(test_targets_stay_outside),
        cmocka_unit_test(test_no_byte_is_ignored),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_a_checkpoint_brings_its_network),
        cmocka_unit_test(test_checkpoints_of_networks_with_targets),
        cmocka_unit_test(test_without_one_the_name_says_it),
        cmocka_unit_test(test_a_damaged_network_is_refused),
    };
    return mrt_run(tests);
}
