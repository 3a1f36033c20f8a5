/* The training loop over a real loader: reports, evaluation, checkpoints, resuming, stopping. Resumed,
 * stopped, prefetched or not, the weights come out the same to the bit. */
#include <dirent.h>
#include <math.h>
#include <unistd.h>

#include "tests/train/fit_rig.h"

static void test_reports(void **state)
{
    (void)state;
    seen s;
    undisturbed(&usual, &s);
    MRT_EQ(s.epochs, 4);
    MRT_EQ(s.steps, 4 * STEPS);
    for (uint64_t e = 0; e < 4; e++) {
        const mr_report *r = &s.report[e];
        MRT_EQ(r->epoch, e);
        MRT_EQ(r->steps, STEPS);
        MRT_EQ(r->samples, TRAIN);
        MRT_EQ(r->warmup_steps, e == 0 ? 2 : 0); /* half of a short epoch, in the first one only */
        MRT_TRUE(r->seconds > 0 && r->samples_per_s > 0 && r->step_ms > 0 && r->step_ms_mad >= 0);
        MRT_TRUE(r->wait_ms >= 0 && r->exposed_ms >= 0 && r->stall_fraction >= 0 && r->stall_fraction <= 1);
        MRT_TRUE(r->loss > 0 && r->accuracy >= 0 && r->accuracy <= 1);
        MRT_TRUE(r->has_val && r->val_loss > 0 && r->val_accuracy >= 0 && r->val_accuracy <= 1);
        MRT_TRUE(r->lr == 0.01f && r->peak_rss_bytes > 1000000 && !r->simulated);
        MRT_TRUE(strstr(r->verdict, ": ") && strstr(r->verdict, "%"));
    }
    MRT_TRUE(s.report[3].loss < s.report[0].loss && s.report[3].val_loss < s.report[0].val_loss);
}

static void test_prefetch_and_workers_change_nothing(void **state)
{
    (void)state;
    run_options o = usual;
    o.epochs = 2;
    const mrt_hash expected = undisturbed(&o, NULL);
    o.prefetch = 0;
    MRT_TRUE(mrt_same(expected, undisturbed(&o, NULL)));
    o.prefetch = 5, o.workers = 3;
    MRT_TRUE(mrt_same(expected, undisturbed(&o, NULL)));
    o.rig.seed = 3;
    MRT_TRUE(!mrt_same(expected, undisturbed(&o, NULL)));
}

/* Continue from the newest checkpoint of a folder to the end. */
static mrt_hash resumed(const run_options *o, const char *folder, seen *s)
{
    mr_error err = MR_ERROR_INIT;
    run r;
    run_options from = *o;
    mr_checkpoint_info info;
    char path[1024], note[256];
    MRT_OK(mr_checkpoint_find(folder, path, sizeof path, &info, note, sizeof note, &err), &err);
    MRT_STR(note, "");
    MRT_EQ(info.epoch * STEPS + info.step, info.updates);
    MRT_TRUE(info.batch == BATCH && info.seed == o->rig.seed && strstr(info.augment, "flip"));
    from.start_epoch = info.epoch, from.start_step = info.step;
    run_open(&r, &from);
    MRT_EQ(mr_loader_info_of(r.train)->fingerprint, info.fingerprint);
    MRT_OK(mr_trainer_load(r.rig.t, path, NULL, &err), &err);
    const mr_fit_config cfg = fit_config(&r, s, folder);
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    const mrt_hash h = mrt_hash_of(&r.rig, 1);
    run_close(&r);
    return h;
}

static void test_interrupted_anywhere_resumes_bit_for_bit(void **state)
{
    (void)state;
    seen whole, s;
    const mrt_hash expected = undisturbed(&usual, &whole);
    static const uint64_t points[] = {1, 5, 7, 14};
    for (size_t i = 0; i < 4; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_report last;
        run r;
        const char *folder = mrt_path("resume-%zu", i);
        run_open(&r, &usual);
        mr_fit_config cfg = fit_config(&r, &s, folder);
        if (i % 2) {
            s.stop_at_step = points[i];
            MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, &last, &err), MR_ECANCELED);
        } else {
            cfg.max_steps = points[i];
            MRT_OK(mr_fit(r.rig.t, r.train, &cfg, &last, &err), &err);
        }
        MRT_EQ(s.steps, points[i]);
        MRT_EQ(last.steps, points[i] % STEPS ? points[i] % STEPS : STEPS);
        run_close(&r);
        MRT_TRUE(mrt_same(resumed(&usual, folder, &s), expected));
        MRT_EQ(s.steps, 4 * STEPS - points[i]);
        const mr_report *a = &whole.report[3], *b = &s.report[s.epochs - 1];
        MRT_TRUE(a->epoch == b->epoch && a->loss == b->loss && a->val_loss == b->val_loss && a->lr == b->lr);
    }
}

