/* Networks that take fields besides pictures, or instead of them: they train like networks that take the same
 * values as pictures, numbers or labels; one batch gives the same gradients on any replicas, its shares the
 * same bits on any devices; a stopped run resumes with the same bits; mismatches are refused with their
 * name. */
#include <math.h>
#include <string.h>

#include "tests/train/rig.h"

enum { BATCH = 28, STEPS = 5 };

static mr_net *dense_on(mr_net *net)
{
    mr_net_dense(net, 16, MR_ACT_TANH);
    mr_net_dropout(net, 0.25f);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

static mr_net *of_pictures(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "pictures", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    return dense_on(net);
}

/* No pictures: the field holds what their operation makes of them. The field is layer 0, so dropout would
 * draw otherwise; a layer that does nothing is put in front of the other network. */
static mr_net *of_floats(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create_bare(&net, "floats"), MR_OK);
    mr_net_field(net, &(mr_field_input){.name = "floats", .h = MRT_SIDE, .w = MRT_SIDE});
    return dense_on(net);
}

static mr_net *of_reshaped_pictures(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "pictures", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_reshape(net, MRT_SIDE, MRT_SIDE, 1);
    return dense_on(net);
}

static mr_net *labels_told(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "labels", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

static mrt_hash trained(const mrt_rig_options *o)
{
    mrt_rig rig;
    mrt_rig_open(&rig, o);
    for (uint64_t at = 0; at < STEPS; at++) mrt_train(&rig, at, (uint32_t)at * BATCH, BATCH);
    const mrt_hash hash = mrt_hash_of(&rig, rig.count - 1);
    mrt_rig_close(&rig);
    return hash;
}

static void test_fields_train_like_pictures_of_them(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:3"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(devices); k++)
        for (int reference = 0; reference < 2; reference++) {
            mrt_rig_options o = {.devices = devices[k],
                                 .reference = reference,
                                 .batch = BATCH,
                                 .seed = 3,
                                 .update = MR_UPDATE_ADAM,
                                 .net = of_floats};
            const mrt_hash fields = trained(&o);
            MRT_TRUE(mrt_same(fields, trained(&o)));
            o.net = of_reshaped_pictures;
            MRT_TRUE(mrt_same(fields, trained(&o)));
            o.net = of_pictures;
            MRT_TRUE(!mrt_same(fields, trained(&o))); /* other draws: the comparison distinguishes networks */
        }
}

/* ---- gradients of one step, which moves nothing ---- */

typedef struct gradients {
    float v[8192];
    size_t count;
    double loss;
} gradients;

static void gradients_of(const mrt_rig_options *options, gradients *out)
{
    mrt_rig rig;
    mr_metrics sums;
    mr_error err = MR_ERROR_INIT;
    mrt_rig_options o = *options;
    o.batch = BATCH, o.seed = 3, o.lr = 1e-30f;
    mrt_rig_open(&rig, &o);
    mrt_train(&rig, 1, 5, BATCH);
    MRT_OK(mr_trainer_metrics(rig.t, &sums, NULL, &err), &err);
    out->loss = sums.loss_sum / (double)sums.count;
    out->count = 0;
    for (uint32_t i = 0; i < rig.t->tensors.count; i++) {
        if (rig.t->tensors.desc[i].role != MRI_ROLE_WEIGHTS) continue;
        MRT_TRUE(out->count + rig.t->tensors.desc[i].count <= MRI_ARRAY_COUNT(out->v));
        MRT_OK(mri_tensor_export(&rig.t->tensors, &rig.t->team.replicas[rig.count - 1], i, true,
                                 out->v + out->count, &err),
               &err);
        out->count += rig.t->tensors.desc[i].count;
    }
    mrt_rig_close(&rig);
}

static double apart(const gradients *a, const gradients *b)
{
    double most = 0, off = fabs(a->loss - b->loss);
    MRT_EQ(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const double d = fabs((double)a->v[i] - (double)b->v[i]);
        most = fmax(most, fabs((double)a->v[i]));
        if (!(d <= off)) off = d;
    }
    MRT_TRUE(most > 0);
    return off / most;
}

static mr_net *kinds_told(void)
{
    mr_net *net = NULL;
    MRT_EQ(mr_net_create(&net, "kinds", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_field(net, &(mr_field_input){.name = "kind", .values = MRT_KINDS});
    const mr_point kind = mr_net_here(net);
    mr_net_from(net, 0);
    mr_net_dense(net, MRT_KINDS, MR_ACT_NONE);
    mr_net_loss_pair(net, MR_PAIR_CLASSES, kind, 1);
    return net;
}

/* Softmax against a field of one-hot rows is the loss against labels: worked out here from the weights that
 * both begin with. */
static void test_classes_of_a_field_are_labels(void **state)
{
    (void)state;
    mrt_rig rig;
    mrt_batch b;
    mr_metrics sums;
    mr_error err = MR_ERROR_INIT;
    static float weights[MRT_KINDS * MRT_PIXELS];
    mrt_rig_open(&rig, &(mrt_rig_options){.net = kinds_told, .batch = BATCH, .seed = 2, .lr = 1e-30f});
    MRT_OK(mri_tensor_export(&rig.t->tensors, &rig.t->team.replicas[0], 0, false, weights, &err), &err);
    mrt_batch_make(&b, &rig, 0, 0, BATCH, NULL, 0);
    double loss = 0;
    uint32_t reported = 0;
    for (uint32_t i = 0; i < BATCH; i++) {
        const float *x = (const float *)b.parts[0].field[MRT_FLOATS].data + i * MRT_PIXELS;
        const int64_t kind = ((const int64_t *)b.parts[0].field[MRT_KIND].data)[i];
        double sum = 0, logit[MRT_KINDS] = {0};
        for (uint32_t k = 0; k < MRT_KINDS; k++) {
            for (uint32_t p = 0; p < MRT_PIXELS; p++)
                logit[k] += (double)x[p] * (double)weights[k * MRT_PIXELS + p];
            sum += exp(logit[k]);
        }
        if (kind < 0 || kind >= MRT_KINDS) continue; /* a row of zeros adds nothing */
        reported++;
        loss += log(sum) - logit[kind];
    }
    MRT_TRUE(reported > 0 && reported < BATCH);
    MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig.t, &sums, NULL, &err), &err);
    MRT_EQ(sums.count, BATCH);
    if (!(fabs(sums.loss_sum - loss) <= 1e-5 * loss)) fail_msg("loss %g, expected %g", sums.loss_sum, loss);
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
}

static void test_gradients_do_not_depend_on_replicas(void **state)
{
    (void)state;
    static gradients one, other;
    gradients_of(&(mrt_rig_options){.net = mrt_net_fields}, &one);
    gradients_of(&(mrt_rig_options){.net = mrt_net_fields, .reference = true}, &other);
    MRT_TRUE(apart(&one, &other) <= 2e-5);
    for (uint32_t replicas = 2; replicas <= 7; replicas++) {
        char devices[16];
        snprintf(devices, sizeof devices, "cpu:%u", replicas);
        gradients_of(&(mrt_rig_options){.net = mrt_net_fields, .devices = devices}, &other);
        if (!(apart(&one, &other) <= 2e-5)) fail_msg("%s: %g", devices, apart(&one, &other));
    }
}

static void test_parts_give_the_same_bits_on_any_devices(void **state)
{
    (void)state;
    mrt_rig_options o = {.net = mrt_net_fields,
                         .devices = "cpu",
                         .parts = 7,
                         .batch = BATCH,
                         .seed = 3,
                         .update = MR_UPDATE_ADAM};
    const mrt_hash one = trained(&o);
    static const char *const devices[] = {"cpu:2", "cpu:3", "cpu:7"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(devices); k++) {
        o.devices = devices[k];
        MRT_TRUE(mrt_same(one, trained(&o)));
    }
}

static void test_a_resumed_run_has_the_same_bits(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig whole, first, second;
    const mrt_rig_options o = {.batch = BATCH, .seed = 5, .net = mrt_net_fields, .update = MR_UPDATE_NADAM};
    mr_checkpoint_info info = {.batch = BATCH};
    mrt_rig_open(&whole, &o);
    mrt_rig_open(&first, &o);
    mrt_rig_open(&second, &o);
    for (uint64_t at = 0; at < STEPS; at++) {
        mrt_train(&whole, at, (uint32_t)at * BATCH, BATCH);
        if (at == STEPS / 2) {
            MRT_OK(mr_trainer_save(first.t, mrt_path("fields.mrck"), &info, &err), &err);
            MRT_OK(mr_trainer_load(second.t, mrt_path("fields.mrck"), &info, &err), &err);
        }
        mrt_train(at < STEPS / 2 ? &first : &second, at, (uint32_t)at * BATCH, BATCH);
    }
    MRT_TRUE(mrt_same(mrt_hash_of(&whole, 0), mrt_hash_of(&second, 0)));
    MRT_TRUE(!mrt_same(mrt_hash_of(&whole, 0), mrt_hash_of(&first, 0)));
    mrt_rig_close(&whole);
    mrt_rig_close(&first);
    mrt_rig_close(&second);
}

/* ---- tables ---- */

static mr_net *looks_up_and_takes(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create_bare(&net, "both"), MR_OK);
    mr_net_field(net, &(mr_field_input){.name = "kind", .values = MRT_KINDS});
    const mr_point kind = mr_net_here(net);
    mr_net_embedding(net, 6);
    const mr_point found = mr_net_here(net);
    mr_net_from(net, kind);
    mr_net_dense(net, 6, MR_ACT_TANH);
    mr_net_concat(net, &found, 1);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

static mr_net *looks_up(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create_bare(&net, "table"), MR_OK);
    mr_net_field(net, &(mr_field_input){.name = "kind", .values = MRT_KINDS});
    mr_net_embedding(net, 6);
    mr_net_layer_norm(net, 1e-3f);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

/* Rows with a single 1 are made for those alone who take them. */
static void test_numbers_are_looked_up(void **state)
{
    (void)state;
    static mr_net *(*const nets[])(void) = {looks_up, looks_up_and_takes};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(nets); i++) {
        mrt_rig rig;
        mrt_rig_open(&rig, &(mrt_rig_options){.net = nets[i], .batch = BATCH});
        const mri_nodes *nodes = &rig.t->team.replicas[0].nodes;
        MRT_EQ(nodes->node[0].kind, i == 0 ? MR_OP_EMBEDDING : MR_OP_ONE_HOT);
        mrt_rig_close(&rig);
        mrt_rig_options o = {.net = nets[i], .batch = BATCH, .seed = 3, .parts = 3, .update = MR_UPDATE_ADAM};
        const mrt_hash one = trained(&o);
        o.devices = "cpu:3";
        MRT_TRUE(mrt_same(one, trained(&o)));
    }
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "pictures", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_embedding(net, 6);
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_net_check(net, &err), MR_EINVAL);
    MRT_HAS(err.text, "it takes whole numbers");
    mr_net_destroy(net);
}

