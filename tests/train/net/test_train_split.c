/* Networks on several devices in sequence: the same bits as on one, in training, evaluation and checkpoints,
 * with one replica and several; networks too large for one device's memory; unplaceable networks are refused
 * with the reason. */
#include <string.h>

#include "tests/train/rig.h"

enum { STEPS = 4, BATCH = 24 };

typedef struct outcome {
    mrt_hash weights;
    mr_metrics training, evaluation;
} outcome;

/* Full batches, one that has fewer samples than parts, one in which the last do not count; an evaluation. */
static outcome train(const mrt_rig_options *options)
{
    static const uint32_t counts[STEPS] = {BATCH, 23, 3, BATCH};
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_batch b;
    outcome out;
    mrt_rig_options o = *options;
    o.batch = BATCH, o.seed = 3, o.lr = 0.05f;
    mrt_rig_open(&rig, &o);
    for (uint32_t s = 0, first = 0; s < STEPS; first += counts[s++]) {
        mrt_batch_make(&b, &rig, s, first, counts[s], NULL, s == 3 ? 5 : 0);
        MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
        mrt_batch_free(&b, &rig);
    }
    mrt_batch_make(&b, &rig, 0, 1000, 17, NULL, 0);
    MRT_OK(mr_trainer_forward(rig.t, &b.b, &err), &err);
    mrt_batch_free(&b, &rig);
    MRT_OK(mr_trainer_metrics(rig.t, &out.training, &out.evaluation, &err), &err);
    out.weights = mrt_hash_of(&rig, 0);
    for (uint32_t r = 1; r < rig.t->team.count; r++) MRT_TRUE(mrt_same(out.weights, mrt_hash_of(&rig, r)));
    mrt_rig_close(&rig);
    return out;
}

static bool same_metrics(const mr_metrics *a, const mr_metrics *b)
{
    return memcmp(&a->loss_sum, &b->loss_sum, sizeof a->loss_sum) == 0 && a->count == b->count &&
           a->correct == b->correct;
}

static void check_same(const char *what, const outcome *a, const outcome *b)
{
    if (mrt_same(a->weights, b->weights) && same_metrics(&a->training, &b->training) &&
        same_metrics(&a->evaluation, &b->evaluation))
        return;
    fail_msg("%s: another loss (%.9g, %.9g) or weight than unsplit (%.9g, %.9g)", what, a->training.loss_sum,
             a->evaluation.loss_sum, b->training.loss_sum, b->evaluation.loss_sum);
}

/* Of `whole` devices unsplit; place needs `each` for each of them. */
typedef struct split_case {
    const char *what, *place;
    mr_net *(*net)(void);
    uint32_t each;
    mrt_rig_options o;
} split_case;

static const split_case cases[] = {
    {"convolutions in two", "0-2=0,rest=1", mrt_net_conv, 2, {.update = MR_UPDATE_ADAM}},
    {"convolutions in three", "0-1=0,2-4=1,rest=2", mrt_net_conv, 3, {.update = MR_UPDATE_RMSPROP}},
    {"a short cut across", "0-1=0,rest=1", mrt_net_branch, 2, {.update = MR_UPDATE_MOMENTUM}},
    {"normalisation", "0-1=0,rest=1", mrt_net_norm, 2, {.update = MR_UPDATE_ADAMW, .average = 0.9f}},
    {"LAMB, Lookahead", "0=0,rest=1", mrt_net_dense, 2, {.update = MR_UPDATE_LAMB, .lookahead = 2}},
    {"Muon", "0=0,rest=1", mrt_net_norm, 2, {.update = MR_UPDATE_MUON}},
    {"losses on both", "0-6=0,rest=1", mrt_net_coder, 2, {.update = MR_UPDATE_ADAM, .clip_value = 0.02f}},
    {"fields", "0-3=0,rest=1", mrt_net_fields, 2, {.update = MR_UPDATE_ADAM}},
    {"mixed samples", "0-2=0,rest=1", mrt_net_conv, 2, {.label_smoothing = 0.1f, .mixes = true}},
    {"fields in three", "0-1=0,3-5=1,rest=2", mrt_net_fields, 3, {.weight_decay = 0.1f}},
};

static void check_devices(const split_case *c, uint32_t replicas, uint32_t parts, bool reference)
{
    char whole[16], split[16], what[128];
    mrt_rig_options o = c->o;
    snprintf(whole, sizeof whole, "cpu:%u", replicas);
    snprintf(split, sizeof split, "cpu:%u", replicas * c->each);
    snprintf(what, sizeof what, "%s, %u replicas, %u parts%s", c->what, replicas, parts,
             reference ? ", reference" : "");
    o.net = c->net, o.parts = parts, o.reference = reference;
    o.bucket_bytes = replicas > 1 ? 1 : 0;
    o.devices = whole;
    const outcome one = train(&o);
    o.devices = split, o.place = c->place;
    const outcome other = train(&o);
    check_same(what, &other, &one);
}

static void test_split_networks_train_like_whole_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        check_devices(&cases[i], 1, 0, false);
        check_devices(&cases[i], 1, 0, true);
        check_devices(&cases[i], 2, 0, false);
        check_devices(&cases[i], 1, 3, false);
        check_devices(&cases[i], 2, 7, false);
    }
}

/* ---- checkpoints ---- */

