/* Networks of numbers: the same training as of pictures that show the numbers as rows with a single bright
 * pixel. */
#include "tests/train/rig.h"

enum { LENGTH = 6, VALUES = 5, COUNT = 24, STEPS = 4 };

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
    mr_part parts[4];
    void *data[4] = {NULL}, *classes[4] = {NULL};
    mr_error later = MR_ERROR_INIT;
    fill((uint32_t)at * COUNT, COUNT, numbers, pixels, labels);
    for (uint32_t r = 0; r < rig->count; r++) {
        const uint32_t first = COUNT * r / rig->count, n = COUNT * (r + 1) / rig->count - first;
        const void *from = width ? (const void *)(numbers + first * LENGTH)
                                 : (const void *)(pixels + (size_t)first * LENGTH * VALUES);
        data[r] = on_device(rig->devices[r], from,
                            width ? n * LENGTH * sizeof *numbers : (size_t)n * LENGTH * VALUES);
        classes[r] = on_device(rig->devices[r], labels + first, n * sizeof *labels);
        parts[r] = (mr_part){.first = first,
                             .count = n,
                             .pixels = width ? NULL : data[r],
                             .labels = classes[r],
                             .field = {{.data = width ? data[r] : NULL, .width = width}}};
    }
    const mr_batch b = {.step = at,
                        .global_step = at,
                        .count = COUNT,
                        .counted = COUNT,
                        .part_count = rig->count,
                        .parts = parts};
    const int rc = mr_trainer_step(rig->t, &b, err);
    mr_trainer_metrics(rig->t, NULL, NULL, &later);
    for (uint32_t r = 0; r < rig->count; r++) {
        mr_device_free(rig->devices[r], data[r]);
        mr_device_free(rig->devices[r], classes[r]);
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

static void test_numbers_train_like_pictures_of_them(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:3"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(devices); k++)
        for (int reference = 0; reference < 2; reference++) {
            const mrt_hash numbers = trained(devices[k], reference, net_of_numbers, LENGTH);
            MRT_TRUE(mrt_same(numbers, trained(devices[k], reference, net_of_pictures, 0)));
            MRT_TRUE(mrt_same(numbers, trained(devices[k], reference, net_of_numbers, LENGTH)));
        }
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
        cmocka_unit_test(test_rows_of_another_width_are_refused),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