/* ---- mistakes ---- */

static void refused(mr_net *net, const char *what)
{
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_net_check(net, &err), MR_EINVAL);
    MRT_HAS(err.text, what);
    mr_net_destroy(net);
}

static mr_net *begun(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "wrong", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    return net;
}

static void test_mistakes_of_networks(void **state)
{
    (void)state;
    mr_net *net = begun();
    mr_net_field(net, &(mr_field_input){.c = 3});
    refused(net, "a name of 1 to 63 bytes is needed");
    net = begun();
    mr_net_field(net, &(mr_field_input){.name = "a", .c = 3});
    mr_net_field(net, &(mr_field_input){.name = "a", .c = 3});
    refused(net, "it takes this field already");
    net = begun();
    for (int i = 0; i < MR_LOADER_MAX_FIELDS + 1; i++) {
        const char name[] = {(char)('a' + i), 0};
        mr_net_field(net, &(mr_field_input){.name = name});
    }
    refused(net, "four fields at most");
    net = begun();
    mr_net_field(net, &(mr_field_input){.name = "a", .std = NAN});
    refused(net, "mean and std must be finite");
    net = begun();
    mr_net_field(net, &(mr_field_input){.name = "a", .values = 4, .c = 2});
    refused(net, "c must be 1");
    net = begun();
    mr_net_field(net, &(mr_field_input){.name = "a", .h = 1u << 30, .w = 1u << 30});
    refused(net, "its output is too large");
    net = begun();
    mr_net_field(net, &(mr_field_input){.name = "a"});
    mr_net_dense(net, 2, MR_ACT_NONE);
    refused(net, "nothing takes its input");
    MRT_EQ(mr_net_create_bare(&net, "bare"), MR_OK);
    mr_net_dense(net, 2, MR_ACT_NONE);
    refused(net, "a network without an input of its own begins with a field");
    MRT_EQ(mr_net_create_bare(&net, "bare"), MR_OK);
    mr_net_field(net, &(mr_field_input){.name = "a"});
    mr_net_from(net, 0);
    refused(net, "there is no point 0");
}

