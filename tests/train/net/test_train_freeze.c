/* Frozen layers: no bit of their parameters and statistics changes, under any rule, on any devices, in any
 * split of a batch; the other layers learn as if nothing else had changed; a checkpoint remembers the frozen
 * layers, and a run that begins to freeze keeps no momentum for them. MRT_DEVICES: the kind of devices. */
#include <math.h>

#include "tests/train/rig.h"

/* Every tensor of a replica, concatenated. */
typedef struct values {
    float *at;
    uint64_t count;
} values;

static values values_of(const mrt_rig *rig, uint32_t replica)
{
    mr_error err = MR_ERROR_INIT;
    const mri_tensors *t = &rig->t->tensors;
    values v = {.at = malloc((size_t)t->count * t->most_floats * sizeof(float))};
    for (uint32_t i = 0; i < t->count; v.count += t->desc[i++].count)
        MRT_OK(mri_tensor_export(t, &rig->t->team.replicas[replica], i, false, v.at + v.count, &err), &err);
    return v;
}

static bool is_state(mri_role role) { return role == MRI_ROLE_STATE || role == MRI_ROLE_AVERAGE_STATE; }

static bool is_frozen(const mrt_rig *rig, const mri_tensor_desc *d)
{
    return rig->t->frozen.layers && rig->t->frozen.layers[strtoul(d->name, NULL, 10)];
}

static bool bits_differ(const float *a, const float *b, uint64_t count)
{
    return memcmp(a, b, (size_t)count * sizeof *a) != 0;
}

/* Frozen tensors are as they were, weights of all others are not. */
static void check_frozen(const mrt_rig *rig, const values *before, const values *after)
{
    const mri_tensors *t = &rig->t->tensors;
    uint64_t at = 0;
    bool any = false;
    for (uint32_t i = 0; i < t->count; at += t->desc[i++].count) {
        const bool differ = bits_differ(before->at + at, after->at + at, t->desc[i].count);
        if (is_frozen(rig, &t->desc[i]) && differ)
            fail_msg("%s (role %d) has changed", t->desc[i].name, t->desc[i].role);
        if (is_frozen(rig, &t->desc[i])) any = true;
        else if (!differ && (t->desc[i].role == MRI_ROLE_WEIGHTS || is_state(t->desc[i].role)))
            fail_msg("%s (role %d) has not changed", t->desc[i].name, t->desc[i].role);
    }
    MRT_TRUE(any);
}

static const char *devices(uint32_t count)
{
    static char spec[32];
    const char *kind = getenv("MRT_DEVICES");
    if (kind && strcmp(kind, "cuda") == 0)
        snprintf(spec, sizeof spec, "cuda:%.*s", (int)(2 * count - 1), "0,1,2");
    else snprintf(spec, sizeof spec, "cpu:%u", count);
    return spec;
}

static void train(mrt_rig *rig, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) mrt_train(rig, i, 32 * i, 31);
}

/* The weights after steps with these settings; returns their hash. */
static mrt_hash run(const mrt_rig_options *o, uint32_t steps)
{
    mrt_rig rig;
    mrt_rig_open(&rig, o);
    const values before = values_of(&rig, 0);
    train(&rig, steps);
    const mrt_hash hash = mrt_hash_of(&rig, 0);
    for (uint32_t r = 0; r < rig.t->team.count; r++) {
        const values after = values_of(&rig, r);
        if (r == 0) check_frozen(&rig, &before, &after);
        MRT_TRUE(mrt_same(mrt_hash_of(&rig, r), hash));
        free(after.at);
    }
    free(before.at);
    mrt_rig_close(&rig);
    return hash;
}

static void test_nothing_moves_them_under_any_rule(void **state)
{
    (void)state;
    for (int rule = 0; rule < MR_UPDATE_KIND_COUNT; rule++)
        for (int extras = getenv("MRT_DEVICES") ? 1 : 0; extras < 2; extras++) { /* emulated ones take their
                                                                                    time */
            mrt_rig_options o = {.devices = devices(2),
                                 .net = mrt_net_residual,
                                 .update = (mr_update_kind)rule,
                                 .seed = 3,
                                 .weight_decay = 0.05f,
                                 .freeze = "0-5"};
            if (extras) o.clip_norm = 0.5f, o.average = 0.6f, o.lookahead = 2;
            run(&o, 5);
        }
}

/* Without batch normalisation that is trained the weights are the same bits for any number of replicas. */
static void test_any_devices_agree(void **state)
{
    (void)state;
    static const struct {
        mr_net *(*net)(void);
        const char *freeze;
    } nets[] = {{mrt_net_conv, "0"},
                {mrt_net_conv, "0-4"},
                {mrt_net_conv, "3"},
                {mrt_net_branch, "1,5"},
                {mrt_net_norm, "backbone"}};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(nets); n++) {
        mrt_rig_options o = {.devices = devices(1),
                             .net = nets[n].net,
                             .update = MR_UPDATE_ADAM,
                             .seed = 4,
                             .weight_decay = 0.01f,
                             .parts = 6,
                             .deterministic = true,
                             .freeze = nets[n].freeze};
        if (getenv("MRT_DEVICES") && n % 2) continue; /* emulated ones take their time */
        const mrt_hash one = run(&o, 4);
        for (uint32_t count = getenv("MRT_DEVICES") ? 3 : 2; count <= 3; count++) {
            o.devices = devices(count);
            o.bucket_bytes = count == 3 ? 400 : 0;
            const bool same = mrt_same(run(&o, 4), one);
            MRT_TRUE(same || getenv("MRT_DEVICES")); /* NCCL sums in an order of its own, frozen or not */
        }
    }
}

