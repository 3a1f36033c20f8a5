/* Networks of numbers: the same training as of pictures that show the numbers as rows with a single bright
 * pixel, dense and recurrent ones. Recurrent networks: one step on any replicas, a batch in parts on any
 * devices, stopped and resumed, their memory planned. */
#include <math.h>
#include <string.h>

#include "tests/train/rig.h"

enum { LENGTH = 6, VALUES = 4, COUNT = 24, STEPS = 4, MOST_PARTS = 7 };

static mr_net *dense_on(mr_net *net)
{
    mr_net_dense(net, 16, MR_ACT_RELU);
    mr_net_dropout(net, 0.25f);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

static mr_net *net_of_numbers(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create_numbers(&net, "numbers", LENGTH, VALUES), MR_OK);
    return dense_on(net);
}

static mr_net *net_of_pictures(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "pictures", LENGTH, VALUES, 1), MR_OK);
    return dense_on(net);
}

static mr_net *recurrent_on(mr_net *net)
{
    mr_net_gru(net, 9, true);
    mr_net_lstm(net, 7, true);
    mr_net_dropout(net, 0.25f);
    mr_net_gru(net, 5, false);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

/* Looked up: the first layer takes the numbers. */
static mr_net *recurrent_of_numbers(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create_numbers(&net, "numbers", LENGTH, VALUES), MR_OK);
    return recurrent_on(net);
}

static mr_net *recurrent_of_pictures(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "pictures", 1, LENGTH, VALUES), MR_OK);
    return recurrent_on(net);
}

static mr_net *two_on(mr_net *net)
{
    const mr_point in = mr_net_here(net);
    mr_net_lstm(net, 6, true);
    const mr_point first = mr_net_here(net);
    mr_net_from(net, in);
    mr_net_gru(net, 6, true);
    mr_net_add(net, first, MR_ACT_NONE);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

/* Two layers take the numbers, so there are rows of them. */
static mr_net *two_on_numbers(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create_numbers(&net, "numbers", LENGTH, VALUES), MR_OK);
    return two_on(net);
}

static mr_net *two_on_pictures(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "pictures", 1, LENGTH, VALUES), MR_OK);
    return two_on(net);
}

/* -1 is padding, VALUES is a number the network does not know. */
static int32_t number_of(uint32_t sample, uint32_t at)
{
    return (int32_t)(mri_mix64(sample * LENGTH + at + 1) % (VALUES + 2)) - 1;
}

static void fill(uint32_t first, uint32_t count, int32_t *numbers, uint8_t *pixels, int32_t *labels)
{
    memset(pixels, 0, (size_t)count * LENGTH * VALUES);
    for (uint32_t i = 0; i < count; i++) {
        labels[i] = (int32_t)((first + i) % MRT_CLASSES);
        for (uint32_t k = 0; k < LENGTH; k++) {
            const int32_t v = numbers[i * LENGTH + k] = number_of(first + i, k);
            if (v >= 0 && v < VALUES) pixels[((size_t)i * LENGTH + k) * VALUES + (size_t)v] = 255;
        }
    }
}

static void *on_device(mr_device *dev, const void *host, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    mr_stream *s;
    void *out;
    MRT_OK(mr_stream_create(&s, dev, MR_STREAM_COPY, &err), &err);
    MRT_OK(mr_device_alloc(dev, bytes, &out, &err), &err);
    MRT_EQ(mr_copy_h2d_async(s, out, host, bytes), MR_OK);
    MRT_OK(mr_stream_sync(s, &err), &err);
    mr_stream_destroy(s);
    return out;
}

/* A step on `count` samples; of numbers with `width` of them a row, of pictures with width 0. What the
 * trainer says. */
static int step(mrt_rig *rig, uint64_t at, uint32_t width, mr_error *err)
{
    int32_t numbers[COUNT * LENGTH], labels[COUNT];
    uint8_t pixels[COUNT * LENGTH * VALUES];
    mr_part parts[MOST_PARTS];
    void *data[MOST_PARTS] = {NULL}, *classes[MOST_PARTS] = {NULL};
    mr_error later = MR_ERROR_INIT;
    const uint32_t count = rig->parts.all;
    fill((uint32_t)at * COUNT, COUNT, numbers, pixels, labels);
    for (uint32_t r = 0, d = 0, of = 0; r < count; r++) {
        const uint32_t first = COUNT * r / count, n = COUNT * (r + 1) / count - first;
        if (r == of + rig->parts.of_device[d]) of += rig->parts.of_device[d++];
        mr_device *dev = rig->devices[d];
        const void *from = width ? (const void *)(numbers + first * LENGTH)
                                 : (const void *)(pixels + (size_t)first * LENGTH * VALUES);
        data[r] = on_device(dev, from, width ? n * LENGTH * sizeof *numbers : (size_t)n * LENGTH * VALUES);
        classes[r] = on_device(dev, labels + first, n * sizeof *labels);
        parts[r] = (mr_part){.first = first,
                             .count = n,
                             .pixels = width ? NULL : data[r],
                             .labels = classes[r],
                             .field = {{.data = width ? data[r] : NULL, .width = width}}};
    }
    const mr_batch b = {
        .step = at, .global_step = at, .count = COUNT, .counted = COUNT, .part_count = count, .parts = parts};
    const int rc = mr_trainer_step(rig->t, &b, err);
    mr_trainer_metrics(rig->t, NULL, NULL, &later);
    for (uint32_t r = 0; r < count; r++) { /* the processor's memory is one */
        mr_device_free(rig->devices[0], data[r]);
        mr_device_free(rig->devices[0], classes[r]);
    }
    return rc;
}

