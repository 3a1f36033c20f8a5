/* Learning rate schedules: values at and around every boundary; accepted and refused texts. */
#include <math.h>

#include "millrace/train.h"
#include "mrt.h"

static mr_schedule parse(const char *text, float lr)
{
    mr_schedule s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_schedule_parse(&s, text, lr, &err), &err);
    return s;
}

static void near(double a, double b)
{
    if (fabs(a - b) > 1e-6 * fabs(b) + 1e-12) fail_msg("%.9g is not %.9g", a, b);
}

static void test_constant(void **state)
{
    (void)state;
    const mr_schedule s = parse("constant", 0.1f);
    near(mr_schedule_lr(&s, 0, 10, 3), 0.1);
    near(mr_schedule_lr(&s, 1000000, 10, 3), 0.1);
}

static void test_step(void **state)
{
    (void)state;
    const mr_schedule s = parse("step:2/2.5/10,factor=0.5", 0.8f);
    MRT_EQ(s.milestone_count, 3);
    near(mr_schedule_lr(&s, 19, 10, 20), 0.8);
    near(mr_schedule_lr(&s, 20, 10, 20), 0.4);
    near(mr_schedule_lr(&s, 24, 10, 20), 0.4);
    near(mr_schedule_lr(&s, 25, 10, 20), 0.2);
    near(mr_schedule_lr(&s, 99, 10, 20), 0.2);
    near(mr_schedule_lr(&s, 100, 10, 20), 0.1);
    const mr_schedule plain = parse("step:1", 1.0f);
    near(mr_schedule_lr(&plain, 10, 10, 20), 0.1);
}

static void test_cosine(void **state)
{
    (void)state;
    const mr_schedule s = parse("cosine:0.2", 1.0f);
    near(mr_schedule_lr(&s, 0, 10, 4), 1.0);
    near(mr_schedule_lr(&s, 10, 10, 4), 0.2 + 0.8 * 0.5 * (1 + sqrt(0.5)));
    near(mr_schedule_lr(&s, 20, 10, 4), 0.6);
    near(mr_schedule_lr(&s, 40, 10, 4), 0.2);
    near(mr_schedule_lr(&s, 400, 10, 4), 0.2);
    const mr_schedule zero = parse("cosine", 1.0f);
    near(mr_schedule_lr(&zero, 40, 10, 4), 0);
}

static void test_linear(void **state)
{
    (void)state;
    const mr_schedule s = parse("linear:0.2", 1.0f);
    near(mr_schedule_lr(&s, 0, 10, 4), 1.0);
    near(mr_schedule_lr(&s, 10, 10, 4), 0.8);
    near(mr_schedule_lr(&s, 30, 10, 4), 0.4);
    near(mr_schedule_lr(&s, 40, 10, 4), 0.2);
    near(mr_schedule_lr(&s, 400, 10, 4), 0.2);
    const mr_schedule fast = parse("linear,warmup=5", 0.4f);
    near(mr_schedule_lr(&fast, 49, 10, 24), 0.4);
    near(mr_schedule_lr(&fast, 145, 10, 24), 0.2);
    near(mr_schedule_lr(&fast, 240, 10, 24), 0);
    const mr_schedule longer = parse("linear,warmup=9", 0.4f);
    near(mr_schedule_lr(&longer, 90, 10, 9), 0);
}

static void test_decay(void **state)
{
    (void)state;
    const mr_schedule s = parse("decay:1e-2", 0.5f);
    near(mr_schedule_lr(&s, 0, 0, 0), 0.5);
    near(mr_schedule_lr(&s, 100, 0, 0), 0.25);
}

