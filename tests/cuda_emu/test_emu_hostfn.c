/* Functions of the host in streams: they run after earlier operations and before later ones, no call waits
 * for them, other streams go on meanwhile; and they may not call the driver. */
#include <stdatomic.h>

#include "tests/cuda_emu/emut.h"

static struct emut_gpu g;
static _Atomic int others_went_on, ran;

static void CUDA_CB add_one(void *data)
{
    unsigned char *at = data;
    while (!others_went_on) usleep(100);
    for (unsigned i = 0; i < EMUT_BYTES; i++) at[i]++;
    ran++;
}

static void CUDA_CB count(void *data) { (*(_Atomic int *)data)++; }

static void in_order(void)
{
    emut_open(&g, 0);
    memset(g.in, 41, EMUT_BYTES);
    EMUT_MUST(cuMemcpyHtoDAsync(g.a, g.in, EMUT_BYTES, g.copy));
    EMUT_MUST(cuMemcpyDtoHAsync(g.out, g.a, EMUT_BYTES, g.copy));
    EMUT_MUST(cuLaunchHostFunc(g.copy, add_one, g.out));
    EMUT_MUST(cuMemcpyHtoDAsync(g.a, g.out, EMUT_BYTES, g.copy));
    EMUT_MUST(cuMemsetD8Async(g.b, 7, EMUT_BYTES, g.compute));
    EMUT_MUST(cuStreamSynchronize(g.compute));
    EMUT_CHECK(ran == 0);
    others_went_on = 1;
    EMUT_MUST(cuMemcpyDtoHAsync(g.out, g.a, EMUT_BYTES, g.copy));
    EMUT_MUST(cuStreamSynchronize(g.copy));
    EMUT_CHECK(g.out[0] == 42 && g.out[EMUT_BYTES - 1] == 42 && ran == 1);
    emut_close(&g);
}

static void nobody_waits(void)
{
    emut_open(&g, 0);
    EMUT_MUST(cuMemsetD8Async(g.b, 7, EMUT_BYTES, g.compute));
    for (int i = 0; i < 3; i++) EMUT_MUST(cuLaunchHostFunc(g.compute, count, (void *)&ran));
    for (int i = 0; i < 100000 && ran < 3; i++) usleep(100);
    EMUT_CHECK(ran == 3);
    emut_close(&g);
}

static void CUDA_CB call_driver(void *data) { cuStreamQuery(data); }

static void calls_driver(void)
{
    emut_open(&g, 0);
    EMUT_MUST(cuLaunchHostFunc(g.compute, call_driver, g.copy));
    EMUT_MUST(cuStreamSynchronize(g.compute));
}

static void test_order(void **state)
{
    (void)state;
    emut_always_fine(in_order, 20);
    emut_always_fine(nobody_waits, 5);
}

static void test_driver_is_not_called(void **state)
{
    (void)state;
    emut_always_caught(calls_driver, "function of the host", "calls the driver");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_driver_is_not_called),
    };
    return mrt_run(tests);
}
