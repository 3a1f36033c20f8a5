/* Training on cuda devices, which compute in half precision and record steps: on the emulated CUDA in the
 * suite, the same on a GPU. Skips where there is no such device. */
#include <math.h>
#include <stdlib.h>

#include "tests/train/rig.h"

/* Emulated kernels are slow under a sanitizer: of a table of networks it sees those before this index. */
enum { STEPS = 6, MOST_NETS = MRT_SANITIZED ? 1 : 4 };

typedef struct outcome {
    mrt_hash weights;
    double loss;
    uint32_t replayed;
} outcome;

static void open_or_skip(mrt_rig *rig, const mrt_rig_options *o)
{
    mr_error err = MR_ERROR_INIT;
    const int rc = mrt_rig_try(rig, o, &err);
    if (rc == MR_EUNSUPPORTED || rc == MR_ENOENT) {
        printf("skipped: %s\n", err.text);
        exit(77);
    }
    MRT_OK(rc, &err);
}

static outcome train(const mrt_rig_options *o)
{
    mr_error err = MR_ERROR_INIT;
    mr_metrics sums;
    mrt_rig rig;
    mrt_batch slot[2];
    outcome out;
    open_or_skip(&rig, o);
    for (uint32_t k = 0; k < 2; k++) mrt_batch_make(&slot[k], &rig, 0, 40 * k, 16, NULL, 0);
    for (uint32_t s = 0; s < STEPS; s++) {
        slot[s % 2].b.global_step = s;
        MRT_OK(mr_trainer_step(rig.t, &slot[s % 2].b, &err), &err);
    }
    MRT_OK(mr_trainer_metrics(rig.t, &sums, NULL, &err), &err);
    out = (outcome){.weights = mrt_hash_of(&rig, rig.t->team.count - 1),
                    .loss = sums.loss_sum,
                    .replayed = rig.t->team.replicas[0].passes.replayed};
    for (uint32_t r = 0; r < rig.t->team.count; r++) MRT_TRUE(mrt_same(out.weights, mrt_hash_of(&rig, r)));
    MRT_STR(rig.t->note, "");
    for (uint32_t k = 0; k < 2; k++) mrt_batch_free(&slot[k], &rig);
    mrt_rig_close(&rig);
    return out;
}

/* Tolerance of the loss: f32 1e-4, bf16 4 %, f16 1 % of the processor's result in f32. */
static void test_every_precision_trains_alike(void **state)
{
    (void)state;
    static const struct {
        uint32_t dtype;
        double tolerance;
    } cases[] = {
        {MR_TENSOR_F32, 1e-4},
        {MR_TENSOR_BF16, 0.04},
        {MR_TENSOR_F16, 0.01},
    };
    static mr_net *(*const nets[])(void) = {mrt_net_branch, mrt_net_residual, mrt_net_fields};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(nets) && n < MOST_NETS; n++) {
        mrt_rig_options o = {.net = nets[n], .seed = 3, .batch = 16, .update = MR_UPDATE_MOMENTUM};
        if (n == 0) { /* gradients are clipped when the scale of the loss is divided out */
            o.clip_value = 0.3f;
            o.clip_norm = 0.2f;
            o.weight_decay = 0.01f;
            o.decay_on = MR_DECAY_ON_WEIGHTS;
            o.average = 0.9f;
        }
        o.devices = "cpu";
        const outcome reference = train(&o);
        for (size_t k = 0; k < 3; k++) {
            o.devices = "cuda:0", o.dtype = cases[k].dtype, o.no_graph = false, o.deterministic = true;
            const outcome replayed = train(&o);
            o.no_graph = true;
            const outcome plain = train(&o);
            MRT_TRUE(replayed.replayed == STEPS - 2 && plain.replayed == 0);
            MRT_TRUE(mrt_same(replayed.weights, plain.weights) && replayed.loss == plain.loss);
            if (!(fabs(plain.loss - reference.loss) <= cases[k].tolerance * reference.loss))
                fail_msg("type %u: loss %g, on the processor %g", cases[k].dtype, plain.loss, reference.loss);
        }
    }
}

static void test_replicas_and_buckets(void **state)
{
    (void)state;
    mrt_rig_options o = {.net = mrt_net_branch,
                         .seed = 3,
                         .batch = 16,
                         .devices = "cuda:0",
                         .deterministic = true,
                         .clip_norm = 0.5f};
    const outcome one = train(&o);
    o.devices = "cuda:0,1,2";
    const outcome whole = train(&o);
    o.bucket_bytes = 300;
    const outcome pieces = train(&o);
    o.no_graph = true;
    const outcome plain = train(&o);
    MRT_TRUE(mrt_same(whole.weights, pieces.weights) && mrt_same(whole.weights, plain.weights));
    MRT_TRUE(pieces.replayed > whole.replayed && plain.replayed == 0);
    MRT_TRUE(fabs(whole.loss - one.loss) <= 1e-4 * one.loss);
}

/* On two GPUs and three, in sequence: the same bits in f32; in bf16 values that cross are rounded, which they
 * are not on one GPU. */