static void test_stopped_before_the_first_step(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    run r;
    seen s;
    run_open(&r, &usual);
    mr_fit_config cfg = fit_config(&r, &s, mrt_path("nothing"));
    s.stop = 1;
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_ECANCELED);
    MRT_EQ(mr_checkpoint_find(mrt_path("nothing"), NULL, 0, NULL, NULL, 0, &err), MR_ENOENT);
    s.stop = 0;
    mr_loader_stop(r.train); /* the other way to stop ends in the same place */
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_ECANCELED);
    run_close(&r);
}

static uint32_t step_files(const char *folder)
{
    uint32_t count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) count += strncmp(e->d_name, "step-", 5) == 0;
    closedir(dir);
    return count;
}

static void test_checkpoints_kept(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info;
    run r;
    seen s;
    const char *folder = mrt_path("kept");
    run_open(&r, &usual);
    mr_fit_config cfg = fit_config(&r, &s, folder);
    cfg.keep = 2;
    cfg.checkpoint_steps = 3;
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    run_close(&r);
    for (int at = 3; at <= 20; at++) {
        char name[64];
        snprintf(name, sizeof name, "step-%012d.mrck written", at);
        MRT_EQ(strstr(s.messages, name) != NULL, at % 3 == 0 || at % STEPS == 0);
    }
    MRT_EQ(step_files(folder), 2);
    MRT_OK(mr_checkpoint_find(folder, NULL, 0, &info, NULL, 0, &err), &err);
    MRT_TRUE(info.updates == 20 && info.epoch == 4 && info.step == 0);
    double best = INFINITY;
    uint64_t best_epoch = 0;
    for (uint64_t e = 0; e < s.epochs; e++)
        if (s.report[e].val_loss < best) best = s.report[e].val_loss, best_epoch = e;
    MRT_TRUE(info.best_val_loss == best);
    MRT_OK(mr_checkpoint_find(mrt_path("kept/best.mrck"), NULL, 0, &info, NULL, 0, &err), &err);
    MRT_EQ(info.epoch, best_epoch + 1);
}

/* A checkpoint stores 255 characters of augmentation: a longer text would be cut. */
static void test_long_augmentations(void **state)
{
    (void)state;
    char augment[300] = "brightness(0)";
    for (int k = 1; k < 17; k++) strcat(augment, ",brightness(0)");
    strcat(augment, ",hue(0.1),hue(0.1)");
    MRT_EQ(strlen(augment), 255);
    for (int longer = 0; longer < 3; longer++) { /* 255; 256; 256 without checkpoints */
        run r;
        seen s;
        mr_error err = MR_ERROR_INIT;
        run_options o = usual;
        o.epochs = 1, o.augment = augment;
        if (longer == 1) strcpy(augment + 254, "2)");
        run_open(&r, &o);
        const mr_fit_config cfg = fit_config(&r, &s, longer < 2 ? mrt_path("long%d", longer) : NULL);
        const int rc = mr_fit(r.rig.t, r.train, &cfg, NULL, &err);
        MRT_EQ(rc, longer == 1 ? MR_EINVAL : MR_OK);
        if (longer == 1) MRT_HAS(err.text, "has 256 characters, expected at most 255");
        if (longer == 0) {
            mr_checkpoint_info info;
            MRT_OK(mr_checkpoint_find(cfg.checkpoint_dir, NULL, 0, &info, NULL, 0, &err), &err);
            MRT_STR(info.augment, augment);
        }
        run_close(&r);
    }
}