static void test_piecewise(void **state)
{
    (void)state;
    const mr_schedule s = parse("piecewise:0.01@2/0.5@2.5/0@10", 0.8f);
    MRT_EQ(s.milestone_count, 6);
    near(mr_schedule_lr(&s, 0, 10, 20), 0.8);
    near(mr_schedule_lr(&s, 19, 10, 20), 0.8);
    near(mr_schedule_lr(&s, 20, 10, 20), 0.01);
    near(mr_schedule_lr(&s, 24, 10, 20), 0.01);
    near(mr_schedule_lr(&s, 25, 10, 20), 0.5); /* rates may rise */
    near(mr_schedule_lr(&s, 99, 10, 20), 0.5);
    near(mr_schedule_lr(&s, 100, 10, 20), 0);
    near(mr_schedule_lr(&s, 1000000, 10, 20), 0);
    const mr_schedule first = parse("piecewise:0.25@0", 0.8f);
    near(mr_schedule_lr(&first, 0, 10, 20), 0.25);
    const mr_schedule most = parse("piecewise:1@1/2@2/3@3/4@4/5@5/6@6/7@7/8@8", 0.8f);
    near(mr_schedule_lr(&most, 79, 10, 20), 7);
    near(mr_schedule_lr(&most, 80, 10, 20), 8);
}

static void test_exponential(void **state)
{
    (void)state;
    const mr_schedule s = parse("exponential:0.5:0.01", 0.8f);
    near(mr_schedule_lr(&s, 0, 10, 20), 0.8);
    near(mr_schedule_lr(&s, 5, 10, 20), 0.8 * sqrt(0.5));
    near(mr_schedule_lr(&s, 10, 10, 20), 0.4);
    near(mr_schedule_lr(&s, 60, 10, 20), 0.0125);
    near(mr_schedule_lr(&s, 64, 10, 20), 0.01); /* below it: 0.0095 */
    near(mr_schedule_lr(&s, 1000000, 10, 20), 0.01);
    const mr_schedule bare = parse("exponential:0.5", 0.8f);
    near(mr_schedule_lr(&bare, 100, 10, 20), 0.8 / 1024);
    const mr_schedule warm = parse("exponential:0.5,warmup=2", 0.8f);
    near(mr_schedule_lr(&warm, 20, 10, 20), 0.8);
    near(mr_schedule_lr(&warm, 30, 10, 20), 0.4);
    const mr_schedule still = parse("exponential:1:0.8", 0.8f);
    near(mr_schedule_lr(&still, 777, 10, 20), 0.8);
}

static void test_one_cycle(void **state)
{
    (void)state;
    const mr_schedule s = parse("onecycle:5:0.001,up=0.25", 1.0f); /* 40 updates: up 10, down 10, 20 to the
                                                                      floor */
    near(mr_schedule_lr(&s, 0, 10, 4), 0.2);
    near(mr_schedule_lr(&s, 5, 10, 4), 0.6);
    near(mr_schedule_lr(&s, 9, 10, 4), 0.92);
    near(mr_schedule_lr(&s, 10, 10, 4), 1);
    near(mr_schedule_lr(&s, 11, 10, 4), 0.92);
    near(mr_schedule_lr(&s, 20, 10, 4), 0.2);
    near(mr_schedule_lr(&s, 30, 10, 4), (0.2 + 0.001) / 2);
    near(mr_schedule_lr(&s, 39, 10, 4), 0.2 + 0.95 * (0.001 - 0.2));
    near(mr_schedule_lr(&s, 40, 10, 4), 0.001);
    near(mr_schedule_lr(&s, 400, 10, 4), 0.001);
    const mr_schedule plain = parse("onecycle", 0.5f);
    near(mr_schedule_lr(&plain, 0, 50, 2), 0.05);
    near(mr_schedule_lr(&plain, 45, 50, 2), 0.5);
    near(mr_schedule_lr(&plain, 90, 50, 2), 0.05);
    near(mr_schedule_lr(&plain, 100, 50, 2), 0.0005);
    const mr_schedule half = parse("onecycle:2,up=0.5", 1.0f); /* nothing is left for the floor */
    near(mr_schedule_lr(&half, 20, 10, 4), 1);
    near(mr_schedule_lr(&half, 39, 10, 4), 0.525);
    near(mr_schedule_lr(&half, 40, 10, 4), 0.005);
    const mr_schedule none = parse("onecycle", 1.0f);
    near(mr_schedule_lr(&none, 0, 10, 0), 0.001); /* no epochs to lay it over */
}

