/* A network's targets: values of a field, classes with different weights. The loss equals its definition, any
 * replicas learn the same and any devices the same bits, a checkpoint remembers it, and contradictory
 * settings are refused with a valid choice. MRT_DEVICES: the kind of devices. */
#include <math.h>
#include <string.h>

#include "tests/train/rig.h"

enum { BATCH = 26, STEPS = 3 };

static bool on_cuda(void)
{
    const char *kind = getenv("MRT_DEVICES");
    return kind && strcmp(kind, "cuda") == 0;
}

static const char *devices(uint32_t count)
{
    static char spec[32];
    if (on_cuda()) snprintf(spec, sizeof spec, "cuda:%.*s", (int)(2 * count - 1), "0,1,2");
    else snprintf(spec, sizeof spec, "cpu:%u", count);
    return spec;
}

static mr_net *dense_to(uint32_t units)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "net", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_dense(net, 12, MR_ACT_TANH);
    mr_net_dense(net, units, MR_ACT_NONE);
    return net;
}

static mr_net *with_targets(mr_target_loss loss)
{
    const bool labels = loss == MR_TARGET_LABELS;
    mr_net *net = dense_to(labels ? MRT_PIXELS : MRT_SOFT);
    if (labels) mr_net_reshape(net, MRT_SIDE, MRT_SIDE, 1);
    mr_net_targets(net, loss, labels ? "floats" : "soft");
    return net;
}

static mr_net *tells_labels(void) { return with_targets(MR_TARGET_LABELS); }
static mr_net *tells_squares(void) { return with_targets(MR_TARGET_SQUARES); }
static mr_net *tells_absolute(void) { return with_targets(MR_TARGET_ABSOLUTE); }
static mr_net *tells_huber(void) { return with_targets(MR_TARGET_HUBER); }
static mr_net *(*const target_nets[])(void) = {tells_labels, tells_squares, tells_absolute, tells_huber};

/* The same by hand: a field, and a loss of pairs that weighs a number as often as there are numbers. */
static mr_net *by_hand(void)
{
    mr_net *net = dense_to(MRT_SOFT);
    const mr_point last = mr_net_here(net);
    mr_net_field(net, &(mr_field_input){.name = "soft", .c = MRT_SOFT});
    const mr_point soft = mr_net_here(net);
    mr_net_from(net, last);
    mr_net_loss_pair(net, MR_PAIR_SQUARES, soft, 1.0f / MRT_SOFT);
    return net;
}

static mr_metrics trained(mrt_rig *rig, uint32_t steps)
{
    mr_error err = MR_ERROR_INIT;
    mr_metrics sums;
    for (uint32_t at = 0; at < steps; at++)
        mrt_train(rig, at, at * BATCH, at ? BATCH : BATCH - 5); /* a tail */
    MRT_OK(mr_trainer_metrics(rig->t, &sums, NULL, &err), &err);
    return sums;
}

static mrt_hash bits_of(const mrt_rig_options *options, mr_metrics *sums)
{
    mrt_rig rig;
    mrt_rig_options o = *options;
    o.batch = BATCH, o.seed = 4, o.update = MR_UPDATE_ADAM, o.deterministic = true;
    mrt_rig_open(&rig, &o);
    const mr_metrics m = trained(&rig, STEPS);
    const mrt_hash hash = mrt_hash_of(&rig, rig.count - 1);
    if (sums) *sums = m;
    mrt_rig_close(&rig);
    return hash;
}

static void test_targets_are_a_field_and_a_mean(void **state)
{
    (void)state;
    mr_metrics a, b;
    const mrt_hash one = bits_of(&(mrt_rig_options){.net = tells_squares, .devices = devices(1)}, &a);
    MRT_TRUE(mrt_same(one, bits_of(&(mrt_rig_options){.net = by_hand, .devices = devices(1)}, &b)));
    MRT_TRUE(a.loss_sum == b.loss_sum && a.count == b.count && a.count == STEPS * BATCH - 5);
    MRT_TRUE(a.correct == 0 && a.bad == 0);
    bits_of(&(mrt_rig_options){.net = tells_labels, .devices = devices(1)}, &a);
    MRT_TRUE(a.correct > a.count * MRT_PIXELS / 3 && a.correct < a.count * MRT_PIXELS);
    MRT_TRUE(a.loss_sum / (double)a.count > 0.3 && a.loss_sum / (double)a.count < 1); /* a mean of numbers */
}

static const float weights[MRT_CLASSES] = {0.5f, 3, 0, 1};