static void test_early_stop(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    run r;
    seen s;
    run_options o = usual;
    o.epochs = 50;
    o.rig.update = MR_UPDATE_SGD;
    o.rig.lr = 1e-30f; /* nothing moves: the first epoch is the best there will be */
    run_open(&r, &o);
    mr_fit_config cfg = fit_config(&r, &s, NULL);
    cfg.patience = 2;
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    MRT_EQ(s.epochs, 3);
    MRT_HAS(s.messages, "stopped early");
    run_close(&r);
    run_open(&r, &o);
    cfg = fit_config(&r, &s, NULL);
    cfg.epochs = 2; /* the loader would go on */
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    MRT_EQ(s.epochs, 2);
    run_close(&r);
}

static void test_evaluation_does_not_depend_on_how(void **state)
{
    (void)state;
    static const struct {
        const char *devices;
        uint32_t batch, prefetch;
    } ways[] = {
        {"cpu", 20, 2},
        {"cpu:3", 20, 0},
        {"cpu:2", 1, 1},
        {"cpu", 7, 3},
    };
    double first_loss = 0, first_accuracy = 0;
    for (size_t i = 0; i < 4; i++) {
        mr_error err = MR_ERROR_INIT;
        double loss, accuracy;
        uint64_t count;
        run r;
        run_options o = usual;
        o.rig.devices = ways[i].devices, o.val_batch = ways[i].batch, o.prefetch = ways[i].prefetch,
        o.rig.inference = true;
        run_open(&r, &o);
        for (int again = 0; again < 2; again++) {
            MRT_OK(mr_evaluate(r.rig.t, r.val, &loss, &accuracy, &count, &err), &err);
            MRT_EQ(count, VAL);
            if (i == 0 && !again) first_loss = loss, first_accuracy = accuracy;
            MRT_TRUE(fabs(loss - first_loss) < 1e-6 * loss && accuracy == first_accuracy);
        }
        seen s;
        const mr_fit_config cfg = fit_config(&r, &s, NULL);
        MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_EINVAL);
        MRT_HAS(err.text, "inference");
        run_close(&r);
    }
}

static bool is_compute(const mr_trace_entry *e) { return strncmp(e->track, "compute", 7) == 0; }

/* How many spans of the loader lie across one of the trainer. */
static uint32_t overlaps(uint32_t prefetch, const char *devices)
{
    mr_trace *trace;
    MRT_EQ(mr_trace_create(&trace, 10000), MR_OK);
    run_options o = usual;
    o.epochs = 2, o.prefetch = prefetch, o.rig.trace = trace, o.rig.devices = devices;
    undisturbed(&o, NULL);
    mr_trace_entry *e;
    size_t count;
    uint32_t found = 0, compute = 0, loading = 0;
    MRT_EQ(mr_trace_entries(trace, &e, &count), MR_OK);
    for (size_t i = 0; i < count; i++) {
        compute += is_compute(&e[i]);
        loading += !is_compute(&e[i]);
        for (size_t k = 0; k < count && is_compute(&e[i]); k++)
            found += !is_compute(&e[k]) && e[k].start_ns < e[i].end_ns && e[i].start_ns < e[k].end_ns;
    }
    MRT_TRUE(compute >= 2 * STEPS && loading >= 2 * STEPS);
    free(e);
    mr_trace_destroy(trace);
    return found;
}

static void test_prefetch_overlaps_and_its_absence_does_not(void **state)
{
    (void)state;
    MRT_EQ(overlaps(0, "cpu"), 0);
    MRT_EQ(overlaps(0, "sim,step=2ms"), 0);
    MRT_TRUE(overlaps(3, "sim,step=5ms") > 0);
}

static void test_schedule_follows_the_epochs(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    run r;
    seen s;
    run_open(&r, &usual);
    mr_schedule *schedule = &r.rig.t->cfg.schedule;
    MRT_OK(mr_schedule_parse(schedule, "cosine,warmup=1", 0.02f, &err), &err);
    r.rig.t->cfg.epochs = 4;
    mr_fit_config cfg = fit_config(&r, &s, NULL);
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), &err);
    MRT_TRUE(s.report[0].lr == 0.02f);
    for (uint64_t e = 1; e < 4; e++)
        MRT_TRUE(s.report[e].lr == mr_schedule_lr(schedule, (e + 1) * STEPS - 1, STEPS, 4));
    MRT_TRUE(s.report[3].lr < 0.002f);
    run_close(&r);
}

