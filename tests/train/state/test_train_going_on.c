/* train_going_on: settings out of a checkpoint (mr_checkpoint_open()). A run resumes with them bit for bit,
 * and with no others; an evaluation takes the program's settings. */
#include <unistd.h>

#include "millrace/run.h"
#include "tests/train/fit_rig.h"

static const run_options few = {
    .rig = {.devices = "cpu", .update = MR_UPDATE_ADAM, .seed = 2, .average = 0.9f, .clip_norm = 1},
    .epochs = 3,
    .prefetch = 2};

/* A run that stops behind this step (UINT64_MAX: at its end), its checkpoints in the folder. */
static void stopped(const char *folder, uint64_t step)
{
    mr_error err = MR_ERROR_INIT;
    run r;
    seen s;
    run_open(&r, &few);
    mr_fit_config cfg = fit_config(&r, &s, folder);
    cfg.val = NULL;
    cfg.epochs = few.epochs;
    s.stop_at_step = step;
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), step == UINT64_MAX ? MR_OK : MR_ECANCELED);
    run_close(&r);
}

/* Objects opened with a checkpoint's settings. */
typedef struct going_on {
    mr_checkpoint *from;
    mr_source *src;
    mr_device **devices;
    uint32_t count;
    mr_loader_config batches;
    mr_trainer_config training;
    mr_loader *loader;
    mr_trainer *t;
} going_on;

static void open_data(going_on *g, const char *folder, mr_use use)
{
    mr_error err = MR_ERROR_INIT;
    mr_source_config source;
    mr_devices_config devices;
    mr_source_defaults(&source);
    mr_devices_defaults(&devices);
    mr_loader_defaults(&g->batches);
    mr_trainer_defaults(&g->training);
    MRT_OK(mr_checkpoint_open(&g->from, folder, use, &err), &err);
    MRT_OK(mr_checkpoint_source(g->from, &source, &err), &err);
    MRT_OK(mr_source_open(&g->src, mrt_toy_set("train", 0, TRAIN), &source, &err), &err);
    devices.compute_threads = 1; /* as the rig has */
    MRT_OK(mr_checkpoint_devices(g->from, &devices, &err), &err);
    MRT_OK(mr_devices_open(&g->devices, &g->count, "cpu", &devices, &err), &err);
}

static void open_rest(going_on *g)
{
    mr_error err = MR_ERROR_INIT;
    g->batches.devices = g->training.devices = g->devices;
    g->batches.device_count = g->training.device_count = g->count;
    MRT_OK(mr_loader_open(&g->loader, g->src, &g->batches, &err), &err);
    MRT_OK(mr_checkpoint_trainer(g->from, g->loader, &g->training, &err), &err);
    MRT_OK(mr_trainer_open(&g->t, &g->training, &err), &err);
    MRT_OK(mr_trainer_load(g->t, mr_checkpoint_path(g->from), NULL, &err), &err);
}

static void close_all(going_on *g)
{
    mr_trainer_close(g->t);
    mr_loader_close(g->loader);
    mr_devices_close(g->devices, g->count);
    mr_source_close(g->src);
    mr_checkpoint_close(g->from);
}

static void test_a_run_goes_on_bit_for_bit(void **state)
{
    (void)state;
    const mrt_hash whole = undisturbed(&few, NULL);
    static const uint64_t at[] = {1, STEPS, STEPS + 2};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        mr_error err = MR_ERROR_INIT;
        char name[32];
        snprintf(name, sizeof name, "going-on-%zu", i);
        const char *folder = mrt_path(name);
        going_on g = {0};
        mr_fit_config fit;
        mrt_hash here;
        stopped(folder, at[i]);
        open_data(&g, folder, MR_USE_TRAIN);
        MRT_OK(mr_checkpoint_loader(g.from, g.src, &g.batches, &err), &err);
        MRT_EQ(g.batches.seed, 11);
        MRT_EQ(g.batches.epochs, 3);
        open_rest(&g);
        MRT_EQ(g.training.seed, 2);
        mr_fit_defaults(&fit);
        fit.checkpoint_dir = folder;
        MRT_OK(mr_fit(g.t, g.loader, &fit, NULL, &err), &err);
        MRT_OK(mr_trainer_weights_hash(g.t, 0, &here.lo, &here.hi, &err), &err);
        MRT_TRUE(mrt_same(here, whole));
        close_all(&g);
    }
}

/* Nothing is left to do: an answer of its own, no mistake. */
static void test_a_complete_run_is_told(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *folder = mrt_path("going-on-complete");
    going_on g = {0};
    stopped(folder, UINT64_MAX);
    open_data(&g, folder, MR_USE_TRAIN);
    MRT_OK(mr_checkpoint_loader(g.from, g.src, &g.batches, &err), &err);
    g.batches.devices = g.devices;
    g.batches.device_count = g.count;
    MRT_EQ(mr_loader_open(&g.loader, g.src, &g.batches, &err), MR_EEND);
    MRT_HAS(err.text, "start_epoch 3 with epochs 3: all epochs are done");
    g.batches.epochs = 4; /* the run continues */
    open_rest(&g);
    MRT_OK(mr_fit(g.t, g.loader, NULL, NULL, &err), &err);
    close_all(&g);
}