/* What parts, and so replicas and processes, must agree on: the sums that they bring. */
static void test_parts_give_the_same_bits_on_any_devices(void **state)
{
    (void)state;
    const uint32_t nets = MRI_ARRAY_COUNT(target_nets);
    if (on_cuda()) return; /* replicas there are compared below */
    for (uint32_t k = 0; k <= nets; k++) {
        mrt_rig_options o = {.net = k < nets ? target_nets[k] : NULL, .devices = "cpu", .parts = 5};
        if (k == nets) o.class_weights = weights, o.label_smoothing = 0.1f, o.mixes = true;
        mr_metrics a, b;
        const mrt_hash one = bits_of(&o, &a);
        o.devices = "cpu:3";
        if (!mrt_same(one, bits_of(&o, &b))) fail_msg("network %u: other bits on other devices", k);
        MRT_TRUE(a.loss_sum == b.loss_sum && a.correct == b.correct && a.count == b.count);
    }
}

static void test_any_replicas_learn_the_same(void **state)
{
    (void)state;
    static float one[4096], other[4096];
    const uint32_t nets = MRI_ARRAY_COUNT(target_nets);
    for (uint32_t k = 0; k <= nets; k++) {
        double sums[2];
        uint64_t count = 0;
        for (int several = 0; several < 2; several++) {
            mr_error err = MR_ERROR_INIT;
            mrt_rig rig;
            mrt_rig_options o = {
                .net = k < nets ? target_nets[k] : NULL, .batch = BATCH, .seed = 6, .lr = 0.1f};
            o.devices = devices(several ? 3 : 1);
            if (k == nets) o.class_weights = weights;
            mrt_rig_open(&rig, &o);
            sums[several] = trained(&rig, STEPS).loss_sum;
            count = rig.t->tensors.desc[0].count;
            MRT_TRUE(count <= MRI_ARRAY_COUNT(one));
            MRT_OK(mri_tensor_export(&rig.t->tensors, &rig.t->team.replicas[0], 0, false,
                                     several ? other : one, &err),
                   &err);
            mrt_rig_close(&rig);
        }
        MRT_TRUE(fabs(sums[0] - sums[1]) <= 1e-5 * sums[0]);
        for (uint64_t i = 0; i < count; i++) MRT_TRUE(fabsf(one[i] - other[i]) <= 1e-5f);
    }
}

/* ---- weights of classes ---- */

static mr_net *tells_classes(void) { return dense_to(MRT_CLASSES); }

/* The sum of a batch that changes nothing; *alike: of its evaluation. */
static double sum_with(const float *class_weights, double *alike)
{
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mr_metrics training, evaluation;
    mrt_batch b;
    mrt_rig_open(&rig, &(mrt_rig_options){.net = tells_classes,
                                          .devices = devices(1),
                                          .batch = BATCH,
                                          .seed = 3,
                                          .lr = 1e-30f,
                                          .class_weights = class_weights});
    mrt_batch_make(&b, &rig, 0, 0, BATCH, NULL, 0);
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_OK(mr_trainer_forward(rig.t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig.t, &training, &evaluation, &err), &err);
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
    if (alike) *alike = evaluation.loss_sum;
    return training.loss_sum;
}

/* Each class by itself, then all: the loss is made of theirs, and evaluation knows no weights. */
static void test_classes_weigh(void **state)
{
    (void)state;
    double alike, sum = 0, weighed = 0;
    const double plain = sum_with(NULL, &alike);
    MRT_TRUE(fabs(plain - alike) <= 1e-9 * plain);
    for (uint32_t c = 0; c < MRT_CLASSES; c++) {
        float only[MRT_CLASSES] = {0};
        double evaluated;
        only[c] = 1;
        const double part = sum_with(only, &evaluated);
        MRT_TRUE(part > 0 && evaluated == alike);
        sum += part;
        weighed += (double)weights[c] * part;
    }
    MRT_TRUE(fabs(sum - plain) <= 1e-6 * plain);
    MRT_TRUE(fabs(weighed - sum_with(weights, NULL)) <= 1e-6 * weighed);
}

/* ---- checkpoints ---- */

static const mr_checkpoint_info begun = {.batch = BATCH, .best_val_loss = INFINITY};

static mr_net *tells_outputs(void)
{
    mr_net *net = dense_to(MRT_SOFT);
    mr_net_targets(net, MR_TARGET_SQUARES, NULL);
    return net;
}