static void test_simulated_devices(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_report last;
    run r;
    seen s;
    run_options o = usual;
    o.rig.devices = "sim:2,step=2ms,h2d=1GB/s";
    o.epochs = 2;
    run_open(&r, &o);
    mr_fit_config cfg = fit_config(&r, &s, NULL);
    MRT_OK(mr_fit(r.rig.t, r.train, &cfg, &last, &err), &err);
    MRT_TRUE(last.simulated && last.samples == TRAIN && last.step_ms >= 1.9 && last.steps == STEPS);
    run_close(&r);
}

static void test_what_does_not_fit_is_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    run r;
    seen s;
    run_options o = usual;
    o.rig.batch = BATCH - 1;
    run_open(&r, &o);
    mr_fit_config cfg = fit_config(&r, &s, NULL);
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "batches of 20");
    cfg.struct_size = 3;
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_EINVAL);
    run_close(&r);
    run_open(&r, &usual);
    mrt_write_file(mrt_path("no-folder"), "x", 1);
    cfg = fit_config(&r, &s, mrt_path("no-folder/below"));
    MRT_TRUE(mr_fit(r.rig.t, r.train, &cfg, NULL, &err) != MR_OK);
    MRT_HAS(err.file, "no-folder/below");
    run_close(&r);
}

/* ---- what loaders say and the trainer does not ---- */

static mr_loader *val_loader(const run *r, const mr_source *src, void (*set)(mr_loader_config *))
{
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg;
    mr_loader *l;
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.epochs = UINT64_MAX;
    cfg.order = MR_ORDER_SEQUENTIAL;
    cfg.workers = 1;
    cfg.devices = r->rig.devices;
    cfg.device_count = r->rig.count;
    if (set) set(&cfg);
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    return l;
}

static const uint64_t every_other[] = {0, 2, 4, 6, 8, 10, 12};
static void set_training(mr_loader_config *c) { c->training = true, c->augment = "flip"; }
static void set_shuffle(mr_loader_config *c) { c->order = MR_ORDER_SHUFFLE; }
static void set_block(mr_loader_config *c) { c->order = MR_ORDER_BLOCK; }
static void set_drop(mr_loader_config *c) { c->tail = MR_TAIL_DROP; }
static void set_drop_nothing(mr_loader_config *c) { c->tail = MR_TAIL_DROP, c->batch = 1; }
static void set_repeats(mr_loader_config *c) { c->repeats = 2; }
static void set_numbers(mr_loader_config *c) { c->augment = "normalise(100/50)"; }
static void set_affine(mr_loader_config *c) { c->augment = "standardise"; }
static void set_sampler(mr_loader_config *c)
{
    c->sampler_samples = every_other;
    c->sampler_count = sizeof every_other / sizeof *every_other;
}

static const struct {
    void (*set)(mr_loader_config *);
    const char *reported; /* NULL: it is taken */
} vals[] = {
    {set_training, "training true, and augment flip: expected false"},
    {set_shuffle, "order MR_ORDER_SHUFFLE: expected MR_ORDER_SEQUENTIAL"},
    {set_block, "order MR_ORDER_BLOCK"},
    {set_drop, "MR_TAIL_DROP, which drops 17 of 37 samples"},
    {set_repeats, "repeats 2"},
    {set_numbers,
     "the trainer has mean 0, std 255, uses_affine 0; the loader with augment normalise(100/50) has "
     "mean 100, std 50"},
    {set_affine, "uses_affine 0; the loader with augment standardise has mean 0, std 1, uses_affine 1"},
    {set_drop_nothing, NULL},
    {set_sampler, NULL},
};

static void test_other_validation_loaders_are_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof vals / sizeof *vals; k++) {
        mr_error err = MR_ERROR_INIT;
        run r;
        seen s;
        run_open(&r, &usual);
        mr_loader *val = val_loader(&r, r.val_set, vals[k].set);
        mr_fit_config cfg = fit_config(&r, &s, NULL);
        cfg.val = val;
        cfg.epochs = 1;
        const int rc = mr_fit(r.rig.t, r.train, &cfg, NULL, &err);
        MRT_EQ(rc, vals[k].reported ? MR_EINVAL : MR_OK);
        if (vals[k].reported) MRT_HAS(err.text, vals[k].reported);
        MRT_EQ(s.steps, vals[k].reported ? 0 : STEPS); /* before the first step */
        MRT_OK(mri_flights_drain(&r.rig.t->flights, &err), &err);
        mr_loader_close(val);
        run_close(&r);
    }
}