/* Settings that the program changes from the run's. */
static void set_batch(mr_loader_config *c) { c->batch = 10; }
static void set_seed(mr_loader_config *c) { c->seed = 5; }
static void set_order(mr_loader_config *c) { c->order = MR_ORDER_SEQUENTIAL; }
static void set_tail(mr_loader_config *c) { c->tail = MR_TAIL_DROP; }
static void set_repeats(mr_loader_config *c) { c->repeats = 2; }
static void set_window(mr_loader_config *c) { c->length_window = 4; }
static void set_epoch(mr_loader_config *c) { c->start_epoch = 0; }
static void set_step(mr_loader_config *c) { c->start_step = 0; }
static void set_augment(mr_loader_config *c) { c->augment = "shift(1)"; }
static void set_exif(mr_loader_config *c) { c->decode.ignore_exif = true; }

static const struct {
    void (*set)(mr_loader_config *);
    const char *member;
    bool refused_before; /* where it is set before mr_checkpoint_loader() */
    bool refused_after;  /* by mr_fit() where it is set afterwards */
} others[] = {
    {set_batch, "batch", true, true},        {set_seed, "seed", true, true},
    {set_order, "order", true, true},        {set_tail, "tail", true, true},
    {set_repeats, "repeats", true, true},    {set_window, "length_window", true, true},
    {set_epoch, "start_epoch", false, true}, {set_step, "start_step", false, true},
    {set_augment, "augment", true, false},   {set_exif, "ignore_exif", true, false},
};

static void test_other_settings_are_refused(void **state)
{
    (void)state;
    const char *folder = mrt_path("going-on-others");
    stopped(folder, STEPS + 2);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        mr_error err = MR_ERROR_INIT;
        going_on g = {0};
        mr_fit_config fit;
        open_data(&g, folder, MR_USE_TRAIN);
        others[i].set(&g.batches);
        MRT_EQ(mr_checkpoint_loader(g.from, g.src, &g.batches, &err),
               others[i].refused_before ? MR_EINVAL : MR_OK);
        MRT_TRUE(!others[i].refused_before || strstr(err.text, others[i].member));
        mr_loader_defaults(&g.batches);
        MRT_OK(mr_checkpoint_loader(g.from, g.src, &g.batches, &err), &err);
        others[i].set(&g.batches);
        if (strcmp(others[i].member, "length_window") != 0) { /* sets without sequences have no length
                                                               * window */
            open_rest(&g);
            mr_fit_defaults(&fit);
            const int rc = mr_fit(g.t, g.loader, &fit, NULL, &err);
            MRT_EQ(rc, others[i].refused_after ? MR_EINVAL : MR_OK);
            MRT_TRUE(!others[i].refused_after || strstr(err.text, others[i].member));
        }
        close_all(&g);
    }
}

static void test_other_data_are_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *folder = mrt_path("going-on-data");
    going_on g = {0};
    mr_source *other;
    stopped(folder, 2);
    open_data(&g, folder, MR_USE_TRAIN);
    MRT_OK(mr_source_open(&other, mrt_toy_set("t10k", 5000, VAL), NULL, &err), &err);
    MRT_EQ(mr_checkpoint_loader(g.from, other, &g.batches, &err), MR_EINVAL);
    MRT_TRUE(strstr(err.text, "these are not the data") != NULL);
    mr_source_close(other);
    close_all(&g);
}

/* Resuming from an older checkpoint than the newest one is reported. */
static void test_a_damaged_newest_one_is_told(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *folder = mrt_path("going-on-damaged");
    char path[4096];
    mr_checkpoint *c;
    stopped(folder, STEPS + 2); /* one at the end of the epoch, one after the step */
    MRT_OK(mr_checkpoint_open(&c, folder, MR_USE_TRAIN, &err), &err);
    MRT_TRUE(mr_checkpoint_note(c) == NULL);
    snprintf(path, sizeof path, "%s", mr_checkpoint_path(c));
    mr_checkpoint_close(c);
    MRT_EQ(truncate(path, 2000), 0);
    MRT_OK(mr_checkpoint_open(&c, folder, MR_USE_TRAIN, &err), &err);
    MRT_TRUE(mr_checkpoint_note(c) != NULL && strcmp(mr_checkpoint_path(c), path) != 0);
    mr_checkpoint_close(c);
}

static void test_evaluation_takes_other_settings(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *folder = mrt_path("going-on-evaluate");
    double loss[2], accuracy[2];
    uint64_t count[2];
    stopped(folder, STEPS + 2);
    for (uint32_t i = 0; i < 2; i++) {
        going_on g = {0};
        open_data(&g, folder, MR_USE_EVALUATE);
        if (i) g.batches.batch = 7;
        MRT_OK(mr_checkpoint_loader(g.from, g.src, &g.batches, &err), &err);
        MRT_EQ(g.batches.batch, i ? 7 : BATCH);
        MRT_EQ(g.batches.order, MR_ORDER_SEQUENTIAL);
        MRT_TRUE(!g.batches.training);
        open_rest(&g);
        MRT_TRUE(g.training.inference);
        MRT_OK(mr_evaluate(g.t, g.loader, &loss[i], &accuracy[i], &count[i], &err), &err);
        close_all(&g);
    }
    MRT_EQ(count[0], TRAIN);
    MRT_EQ(count[1], TRAIN);
    MRT_TRUE(accuracy[0] == accuracy[1] && loss[0] - loss[1] < 1e-6 && loss[1] - loss[0] < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_goes_on_bit_for_bit),
        cmocka_unit_test(test_a_complete_run_is_told),
        cmocka_unit_test(test_other_settings_are_refused),
        cmocka_unit_test(test_other_data_are_refused),
        cmocka_unit_test(test_a_damaged_newest_one_is_told),
        cmocka_unit_test(test_evaluation_takes_other_settings),
    };
    return mrt_run(tests);
}
