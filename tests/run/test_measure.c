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

static void a_trainer_has_a_rate(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_net *net;
    mr_device **devices;
    uint32_t count;
    mr_rate rate;
    closing c = {.times = 0};
    mr_trainer_config trainer;
    mr_measure_config cfg;
    MRT_OK(mr_devices_open(&devices, &count, "cpu", NULL, &err), &err);
    MRT_EQ(mr_net_create(&net, "net", SIDE, SIDE, 1), MR_OK);
    mr_net_dense(net, CLASSES, MR_ACT_NONE);
    mr_trainer_defaults(&trainer);
    trainer.net = net;
    trainer.devices = devices;
    trainer.device_count = count;
    trainer.batch = BATCH;
    trainer.update = mr_update_rule_find("sgd")->desc;
    trainer.schedule.lr = 0.01f;
    mr_measure_defaults(&cfg);
    cfg.seconds = 0;
    cfg.on_close = on_close;
    cfg.context = &c;
    MRT_EQ(mr_measure_trainer(&trainer, &cfg, &rate, &err), MR_EINVAL); /* which batch is not said */
    cfg.height = cfg.width = SIDE - 1;
    cfg.channels = 1;
    MRT_EQ(mr_measure_trainer(&trainer, &cfg, &rate, &err), MR_EINVAL); /* the network reads more */
    MRT_HAS(err.text, "the batch has");
    MRT_EQ(c.times, 0);
    cfg.height = cfg.width = SIDE;
    cfg.classes = CLASSES;
    MRT_OK(mr_measure_trainer(&trainer, &cfg, &rate, &err), &err);
    MRT_TRUE(c.times == 1 && c.status == MR_OK);
    MRT_TRUE(rate.steps >= 5 && rate.warmup_steps == 3);
    MRT_TRUE(rate.samples_per_s > 0);
    volatile int stop = 1;
    cfg.stop = &stop;
    MRT_EQ(mr_measure_trainer(&trainer, &cfg, &rate, &err), MR_ECANCELED);
    MRT_TRUE(c.times == 2 && c.status == MR_ECANCELED);
    mr_net_destroy(net);
    mr_devices_close(devices, count);
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
        cmocka_unit_test(a_loader_has_a_rate),
        cmocka_unit_test(a_trainer_has_a_rate),
        cmocka_unit_test(a_median_is_the_middle),
    };
    return mrt_run(tests);
}
