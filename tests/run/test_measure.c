/* tests/run/test_measure.c: rates of a loader and of a trainer, each alone: counts, an end, a stop,
 * the trainer in the program's hands before it is closed. No rate is compared with another: machines differ.
 */
#include "millrace/measure.h"
#include "tests/own_source.h"

enum { SAMPLES = 64, SIDE = 4, BATCH = 8, CLASSES = 4 };

static int fetch(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    (void)context;
    const uint8_t pixels[SIDE * SIDE] = {(uint8_t)sample};
    return mrt_own_give(to, pixels, SIDE, (int64_t)(sample % CLASSES), err);
}

static mr_loader *open_loader(const mr_source *src, uint64_t epochs)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.epochs = epochs;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    return l;
}

static void a_loader_has_a_rate(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_source *src = mrt_own_source(SAMPLES, SIDE, CLASSES, fetch, NULL);
    mr_loader *l = open_loader(src, UINT64_MAX);
    volatile int stop = 1;
    mr_rate rate;
    mr_measure_config cfg;
    mr_measure_defaults(&cfg);
    cfg.seconds = 0; /* a batch in each round */
    cfg.rounds = 3;
    MRT_OK(mr_measure_loader(l, NULL, 0, &cfg, &rate, &err), &err);
    MRT_EQ(rate.steps, 3);
    MRT_EQ(rate.rounds, 3);
    MRT_EQ(rate.warmup_steps, mr_loader_info_of(l)->prefetch + 2);
    MRT_TRUE(rate.samples_per_s > 0 && rate.step_ms > 0);
    cfg.stop = &stop;
    MRT_EQ(mr_measure_loader(l, NULL, 0, &cfg, &rate, &err), MR_ECANCELED);
    mr_loader_close(l);

    l = open_loader(src, 1);
    cfg.stop = NULL;
    cfg.seconds = 1e9; /* more than there is */
    MRT_EQ(mr_measure_loader(l, NULL, 0, &cfg, &rate, &err), MR_EEND);
    mr_loader_close(l);
    mr_source_close(src);
}

typedef struct closing {
    uint32_t times;
    int status;
} closing;

static void on_close(void *context, const mr_trainer *t, int status, const mr_error *err)
{
    closing *c = context;
    (void)err;
    c->times++;
    c->status = status;
    MRT_TRUE(!mr_trainer_hangs(t));
}

/* Settings of a trainer, with a network and a device. */
typedef struct trainer_parts {
    mr_trainer_config cfg;
    mr_net *net;
    mr_device **devices;
    uint32_t count;
} trainer_parts;

static void open_parts(trainer_parts *p, bool convolution)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_devices_open(&p->devices, &p->count, "cpu", NULL, &err), &err);
    MRT_EQ(mr_net_create(&p->net, "net", SIDE, SIDE, 1), MR_OK);
    if (convolution) mr_net_conv2d(p->net, 2, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_dense(p->net, CLASSES, MR_ACT_NONE);
    mr_trainer_defaults(&p->cfg);
    p->cfg.net = p->net;
    p->cfg.devices = p->devices;
    p->cfg.device_count = p->count;
    p->cfg.batch = BATCH;
    p->cfg.update = mr_update_rule_find("sgd")->desc;
    p->cfg.schedule.lr = 0.01f;
}

static void close_parts(trainer_parts *p)
{
    mr_net_destroy(p->net);
    mr_devices_close(p->devices, p->count);
}

static void a_trainer_has_a_rate(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_rate rate;
    closing c = {.times = 0};
    mr_measure_config cfg;
    trainer_parts p;
    open_parts(&p, false);
    mr_measure_defaults(&cfg);
    cfg.seconds = 0;
    cfg.on_close = on_close;
    cfg.context = &c;
    MRT_EQ(mr_measure_trainer(&p.cfg, &cfg, &rate, &err), MR_EINVAL); /* which batch is not said */
    cfg.height = cfg.width = SIDE - 1;
    cfg.channels = 1;
    MRT_EQ(mr_measure_trainer(&p.cfg, &cfg, &rate, &err), MR_EINVAL); /* the network reads more */
    MRT_HAS(err.text, "the batch has");
    MRT_EQ(c.times, 0);
    cfg.height = cfg.width = SIDE;
    cfg.classes = CLASSES;
    MRT_OK(mr_measure_trainer(&p.cfg, &cfg, &rate, &err), &err);
    MRT_TRUE(c.times == 1 && c.status == MR_OK);
    MRT_TRUE(rate.steps >= 5 && rate.warmup_steps == 3);
    MRT_TRUE(rate.samples_per_s > 0);
    volatile int stop = 1;
    cfg.stop = &stop;
    MRT_EQ(mr_measure_trainer(&p.cfg, &cfg, &rate, &err), MR_ECANCELED);
    MRT_TRUE(c.times == 2 && c.status == MR_ECANCELED);
    close_parts(&p);
}