static mr_net *field_wanted(const char *name, uint32_t c)
{
    mr_net *net;
    MRT_EQ(mr_net_create_bare(&net, "wanting"), MR_OK);
    mr_net_field(net, &(mr_field_input){.name = name, .c = c});
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

static mr_net *of_nobody(void) { return field_wanted("nobody", 1); }
static mr_net *of_too_many(void) { return field_wanted("soft", MRT_SOFT + 1); }

static mr_net *of_whole_ones(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create_bare(&net, "wanting"), MR_OK);
    mr_net_field(net, &(mr_field_input){.name = "soft", .w = MRT_SOFT, .values = 3});
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

static void test_fields_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    mrt_rig rig;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mrt_rig_try(&rig, &(mrt_rig_options){.net = of_nobody}, &err), MR_EINVAL);
    MRT_HAS(err.text, "takes a field nobody, and the batches have no field of that name (3 fields)");
    MRT_EQ(mrt_rig_try(&rig, &(mrt_rig_options){.net = of_too_many}, &err), MR_EINVAL);
    MRT_HAS(err.text, "takes 7 numbers of field soft, a sample has 6");
    MRT_EQ(mrt_rig_try(&rig, &(mrt_rig_options){.net = of_whole_ones}, &err), MR_EINVAL);
    MRT_HAS(err.text, "takes whole numbers of field soft, which holds f64");
    mrt_batch b;
    mrt_rig_open(&rig, &(mrt_rig_options){.net = of_floats, .batch = BATCH});
    mrt_batch_make(&b, &rig, 0, 0, BATCH, NULL, 0);
    b.parts[0].field[MRT_FLOATS].data = NULL;
    MRT_EQ(mr_trainer_step(rig.t, &b.b, &err), MR_EINVAL);
    MRT_HAS(err.text, "has no field floats, network floats takes it");
    mrt_batch_free(&b, &rig);
    mrt_rig_close(&rig);
}

