/* Initial weights: inside the Glorot bounds, spread evenly, different for every layer and seed, the same
 * every time. */
#include <math.h>

#include "mrt.h"
#include "train/net/init.h"

enum { COUNT = 20000 };

static const mr_param_info weights = {
    .name = "weights", .ndim = 2, .dim = {100, 200}, .count = COUNT, .fan_in = 200, .fan_out = 100};

static void test_glorot_uniform(void **state)
{
    (void)state;
    float *w = malloc(COUNT * sizeof *w);
    const double limit = sqrt(6.0 / 300.0);
    double sum = 0, squares = 0, most = 0;
    mri_init_param(&weights, MR_INIT_GLOROT, 3, 7, w);
    for (int i = 0; i < COUNT; i++) {
        sum += (double)w[i];
        squares += (double)w[i] * (double)w[i];
        most = fmax(most, fabs((double)w[i]));
    }
    MRT_TRUE(most <= limit && most > 0.999 * limit);
    MRT_TRUE(fabs(sum / COUNT) < 0.02 * limit);
    MRT_TRUE(fabs(squares / COUNT / (limit * limit / 3) - 1) < 0.03); /* variance of a uniform */
    free(w);
}

static uint32_t equal(uint32_t layer_a, uint64_t seed_a, uint32_t layer_b, uint64_t seed_b)
{
    float *a = malloc(COUNT * sizeof *a), *b = malloc(COUNT * sizeof *b);
    uint32_t same = 0;
    mri_init_param(&weights, MR_INIT_GLOROT, layer_a, seed_a, a);
    mri_init_param(&weights, MR_INIT_GLOROT, layer_b, seed_b, b);
    for (int i = 0; i < COUNT; i++) same += a[i] == b[i];
    free(a);
    free(b);
    return same;
}

static void test_depends_on_layer_and_seed_only(void **state)
{
    (void)state;
    MRT_EQ(equal(1, 5, 1, 5), COUNT);
    MRT_TRUE(equal(1, 5, 2, 5) < 10);
    MRT_TRUE(equal(1, 5, 1, 6) < 10);
    MRT_TRUE(equal(0, 0, 0, 1) < 10);
}

static void test_other_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float value;
    } cases[] = {
        {"bias", 0}, {"shift", 0}, {"mean", 0}, {"scale", 1}, {"variance", 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const mr_param_info p = {.name = cases[k].name, .ndim = 1, .dim = {5}, .count = 5};
        float v[6] = {9, 9, 9, 9, 9, 9};
        mri_init_param(&p, MR_INIT_HE_IN, 0, 1, v);
        for (int i = 0; i < 5; i++) MRT_TRUE(v[i] == cases[k].value);
        MRT_TRUE(v[5] == 9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_glorot_uniform),
        cmocka_unit_test(test_depends_on_layer_and_seed_only),
        cmocka_unit_test(test_other_parameters),
    };
    return mrt_run(tests);
}
