/* The size of gradient buckets, looked for while training goes on: against made-up machines, and with a
 * trainer, whose weights stay the same bits. */
#include <math.h>

#include "tests/train/rig.h"

#define MS 1000000.0

static uint64_t random_state = 1;

/* -1..1 */
static double noise(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(random_state >> 11) / 0x1p52 - 1;
}

typedef struct outcome {
    uint32_t best, steps;
    double gain;
} outcome;

/* Steps of `ms` for each size; after a change two more of the old size are reported, as they were queued. */
static outcome tuned(const double *ms, uint32_t sizes, double noise_part)
{
    mri_bucket_tuner t;
    const uint64_t bytes[MRI_BUCKET_SIZES] = {25, 0, 1, 4};
    outcome out = {0};
    uint64_t use = bytes[0];
    mri_bucket_tuner_begin(&t, bytes, sizes);
    for (uint32_t late = 0; !t.done; out.steps++) {
        uint32_t k = 0;
        while (bytes[k] != use) k++;
        const double drift = 1 + 0.2 * sin(out.steps / 50.0); /* the machine is slower for a while */
        mri_bucket_tuner_step(&t, (uint64_t)(ms[k] * MS * drift * (1 + noise_part * noise())));
        if (t.changes && late++ < 2) continue;
        late = 0;
        use = mri_bucket_tuner_take(&t);
        MRT_TRUE(out.steps < 100000);
    }
    MRT_EQ(mri_bucket_tuner_take(&t), bytes[t.best]);
    out.best = t.best;
    out.gain = t.gain;
    return out;
}

static void it_finds_the_shortest_steps(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const outcome o = tuned((double[]){10, 12, 9, 10}, 4, k ? 0.03 : 0);
        MRT_EQ(o.best, 2);
        MRT_TRUE(o.gain > 1.05 && o.gain < 1.2);
    }
    MRT_EQ(tuned((double[]){10, 5}, 2, 0).best, 1);
}

static void it_leaves_what_is_as_good(void **state)
{
    (void)state;
    for (int k = 0; k < 50; k++) {
        const outcome o = tuned((double[]){10, 10.1, 9.95, 10}, 4, 0.05);
        MRT_TRUE(o.best == 0 && o.gain == 1);
    }
    const outcome none = tuned((double[]){10}, 1, 0);
    MRT_TRUE(none.best == 0 && none.steps == 0);
}

/* Steps of seconds: one round is too little to decide by. */
static void it_ends_in_time(void **state)
{
    (void)state;
    const outcome o = tuned((double[]){3000, 2000, 1000, 3000}, 4, 0);
    MRT_TRUE(o.best == 0 && o.steps < 60);
}

/* Large enough that latencies are an eighth of the exchange, and never all at once where several such fit. */
static void size_follows_from_the_network(void **state)
{
    (void)state;
    const uint64_t mega = 1000000;
    mri_link_speed s = {.latency_s = 1e-4, .s_per_byte = 8e-9, .processes = 2}; /* 1 Gbit/s */
    MRT_EQ(mri_link_speed_bucket(&s, 5 * mega), 200000);
    MRT_EQ(mri_link_speed_bucket(&s, 300000), 0);
    MRT_TRUE(mri_link_speed_sum_s(&s, 5 * mega) > 0.0401 && mri_link_speed_sum_s(&s, 5 * mega) < 0.0403);
    s.s_per_byte = 80e-9; /* 0.1 Gbit/s: calls cost, too */
    MRT_EQ(mri_link_speed_bucket(&s, 5 * mega), 65536);
    s.latency_s = 0.05;
    MRT_EQ(mri_link_speed_bucket(&s, 5 * mega), 0);
    MRT_EQ(mri_link_speed_bucket(&s, 100 * mega), 10 * mega);
    s.processes = 4;
    MRT_TRUE(mri_link_speed_bucket(&s, 100 * mega) < 7 * mega);
    s.s_per_byte = 0; /* none was measured */
    MRT_EQ(mri_link_speed_bucket(&s, 100 * mega), 25 * mega);
    MRT_EQ(mri_link_speed_bucket(&s, 100000), 0);
    MRT_EQ(mri_link_speed_bucket(&(mri_link_speed){.processes = 0}, 100 * mega), 0);
}

/* Two equal layers. */
static mr_net *two_layers(uint32_t n)
{
    mr_net *net = NULL;
    MRT_EQ(mr_net_create(&net, "two layers", 10, n / 10, 1), MR_OK);
    mr_net_dense(net, n, MR_ACT_NONE);
    mr_net_dense(net, n, MR_ACT_NONE);
    return net;
}

static mr_exchange_forecast predicted(const mr_net *net, const mr_exchange_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    mr_exchange_forecast f;
    MRT_OK(mr_exchange_predict(net, cfg, &f, &err), &err);
    return f;
}

static bool near(double a, double b) { return fabs(a - b) < 1e-9; }

