/* Branched networks on a device: memory planned by lifetime, operations that ride along, gradients in
 * buckets, residual networks. */
#include <math.h>

#include "tests/train/rig.h"

static mr_net *(*const nets[])(void) = {mrt_net_conv,  mrt_net_norm,   mrt_net_dense,    mrt_net_branch,
                                        mrt_net_coder, mrt_net_fields, mrt_net_residual, mrt_net_mobile};
enum { NETS = sizeof nets / sizeof nets[0] };

/* ---- spans ---- */

static void test_spans_never_overlap(void **state)
{
    (void)state;
    enum { COUNT = 300, ALIGN = 64 };
    mri_span s[COUNT];
    for (uint64_t seed = 1; seed < 20; seed++) {
        uint32_t bits[3 * COUNT];
        size_t total;
        mrt_noise(bits, sizeof bits, seed);
        for (int i = 0; i < COUNT; i++) {
            const uint32_t first = bits[3 * i] % 100, length = bits[3 * i + 1] % (1 + seed * 3);
            s[i] = (mri_span){
                .bytes = 1 + bits[3 * i + 2] % 5000, .first = first, .last = first + length, .at = 77};
        }
        MRT_EQ(mri_spans_place(s, COUNT, ALIGN, &total), MR_OK);
        for (int i = 0; i < COUNT; i++) {
            MRT_TRUE(s[i].at % ALIGN == 0 && s[i].at + s[i].bytes <= total);
            for (int k = 0; k < i; k++) {
                const bool together = s[i].first <= s[k].last && s[k].first <= s[i].last;
                MRT_TRUE(!together || s[i].at + s[i].bytes <= s[k].at || s[k].at + s[k].bytes <= s[i].at);
            }
        }
        const size_t floor = mri_spans_floor(s, COUNT, ALIGN);
        if (!(total >= floor && total < floor + floor / 4))
            fail_msg("seed %d: %zu for %zu", (int)seed, total, floor);
    }
    size_t none;
    mri_span huge[2] = {{.bytes = SIZE_MAX / 2}, {.bytes = SIZE_MAX / 2}};
    MRT_EQ(mri_spans_place(NULL, 0, ALIGN, &none), MR_OK);
    MRT_EQ(none, 0);
    MRT_EQ(mri_spans_place(huge, 2, ALIGN, &none), MR_ELIMIT);
}

/* ---- the plan ---- */

typedef struct outcome {
    float *grads; /* of replica 0, as they lie */
    double loss;
} outcome;

static outcome step_on(mrt_rig *rig, uint64_t step)
{
    mr_error err = MR_ERROR_INIT;
    mr_metrics sums;
    mrt_batch b;
    outcome out;
    const mri_replica *r = &rig->t->team.replicas[0];
    mrt_batch_make(&b, rig, step, 50, 32, NULL, 0);
    MRT_OK(mr_trainer_step(rig->t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig->t, &sums, NULL, &err), &err);
    mrt_batch_free(&b, rig);
    out.loss = sums.loss_sum;
    out.grads = malloc(r->plan.weight_floats * sizeof(float));
    /* the processor's device memory is its own */
    memcpy(out.grads, r->memory.grads, r->plan.weight_floats * sizeof(float));
    return out;
}

/* What shares a place with nothing must give the same bits as what does, and nothing may depend on what lay
 * there before. */
static void test_sharing_memory_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < NETS; k++) {
        mr_error err = MR_ERROR_INIT;
        mrt_rig rig;
        void *apart;
        size_t at = 0;
        mrt_rig_open(&rig, &(mrt_rig_options){.net = nets[k], .seed = 3, .lr = 1e-30f});
        mri_replica *r = &rig.t->team.replicas[0];
        MRT_TRUE(r->plan.arena_bytes >= mri_spans_floor(r->plan.spans, r->plan.span_count, MR_DEVICE_ALIGN));
        outcome shared = step_on(&rig, 4);
        memset(r->memory.arena, 0xff, r->plan.arena_bytes); /* not a number, everywhere */
        outcome poisoned = step_on(&rig, 4);
        char *arena = r->memory.arena;
        for (uint32_t i = 0; i < r->plan.span_count; i++) {
            r->plan.spans[i].at = at;
            at += (size_t)mri_align_up(r->plan.spans[i].bytes, MR_DEVICE_ALIGN);
        }
        MRT_TRUE(at > r->plan.arena_bytes);
        MRT_OK(mr_device_alloc(r->dev, at, &apart, &err), &err);
        r->memory.arena = apart;
        outcome separate = step_on(&rig, 4);
        r->memory.arena = arena;
        mr_device_free(r->dev, apart);
        MRT_TRUE(isfinite(shared.loss) && shared.loss == poisoned.loss && shared.loss == separate.loss);
        assert_memory_equal(shared.grads, poisoned.grads, r->plan.weight_floats * sizeof(float));
        assert_memory_equal(shared.grads, separate.grads, r->plan.weight_floats * sizeof(float));
        free(shared.grads);
        free(poisoned.grads);
        free(separate.grads);
        mrt_rig_close(&rig);
    }
}