static mrt_hash trained(const char *devices, bool reference, mr_net *(*net)(void), uint32_t width)
{
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = devices,
                                          .reference = reference,
                                          .batch = COUNT,
                                          .seed = 3,
                                          .net = net,
                                          .update = MR_UPDATE_ADAM});
    for (uint64_t at = 0; at < STEPS; at++) {
        mr_error err = MR_ERROR_INIT;
        MRT_OK(step(&rig, at, width, &err), &err);
    }
    const mrt_hash hash = mrt_hash_of(&rig, rig.count - 1);
    mrt_rig_close(&rig);
    return hash;
}

typedef struct pair {
    mr_net *(*numbers)(void), *(*pictures)(void);
} pair;

static void check_pair(const pair *p)
{
    static const char *const devices[] = {"cpu", "cpu:3"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(devices); k++)
        for (int reference = 0; reference < 2; reference++) {
            const mrt_hash numbers = trained(devices[k], reference, p->numbers, LENGTH);
            MRT_TRUE(mrt_same(numbers, trained(devices[k], reference, p->pictures, 0)));
            MRT_TRUE(mrt_same(numbers, trained(devices[k], reference, p->numbers, LENGTH)));
        }
}

static void test_numbers_train_like_pictures_of_them(void **state)
{
    (void)state;
    check_pair(&(pair){net_of_numbers, net_of_pictures});
}

static void test_numbers_are_looked_up_like_pictures_of_them(void **state)
{
    (void)state;
    check_pair(&(pair){recurrent_of_numbers, recurrent_of_pictures});
    check_pair(&(pair){two_on_numbers, two_on_pictures});
}

/* The network of numbers alone begins with its own layer. */
static void test_who_takes_the_numbers(void **state)
{
    (void)state;
    static const struct {
        mr_net *(*net)(void);
        mr_op_kind first;
    } cases[] = {{net_of_numbers, MR_OP_ONE_HOT},
                 {recurrent_of_numbers, MR_OP_GRU},
                 {recurrent_of_pictures, MR_OP_INPUT},
                 {two_on_numbers, MR_OP_ONE_HOT}};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        mrt_rig rig;
        mrt_rig_open(&rig, &(mrt_rig_options){.batch = COUNT, .net = cases[i].net});
        MRT_EQ(rig.t->team.replicas[0].nodes.node[0].kind, cases[i].first);
        mrt_rig_close(&rig);
    }
}

/* ---- recurrent networks ---- */

typedef struct gradients {
    float v[4096];
    size_t count;
} gradients;

/* Of one step, which moves nothing. */
static void gradients_of(const char *devices, bool reference, gradients *out)
{
    mrt_rig rig;
    mr_error err = MR_ERROR_INIT;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = devices,
                                          .reference = reference,
                                          .batch = COUNT,
                                          .seed = 3,
                                          .lr = 1e-30f,
                                          .net = recurrent_of_numbers});
    MRT_OK(step(&rig, 1, LENGTH, &err), &err);
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
    double most = 0, off = 0;
    MRT_EQ(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const double d = fabs((double)a->v[i] - (double)b->v[i]);
        most = fmax(most, fabs((double)a->v[i]));
        if (!(d <= off)) off = d;
    }
    MRT_TRUE(most > 0);
    return off / most;
}

static void test_gradients_do_not_depend_on_replicas(void **state)
{
    (void)state;
    static gradients one, other;
    gradients_of("cpu", false, &one);
    gradients_of("cpu", true, &other);
    MRT_TRUE(apart(&one, &other) <= 2e-5);
    for (uint32_t replicas = 2; replicas <= 7; replicas++) {
        char devices[16];
        snprintf(devices, sizeof devices, "cpu:%u", replicas);
        gradients_of(devices, false, &other);
        if (!(apart(&one, &other) <= 2e-5)) fail_msg("%s: %g", devices, apart(&one, &other));
    }
}

static mrt_hash trained_in_parts(const char *devices)
{
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = devices,
                                          .parts = MOST_PARTS,
                                          .batch = COUNT,
                                          .seed = 3,
                                          .net = recurrent_of_numbers,
                                          .update = MR_UPDATE_ADAM});
    for (uint64_t at = 0; at < STEPS; at++) {
        mr_error err = MR_ERROR_INIT;
        MRT_OK(step(&rig, at, LENGTH, &err), &err);
    }
    const mrt_hash hash = mrt_hash_of(&rig, rig.count - 1);
    mrt_rig_close(&rig);
    return hash;
}