/* Backward completes the second layer's gradients first, and their sum runs while it computes the first's. */
static void the_exchange_of_a_network_is_predicted(void **state)
{
    (void)state;
    enum { N = 100 };
    const double layer = (N * N + N) * sizeof(float), rate = 1e6;
    mr_net *net = two_layers(N);
    mr_error err = MR_ERROR_INIT;
    mr_exchange_config cfg;
    mr_exchange_defaults(&cfg);
    cfg.ranks = 2;
    cfg.latency_s = 1e-3;
    cfg.bytes_per_s = rate;
    cfg.bucket_bytes = 0;
    mr_exchange_forecast f = predicted(net, &cfg);
    MRT_EQ(f.bytes, (uint64_t)(2 * layer));
    MRT_EQ(f.buckets, 1);
    MRT_TRUE(near(f.sum_s, 2e-3 + 2 * layer / rate) && near(f.exposed_s, f.sum_s));
    cfg.bucket_bytes = 1; /* a bucket for each layer: two more latencies */
    f = predicted(net, &cfg);
    MRT_EQ(f.buckets, 2);
    MRT_TRUE(near(f.sum_s, 4e-3 + 2 * layer / rate) && near(f.exposed_s, f.sum_s)); /* a step of no time */
    cfg.step_s = 1; /* two forward passes, backward two and one: the last fifth hides the first sum */
    f = predicted(net, &cfg);
    MRT_TRUE(near(f.exposed_s, 2e-3 + layer / rate));
    cfg.step_s = 0.1;
    f = predicted(net, &cfg);
    MRT_TRUE(near(f.exposed_s, f.sum_s - 0.02));
    cfg.no_overlap = true;
    f = predicted(net, &cfg);
    MRT_TRUE(near(f.exposed_s, f.sum_s));
    cfg.ranks = 4;
    f = predicted(net, &cfg);
    MRT_TRUE(near(f.sum_s, 4e-3 + 1.5 * 2 * layer / rate));
    cfg.bucket_bytes = MR_BUCKET_AUTO; /* the trainer's choice */
    f = predicted(net, &cfg);
    const mri_link_speed link = {.latency_s = 1e-3, .s_per_byte = 1 / rate, .processes = 4};
    MRT_EQ(f.bucket_bytes, mri_link_speed_bucket(&link, f.bytes));
    cfg.ranks = 1;
    f = predicted(net, &cfg);
    MRT_TRUE(f.sum_s == 0 && f.exposed_s == 0);
    cfg.ranks = 0;
    MRT_EQ(mr_exchange_predict(net, &cfg, &f, &err), MR_EINVAL);
    cfg.ranks = 2;
    cfg.step_s = NAN;
    MRT_EQ(mr_exchange_predict(net, &cfg, &f, &err), MR_EINVAL);
    mr_net_destroy(net);
}

static mrt_hash trained(const char *devices, bool tune, uint32_t steps, mr_bucket_tuning *out)
{
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = devices,
                                          .seed = 6,
                                          .bucket_bytes = 2000,
                                          .tune_buckets = tune,
                                          .update = MR_UPDATE_MOMENTUM});
    for (uint32_t s = 0; s < steps; s++) {
        mrt_train(&rig, s, s * 31, s % 7 == 3 ? 4 : 31);
        if (!tune) continue;
        mr_trainer_bucket_tuning(rig.t, out);
        MRT_EQ(rig.t->team.replicas[0].plan.bucket_count,
               rig.t->team.replicas[rig.count - 1].plan.bucket_count);
    }
    const mrt_hash h = mrt_hash_of(&rig, 0);
    for (uint32_t i = 1; i < rig.count; i++) MRT_TRUE(mrt_same(h, mrt_hash_of(&rig, i)));
    mr_trainer_bucket_tuning(rig.t, out);
    if (rig.count > 1 && tune) {
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mri_flights_drain(&rig.t->flights, &err), &err);
        MRT_EQ(rig.t->team.replicas[0].plan.bucket_count,
               mri_plan_count_buckets(&rig.t->team.replicas[0].plan, &rig.t->team.replicas[0].nodes,
                                      out->bytes));
    }
    mrt_rig_close(&rig);
    return h;
}

static void a_trainer_that_tunes_trains_the_same(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu:2", "cpu:3"};
    mr_bucket_tuning with, without;
    for (size_t d = 0; d < 2; d++) {
        const mrt_hash plain = trained(devices[d], false, 130, &without);
        MRT_TRUE(mrt_same(plain, trained(devices[d], true, 130, &with)));
        MRT_TRUE(without.done && without.sizes == 1 && without.bytes == 2000 && without.gain == 1);
        MRT_TRUE(with.done && with.sizes == 2 && (with.bytes == 2000 || with.bytes == 0));
    }
    trained("cpu", true, 3, &with); /* nobody to wait for */
    MRT_TRUE(with.done && with.sizes == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_finds_the_shortest_steps),
        cmocka_unit_test(it_leaves_what_is_as_good),
        cmocka_unit_test(it_ends_in_time),
        cmocka_unit_test(size_follows_from_the_network),
        cmocka_unit_test(the_exchange_of_a_network_is_predicted),
        cmocka_unit_test(a_trainer_that_tunes_trains_the_same),
    };
    return mrt_run(tests);
}