/* One step of plain descent: trained layers get the same bits as without frozen ones. */
static void test_the_others_learn_as_before(void **state)
{
    (void)state;
    static const struct {
        mr_net *(*net)(void);
        const char *freeze;
    } nets[] = {{mrt_net_conv, "0"},     {mrt_net_conv, "3"},      {mrt_net_conv, "head"},
                {mrt_net_branch, "0-2"}, {mrt_net_mobile, "head"}, {mrt_net_coder, "0,1,2"}};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(nets); n++) {
        mrt_rig_options o = {
            .devices = devices(1), .net = nets[n].net, .lr = 0.1f, .seed = 5, .deterministic = true};
        mrt_rig free_rig, frozen_rig;
        mrt_rig_open(&free_rig, &o);
        o.freeze = nets[n].freeze;
        mrt_rig_open(&frozen_rig, &o);
        const values before = values_of(&frozen_rig, 0);
        train(&free_rig, 1);
        train(&frozen_rig, 1);
        const values all = values_of(&free_rig, 0), some = values_of(&frozen_rig, 0);
        const mri_tensors *t = &frozen_rig.t->tensors;
        uint64_t at = 0;
        for (uint32_t i = 0; i < t->count; at += t->desc[i++].count) {
            const float *expected = is_frozen(&frozen_rig, &t->desc[i]) ? before.at : all.at;
            if (bits_differ(some.at + at, expected + at, t->desc[i].count))
                fail_msg("%s of %s frozen: not as expected", t->desc[i].name, nets[n].freeze);
        }
        free(before.at);
        free(all.at);
        free(some.at);
        mrt_rig_close(&free_rig);
        mrt_rig_close(&frozen_rig);
    }
}

/* With everything below the head frozen, and no dropout, a training step's loss is what evaluation finds. */
static void test_frozen_statistics_are_computed_with(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const mrt_rig_options warm = {.devices = devices(2), .net = mrt_net_norm, .seed = 6},
                          o = {.devices = devices(2), .net = mrt_net_norm, .seed = 6, .freeze = "backbone"};
    mr_checkpoint_info info = {.struct_size = sizeof info, .best_val_loss = INFINITY};
    const char *path = mrt_path("warm.mrck");
    mrt_rig rig;
    mrt_batch b;
    mrt_rig_open(&rig, &warm); /* statistics that differ from the initial ones */
    train(&rig, 3);
    MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);
    mrt_rig_close(&rig);
    mrt_rig_open(&rig, &o);
    MRT_OK(mr_trainer_load(rig.t, path, &info, &err), &err);
    mr_metrics training, evaluation;
    mrt_batch_make(&b, &rig, 0, 900, 31, NULL, 0);
    MRT_OK(mr_trainer_forward(rig.t, &b.b, &err), &err);
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig.t, &training, &evaluation, &err), &err);
    MRT_TRUE(fabs(training.loss_sum - evaluation.loss_sum) < 1e-5 * evaluation.loss_sum);
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
}

static void test_branches(void **state)
{
    (void)state;
    mrt_rig_options o = {
        .devices = devices(2), .net = mrt_net_residual, .seed = 7, .update = MR_UPDATE_MOMENTUM};
    o.freeze = "0,1,4,5"; /* the normalisation that ends a branch stays, the short cut that is added to it
                             learns */
    run(&o, 3);
    o.freeze = "0-3"; /* and the other way round */
    run(&o, 3);
    o.freeze = "2,4,8,13";
    run(&o, 3);
}

static void test_a_checkpoint_remembers(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info = {.struct_size = sizeof info, .best_val_loss = INFINITY}, found;
    const char *path = mrt_path("frozen.mrck");
    mrt_rig_options o = {.devices = devices(2),
                         .net = mrt_net_residual,
                         .seed = 8,
                         .update = MR_UPDATE_ADAM,
                         .weight_decay = 0.01f,
                         .deterministic = true,
                         .freeze = "0-5"};
    const mrt_hash whole = run(&o, 4);
    mrt_rig rig;
    mrt_rig_open(&rig, &o);
    train(&rig, 2);
    MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);
    mrt_rig_close(&rig);
    MRT_OK(mr_checkpoint_find(path, NULL, 0, &found, NULL, 0, &err), &err);
    MRT_STR(found.freeze, "0-5");
    mrt_rig_open(&rig, &o);
    MRT_OK(mr_trainer_load(rig.t, path, &info, &err), &err);
    for (uint32_t i = 2; i < 4; i++) mrt_train(&rig, i, 32 * i, 31);
    MRT_TRUE(mrt_same(mrt_hash_of(&rig, 0), whole));
    mrt_rig_close(&rig);
}