static void test_split_networks_train_like_whole_ones(void **state)
{
    (void)state;
    static mr_net *(*const nets[])(void) = {mrt_net_branch, mrt_net_conv, mrt_net_coder, mrt_net_fields};
    static const uint32_t types[] = {MR_TENSOR_F32, MR_TENSOR_BF16};
    for (size_t n = 0; n < MRI_ARRAY_COUNT(nets) && n < MOST_NETS; n++)
        for (size_t k = 0; k < MRI_ARRAY_COUNT(types); k++) {
            mrt_rig_options o = {.net = nets[n],
                                 .seed = 3,
                                 .batch = 16,
                                 .devices = "cuda:0",
                                 .deterministic = true,
                                 .dtype = types[k],
                                 .update = MR_UPDATE_ADAM};
            const outcome whole = train(&o);
            o.devices = "cuda:0,1", o.place = "0-3=0,rest=1";
            const outcome two = train(&o);
            o.devices = "cuda:0,1,2", o.place = "0=0,1-5=1,rest=2";
            const outcome three = train(&o);
            if (types[k] == MR_TENSOR_F32)
                MRT_TRUE(mrt_same(whole.weights, two.weights) && mrt_same(whole.weights, three.weights));
            const double most = types[k] == MR_TENSOR_F32 ? 0 : 1e-3 * whole.loss;
            MRT_TRUE(fabs(whole.loss - two.loss) <= most && fabs(whole.loss - three.loss) <= most);
            MRT_TRUE(whole.replayed > 0 && two.replayed == 0);
        }
}

static void train_one(mrt_rig *rig, uint64_t step) { mrt_train(rig, step, 0, 16); }

/* A scale far too large: updates are skipped and the scale halved until gradients fit. */
static void test_overflow_skips_the_update(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig, again;
    const mr_checkpoint_info info = {.best_val_loss = 1};
    const mrt_rig_options o = {.net = mrt_net_residual,
                               .seed = 3,
                               .batch = 16,
                               .devices = "cuda:0",
                               .dtype = MR_TENSOR_F16,
                               .lr = 0.1f,
                               .deterministic = true};
    open_or_skip(&rig, &o);
    MRT_TRUE(rig.t->scale.scale == 65536 && rig.t->scale.growth_steps == 1000);
    const mr_loss_scale huge = {.scale = 0x1p24f, .growth_steps = 1000};
    MRT_OK(mri_scale_set(&rig.t->flights, &huge, &rig.t->scale, &err), &err);
    const mrt_hash before = mrt_hash_of(&rig, 0);
    train_one(&rig, 0);
    MRT_OK(mri_scale_read(&rig.t->flights, &rig.t->scale, &err), &err);
    MRT_TRUE(rig.t->scale.skipped == 1 && rig.t->scale.scale == 0x1p23f);
    for (uint32_t s = 1; s < 20; s++) train_one(&rig, s);
    MRT_OK(mr_trainer_save(rig.t, mrt_path("scaled.mrck"), &info, &err), &err);
    MRT_TRUE(rig.t->scale.skipped >= 2 && rig.t->scale.skipped < 15 && rig.t->scale.good > 0);
    MRT_TRUE(!mrt_same(before, mrt_hash_of(&rig, 0)));
    open_or_skip(&again, &o);
    MRT_OK(mr_trainer_load(again.t, mrt_path("scaled.mrck"), NULL, &err), &err);
    MRT_TRUE(again.t->scale.scale == rig.t->scale.scale && again.t->scale.good == rig.t->scale.good &&
             again.t->scale.skipped == rig.t->scale.skipped);
    train_one(&rig, 20);
    train_one(&again, 20);
    MRT_TRUE(mrt_same(mrt_hash_of(&again, 0), mrt_hash_of(&rig, 0)));
    mrt_rig_close(&rig);
    mrt_rig_close(&again);
}

static mr_net *net_wide(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-wide", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    for (int i = 0; i < 2; i++) {
        mr_net_dense(net, 1024, MR_ACT_RELU);
        mr_net_dropout(net, 0.5f);
    }
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

/* Weights in half precision are kept from forward to backward, whatever the batch: the largest batch reported
 * to fit must fit, and almost no larger one. */
static void test_the_batch_said_to_fit_does(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_rig_options o = {.net = net_wide,
                         .batch = 1000,
                         .devices = "cuda:0,1,2",
                         .dtype = MR_TENSOR_BF16,
                         .deterministic = true};
    open_or_skip(&rig, &o);
    o.memory_bytes = rig.t->team.replicas[0].plan.memory_bytes - rig.t->team.replicas[0].plan.arena_bytes / 4;
    mrt_rig_close(&rig);
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_ELIMIT);
    const char *about = strstr(err.text, "a global batch of about ");
    if (!about) fail_msg("%s", err.text);
    const uint32_t fits = (uint32_t)atoi(about + strlen("a global batch of about "));
    o.batch = fits;
    MRT_OK(mrt_rig_try(&rig, &o, &err), &err);
    MRT_TRUE(rig.t->team.replicas[0].plan.memory_bytes <= o.memory_bytes);
    mrt_rig_close(&rig);
    o.batch = fits + fits / 3;
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_precision_trains_alike),
        cmocka_unit_test(test_replicas_and_buckets),
        cmocka_unit_test(test_split_networks_train_like_whole_ones),
        cmocka_unit_test(test_overflow_skips_the_update),
        cmocka_unit_test(test_the_batch_said_to_fit_does),
    };
    return mrt_run(tests);
}