/* ---- riding along ---- */

static uint32_t count_kind(const mri_replica *r, mr_op_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->nodes.count; i++) n += r->nodes.node[i].kind == kind;
    return n;
}

static mr_net *block(bool apart)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-block", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    const mr_point in = mr_net_here(net);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    if (apart) mr_net_dropout(net, 0); /* drops nothing, but stands between */
    mr_net_activation(net, MR_ACT_TANH);
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_NONE);
    if (apart) mr_net_dropout(net, 0);
    mr_net_add(net, in, MR_ACT_NONE);
    if (apart) mr_net_dropout(net, 0);
    mr_net_activation(net, MR_ACT_TANH);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}
static mr_net *net_whole(void) { return block(false); }
static mr_net *net_apart(void) { return block(true); }

static void copy_weights(const mrt_rig *from, const mrt_rig *to)
{
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(from->t->tensors.count, to->t->tensors.count);
    float *host = malloc(from->t->tensors.most_floats * sizeof *host);
    for (uint32_t i = 0; i < from->t->tensors.count; i++) {
        const mri_replica *r = &to->t->team.replicas[0];
        const mri_tensor_place *p = &to->t->tensors.place[i];
        if (from->t->tensors.desc[i].role != MRI_ROLE_WEIGHTS) continue;
        MRT_OK(mri_tensor_export(&from->t->tensors, &from->t->team.replicas[0], i, false, host, &err), &err);
        MRT_OK(mr_op_param_import(r->nodes.node[p->node].op, false, p->which, r->memory.weights + p->at, host,
                                  &err),
               &err);
    }
    free(host);
}

/* Tolerance 1e-5 of the largest: a multiply and an add may be one instruction in one of them. */
static void test_riding_along_changes_nothing(void **state)
{
    (void)state;
    mrt_rig whole, apart;
    mrt_rig_open(&whole, &(mrt_rig_options){.net = net_whole, .seed = 3, .lr = 1e-30f});
    mrt_rig_open(&apart, &(mrt_rig_options){.net = net_apart, .seed = 3, .lr = 1e-30f});
    const mri_replica *w = &whole.t->team.replicas[0], *a = &apart.t->team.replicas[0];
    MRT_EQ(count_kind(w, MR_OP_ADD) + count_kind(w, MR_OP_ACTIVATION) + count_kind(w, MR_OP_DROPOUT), 0);
    MRT_TRUE(count_kind(a, MR_OP_ADD) == 1 && count_kind(a, MR_OP_ACTIVATION) == 2 &&
             count_kind(a, MR_OP_DROPOUT) == 3);
    copy_weights(&whole, &apart);
    outcome x = step_on(&whole, 1), y = step_on(&apart, 1);
    double most = 0, off = 0;
    MRT_EQ(w->plan.weight_floats, a->plan.weight_floats);
    for (uint64_t i = 0; i < w->plan.weight_floats; i++) {
        const double size = fabs((double)x.grads[i]), d = fabs((double)x.grads[i] - (double)y.grads[i]);
        if (size > most) most = size;
        if (d > off) off = d;
    }
    if (!(off <= 1e-5 * most) || !(fabs(x.loss - y.loss) <= 1e-6 * x.loss))
        fail_msg("%g of %g; %.9g, %.9g", off, most, x.loss, y.loss);
    free(x.grads);
    free(y.grads);
    mrt_rig_close(&whole);
    mrt_rig_close(&apart);
}

/* What takes a tensor that others take too may not change it, nor swallow it. */
static void test_shared_tensors_stay(void **state)
{
    (void)state;
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.net = mrt_net_branch});
    const mri_replica *r = &rig.t->team.replicas[0];
    MRT_EQ(count_kind(r, MR_OP_ADD), 4);
    MRT_EQ(count_kind(r, MR_OP_ACTIVATION), 1); /* of two: the other rides along */
    for (uint32_t i = 1; i < r->nodes.count; i++) {
        const mri_node *n = &r->nodes.node[i];
        MRT_TRUE(n->in < i && (n->in2 == MRI_NONE || n->in2 < i));
        MRT_TRUE(!n->inplace || n->fork || r->nodes.node[n->in].consumers == 1);
        if (n->inplace) MRT_TRUE(n->span.y == r->nodes.node[n->in].span.y);
    }
    mrt_rig_close(&rig);
}

/* ---- buckets ---- */

