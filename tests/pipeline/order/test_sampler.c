/* The sampler: a permutation for every count, keyed by seed and epoch, invertible, spread out (I1). */
#include "base/util.h"
#include "mrt.h"
#include "pipeline/order/sampler.h"

static void check_permutation(mr_order order, uint32_t block, uint64_t count)
{
    uint8_t *seen = calloc(1, (size_t)count);
    assert_non_null(seen);
    for (uint64_t p = 0; p < count; p++) {
        const uint64_t s = mr_order_sample(order, block, 5, 3, count, p);
        MRT_TRUE(s < count);
        MRT_EQ(seen[s], 0);
        seen[s] = 1;
    }
    free(seen);
}

static void every_order_is_a_permutation(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 70; n++) {
        check_permutation(MR_ORDER_SHUFFLE, 0, n);
        check_permutation(MR_ORDER_SEQUENTIAL, 0, n);
        for (uint32_t block = 1; block < 9; block++) check_permutation(MR_ORDER_BLOCK, block, n);
    }
    check_permutation(MR_ORDER_SHUFFLE, 0, 65536);
    check_permutation(MR_ORDER_SHUFFLE, 0, 65537);
    check_permutation(MR_ORDER_BLOCK, 256, 50000);
    check_permutation(MR_ORDER_BLOCK, 7, 10007);
    check_permutation(MR_ORDER_BLOCK, 100000, 5000);
}

static void past_the_end_is_nowhere(void **state)
{
    (void)state;
    MRT_TRUE(mr_order_sample(MR_ORDER_SHUFFLE, 0, 1, 0, 10, 10) == MR_NOWHERE);
    MRT_TRUE(mr_order_sample(MR_ORDER_SHUFFLE, 0, 1, 0, 0, 0) == MR_NOWHERE);
}

static void inverse_undoes(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 2, 3, 17, 1000, 65537, UINT64_C(1) << 40};
    for (size_t c = 0; c < MRI_ARRAY_COUNT(counts); c++) {
        const mri_permutation p = mri_permutation_make(counts[c], 99);
        for (uint64_t i = 0; i < mri_min_u64(counts[c], 2000); i++)
            MRT_TRUE(mri_unpermute(&p, mri_permute(&p, i)) == i);
    }
}

static uint64_t same_places(uint64_t seed_a, uint64_t epoch_a, uint64_t seed_b, uint64_t epoch_b, uint64_t n)
{
    uint64_t same = 0;
    for (uint64_t p = 0; p < n; p++)
        same += mr_order_sample(MR_ORDER_SHUFFLE, 0, seed_a, epoch_a, n, p) ==
                mr_order_sample(MR_ORDER_SHUFFLE, 0, seed_b, epoch_b, n, p);
    return same;
}

static void seed_and_epoch_change_the_order(void **state)
{
    (void)state;
    MRT_EQ(same_places(1, 0, 1, 0, 5000), 5000);
    MRT_TRUE(same_places(1, 0, 1, 1, 5000) < 20); /* two random orders share one place on average */
    MRT_TRUE(same_places(1, 0, 2, 0, 5000) < 20);
    MRT_TRUE(same_places(1, 0, 0, 1, 5000) < 20);
}

/* A sample's place in successive epochs is uniform: the counts over 16 ranges of places stay near their
 * mean. */
static void places_are_spread(void **state)
{
    (void)state;
    enum { N = 160, EPOCHS = 4000 };
    for (uint64_t sample = 0; sample < N; sample += 53) {
        uint32_t range[16] = {0};
        for (uint64_t e = 0; e < EPOCHS; e++) {
            const mri_epoch_order o = mri_epoch_order_make(MR_ORDER_SHUFFLE, 0, 11, e, N);
            range[mri_unpermute(&o.whole, sample) * 16 / N]++;
        }
        double chi2 = 0;
        for (int i = 0; i < 16; i++) chi2 += (range[i] - 250.0) * (range[i] - 250.0) / 250.0;
        MRT_TRUE(chi2 < 45.0); /* 15 degrees of freedom: beyond this one time in ten thousand */
    }
}

/* The order is a promise to every checkpoint ever written: these numbers may not change. */
#define EXPECTED UINT64_C(0xfb4e036289960bf5)

static void order_is_fixed_for_ever(void **state)
{
    (void)state;
    uint64_t hash = 0;
    for (uint64_t p = 0; p < 1000; p++)
        hash = mri_mix64(hash ^ mr_order_sample(MR_ORDER_SHUFFLE, 0, 42, 7, 1000, p));
    for (uint64_t p = 0; p < 1000; p++)
        hash = mri_mix64(hash ^ mr_order_sample(MR_ORDER_BLOCK, 13, 42, 7, 1000, p));
    if (hash != EXPECTED) print_error("order hash is now %llx\n", (unsigned long long)hash);
    MRT_TRUE(hash == EXPECTED);
}

static void blocks_stay_together(void **state)
{
    (void)state;
    enum { BLOCK = 8, WINDOW = 16 * BLOCK, N = 1024 };
    for (uint64_t w = 0; w < N / WINDOW; w++) {
        uint32_t blocks[N / BLOCK] = {0}, distinct = 0;
        for (uint64_t p = w * WINDOW; p < (w + 1) * WINDOW; p++) {
            const uint64_t b = mr_order_sample(MR_ORDER_BLOCK, BLOCK, 1, 0, N, p) / BLOCK;
            distinct += blocks[b]++ == 0;
        }
        MRT_EQ(distinct, 16);
    }
}

static void substitutes_vary(void **state)
{
    (void)state;
    const mri_epoch_order o = mri_epoch_order_make(MR_ORDER_SHUFFLE, 0, 1, 0, 1000);
    MRT_TRUE(mri_substitute(&o, 5, 0) == mri_substitute(&o, 5, 0));
    uint32_t same = 0;
    for (uint32_t a = 1; a < 50; a++) {
        MRT_TRUE(mri_substitute(&o, 5, a) < 1000);
        same += mri_substitute(&o, 5, a) == mri_substitute(&o, 5, 0);
    }
    MRT_TRUE(same < 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_is_a_permutation),
        cmocka_unit_test(past_the_end_is_nowhere),
        cmocka_unit_test(inverse_undoes),
        cmocka_unit_test(seed_and_epoch_change_the_order),
        cmocka_unit_test(places_are_spread),
        cmocka_unit_test(order_is_fixed_for_ever),
        cmocka_unit_test(blocks_stay_together),
        cmocka_unit_test(substitutes_vary),
    };
    return mrt_run(tests);
}