static void test_parts_give_the_same_bits_on_any_devices(void **state)
{
    (void)state;
    const mrt_hash one = trained_in_parts("cpu");
    MRT_TRUE(mrt_same(one, trained_in_parts("cpu:2")));
    MRT_TRUE(mrt_same(one, trained_in_parts("cpu:3")));
    MRT_TRUE(mrt_same(one, trained_in_parts("cpu:7")));
}

static void test_a_resumed_run_has_the_same_bits(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig whole, first, second;
    const mrt_rig_options o = {
        .batch = COUNT, .seed = 5, .net = recurrent_of_numbers, .update = MR_UPDATE_ADAM};
    mr_checkpoint_info info = {.batch = COUNT};
    mrt_rig_open(&whole, &o);
    mrt_rig_open(&first, &o);
    mrt_rig_open(&second, &o);
    for (uint64_t at = 0; at < STEPS; at++) {
        MRT_OK(step(&whole, at, LENGTH, &err), &err);
        if (at == STEPS / 2) {
            MRT_OK(mr_trainer_save(first.t, mrt_path("notes.mrck"), &info, &err), &err);
            MRT_OK(mr_trainer_load(second.t, mrt_path("notes.mrck"), &info, &err), &err);
        }
        MRT_OK(step(at < STEPS / 2 ? &first : &second, at, LENGTH, &err), &err);
    }
    MRT_TRUE(mrt_same(mrt_hash_of(&whole, 0), mrt_hash_of(&second, 0)));
    MRT_TRUE(!mrt_same(mrt_hash_of(&whole, 0), mrt_hash_of(&first, 0)));
    mrt_rig_close(&whole);
    mrt_rig_close(&first);
    mrt_rig_close(&second);
}

/* The values that the steps keep are part of the plan, and a batch reported to fit does fit. */
static void test_memory_is_planned(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    mrt_rig_options o = {.batch = COUNT, .net = recurrent_of_numbers};
    mrt_rig_open(&rig, &o);
    const mri_plan *plan = &rig.t->team.replicas[0].plan;
    /* gates, a cell's stored values and the state before, of all layers and steps */
    MRT_TRUE(plan->arena_bytes >= sizeof(float) * COUNT * LENGTH * (9 * 5 + 7 * 6 + 5 * 5));
    o.memory_bytes = plan->memory_bytes - 1;
    mrt_rig_close(&rig);
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_ELIMIT);
    const char *says = strstr(err.text, "global batch of about ");
    MRT_TRUE(says != NULL);
    const int fits = atoi(says + strlen("global batch of about "));
    MRT_TRUE(fits > 0 && fits < COUNT);
    o.batch = (uint32_t)fits;
    mrt_rig_open(&rig, &o);
    mrt_rig_close(&rig);
}

static void test_rows_of_another_width_are_refused(void **state)
{
    (void)state;
    mrt_rig rig;
    mr_error err = MR_ERROR_INIT;
    mrt_rig_open(&rig, &(mrt_rig_options){.batch = COUNT, .net = net_of_numbers});
    MRT_EQ(step(&rig, 0, LENGTH - 1, &err), MR_EINVAL);
    MRT_HAS(err.text, "rows of 5 numbers, network numbers takes 6");
    mrt_rig_close(&rig);
}

static void test_mistakes(void **state)
{
    (void)state;
    mr_net *net;
    MRT_EQ(mr_net_create_numbers(&net, "x", 0, 8), MR_EINVAL);
    MRT_EQ(mr_net_create_numbers(&net, "x", 8, 0), MR_EINVAL);
    MRT_EQ(mr_net_create_numbers(&net, "x", 1u << 31, 2), MR_EINVAL);
    MRT_TRUE(net == NULL);
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_model_build(mr_model_find("notes-mlp"), 1, 1u << 30, 128, 128, &net, &err), MR_EINVAL);
    MRT_HAS(err.text, "cannot take sequences of 1073741824 numbers");
    MRT_OK(mr_model_build(mr_model_find("notes-mlp"), 1, 10, 12, 7, &net, &err), &err);
    MRT_TRUE(mr_net_takes_numbers(net) && mr_net_class_count(net) == 7);
    mr_net_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_train_like_pictures_of_them),
        cmocka_unit_test(test_numbers_are_looked_up_like_pictures_of_them),
        cmocka_unit_test(test_who_takes_the_numbers),
        cmocka_unit_test(test_gradients_do_not_depend_on_replicas),
        cmocka_unit_test(test_parts_give_the_same_bits_on_any_devices),
        cmocka_unit_test(test_a_resumed_run_has_the_same_bits),
        cmocka_unit_test(test_memory_is_planned),
        cmocka_unit_test(test_rows_of_another_width_are_refused),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