static mrt_hash trained(mr_net *(*net)(void), const char *devices, uint64_t bucket_bytes, uint32_t *buckets)
{
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.net = net,
                                          .devices = devices,
                                          .seed = 6,
                                          .bucket_bytes = bucket_bytes,
                                          .update = MR_UPDATE_MOMENTUM});
    const mri_replica *r = &rig.t->team.replicas[0];
    uint64_t end = r->plan.weight_floats;
    uint32_t node = r->nodes.count;
    for (uint32_t k = 0; k < r->plan.bucket_count; k++) { /* from the end to the beginning, without a gap */
        MRT_EQ(r->plan.buckets[k].at + r->plan.buckets[k].count, end);
        MRT_TRUE(r->plan.buckets[k].node < node && r->plan.buckets[k].count > 0);
        end = r->plan.buckets[k].at, node = r->plan.buckets[k].node;
    }
    MRT_TRUE(end == 0 && node == 0);
    *buckets = r->plan.bucket_count;
    for (uint32_t s = 0; s < 5; s++)
        mrt_train(&rig, s, s * 31, s == 3 ? 4 : 31); /* replicas without samples, too */
    const mrt_hash h = mrt_hash_of(&rig, 0);
    for (uint32_t i = 1; i < rig.count; i++) MRT_TRUE(mrt_same(h, mrt_hash_of(&rig, i)));
    mrt_rig_close(&rig);
    return h;
}

static void test_buckets_change_no_bit(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:2", "cpu:7"};
    for (size_t k = 0; k < NETS; k++)
        for (size_t d = 0; d < 3; d += MRT_SANITIZED ? 2 : 1) {
            uint32_t one, some, all;
            const mrt_hash whole = trained(nets[k], devices[d], 0, &one);
            MRT_TRUE(mrt_same(whole, trained(nets[k], devices[d], 2000, &some)));
            MRT_TRUE(mrt_same(whole, trained(nets[k], devices[d], 1, &all)));
            MRT_EQ(one, 1);
            if (d == 0) MRT_TRUE(some == 1 && all == 1); /* nobody to wait for */
            else MRT_TRUE(all > some || all == 2);
        }
}

/* ---- residual networks as they are ---- */

enum { FEW = 8 }; /* samples of a step: for pictures of 2 x 2 some processors have slow convolutions only */

static mr_net *net_resnet20(void)
{
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    MRT_OK(mr_model_build(mr_model_find("cifar-resnet20"), MRT_SIDE, MRT_SIDE, 1, MRT_CLASSES, &net, &err),
           &err);
    return net;
}
static mr_net *net_resnet20_v2(void)
{
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    MRT_OK(mr_model_build(mr_model_find("cifar-resnet20-v2"), MRT_SIDE, MRT_SIDE, 1, MRT_CLASSES, &net, &err),
           &err);
    return net;
}

static void test_residual_networks_learn(void **state)
{
    (void)state;
    static mr_net *(*const resnets[])(void) = {net_resnet20, net_resnet20_v2};
    for (int k = 0; k < 2; k++) {
        mr_error err = MR_ERROR_INIT;
        mr_metrics early, late;
        mrt_rig rig;
        mrt_rig_open(&rig, &(mrt_rig_options){.net = resnets[k],
                                              .devices = "cpu:2",
                                              .update = MR_UPDATE_MOMENTUM,
                                              .lr = 0.02f,
                                              .seed = 2,
                                              .bucket_bytes = 100000});
        for (uint32_t s = 0; s < 3; s++) mrt_train(&rig, s, s * FEW, FEW);
        MRT_OK(mr_trainer_metrics(rig.t, &early, NULL, &err), &err);
        for (uint32_t s = 3; s < 9; s++) mrt_train(&rig, s, s * FEW, FEW);
        MRT_OK(mr_trainer_metrics(rig.t, NULL, NULL, &err), &err);
        for (uint32_t s = 9; s < 12; s++) mrt_train(&rig, s, s * FEW, FEW);
        MRT_OK(mr_trainer_metrics(rig.t, &late, NULL, &err), &err);
        if (!(late.loss_sum < 0.5 * early.loss_sum))
            fail_msg("version %d: loss %g, then %g", k + 1, early.loss_sum, late.loss_sum);
        mrt_rig_close(&rig);
    }
}

