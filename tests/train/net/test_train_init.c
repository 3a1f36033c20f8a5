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
    mri_init_param(&weights, &(mri_first){.init = MR_INIT_GLOROT}, 3, 7, w);
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
    mri_init_param(&weights, &(mri_first){.init = MR_INIT_GLOROT}, layer_a, seed_a, a);
    mri_init_param(&weights, &(mri_first){.init = MR_INIT_GLOROT}, layer_b, seed_b, b);
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

/* Columns of length one that stand at right angles, spread as columns drawn from a normal distribution. */
static void test_recurrent_weights_are_orthogonal(void **state)
{
    (void)state;
    static const uint64_t shapes[][2] = {{3, 1}, {4, 1}, {99, 33}, {192, 64}, {28, 7}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const uint64_t rows = shapes[s][0], columns = shapes[s][1];
        const mr_param_info p = {
            .name = "recurrent", .ndim = 2, .dim = {rows, columns}, .count = rows * columns};
        float *w = malloc(p.count * sizeof *w), *again = malloc(p.count * sizeof *w);
        double fourth = 0;
        MRT_EQ(mri_init_param(&p, &(mri_first){.init = MR_INIT_HE_IN}, 2, 9, w), MR_OK);
        MRT_EQ(mri_init_param(&p, &(mri_first){.init = MR_INIT_GLOROT}, 2, 9, again), MR_OK);
        MRT_TRUE(memcmp(w, again, p.count * sizeof *w) == 0);
        for (uint64_t a = 0; a < columns; a++)
            for (uint64_t b = a; b < columns; b++) {
                double sum = 0;
                for (uint64_t r = 0; r < rows; r++)
                    sum += (double)w[r * columns + a] * (double)w[r * columns + b];
                MRT_TRUE(fabs(sum - (a == b)) < 2e-6);
            }
        for (uint64_t i = 0; i < p.count; i++)
            fourth += pow((double)w[i], 4) * (double)rows * (double)rows / (double)p.count;
        if (columns > 30) MRT_TRUE(fourth > 2.4 && fourth < 3.6); /* of normal numbers 3 */
        for (int other = 0; other < 2 && columns > 1; other++) {
            uint64_t same = 0;
            MRT_EQ(mri_init_param(&p, &(mri_first){.init = MR_INIT_GLOROT}, 2u + !other, 9u + (uint32_t)other,
                                  again),
                   MR_OK);
            for (uint64_t i = 0; i < p.count; i++) same += w[i] == again[i];
            MRT_TRUE(same < p.count / 10);
        }
        free(w), free(again);
    }
}

static void test_forget_gates_begin_open(void **state)
{
    (void)state;
    const mr_param_info p = {.name = "gate_bias", .ndim = 1, .dim = {12}, .count = 12};
    float v[12];
    MRT_EQ(mri_init_param(&p, &(mri_first){.init = MR_INIT_GLOROT}, 0, 1, v), MR_OK);
    for (int i = 0; i < 12; i++) MRT_EQ(v[i], i >= 3 && i < 6);
}

static void test_other_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float value;
    } cases[] = {
        {"bias", 0}, {"recurrent_bias", 0}, {"shift", 0}, {"mean", 0}, {"scale", 1}, {"variance", 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const mr_param_info p = {.name = cases[k].name, .ndim = 1, .dim = {5}, .count = 5};
        float v[6] = {9, 9, 9, 9, 9, 9};
        mri_init_param(&p, &(mri_first){.init = MR_INIT_HE_IN}, 0, 1, v);
        for (int i = 0; i < 5; i++) MRT_TRUE(v[i] == cases[k].value);
        MRT_TRUE(v[5] == 9);
    }
}

/* Biases and weights that are given: the uniform distribution of that deviation. */
static void test_given_values(void **state)
{
    (void)state;
    enum { GIVEN = 4096 };
    const mri_first first = {.init = MR_INIT_HE_IN, .deviation = 0.05f, .bias = 0.1f};
    const mr_param_info bias = {.name = "bias", .ndim = 1, .dim = {5}, .count = 5}, many = {.name = "weights",
                                                                                            .ndim = 2,
                                                                                            .dim = {64, 64},
                                                                                            .count = GIVEN,
                                                                                            .fan_in = 64,
                                                                                            .fan_out = 64};
    static float v[GIVEN];
    double sum = 0;
    MRT_EQ(mri_init_param(&many, &first, 0, 1, v), MR_OK);
    for (int i = 0; i < GIVEN; i++) {
        MRT_TRUE(fabsf(v[i]) <= 0.05f * 1.7320509f);
        sum += (double)v[i] * (double)v[i];
    }
    MRT_TRUE(fabs(sqrt(sum / GIVEN) / 0.05 - 1) < 0.03);
    MRT_EQ(mri_init_param(&bias, &first, 0, 1, v), MR_OK);
    for (int i = 0; i < 5; i++) MRT_TRUE(v[i] == 0.1f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_glorot_uniform),
        cmocka_unit_test(test_depends_on_layer_and_seed_only),
        cmocka_unit_test(test_recurrent_weights_are_orthogonal),
        cmocka_unit_test(test_forget_gates_begin_open),
        cmocka_unit_test(test_other_parameters),
        cmocka_unit_test(test_given_values),
    };
    return mrt_run(tests);
}