/* What one saves the other goes on with, either way. */
static void test_checkpoints_know_no_places(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        mr_error err = MR_ERROR_INIT;
        mrt_rig first, second, all;
        mr_checkpoint_info info = {.batch = BATCH};
        mrt_rig_options o = {.batch = BATCH, .seed = 5, .net = mrt_net_norm, .update = MR_UPDATE_ADAM};
        mrt_rig_open(&all, &o);
        if (way == 0) o.devices = "cpu:2", o.place = "0-1=0,rest=1";
        mrt_rig_open(&first, &o);
        o.devices = way == 0 ? "cpu" : "cpu:3", o.place = way == 0 ? NULL : "0=0,1-3=1,rest=2";
        mrt_rig_open(&second, &o);
        for (uint64_t at = 0; at < STEPS; at++) {
            mrt_train(&all, at, (uint32_t)at * BATCH, BATCH);
            if (at == STEPS / 2) {
                MRT_OK(mr_trainer_save(first.t, mrt_path("split.mrck"), &info, &err), &err);
                MRT_OK(mr_trainer_load(second.t, mrt_path("split.mrck"), &info, &err), &err);
            }
            mrt_train(at < STEPS / 2 ? &first : &second, at, (uint32_t)at * BATCH, BATCH);
        }
        MRT_TRUE(mrt_same(mrt_hash_of(&all, 0), mrt_hash_of(&second, 0)));
        mrt_rig_close(&first);
        mrt_rig_close(&second);
        mrt_rig_close(&all);
    }
}

/* ---- memory ---- */

static mr_net *two_heavy(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "heavy", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_block(net, "front");
    for (int i = 0; i < 3; i++) mr_net_conv2d(net, 16, 3, 1, MR_PAD_SAME, MR_ACT_TANH);
    mr_net_block(net, "back");
    for (int i = 0; i < 3; i++) mr_net_conv2d(net, 16, 3, 1, MR_PAD_SAME, MR_ACT_TANH);
    mr_net_block(net, "");
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

static void test_two_devices_hold_what_one_cannot(void **state)
{
    (void)state;
    mrt_rig rig;
    mr_error err = MR_ERROR_INIT;
    mrt_rig_options o = {.net = two_heavy, .batch = 256};
    mrt_rig_open(&rig, &o);
    const uint64_t needed = rig.t->team.replicas[0].plan.memory_bytes;
    mrt_rig_close(&rig);
    o.memory_bytes = needed * 3 / 4; /* of each device */
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_ELIMIT);
    o.devices = "cpu:2", o.place = "front=0,rest=1";
    mrt_rig_open(&rig, &o);
    mrt_train(&rig, 0, 0, 256);
    for (const mri_replica *r = &rig.t->team.replicas[0]; r; r = r->next)
        MRT_TRUE(r->plan.memory_bytes > 0 && r->plan.memory_bytes <= o.memory_bytes);
    mrt_rig_close(&rig);
}

/* ---- mistakes ---- */

static void refused(const char *place, const char *devices, mr_net *(*net)(void), const char *what)
{
    mrt_rig rig;
    mr_error err = MR_ERROR_INIT;
    const int rc =
        mrt_rig_try(&rig, &(mrt_rig_options){.net = net, .devices = devices, .place = place}, &err);
    if (rc == MR_OK) mrt_rig_close(&rig);
    MRT_EQ(rc, MR_EINVAL);
    MRT_HAS(err.text, what);
}

static void test_mistakes(void **state)
{
    (void)state;
    refused("front=0", "cpu:2", two_heavy, "layer 3 (conv2d) is placed nowhere");
    refused("side=0,rest=1", "cpu:2", two_heavy, "place \"side=0\": the network has no block of that name");
    refused("front=0,2=1,rest=1", "cpu:2", two_heavy, "layer 2 is placed twice");
    refused("0-9=0,rest=1", "cpu:2", two_heavy, "the network has layers 0 to 6");
    refused("front=x,rest=1", "cpu:2", two_heavy, "the device is not a number in range");
    refused("front=16,rest=1", "cpu:2", two_heavy, "the device is not a number in range");
    refused("front", "cpu:2", two_heavy, "there is no device");
    refused("0-=0,rest=1", "cpu:2", two_heavy, "it names no layers");
    refused("rest=0,rest=1", "cpu:2", two_heavy, "rest is placed twice");
    refused("front=1,rest=0", "cpu:2", two_heavy,
            "layer 3 (conv2d) of network heavy is placed on device 0 and takes what device 1 computes");
    refused("front=0,rest=2", "cpu:3", two_heavy, "would have no parameters on device 1 of 3");
    refused("front=0,rest=1", "cpu:3", two_heavy, "a number of devices that is not a multiple");
    mr_net *net = two_heavy();
    mr_error err = MR_ERROR_INIT;
    mr_net_block(net, "9lives");
    MRT_EQ(mr_net_check(net, &err), MR_EINVAL);
    MRT_HAS(err.text, "block \"9lives\"");
    mr_net_destroy(net);
}

static void test_what_does_not_go_with_it(void **state)
{
    (void)state;
    mrt_rig rig;
    mr_error err = MR_ERROR_INIT;
    mrt_rig_options o = {.net = two_heavy, .devices = "cpu:2", .place = "front=0,rest=1", .clip_norm = 1};
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_EINVAL);
    MRT_HAS(err.text, "clip_norm");
}

/* VGG19 as its source split it. */
static void test_vgg_has_its_blocks(void **state)
{
    (void)state;
    static uint32_t place[64];
    mr_net *net;
    uint32_t devices;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_model_build(mr_model_find("vgg19"), 224, 224, 3, 1000, &net, &err), &err);
    MRT_OK(mr_net_place(net, "block1=0,rest=1", place, &devices, &err), &err);
    MRT_EQ(devices, 2);
    for (uint32_t at = 0; at < mr_net_layer_count(net); at++) MRT_EQ(place[at], at >= 3);
    mr_net_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split_networks_train_like_whole_ones),
        cmocka_unit_test(test_checkpoints_know_no_places),
        cmocka_unit_test(test_two_devices_hold_what_one_cannot),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_what_does_not_go_with_it),
        cmocka_unit_test(test_vgg_has_its_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
