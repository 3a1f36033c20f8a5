/* A mix: each data set has its share of the positions; the samples of a set come equally often, over epochs;
 * another order in each round, pass and seed. */
#include <stdlib.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/order/mixture.h"

enum { SETS = 3 };

static mr_source_info info_of(mr_mix_set sets[SETS], const uint64_t counts[SETS], const double shares[SETS])
{
    mr_source_info info = {.path = "a mix", .mix_count = SETS, .mix = sets};
    for (uint32_t k = 0; k < SETS; k++) {
        sets[k] = (mr_mix_set){"a set", info.count, counts[k], shares[k]};
        info.count += counts[k];
    }
    return info;
}

static uint32_t set_of(const mr_source_info *info, uint64_t sample)
{
    for (uint32_t k = 0; k < SETS; k++)
        if (sample >= info->mix[k].first && sample < info->mix[k].first + info->mix[k].count) return k;
    fail_msg("sample %llu is in no set", (unsigned long long)sample);
    return 0;
}

static mri_mixture *mixture_of(const mr_source_info *info, uint64_t seed)
{
    mr_error err = MR_ERROR_INIT;
    mri_mixture *m;
    MRT_OK(mri_mixture_create(&m, info, seed, &err), &err);
    return m;
}

static const struct {
    uint64_t counts[SETS];
    double shares[SETS];
    uint64_t round, in_round[SETS];
} cases[] = {
    {{100, 7, 40}, {0.5, 0.25, 0.25}, 4, {2, 1, 1}},
    {{1, 1000, 3}, {0.1, 0.2, 0.7}, 10, {1, 2, 7}},
    {{50, 50, 50}, {1.0 / 3, 1.0 / 3, 1.0 / 3}, 3, {1, 1, 1}},
    {{30, 20, 10}, {0.7531, 0.2468, 0.0001}, 10000, {7531, 2468, 1}},
    {{5, 6, 7}, {1e-9, 0.5, 0.5}, 10001, {1, 5000, 5000}}, /* one part at least */
};

static void every_set_has_its_share(void **state)
{
    (void)state;
    for (size_t c = 0; c < MRI_ARRAY_COUNT(cases); c++) {
        mr_mix_set sets[SETS];
        const mr_source_info info = info_of(sets, cases[c].counts, cases[c].shares);
        mri_mixture *m = mixture_of(&info, 7);
        uint64_t found[SETS] = {0};
        for (uint64_t at = 0; at < 6 * cases[c].round; at++) {
            found[set_of(&info, mri_mixture_sample(m, at / info.count, at % info.count))]++;
            if ((at + 1) % cases[c].round) continue;
            for (uint32_t k = 0; k < SETS; k++) { /* exactly, in every round */
                MRT_EQ(found[k], cases[c].in_round[k]);
                found[k] = 0;
            }
        }
        mri_mixture_destroy(m);
    }
}

/* After each round no sample of a set has come more than once oftener than another; each pass has an order of
 * its own. */
static void all_come_before_one_comes_again(void **state)
{
    (void)state;
    for (size_t c = 0; c < 3; c++) {
        mr_mix_set sets[SETS];
        const mr_source_info info = info_of(sets, cases[c].counts, cases[c].shares);
        mri_mixture *m = mixture_of(&info, 3);
        uint32_t *times = calloc(info.count, sizeof *times);
        for (uint64_t at = 0; at < 40 * cases[c].round; at++) {
            times[mri_mixture_sample(m, at / info.count, at % info.count)]++;
            for (uint32_t k = 0; k < SETS && (at + 1) % cases[c].round == 0; k++) {
                const uint64_t came = (at + 1) / cases[c].round * cases[c].in_round[k],
                               least = came / sets[k].count;
                for (uint64_t i = 0; i < sets[k].count; i++) {
                    const uint32_t so_often = times[sets[k].first + i];
                    MRT_TRUE(so_often == least || so_often == least + 1);
                }
            }
        }
        free(times);
        mri_mixture_destroy(m);
    }
}

static void passes_have_orders_of_their_own(void **state)
{
    (void)state;
    mr_mix_set sets[SETS];
    const mr_source_info info =
        info_of(sets, (const uint64_t[SETS]){40, 40, 40}, (const double[SETS]){0.5, 0.25, 0.25});
    mri_mixture *m = mixture_of(&info, 3);
    uint64_t first[40], taken = 0, same = 0;
    for (uint64_t at = 0; taken < 80; at++) {
        const uint64_t sample = mri_mixture_sample(m, at / info.count, at % info.count);
        if (set_of(&info, sample) != 0) continue;
        if (taken < 40) first[taken] = sample;
        else same += first[taken - 40] == sample;
        taken++;
    }
    MRT_TRUE(same < 10);
    mri_mixture_destroy(m);
}

static void the_seed_decides(void **state)
{
    (void)state;
    mr_mix_set sets[SETS];
    const mr_source_info info = info_of(sets, cases[0].counts, cases[0].shares);
    mri_mixture *a = mixture_of(&info, 1), *b = mixture_of(&info, 1), *c = mixture_of(&info, 2);
    uint32_t differ = 0, epochs_differ = 0;
    for (uint64_t p = 0; p < info.count; p++) {
        const uint64_t sample = mri_mixture_sample(a, 5, p);
        MRT_EQ(sample, mri_mixture_sample(b, 5, p));
        differ += sample != mri_mixture_sample(c, 5, p);
        epochs_differ += sample != mri_mixture_sample(a, 6, p);
    }
    MRT_TRUE(differ > info.count / 2 && epochs_differ > info.count / 2);
    mri_mixture_destroy(a);
    mri_mixture_destroy(b);
    mri_mixture_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_has_its_share),
        cmocka_unit_test(all_come_before_one_comes_again),
        cmocka_unit_test(passes_have_orders_of_their_own),
        cmocka_unit_test(the_seed_decides),
    };
    return mrt_run(tests);
}