/* Of the second the draws that drop samples go on, too. */
static void is_saved_and_loaded(mr_net *(*net)(void), uint64_t seed)
{
    mr_error err = MR_ERROR_INIT;
    mrt_rig whole, again;
    const mr_checkpoint_info info = {.best_val_loss = 1, .augment = "cifar"};
    mrt_rig_open(&whole, &(mrt_rig_options){.net = net, .devices = "cpu:3", .update = MR_UPDATE_MOMENTUM});
    mrt_rig_open(&again, &(mrt_rig_options){
                             .net = net, .devices = "cpu:3", .update = MR_UPDATE_MOMENTUM, .seed = seed});
    for (uint32_t s = 0; s < 2; s++) mrt_train(&whole, s, s * FEW, FEW);
    MRT_OK(mr_trainer_save(whole.t, mrt_path("resnet.mrck"), &info, &err), &err);
    MRT_OK(mr_trainer_load(again.t, mrt_path("resnet.mrck"), NULL, &err), &err);
    for (uint32_t s = 2; s < 4; s++) {
        mrt_train(&whole, s, s * FEW, FEW);
        mrt_train(&again, s, s * FEW, FEW);
    }
    for (uint32_t r = 0; r < 3; r++) MRT_TRUE(mrt_same(mrt_hash_of(&whole, r), mrt_hash_of(&again, r)));
    mrt_rig_close(&whole);
    mrt_rig_close(&again);
}

static void test_networks_are_saved_and_loaded(void **state)
{
    (void)state;
    is_saved_and_loaded(net_resnet20, 8);
    is_saved_and_loaded(mrt_net_mobile, 0); /* draws are by the seed, which is no part of a checkpoint */
}

/* What stands apart because its gradient needs its input, and what rides along nevertheless. */
static void test_smooth_activations_are_operations(void **state)
{
    (void)state;
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.net = mrt_net_mobile});
    const mri_replica *r = &rig.t->team.replicas[0];
    uint32_t smooth = 0, sigmoids = 0, whole = 0;
    for (uint32_t i = 1; i < r->nodes.count; i++) {
        const mri_node *n = &r->nodes.node[i];
        sigmoids += n->kind == MR_OP_DENSE && n->activation == MR_ACT_SIGMOID;
        whole += n->kind == MR_OP_DROPOUT && n->inplace && n->desc.dropout.whole_samples;
        if (!mr_activation_needs_x(n->activation)) continue;
        MRT_TRUE(n->kind == MR_OP_ACTIVATION && !n->inplace);
        smooth++;
    }
    MRT_TRUE(smooth == 4 && sigmoids == 1 && whole == 1);
    MRT_EQ(count_kind(r, MR_OP_SCALE), 1);
    mrt_rig_close(&rig);
}

/* Activations that are over make room: evaluation alone needs a small part of what training keeps.
 * (Winograd's scratch would be most of it for pictures as small as these.) */
static void test_inference_keeps_little(void **state)
{
    (void)state;
    mrt_rig full, bare;
    mrt_rig_options o = {.net = net_resnet20, .convolution = MR_CONVOLUTION_DIRECT};
    mrt_rig_open(&full, &o);
    o.inference = true;
    mrt_rig_open(&bare, &o);
    MRT_TRUE(bare.t->team.replicas[0].plan.arena_bytes * 5 < full.t->team.replicas[0].plan.arena_bytes);
    mrt_rig_close(&full);
    mrt_rig_close(&bare);
}

/* ---- faults ---- */

static void test_replicas_that_differ_are_named(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = "cpu:3"});
    MRT_OK(mri_trainer_compare(rig.t, &err), &err);
    rig.t->team.replicas[2].memory.weights[rig.t->tensors.place[1].at] += 1;
    MRT_EQ(mri_trainer_compare(rig.t, &err), MR_EDEVICE);
    MRT_HAS(err.text, "replica 2 (cpu:2");
    mrt_rig_close(&rig);
}

/* The processor stops at such a label; a device that only counts them must be heard as well. */
static void test_labels_without_a_class_are_reported(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_metrics m;
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = "cpu:2"});
    rig.t->team.replicas[1].memory.sums[MRI_SUMS_TRAINING]->bad = 2;
    MRT_EQ(mr_trainer_metrics(rig.t, &m, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "2 labels of the training data are not below 4");
    mrt_train(&rig, 0, 0, 32);
    MRT_OK(mr_trainer_metrics(rig.t, &m, NULL, &err), &err);
    MRT_EQ(m.count, 32);
    mrt_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_never_overlap),
        cmocka_unit_test(test_sharing_memory_changes_nothing),
        cmocka_unit_test(test_riding_along_changes_nothing),
        cmocka_unit_test(test_shared_tensors_stay),
        cmocka_unit_test(test_buckets_change_no_bit),
        cmocka_unit_test(test_residual_networks_learn),
        cmocka_unit_test(test_networks_are_saved_and_loaded),
        cmocka_unit_test(test_smooth_activations_are_operations),
        cmocka_unit_test(test_inference_keeps_little),
        cmocka_unit_test(test_replicas_that_differ_are_named),
        cmocka_unit_test(test_labels_without_a_class_are_reported),
    };
    return mrt_run(tests);
}
