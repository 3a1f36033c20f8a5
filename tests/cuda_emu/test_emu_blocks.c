/* Device code on the processor: barriers, shuffles, shared memory, and the violations when threads part ways.
 * The bodies here are called as kernels are, once for every thread. */
#include "tests/cuda_emu/blocks.h"
#include "tests/cuda_emu/emut.h"

/* As kernels/cuda/kernels/port.h has them. */
struct mrk_uint3 {
    unsigned x, y, z;
};
extern struct mrk_uint3 threadIdx, blockIdx, blockDim, gridDim;
extern unsigned char *mrk_dynamic_shared;
void mrk_barrier(void);
float mrk_shuffle(float value, unsigned source_lane);
uint64_t mrk_shuffle_u64(uint64_t value, unsigned source_lane);

struct sum_args {
    const float *in;
    float *out;
    unsigned count;
    bool skip; /* leave the barriers out */
};

/* Each block adds 256 values by halves in shared memory. */
static void sum_block(const void *p)
{
    const struct sum_args *a = p;
    float *share = (float *)mrk_dynamic_shared;
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    share[threadIdx.x] = i < a->count ? a->in[i] : 0;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (!a->skip) mrk_barrier();
        if (threadIdx.x < half) share[threadIdx.x] += share[threadIdx.x + half];
    }
    if (threadIdx.x == 0) a->out[blockIdx.x + gridDim.x * blockIdx.y] = share[0];
}

/* The sum of each warp, in every lane of it. */
static void sum_warp(const void *p)
{
    float *v = *(float *const *)p, mine = v[threadIdx.x];
    for (unsigned step = 16; step > 0; step /= 2) mine += mrk_shuffle(mine, (threadIdx.x % 32) ^ step);
    v[threadIdx.x] = mine;
    mrk_barrier();
    const uint64_t far = (uint64_t)7 << 40, got = mrk_shuffle_u64(far + threadIdx.x, 5);
    if (got != far + threadIdx.x / 32 * 32 + 5) v[threadIdx.x] = -1;
}

static void no_barrier(const void *p) { (*(unsigned *const *)p)[blockIdx.x * blockDim.x + threadIdx.x]++; }

static void part_at_barrier(const void *p)
{
    (void)p;
    if (threadIdx.x < 40) mrk_barrier();
}

static void part_in_shuffle(const void *p)
{
    (void)p;
    if (threadIdx.x % 32 < 8) mrk_shuffle(1, 0);
    else mrk_barrier();
}

static void lane_not_there(const void *p)
{
    (void)p;
    mrk_shuffle(1, 20);
}

static float in[1000], out[8];

static void sums_right(void)
{
    for (int i = 0; i < 1000; i++) in[i] = (float)(i + 1);
    const struct sum_args a = {.in = in, .out = out, .count = 1000};
    emu_run_grid(sum_block, &a, 4, 2, 256, 256 * sizeof(float));
    EMUT_CHECK(out[0] + out[1] + out[2] + out[3] == 500500);
    for (int i = 0; i < 4; i++) EMUT_CHECK(out[i] == out[i + 4]);

    float v[96], *at = v;
    for (int i = 0; i < 96; i++) v[i] = (float)i;
    emu_run_grid(sum_warp, &at, 1, 1, 96, 0);
    for (int i = 0; i < 96; i++) EMUT_CHECK(v[i] == (float)(496 + 32 * 32 * (i / 32)));

    unsigned hits[7 * 33] = {0}, *count = hits;
    emu_run_grid(no_barrier, &count, 7, 1, 33, 0);
    for (int i = 0; i < 7 * 33; i++) EMUT_CHECK(hits[i] == 1);
}

/* In any order of the threads, one adds a value that is not written yet: poison, a NaN. */
static void barriers_left_out(void)
{
    for (int i = 0; i < 256; i++) in[i] = 1;
    const struct sum_args a = {.in = in, .out = out, .count = 256, .skip = true};
    for (int i = 0; i < 4; i++) {
        emu_run_grid(sum_block, &a, 1, 1, 256, 256 * sizeof(float));
        if (out[0] != 256) return;
    }
    EMUT_CHECK(!"seen");
}

static void parted(void)
{
    emu_run_grid(part_at_barrier, NULL, 1, 1, 64, 0);
    EMUT_CHECK(emu_violations() == 1);
    emu_run_grid(part_in_shuffle, NULL, 1, 1, 64, 0);
    EMUT_CHECK(emu_violations() == 2);
    emu_run_grid(lane_not_there, NULL, 1, 1, 16, 0);
    EMUT_CHECK(emu_violations() == 2 + 16);
    sums_right(); /* the threads that never came back are forgotten */
}

static void test_sums(void **state)
{
    (void)state;
    emut_always_fine(sums_right, 75);
}

static void test_barriers_left_out(void **state)
{
    (void)state;
    emut_always_fine(barriers_left_out, 20);
}

static void test_parted(void **state)
{
    (void)state;
    emut_always_caught(parted, "40 threads", "wait at a barrier");
    emut_always_caught(parted, "16 in a shuffle", "lane 20, which is not there");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_barriers_left_out),
        cmocka_unit_test(test_parted),
    };
    return mrt_run(tests);
}