static void the_machine_has_rates(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_source *src = mrt_own_source(SAMPLES, SIDE, CLASSES, fetch, NULL);
    mr_machine_rate rate;
    mr_measure_config cfg;
    volatile int stop = 1;
    mr_measure_defaults(&cfg);
    cfg.seconds = 0.01;
    cfg.rounds = 2;
    for (int at = 0; at < MR_MACHINE_DECODE; at++) {
        MRT_OK(mr_measure_machine((mr_machine_figure)at, src, NULL, 2, &cfg, &rate, &err), &err);
        MRT_EQ(rate.rounds, 2);
        MRT_EQ(rate.threads, 2);
        MRT_STR(rate.unit, "GB/s");
        MRT_TRUE(rate.value > 0 && rate.name[0]);
    }
    MRT_OK(mr_measure_machine(MR_MACHINE_DECODE, src, NULL, 1, &cfg, &rate, &err), &err);
    MRT_TRUE(rate.rounds == 0 && rate.value == 0); /* pixels are not decoded */
    cfg.stop = &stop;
    MRT_EQ(mr_measure_machine(MR_MACHINE_CRC, src, NULL, 1, &cfg, &rate, &err), MR_ECANCELED);
    mr_source_close(src);
}

typedef struct passes {
    mr_device *device;
    uint32_t count, convolutions;
} passes;

static void take_pass(void *context, const mr_pass_time *p)
{
    passes *k = context;
    k->count++;
    k->convolutions = p->number;
    MRT_EQ(p->op->desc->kind, MR_OP_CONV2D);
    MRT_EQ(p->samples, BATCH);
    MRT_TRUE(p->rounds >= 3 && p->gflop_per_s >= 0);
    MRT_TRUE(p->op->info->algorithm[p->pass]);
}

static void passes_on_close(void *context, const mr_trainer *t, int status, const mr_error *why)
{
    passes *k = context;
    mr_error err = MR_ERROR_INIT;
    mr_measure_config cfg;
    volatile int stop = 1;
    MRT_OK(status, why);
    mr_measure_defaults(&cfg);
    cfg.seconds = 0;
    MRT_EQ(mr_measure_passes(t, k->device, 0, &cfg, take_pass, k, &err), MR_EINVAL);
    MRT_OK(mr_measure_passes(t, k->device, BATCH, &cfg, take_pass, k, &err), &err);
    cfg.stop = &stop;
    MRT_EQ(mr_measure_passes(t, k->device, BATCH, &cfg, take_pass, k, &err),
           k->count ? MR_ECANCELED : MR_OK); /* without passes there is nothing to stop */
}

static void each_pass_of_a_convolution_has_a_time(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_measure_config cfg;
    trainer_parts p;
    open_parts(&p, true);
    passes k = {.device = p.devices[0]};
    mr_measure_defaults(&cfg);
    cfg.seconds = 0;
    cfg.height = cfg.width = SIDE;
    cfg.channels = 1;
    cfg.classes = CLASSES;
    cfg.on_close = passes_on_close;
    cfg.context = &k;
    MRT_OK(mr_measure_trainer(&p.cfg, &cfg, NULL, &err), &err);
    MRT_TRUE(k.count <= 3 && k.convolutions <= 1);
    close_parts(&p);
}

static void a_median_is_the_middle(void **state)
{
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {4, 1, 2, 3}, mad;
    MRT_TRUE(mr_measure_median(odd, 3, &mad) == 3 && mad == 1.4826 * 2);
    MRT_TRUE(mr_measure_median(even, 4, NULL) == 2.5);
    MRT_TRUE(mr_measure_median(NULL, 0, &mad) == 0 && mad == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loader_has_a_rate),    cmocka_unit_test(a_trainer_has_a_rate),
        cmocka_unit_test(the_machine_has_rates),  cmocka_unit_test(each_pass_of_a_convolution_has_a_time),
        cmocka_unit_test(a_median_is_the_middle),
    };
    return mrt_run(tests);
}