static void test_a_checkpoint_remembers_targets(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info found;
    const char *path = mrt_path("targets.mrck");
    float *none;
    uint32_t count;
    mrt_rig whole, first, second;
    mrt_rig_options o = {.net = tells_squares, .batch = BATCH, .seed = 2, .devices = devices(1)};
    mrt_rig_open(&whole, &o);
    trained(&whole, 2);
    mrt_rig_open(&first, &o);
    trained(&first, 1);
    MRT_OK(mr_trainer_save(first.t, path, &begun, &err), &err);
    MRT_OK(mr_checkpoint_find(path, NULL, 0, &found, NULL, 0, &err), &err);
    MRT_TRUE(found.target_loss == MR_TARGET_SQUARES && found.classes == MRT_SOFT);
    MRT_STR(found.targets, "soft");
    MRT_OK(mr_checkpoint_class_weights(path, &none, &count, &err), &err);
    MRT_TRUE(!none && count == 0);
    mrt_rig_open(&second, &o);
    MRT_OK(mr_trainer_load(second.t, path, &found, &err), &err);
    mrt_train(&second, 1, BATCH, BATCH);
    MRT_TRUE(mrt_same(mrt_hash_of(&whole, 0), mrt_hash_of(&second, 0)));
    mrt_rig_close(&whole), mrt_rig_close(&first), mrt_rig_close(&second);

    o.net = tells_huber; /* another run */
    mrt_rig_open(&second, &o);
    MRT_EQ(mr_trainer_load(second.t, path, &found, &err), MR_EINVAL);
    MRT_HAS(err.text, "targets in field \"soft\"");
    mrt_rig_close(&second);
    o.net = tells_outputs, o.inference = true; /* of data without the field */
    mrt_rig_open(&second, &o);
    MRT_OK(mr_trainer_load(second.t, path, &found, &err), &err);
    mrt_rig_close(&second);
}

static void test_a_checkpoint_remembers_weights(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info found;
    const char *path = mrt_path("weights.mrck");
    float *kept;
    uint32_t count;
    mr_snapshot *s;
    mrt_rig rig;
    mrt_rig_open(&rig,
                 &(mrt_rig_options){.net = tells_classes, .class_weights = weights, .devices = devices(1)});
    MRT_OK(mr_trainer_save(rig.t, path, &begun, &err), &err);
    MRT_OK(mr_checkpoint_class_weights(path, &kept, &count, &err), &err);
    MRT_TRUE(count == MRT_CLASSES && memcmp(kept, weights, sizeof weights) == 0);
    free(kept);
    MRT_OK(mr_trainer_load(rig.t, path, &found, &err), &err);
    MRT_TRUE(found.class_weight_count == MRT_CLASSES && !found.class_weights && !found.targets[0]);
    MRT_EQ(mr_snapshot_create(&s), MR_OK);
    for (int turn = 0; turn < 3; turn++) {
        mr_checkpoint_info info = begun;
        info.struct_size = sizeof info;
        MRT_OK(mr_trainer_snapshot(rig.t, s, &info, &err), &err);
        MRT_TRUE(mr_snapshot_info(s, &found) && found.class_weight_count == MRT_CLASSES);
        MRT_TRUE(memcmp(found.class_weights, weights, sizeof weights) == 0);
    }
    mr_snapshot_destroy(s);
    mrt_rig_close(&rig);
}

/* ---- mistakes ---- */

static void refused(mr_net *net, const char *what)
{
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_net_check(net, &err), MR_EINVAL);
    MRT_HAS(err.text, what);
    mr_net_destroy(net);
}

static void test_mistakes_of_networks(void **state)
{
    (void)state;
    mr_net *net = dense_to(3);
    mr_net_targets(net, MR_TARGET_NONE, "a");
    refused(net, "unknown loss against targets");
    net = dense_to(3);
    mr_net_targets(net, (mr_target_loss)MR_TARGET_COUNT, "a");
    refused(net, "unknown loss against targets");
    net = dense_to(3);
    mr_net_targets(net, MR_TARGET_HUBER, "a");
    mr_net_targets(net, MR_TARGET_HUBER, "b");
    refused(net, "compared with targets already");
    net = dense_to(3);
    mr_net_loss_labels(net, 1);
    mr_net_targets(net, MR_TARGET_LABELS, "a");
    refused(net, "it has losses of its own");
    MRT_EQ(mr_net_create(&net, "empty", 8, 8, 1), MR_OK);
    mr_net_targets(net, MR_TARGET_LABELS, "a");
    refused(net, "there is no output yet");
    net = dense_to(3);
    mr_net_activation(net, MR_ACT_RELU);
    mr_net_targets(net, MR_TARGET_LABELS, "a");
    refused(net, "bare logits are needed");
}