static void test_warmup(void **state)
{
    (void)state;
    static const char *const kinds[] = {
        "constant,warmup=2",      "cosine,warmup=2",          "step:5,warmup=2", "decay:0,warmup=2",
        "piecewise:1@5,warmup=2", "exponential:0.5,warmup=2", "linear,warmup=2"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const mr_schedule s = parse(kinds[i], 0.4f);
        near(mr_schedule_lr(&s, 0, 10, 10), 0.4 / 20);
        near(mr_schedule_lr(&s, 9, 10, 10), 0.2);
        near(mr_schedule_lr(&s, 19, 10, 10), 0.4);
        near(mr_schedule_lr(&s, 20, 10, 10), 0.4); /* no jump where the kind takes over */
    }
    const mr_schedule s = parse("cosine,warmup=2", 0.4f);
    near(mr_schedule_lr(&s, 60, 10, 10), 0.2); /* half way through the remaining steps */
    const mr_schedule longer = parse("cosine,warmup=9", 0.4f);
    near(mr_schedule_lr(&longer, 90, 10, 9), 0); /* a warm-up as long as the run leaves nothing */
    const mr_schedule half = parse("constant,warmup=0.25", 1.0f);
    near(mr_schedule_lr(&half, 0, 10, 1), 1.0 / 3); /* 2.5 steps round to 3 */
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "constan",
        "constant,",
        "constant,warmup=",
        "constant,warmup=-1",
        "constant,warmup=1x",
        "constant,factor=2",
        "cosine:",
        "cosine:2",
        "cosine:nan",
        "linear:",
        "linear:2",
        "step",
        "step:",
        "step:1/",
        "step:2/1",
        "step:1/1",
        "step:1,factor=0",
        "step:1,factor=",
        "step:-1",
        "step:1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
        "decay",
        "decay:",
        "decay:inf",
        "decay: 1",
        "constant,warmup=1e999",
        "cosine;warmup=1",
        "piecewise",
        "piecewise:",
        "piecewise:0.1",
        "piecewise:0.1@",
        "piecewise:@3",
        "piecewise:0.1@3/",
        "piecewise:0.1@3/0.2@3",
        "piecewise:0.1@3/0.2@2",
        "piecewise:-0.1@3",
        "piecewise:1@1/2@2/3@3/4@4/5@5/6@6/7@7/8@8/9@9",
        "piecewise:0.1@3,factor=2",
        "exponential",
        "exponential:",
        "exponential:0",
        "exponential:1.5",
        "exponential:0.9:",
        "exponential:0.9:2",
        "exponential:0.9:nan",
        "onecycle:",
        "onecycle:0.5",
        "onecycle:10:0.2",
        "onecycle,up=0",
        "onecycle,up=0.6",
        "onecycle,up=",
        "onecycle,warmup=1",
        "onecycle:10,up=0.3,warmup=1",
        "onecycle10",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        mr_schedule s = {.lr = 77};
        mr_error err = MR_ERROR_INIT;
        if (mr_schedule_parse(&s, texts[i], 1.0f, &err) != MR_EINVAL) fail_msg("\"%s\" was taken", texts[i]);
        MRT_HAS(err.text, "expected");
        MRT_TRUE(s.lr == 77); /* untouched */
    }
    mr_schedule s;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_schedule_parse(&s, "step:2/1", 1.0f, &err), MR_EINVAL);
    MRT_HAS(err.text, "character 8");
    MRT_EQ(mr_schedule_parse(&s, "constant", 0.0f, &err), MR_EINVAL);
    MRT_EQ(mr_schedule_parse(&s, "constant", NAN, &err), MR_EINVAL);
    MRT_EQ(mr_schedule_parse(&s, "constant", -1.0f, NULL), MR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),  cmocka_unit_test(test_step),
        cmocka_unit_test(test_cosine),    cmocka_unit_test(test_linear),
        cmocka_unit_test(test_decay),     cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_piecewise), cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_one_cycle), cmocka_unit_test(test_refused),
    };
    return mrt_run(tests);
}
