/* tests/run/test_run.c: whole runs: one that is stopped and opened again has the weights of one that is not;
 * evaluation and prediction of its checkpoint; refused settings. The command's weights are compared by the
 * test of the examples. */
#include <stdlib.h>
#include <sys/stat.h>

#include "millrace/run.h"
#include "mrt.h"

enum { SIDE = 6, SAMPLES = 40, BATCH = 8 };

static mr_error err = MR_ERROR_INIT;
static char train_set[512], val_set[512], notes[4096];

static void write_set(char path[512], const char *name, uint32_t count)
{
    static const mr_field fields[] = {
        {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}},
        {.name = "label", .type = MR_TYPE_INT}};
    static const char *const classes[] = {"dark", "bright"};
    mr_writer *w;
    mr_writer_config cfg;
    uint8_t pixels[SIDE * SIDE];
    mr_writer_defaults(&cfg);
    cfg.field_count = 2;
    cfg.fields = fields;
    cfg.class_count = 2;
    cfg.class_names = classes;
    snprintf(path, 512, "%s/%s", mrt_temp(), name);
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t p = 0; p < sizeof pixels; p++)
            pixels[p] = (uint8_t)((i % 2 ? 160 : 20) + (i * 7 + p * 13) % 64);
        const mr_value values[] = {{.type = MR_TYPE_PIXELS,
                                    .ndim = 3,
                                    .dim = {SIDE, SIDE, 1},
                                    .data = pixels,
                                    .bytes = sizeof pixels},
                                   {.type = MR_TYPE_INT, .i = i % 2}};
        MRT_OK(mr_writer_append(w, i, values, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
}

static int make_data(void **state)
{
    (void)state;
    write_set(train_set, "train.mrec", SAMPLES);
    write_set(val_set, "val.mrec", SAMPLES / 2);
    return 0;
}

static mr_net *make_net(void)
{
    mr_net *net;
    MRT_OK(mr_net_create(&net, "small", SIDE, SIDE, 1), NULL);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_dense(net, 2, MR_ACT_NONE);
    MRT_OK(mr_net_check(net, &err), &err);
    return net;
}

static void on_note(void *context, const char *text)
{
    (void)context;
    const size_t at = strlen(notes);
    snprintf(notes + at, sizeof notes - at, "%s\n", text);
}

static void set_run(mr_run_config *cfg, const mr_net *net, mr_loader_config *loader,
                    mr_trainer_config *trainer)
{
    mr_run_defaults(cfg);
    mr_loader_defaults(loader);
    mr_trainer_defaults(trainer);
    loader->batch = BATCH;
    loader->epochs = 3;
    loader->augment = "flip";
    loader->seed = 5;
    trainer->update.momentum = 0.5f;
    trainer->schedule.lr = 0.05f;
    cfg->data = train_set;
    cfg->val = val_set;
    cfg->net = net;
    cfg->loader = loader;
    cfg->trainer = trainer;
    cfg->on_note = on_note;
}

static uint64_t hash_of(mr_run *r)
{
    uint64_t low, high;
    MRT_OK(mr_trainer_weights_hash(mr_run_info_of(r)->trainer, 0, &low, &high, &err), &err);
    return low;
}

static int on_outputs(void *context, const mr_outputs *o, mr_error *why)
{
    (void)why;
    uint32_t *right = context;
    for (uint32_t i = 0; i < o->count; i++)
        *right += o->ids[i] != MR_NOWHERE &&
                  mr_outputs_best(o->logits + (size_t)i * o->classes, o->classes) == o->ids[i] % 2;
    return MR_OK;
}

static void check_evaluation(const char *folder, double wanted)
{
    mr_run *r;
    mr_run_config cfg;
    mr_outputs_config outputs;
    double loss, accuracy;
    uint64_t count;
    uint32_t right = 0;
    mr_run_defaults(&cfg);
    cfg.use = MR_USE_EVALUATE;
    cfg.data = val_set;
    cfg.checkpoint = folder;
    MRT_OK(mr_run_open(&r, &cfg, &err), &err);
    MRT_OK(mr_run_evaluate(r, NULL, &loss, &accuracy, &count, &err), &err);
    MRT_EQ(count, SAMPLES / 2);
    MRT_TRUE(accuracy == wanted && mr_run_info_of(r)->from);
    MRT_EQ(mr_run_fit(r, NULL, NULL, &err), MR_EINVAL);
    mr_run_close(r);
    cfg.use = MR_USE_PREDICT;
    mr_outputs_defaults(&outputs);
    outputs.on_outputs = on_outputs;
    outputs.context = &right;
    MRT_OK(mr_run_open(&r, &cfg, &err), &err);
    MRT_EQ(mr_run_evaluate(r, NULL, NULL, NULL, NULL, &err), MR_EINVAL);
    MRT_OK(mr_run_predict(r, &outputs, &err), &err);
    mr_run_close(r);
    MRT_TRUE(right == (uint32_t)(wanted * (SAMPLES / 2) + 0.5));
}

static void a_stopped_run_continues(void **state)
{
    (void)state;
    mr_run *r;
    mr_run_config cfg;
    mr_loader_config loader;
    mr_trainer_config trainer;
    mr_fit_config fit;
    mr_report last;
    char folder[512];
    mr_net *net = make_net();
    set_run(&cfg, net, &loader, &trainer);
    MRT_OK(mr_run_open(&r, &cfg, &err), &err);
    MRT_OK(mr_run_fit(r, NULL, &last, &err), &err);
    const uint64_t wanted = hash_of(r);
    MRT_TRUE(last.epoch == 2 && last.has_val);
    mr_run_close(r);

    snprintf(folder, sizeof folder, "%s/run", mrt_temp());
    cfg.checkpoint = folder;
    cfg.resume = true; /* there is nothing yet */
    MRT_OK(mr_run_open(&r, &cfg, &err), &err);
    MRT_HAS(notes, "no checkpoint yet");
    MRT_TRUE(!mr_run_info_of(r)->from);
    mr_fit_defaults(&fit);
    fit.max_steps = 7;
    MRT_OK(mr_run_fit(r, &fit, NULL, &err), &err);
    MRT_TRUE(hash_of(r) != wanted);
    mr_run_close(r);
    mr_net_destroy(net);

    cfg.net = NULL; /* the checkpoint has it, and every setting */
    mr_loader_defaults(&loader);
    cfg.trainer = NULL;
    loader.epochs = 3;
    MRT_OK(mr_run_open(&r, &cfg, &err), &err);
    MRT_TRUE(mr_run_info_of(r)->from && strcmp(mr_run_info_of(r)->model, "small") == 0);
    MRT_EQ(mr_loader_info_of(mr_run_info_of(r)->loader)->batch, BATCH);
    MRT_OK(mr_run_fit(r, NULL, &last, &err), &err);
    MRT_TRUE(hash_of(r) == wanted && last.has_val);
    mr_run_close(r);
    check_evaluation(folder, last.val_accuracy);

    MRT_OK(mr_run_open(&r, &cfg, &err), &err); /* complete: not a step more */
    MRT_OK(mr_run_fit(r, NULL, NULL, &err), &err);
    MRT_TRUE(hash_of(r) == wanted);
    double accuracy;
    MRT_OK(mr_run_evaluate(r, NULL, NULL, &accuracy, NULL, &err), &err);
    MRT_TRUE(accuracy == last.val_accuracy);
    mr_run_close(r);
    loader.seed = 6; /* another run's */
    MRT_EQ(mr_run_open(&r, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "seed");
}

static void two_runs_do_not_share_a_folder(void **state)
{
    (void)state;
    mr_run *r;
    mr_run_config cfg;
    mr_loader_config loader;
    mr_trainer_config trainer;
    char folder[512], file[600];
    mr_net *net = make_net();
    snprintf(folder, sizeof folder, "%s/shared", mrt_temp());
    set_run(&cfg, net, &loader, &trainer);
    loader.epochs = 1;
    cfg.val = "none";
    cfg.checkpoint = folder;
    for (int k = 0; k < 2; k++) {
        MRT_OK(mr_run_open(&r, &cfg, &err), &err);
        MRT_TRUE(!mr_run_info_of(r)->val && !mr_run_info_of(r)->val_loader);
        MRT_EQ(mr_run_evaluate(r, NULL, NULL, NULL, NULL, &err), MR_EINVAL);
        MRT_EQ(mr_run_fit(r, NULL, NULL, &err), k ? MR_EEXIST : MR_OK);
        mr_run_close(r);
    }
    snprintf(folder, sizeof folder, "%s/damaged", mrt_temp());
    MRT_EQ(mkdir(folder, 0777), 0);
    snprintf(file, sizeof file, "%s/step-000000000001.mrck", folder);
    MRT_OK(mr_output_whole(file, "damaged", 7, NULL, &err), &err);
    cfg.resume = true;
    MRT_EQ(mr_run_open(&r, &cfg, &err), MR_EFORMAT); /* not begun anew: it may still be rescued */
    MRT_TRUE(!r);
    mr_net_destroy(net);
}

/* A named model brings its rule and rate; a rate of the program's own is the run's. */
static void a_rate_of_the_program_counts(void **state)
{
    (void)state;
    mr_run *r;
    mr_run_config cfg;
    mr_loader_config loader;
    mr_trainer_config trainer;
    mr_devices_config device;
    mr_fit_config fit;
    mr_report last;
    mr_devices_defaults(&device);
    device.compute_threads = 1; /* the thread sanitizer does not know those of OpenMP */
    for (int k = 0; k < 2; k++) {
        set_run(&cfg, NULL, &loader, &trainer);
        cfg.device = &device;
        mr_trainer_defaults(&trainer);
        mr_fit_defaults(&fit);
        fit.max_steps = 1;
        if (k) trainer.update.lr = 0.375f;
        cfg.model = "mnist-mlp";
        cfg.val = "none";
        MRT_OK(mr_run_open(&r, &cfg, &err), &err);
        MRT_OK(mr_run_fit(r, &fit, &last, &err), &err);
        MRT_TRUE(last.lr == (k ? 0.375f : mr_model_find("mnist-mlp")->update.lr));
        mr_run_close(r);
    }
}

static void settings_are_checked(void **state)
{
    (void)state;
    mr_run *r;
    mr_run_config cfg;
    mr_run_defaults(&cfg);
    MRT_EQ(mr_run_open(&r, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "data is NULL");
    cfg.data = train_set;
    MRT_EQ(mr_run_open(&r, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "expected model or net");
    cfg.model = "nobody";
    MRT_EQ(mr_run_open(&r, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "no model 'nobody'");
    cfg.model = "mnist-cnn";
    cfg.resume = true;
    MRT_EQ(mr_run_open(&r, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "resume needs");
    cfg.resume = false;
    cfg.use = MR_USE_EVALUATE;
    MRT_EQ(mr_run_open(&r, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "checkpoint is NULL");
    MRT_EQ(mr_run_fit(NULL, NULL, NULL, &err), MR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_run_continues),
        cmocka_unit_test(two_runs_do_not_share_a_folder),
        cmocka_unit_test(a_rate_of_the_program_counts),
        cmocka_unit_test(settings_are_checked),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