static void test_it_is_described(void **state)
{
    (void)state;
    mr_point point;
    mr_net *net = tells_squares();
    MRT_TRUE(mr_net_target_count(net) == MRT_SOFT && mr_net_target_loss(net) == MR_TARGET_SQUARES);
    MRT_TRUE(mr_net_class_count(net) == 0 && !mr_net_logits(net, &point));
    MRT_TRUE(mr_net_outputs(net, &point) && point == 2);
    mr_net_destroy(net);
    net = tells_outputs();
    MRT_TRUE(mr_net_target_count(net) == MRT_SOFT && mr_net_class_count(net) == 0);
    MRT_TRUE(mr_net_outputs(net, &point) && point == 2);
    mr_net_destroy(net);
    net = tells_classes();
    MRT_TRUE(mr_net_target_count(net) == 0 && mr_net_target_loss(net) == MR_TARGET_NONE);
    MRT_TRUE(mr_net_outputs(net, &point) && point == 2);
    mr_net_destroy(net);
}

static void test_mistakes_of_trainers(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    static const struct {
        float of[MRT_CLASSES];
        const char *what;
    } wrong[] = {{{1, -1, 1, 1}, "that of class 1 is -1"},
                 {{1, 1, NAN, 1}, "that of class 2 is nan"},
                 {{1, 1, 1, INFINITY}, "that of class 3 is inf"},
                 {{0}, "nothing would be trained"}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(wrong); k++) {
        MRT_EQ(
            mrt_rig_try(&rig, &(mrt_rig_options){.net = tells_classes, .class_weights = wrong[k].of}, &err),
            MR_EINVAL);
        MRT_HAS(err.text, wrong[k].what);
    }
    MRT_EQ(mrt_rig_try(&rig, &(mrt_rig_options){.net = tells_squares, .class_weights = weights}, &err),
           MR_EINVAL);
    MRT_HAS(err.text, "has no classes");
    MRT_EQ(mrt_rig_try(&rig, &(mrt_rig_options){.net = tells_outputs}, &err), MR_EINVAL);
    MRT_HAS(err.text, "ends in outputs without targets");
}

static mr_net *of_more_classes(void) { return dense_to(MRT_CLASSES + 1); }

static void test_a_wrong_number_of_weights(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    MRT_EQ(mrt_rig_try(&rig, &(mrt_rig_options){.net = of_more_classes, .class_weights = weights}, &err),
           MR_EINVAL);
    MRT_HAS(err.text, "expected 5, one for each class of network net, found 4");
}

/* A processor says where it met it, a GPU counts it. */
static void test_targets_that_are_none_end_the_run(void **state)
{
    (void)state;
    for (int labels = 0; labels < 2; labels++) {
        mr_error err = MR_ERROR_INIT;
        mrt_rig rig;
        mrt_batch b;
        mr_metrics sums;
        const double soft = (double)NAN;
        const float share = 1.5f;
        mrt_rig_open(&rig, &(mrt_rig_options){.net = labels ? tells_labels : tells_squares,
                                              .batch = BATCH,
                                              .devices = devices(1)});
        mrt_batch_make(&b, &rig, 0, 0, BATCH, NULL, 0);
        const mr_batch_field *f = &b.parts[0].field[labels ? MRT_FLOATS : MRT_SOFTS];
        char *at = (char *)b.memory[0] + ((const char *)f->data - (const char *)b.memory[0]);
        at += labels ? 2 * MRT_PIXELS * sizeof(float) : 2 * MRT_SOFT * sizeof(double);
        mr_stream *s = mr_trainer_streams(rig.t)[0];
        const size_t bytes = labels ? sizeof share : sizeof soft;
        MRT_OK(mr_copy_h2d_async(s, at, labels ? (const void *)&share : &soft, bytes), NULL);
        MRT_OK(mr_stream_sync(s, &err), &err);
        int rc = mr_trainer_step(rig.t, &b.b, &err);
        if (rc == MR_OK) rc = mr_trainer_metrics(rig.t, &sums, NULL, &err);
        MRT_EQ(rc, MR_EINVAL);
        MRT_HAS(err.text, on_cuda() ? "1 samples of the training data have invalid targets"
                                    : "sample 2 of the batch has a target of");
        MRT_HAS(err.text, labels ? "0 to 1" : "finite numbers");
        mrt_batch_drop(&b, &rig);
        mrt_rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets_are_a_field_and_a_mean),
        cmocka_unit_test(test_parts_give_the_same_bits_on_any_devices),
        cmocka_unit_test(test_any_replicas_learn_the_same),
        cmocka_unit_test(test_classes_weigh),
        cmocka_unit_test(test_a_checkpoint_remembers_targets),
        cmocka_unit_test(test_a_checkpoint_remembers_weights),
        cmocka_unit_test(test_mistakes_of_networks),
        cmocka_unit_test(test_it_is_described),
        cmocka_unit_test(test_mistakes_of_trainers),
        cmocka_unit_test(test_a_wrong_number_of_weights),
        cmocka_unit_test(test_targets_that_are_none_end_the_run),
    };
    return mrt_run(tests);
}