/* ---- its description ---- */

static void test_it_is_described(void **state)
{
    (void)state;
    mr_layer_row row;
    uint32_t h, w, c;
    mr_net *net = mrt_net_fields();
    MRT_TRUE(mr_net_layer(net, 2, &row) && row.is_input && !row.takes_two);
    MRT_TRUE(strcmp(row.name, "field floats") == 0 && strcmp(row.output, "8x8x1") == 0);
    MRT_TRUE(mr_net_layer(net, 6, &row) && row.is_input && strcmp(row.name, "one_hot kind") == 0);
    MRT_TRUE(mr_net_layer(net, 9, &row) && strncmp(row.name, "classes 6", 9) == 0);
    MRT_TRUE(mr_net_layer(net, 3, &row) && !row.is_input && row.in == 3);
    mr_net_destroy(net);
    net = of_floats();
    MRT_TRUE(!mr_net_shape(net, 0, &h, &w, &c));
    MRT_TRUE(mr_net_shape(net, 1, &h, &w, &c) && h == MRT_SIDE && c == 1);
    mr_net_destroy(net);
    net = labels_told();
    MRT_TRUE(mr_net_layer(net, 0, &row) && !row.is_input && row.in == 0);
    mr_net_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_train_like_pictures_of_them),
        cmocka_unit_test(test_classes_of_a_field_are_labels),
        cmocka_unit_test(test_gradients_do_not_depend_on_replicas),
        cmocka_unit_test(test_parts_give_the_same_bits_on_any_devices),
        cmocka_unit_test(test_a_resumed_run_has_the_same_bits),
        cmocka_unit_test(test_numbers_are_looked_up),
        cmocka_unit_test(test_mistakes_of_networks),
        cmocka_unit_test(test_fields_that_do_not_fit_are_refused),
        cmocka_unit_test(test_it_is_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