/* In training and in evaluations of their own, too: work that the loader leaves to the input is not done
 * otherwise. */
static void test_numbers_of_pixels_are_the_loaders(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    run r;
    seen s;
    double loss;
    run_options o = usual;
    o.augment = "flip,normalise(100/50)";
    run_open(&r, &o);
    mr_fit_config cfg = fit_config(&r, &s, NULL);
    MRT_EQ(mr_fit(r.rig.t, r.train, &cfg, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "the trainer has mean 0, std 255");
    MRT_HAS(err.text, "mean 100, std 50");
    MRT_HAS(err.text, "mr_loader_info");
    MRT_EQ(mr_evaluate(r.rig.t, r.train, &loss, NULL, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "mean 100, std 50");
    MRT_OK(mr_evaluate(r.rig.t, r.val, &loss, NULL, NULL, &err), &err);
    run_close(&r);
}

/* Toy pictures whose classes have these names. */
static mr_source *named_set(const char *name, const char *const classes[MRT_CLASSES])
{
    static const mr_field fields[] = {
        {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {MRT_SIDE, MRT_SIDE, 1}},
        {.name = "label", .type = MR_TYPE_INT}};
    static uint8_t pixels[VAL * MRT_PIXELS];
    static int32_t labels[VAL];
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer *w;
    mr_source *src;
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = 2;
    cfg.class_names = classes;
    cfg.class_count = MRT_CLASSES;
    mrt_toy(0, VAL, pixels, labels);
    MRT_OK(mr_writer_open(&w, mrt_path("%s.mrec", name), &cfg, NULL, &err), &err);
    for (uint64_t i = 0; i < VAL; i++) {
        const mr_value v[] = {{.type = MR_TYPE_PIXELS,
                               .ndim = 3,
                               .dim = {MRT_SIDE, MRT_SIDE, 1},
                               .data = pixels + i * MRT_PIXELS,
                               .bytes = MRT_PIXELS},
                              {.type = MR_TYPE_INT, .i = labels[i]}};
        MRT_OK(mr_writer_append(w, i, v, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    MRT_OK(mr_source_open(&src, mrt_path("%s.mrec", name), NULL, &err), &err);
    return src;
}

static void test_classes_of_other_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const one[] = {"ant", "bee", "cat", "dog"}, *const other[] = {"ant", "cat", "bee",
                                                                                     "dog"};
    mr_error err = MR_ERROR_INIT;
    mr_source *train = named_set("one", one), *val = named_set("other", other), *same;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.class_names = one;
    cfg.class_count = MRT_CLASSES;
    MRT_OK(mr_source_open(&same, mrt_path("other.mrec"), &cfg, &err), &err); /* the remedy */
    for (int k = 0; k < 2; k++) {
        run r;
        seen s;
        run_open(&r, &usual);
        mr_loader *from = val_loader(&r, train, NULL), *to = val_loader(&r, k ? same : val, NULL);
        mr_fit_config fit = fit_config(&r, &s, NULL);
        fit.callbacks = (mr_callbacks){0};
        fit.val = to;
        fit.epochs = 1;
        MRT_EQ(mr_fit(r.rig.t, from, &fit, NULL, &err), k ? MR_OK : MR_EINVAL);
        if (!k) {
            MRT_HAS(err.text, "class 1 is \"cat\" in the validation data");
            MRT_HAS(err.text, "other.mrec, and \"bee\" in the training data");
            MRT_HAS(err.text, "class_names");
        }
        MRT_OK(mri_flights_drain(&r.rig.t->flights, &err), &err);
        mr_loader_close(from);
        mr_loader_close(to);
        run_close(&r);
    }
    mr_source_close(same);
    mr_source_close(val);
    mr_source_close(train);
}

/* The schedule gives the rate: another one in `update` is no setting that is ignored. */
static void test_a_second_rate_is_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    run r;
    run_open(&r, &usual);
    mr_trainer_config cfg;
    mr_trainer *t;
    mr_trainer_defaults(&cfg);
    MRT_EQ(cfg.update.lr, 0);
    cfg.net = r.rig.net;
    cfg.devices = r.rig.devices;
    cfg.device_count = r.rig.count;
    cfg.schedule.lr = 0.25f;
    cfg.update.lr = 0.5f;
    MRT_EQ(mr_trainer_open(&t, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "update.lr is 0.5, schedule.lr 0.25");
    cfg.update.lr = 0.25f;
    MRT_OK(mr_trainer_open(&t, &cfg, &err), &err);
    mr_trainer_close(t);
    cfg.update.lr = 0.5f;
    cfg.inference = true; /* which has no updates */
    MRT_OK(mr_trainer_open(&t, &cfg, &err), &err);
    mr_trainer_close(t);
    run_close(&r);
}

/* Toy pictures with a vector each, so that they have a length. */
static mr_source *pictures_with_vectors(void)
{
    static const mr_field fields[] = {
        {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {MRT_SIDE, MRT_SIDE, 1}},
        {.name = "label", .type = MR_TYPE_INT},
        {.name = "vector", .type = MR_TYPE_TENSOR, .dtype = MR_F32, .ndim = 1, .dim = {2}}};
    static uint8_t pixels[TRAIN * MRT_PIXELS];
    static int32_t labels[TRAIN];
    const float vector[2] = {1, 2};
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer *w;
    mr_source *src;
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = 3;
    mrt_toy(0, TRAIN, pixels, labels);
    MRT_OK(mr_writer_open(&w, mrt_path("vectors.mrec"), &cfg, NULL, &err), &err);
    for (uint64_t i = 0; i < TRAIN; i++) {
        const mr_value v[] = {{.type = MR_TYPE_PIXELS,
                               .ndim = 3,
                               .dim = {MRT_SIDE, MRT_SIDE, 1},
                               .data = pixels + i * MRT_PIXELS,
                               .bytes = MRT_PIXELS},
                              {.type = MR_TYPE_INT, .i = labels[i]},
                              {.type = MR_TYPE_TENSOR,
                               .dtype = MR_F32,
                               .ndim = 1,
                               .dim = {2},
                               .data = vector,
                               .bytes = sizeof vector}};
        MRT_OK(mr_writer_append(w, i, v, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    MRT_OK(mr_source_open(&src, mrt_path("vectors.mrec"), NULL, &err), &err);
    return src;
}

/* Resumed without it, a run would have another order: whoever resumes must be able to see it. */
static void test_checkpoints_keep_the_length_window(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_source *src = pictures_with_vectors();
    mr_loader *l;
    mr_loader_config cfg;
    mr_fit_config fit;
    mr_checkpoint_info info;
    mrt_rig rig;
    mrt_rig_open(&rig, &usual.rig);
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.length_window = 2;
    cfg.devices = rig.devices;
    cfg.device_count = rig.count;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    mr_fit_defaults(&fit);
    fit.checkpoint_dir = mrt_path("windows");
    MRT_OK(mr_fit(rig.t, l, &fit, NULL, &err), &err);
    MRT_OK(mr_checkpoint_find(fit.checkpoint_dir, NULL, 0, &info, NULL, 0, &err), &err);
    MRT_EQ(info.length_window, 2);
    MRT_OK(mri_flights_drain(&rig.t->flights, &err), &err);
    mr_loader_close(l);
    mrt_rig_close(&rig);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_checkpoints_keep_the_length_window),
        cmocka_unit_test(test_prefetch_and_workers_change_nothing),
        cmocka_unit_test(test_interrupted_anywhere_resumes_bit_for_bit),
        cmocka_unit_test(test_stopped_before_the_first_step),
        cmocka_unit_test(test_checkpoints_kept),
        cmocka_unit_test(test_long_augmentations),
        cmocka_unit_test(test_early_stop),
        cmocka_unit_test(test_evaluation_does_not_depend_on_how),
        cmocka_unit_test(test_prefetch_overlaps_and_its_absence_does_not),
        cmocka_unit_test(test_schedule_follows_the_epochs),
        cmocka_unit_test(test_simulated_devices),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_other_validation_loaders_are_refused),
        cmocka_unit_test(test_numbers_of_pixels_are_the_loaders),
        cmocka_unit_test(test_classes_of_other_numbers_are_refused),
        cmocka_unit_test(test_a_second_rate_is_refused),
    };
    return mrt_run(tests);
}