/* From a run that trained them: what momentum it has left moves nothing. */
static void test_momentum_is_left_behind(void **state)
{
    (void)state;
    for (int rule = 0; rule < MR_UPDATE_KIND_COUNT; rule++) {
        if (getenv("MRT_DEVICES") && rule != MR_UPDATE_MOMENTUM && rule != MR_UPDATE_LAMB) continue;
        mr_error err = MR_ERROR_INIT;
        mr_checkpoint_info info = {.struct_size = sizeof info, .best_val_loss = INFINITY};
        const char *path = mrt_path("moving.mrck");
        mrt_rig_options o = {.devices = devices(1),
                             .net = mrt_net_residual,
                             .seed = 9,
                             .update = (mr_update_kind)rule,
                             .weight_decay = 0.01f,
                             .lookahead = 3};
        mrt_rig rig;
        mrt_rig_open(&rig, &o);
        train(&rig, 2);
        MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);
        mrt_rig_close(&rig);
        o.freeze = "0-5";
        mrt_rig_open(&rig, &o);
        MRT_OK(mr_trainer_load(rig.t, path, &info, &err), &err);
        const values before = values_of(&rig, 0);
        train(&rig, 4);
        const values after = values_of(&rig, 0);
        check_frozen(&rig, &before, &after);
        free(before.at);
        free(after.at);
        mrt_rig_close(&rig);
    }
}

static void test_on_several_devices(void **state)
{
    (void)state;
    if (getenv("MRT_DEVICES")) return;
    mrt_rig_options o = {.devices = "cpu:1", .net = mrt_net_residual, .seed = 10, .freeze = "0-3,7"};
    o.freeze = "0-3";
    const mrt_hash one = run(&o, 3);
    o.devices = "cpu:2", o.place = "0-6=0,rest=1";
    mrt_rig rig;
    mrt_rig_open(&rig, &o);
    train(&rig, 3);
    MRT_TRUE(mrt_same(mrt_hash_of(&rig, 0), one));
    mrt_rig_close(&rig);
    mr_error err = MR_ERROR_INIT;
    o.freeze = "0-6";
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_EINVAL);
    MRT_HAS(err.text, "one of the devices");
}

static void refused(mr_net *(*net)(void), const char *freeze, const char *why)
{
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    const mrt_rig_options o = {.devices = devices(1), .net = net, .freeze = freeze};
    if (mrt_rig_try(&rig, &o, &err) != MR_EINVAL) fail_msg("taken: %s", freeze);
    MRT_HAS(err.text, why);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    refused(mrt_net_norm, "1", "layer 1 (batch_norm) is frozen, and layers before it are trained");
    refused(mrt_net_residual, "batch_norm", "no gradient is led through");
    refused(mrt_net_residual, "0-6,10", "layer 10 (batch_norm)");
    refused(mrt_net_norm, "0-", "nothing would be trained");
    refused(mrt_net_norm, "block7", "no block and no kind");
    refused(mrt_net_norm, "4-2", "layers 0 to");
    refused(mrt_net_norm, "0-99", "layers 0 to");
    refused(mrt_net_norm, "0x", "it names no layers");
    refused(mrt_net_norm, "0,,1", "a name is missing");
    refused(mrt_net_norm, "avg_pool", "none of them has parameters");
    refused(mrt_net_norm, "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
            "at most 63 bytes");
}

static void test_names_of_layers(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    bool chosen[512];
    MRT_OK(mr_model_build(mr_model_find("vgg16"), 64, 64, 3, 10, &net, &err), &err);
    static const struct {
        const char *text;
        uint32_t count, first;
    } known[] = {{"0", 1, 0},         {"3-5", 3, 3},  {"block2", 3, 3}, {"head", 1, 22},
                 {"backbone", 22, 0}, {"20-", 3, 20}, {"dense", 5, 18}, {"block1,3-5,0", 6, 0}};
    MRT_EQ(mr_net_layer_count(net), 23);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(known); i++) {
        uint32_t count = 0, first = UINT32_MAX;
        MRT_OK(mr_net_choose(net, known[i].text, chosen, &err), &err);
        for (uint32_t at = mr_net_layer_count(net); at-- > 0;)
            if (chosen[at]) count++, first = at;
        if (count != known[i].count || first != known[i].first)
            fail_msg("%s: %u layers from %u", known[i].text, count, first);
    }
    mr_net_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_moves_them_under_any_rule),
        cmocka_unit_test(test_any_devices_agree),
        cmocka_unit_test(test_the_others_learn_as_before),
        cmocka_unit_test(test_frozen_statistics_are_computed_with),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_a_checkpoint_remembers),
        cmocka_unit_test(test_momentum_is_left_behind),
        cmocka_unit_test(test_on_several_devices),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_names_of_layers),
    };
    return mrt_run(tests);
}
