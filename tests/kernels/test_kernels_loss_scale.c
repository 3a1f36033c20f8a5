/* kernels: scaled losses: gradients that are scaled back update to the bit as others do, one that overflows
 * leaves everything alone, and the scale follows. */
#include "tests/kernels/update_tensors.h"

/* One update with every gradient g[i] but one, which is `odd`. */
static void scaled_update(struct rig *r, mr_update_desc d, uint64_t count, float *const a[4],
                          mr_loss_scale *scale, uint64_t at, float odd, bool clips)
{
    mr_error err = MR_ERROR_INIT;
    mr_step_values v = {0};
    MRT_OK(mr_update_values(&d, &v), NULL);
    const float before = a[1][at];
    if (odd != 0) a[1][at] = odd;
    mr_update_config cfg;
    mr_update_defaults(&cfg);
    cfg.rule = d;
    cfg.args = (mr_update_args){.count = count,
                                .weights = a[0],
                                .grads = a[1],
                                .state = {a[2], a[3]},
                                .values = &v,
                                .loss_scale = scale};
    cfg.norm = malloc((size_t)mr_update_norm_count(count) * sizeof(double));
    set_tensors(r, &cfg, count, false);
    if (clips) cfg.clip_value = 0.75f, cfg.clip_norm = 0.5f;
    MRT_OK(mr_update_run_async(r->s, &cfg), NULL);
    MRT_OK(mr_stream_sync(r->s, &err), &err);
    free(cfg.norm);
    a[1][at] = before;
}

/* Scaled gradients update as unscaled ones, to the bit; an overflow anywhere leaves everything alone and
 * halves the scale; after enough good updates in a row it doubles. */
static void check_loss_scale(mr_update_desc d, uint64_t count, bool clips)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    struct rig r;
    rig_open(&r, "cpu", false);
    float *a[4], *b[4], *kept = calloc(count, 4);
    for (int k = 0; k < 4; k++) a[k] = rig_memory(&r, count * 4), b[k] = rig_memory(&r, count * 4);
    mr_loss_scale *scale = rig_memory(&r, sizeof *scale);
    *scale = (mr_loss_scale){.scale = 1024, .growth_steps = 3};
    rig_noise(a[0], count, 1);
    memcpy(b[0], a[0], count * 4);
    uint64_t skipped = 0;
    uint32_t good = 0;
    float expected = 1024;
    for (int step = 0; step < 14; step++) {
        rig_noise(b[1], count, (uint64_t)step + 2);
        for (uint64_t i = 0; i < count; i++) a[1][i] = b[1][i] * expected;
        const bool bad = step == 1 || step == 5 || step == 6 || step == 13;
        d.step = (uint64_t)step + 1;
        memcpy(kept, a[0], count * 4);
        scaled_update(&r, d, count, a, scale, bad ? (uint64_t)step * 7919 % count : 0,
                      bad ? odd[step % 3] : 0, clips);
        if (bad) {
            MRT_TRUE(memcmp(kept, a[0], count * 4) == 0);
            expected /= 2, good = 0, skipped++;
        } else {
            scaled_update(&r, d, count, b, NULL, 0, 0, clips);
            if (++good == 3) expected *= 2, good = 0;
        }
        MRT_TRUE(scale->scale == expected);
        MRT_EQ(scale->good, good);
        MRT_EQ(scale->skipped, skipped);
        MRT_EQ(scale->overflow, 0);
        MRT_TRUE(memcmp(a[0], b[0], count * 4) == 0 && memcmp(a[2], b[2], count * 4) == 0 &&
                 memcmp(a[3], b[3], count * 4) == 0);
    }
    free(kept);
    rig_close(&r);
}

static void loss_scales_live(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 19, 70001};
    for (int k = 0; k < 3; k++)
        for (int kind = 0; kind < MR_UPDATE_KIND_COUNT; kind++)
            check_loss_scale((mr_update_desc){.kind = (mr_update_kind)kind,
                                              .lr = 0.01f,
                                              .momentum = 0.9f,
                                              .rho = 0.9f,
                                              .beta1 = 0.9f,
                                              .beta2 = 0.999f,
                                              .epsilon = 1e-3f,
                                              .weight_decay = 0.1f},
                             counts[k], kind % 2);
}

/* 1 and 2^24 are the ends; with growth_steps 0 the scale stays, and updates are skipped all the same. */
static void loss_scales_have_ends(void **state)
{
    (void)state;
    static const struct {
        float from;
        uint32_t growth;
        bool bad;
        float to;
    } cases[] = {
        {1, 1, true, 1},
        {2, 1, true, 1},
        {16777216, 1, false, 16777216},
        {8388608, 1, false, 16777216},
        {64, 0, true, 64},
        {64, 0, false, 64},
        {64, 2, false, 64},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        struct rig r;
        rig_open(&r, "cpu", false);
        float *const a[4] = {rig_memory(&r, 4), rig_memory(&r, 4), NULL, NULL};
        mr_loss_scale *scale = rig_memory(&r, sizeof *scale);
        *scale = (mr_loss_scale){.scale = cases[i].from, .growth_steps = cases[i].growth};
        a[1][0] = cases[i].from;
        scaled_update(&r, (mr_update_desc){.kind = MR_UPDATE_SGD, .lr = 0.5f}, 1, a, scale, 0,
                      cases[i].bad ? NAN : 0, false);
        MRT_TRUE(scale->scale == cases[i].to);
        MRT_EQ(scale->skipped, cases[i].bad);
        MRT_TRUE(a[0][0] == (cases[i].bad ? 0 : -0.5f));
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_scales_live),
        cmocka_unit_test(loss_scales_have_ends),
    };
    return mrt_run(tests);
}
