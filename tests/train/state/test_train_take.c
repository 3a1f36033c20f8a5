/* Weights that a run begins with: every bit of them arrives, on every replica, in averages and in what
 * Lookahead goes back to; the last layer begins anew for another number of classes; what does not fit is
 * named, and changes nothing. */
#include <math.h>

#include "formats/arrays/tensor_file.h"
#include "tests/train/rig.h"

static mr_net *with_classes(uint32_t classes)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-take", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_RELU);
    mr_net_dense(net, 8, MR_ACT_TANH);
    mr_net_dense(net, classes, MR_ACT_NONE);
    return net;
}
static mr_net *four(void) { return with_classes(MRT_CLASSES); }
static mr_net *nine(void) { return with_classes(9); }

typedef struct reported {
    char text[4096];
} reported;

static void on_note(void *context, const char *text)
{
    reported *s = context;
    const size_t at = strlen(s->text);
    snprintf(s->text + at, sizeof s->text - at, "%s\n", text);
}

static int take(mrt_rig *rig, const char *path, const char *skip, reported *s, mr_take_report *out,
                mr_error *err)
{
    mr_take_config cfg;
    mr_take_report report;
    *s = (reported){{0}};
    mr_take_defaults(&cfg);
    cfg.path = path;
    cfg.skip = skip;
    cfg.on_note = on_note, cfg.context = s;
    return mr_trainer_take(rig->t, &cfg, out ? out : &report, err);
}

/* A trained network as a checkpoint and both kinds of files; its hash. */
static mrt_hash make_files(const char *name, mr_net *(*net)(void), float average)
{
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info = {.struct_size = sizeof info, .best_val_loss = INFINITY};
    mr_weights_config cfg;
    mrt_rig rig;
    const mrt_rig_options o = {.net = net, .seed = 3, .update = MR_UPDATE_ADAM, .average = average};
    mrt_rig_open(&rig, &o);
    for (uint32_t i = 0; i < 4; i++) mrt_train(&rig, i, 32 * i, 31);
    const mrt_hash hash = mrt_hash_of(&rig, 0);
    MRT_OK(mr_trainer_save(rig.t, mrt_path("%s.mrck", name), &info, &err), &err);
    mrt_rig_close(&rig);
    mr_weights_defaults(&cfg);
    cfg.force = true;
    char checkpoint[4096];
    snprintf(checkpoint, sizeof checkpoint, "%s", mrt_path("%s.mrck", name));
    MRT_OK(mr_weights_export(checkpoint, mrt_path("%s.safetensors", name), &cfg, NULL, &err), &err);
    MRT_OK(mr_weights_export(checkpoint, mrt_path("%s.npz", name), &cfg, NULL, &err), &err);
    return hash;
}

static void test_every_bit_arrives(void **state)
{
    (void)state;
    static const char *const endings[] = {"mrck", "safetensors", "npz"};
    const mrt_hash hash = make_files("whole", mrt_net_residual, 0);
    for (size_t e = 0; e < MRI_ARRAY_COUNT(endings); e++)
        for (uint32_t devices = 1; devices <= 3; devices += 2) {
            char spec[16];
            reported s;
            mr_error err = MR_ERROR_INIT;
            mr_take_report report;
            mrt_rig rig;
            snprintf(spec, sizeof spec, "cpu:%u", devices);
            mrt_rig_open(&rig, &(mrt_rig_options){.devices = spec, .net = mrt_net_residual, .seed = 8});
            MRT_TRUE(!mrt_same(mrt_hash_of(&rig, 0), hash));
            MRT_OK(take(&rig, mrt_path("whole.%s", endings[e]), NULL, &s, &report, &err), &err);
            for (uint32_t r = 0; r < devices; r++) MRT_TRUE(mrt_same(mrt_hash_of(&rig, r), hash));
            MRT_TRUE(report.taken == rig.t->tensors.own && report.left == 0 && report.unused == 0);
            MRT_STR(s.text, "");
            mrt_train(&rig, 0, 0, 31);
            MRT_EQ(take(&rig, mrt_path("whole.%s", endings[e]), NULL, &s, NULL, &err), MR_EINVAL);
            MRT_HAS(err.text, "before the first update");
            mrt_rig_close(&rig);
        }
}

static float *tensor(const mrt_rig *rig, uint32_t i)
{
    mr_error err = MR_ERROR_INIT;
    float *out = malloc((size_t)rig->t->tensors.most_floats * sizeof *out);
    MRT_OK(mri_tensor_export(&rig->t->tensors, &rig->t->team.replicas[0], i, false, out, &err), &err);
    return out;
}

/* Averages and the weights that Lookahead goes back to are the weights, others of the optimizer's arrays
 * zero. */
static void test_what_begins_with_them(void **state)
{
    (void)state;
    reported s;
    mr_error err = MR_ERROR_INIT;
    mrt_rig rig;
    make_files("begin", four, 0);
    mrt_rig_open(&rig,
                 &(mrt_rig_options){.net = four, .update = MR_UPDATE_ADAM, .average = 0.9f, .lookahead = 4});
    MRT_OK(take(&rig, mrt_path("begin.npz"), NULL, &s, NULL, &err), &err);
    const mri_tensors *t = &rig.t->tensors;
    uint32_t alike = 0;
    for (uint32_t i = t->own; i < t->count; i++)
        for (uint32_t k = 0; k < t->own; k++) {
            const bool begins = t->desc[i].role == mri_role_averaged(t->desc[k].role) ||
                                (t->desc[i].role == MRI_ROLE_SLOT2 && t->desc[k].role == MRI_ROLE_WEIGHTS);
            if (strcmp(t->desc[i].name, t->desc[k].name) != 0 || !begins) continue;
            float *a = tensor(&rig, i), *b = tensor(&rig, k);
            MRT_TRUE(memcmp(a, b, (size_t)t->desc[i].count * sizeof *a) == 0);
            alike++;
            free(a);
            free(b);
        }
    MRT_EQ(alike, t->own + 8); /* all averages; eight weights of Lookahead */
    mrt_rig_close(&rig);
}

/* The average is taken, unless its weights are asked for. */
static void test_averages(void **state)
{
    (void)state;
    reported s;
    mr_error err = MR_ERROR_INIT;
    mr_take_report report;
    mrt_rig rig;
    const mrt_hash trained = make_files("average", four, 0.5f);
    mrt_rig_open(&rig, &(mrt_rig_options){.net = four, .seed = 1});
    MRT_OK(take(&rig, mrt_path("average.mrck"), NULL, &s, &report, &err), &err);
    MRT_TRUE(report.average);
    const mrt_hash averaged = mrt_hash_of(&rig, 0);
    MRT_OK(take(&rig, mrt_path("average.safetensors"), NULL, &s, &report, &err), &err);
    MRT_TRUE(!report.average && mrt_same(mrt_hash_of(&rig, 0), averaged) && !mrt_same(averaged, trained));
    mr_take_config cfg;
    mr_take_defaults(&cfg);
    cfg.path = mrt_path("average.mrck");
    cfg.no_average = true;
    MRT_OK(mr_trainer_take(rig.t, &cfg, &report, &err), &err);
    MRT_TRUE(!report.average && mrt_same(mrt_hash_of(&rig, 0), trained));
    mrt_rig_close(&rig);
}

static void test_a_new_head(void **state)
{
    (void)state;
    reported s;
    mr_error err = MR_ERROR_INIT;
    mr_take_report report;
    mrt_rig rig, fresh;
    make_files("head", four, 0);
    mrt_rig_open(&rig, &(mrt_rig_options){.net = nine, .seed = 6});
    mrt_rig_open(&fresh, &(mrt_rig_options){.net = nine, .seed = 6});
    MRT_OK(take(&rig, mrt_path("head.safetensors"), NULL, &s, &report, &err), &err);
    MRT_HAS(s.text, "not taken: 3/dense/weights, 3/dense/bias\n");
    MRT_HAS(s.text, "the file has 4 classes, this network 9");
    MRT_HAS(s.text, "in the file and not used: 3/dense/weights, 3/dense/bias\n");
    MRT_TRUE(report.taken == 8 && report.left == 2 && report.unused == 2);
    for (uint32_t i = 0; i < rig.t->tensors.own; i++) {
        float *a = tensor(&rig, i), *b = tensor(&fresh, i);
        const bool same = memcmp(a, b, (size_t)rig.t->tensors.desc[i].count * sizeof *a) == 0;
        MRT_EQ(same, strncmp(rig.t->tensors.desc[i].name, "3/", 2) == 0);
        free(a);
        free(b);
    }
    mrt_rig_close(&rig);
    mrt_rig_open(&rig, &(mrt_rig_options){.net = four, .seed = 6}); /* left out by name: other layers, too */
    MRT_OK(take(&rig, mrt_path("head.npz"), "head,0", &s, &report, &err), &err);
    MRT_HAS(s.text, "not taken: 0/conv2d/weights, 0/conv2d/bias, 3/dense/weights, 3/dense/bias\n");
    MRT_EQ(report.left, 4);
    MRT_EQ(take(&rig, mrt_path("head.npz"), "0-", &s, &report, &err), MR_EINVAL);
    MRT_HAS(err.text, "nothing is left to take");
    MRT_EQ(take(&rig, mrt_path("head.npz"), "nowhere", &s, &report, &err), MR_EINVAL);
    MRT_HAS(err.text, "no block and no kind");
    mrt_rig_close(&rig);
    mrt_rig_close(&fresh);
}

/* ---- what does not fit: a file with one array changed ---- */

typedef struct change {
    const char *name; /* which */
    const char *as;   /* called so instead; "": left out */
    uint32_t shape;   /* 1: reversed; 2: one dimension more */
    float fill;       /* not 0: a number in it */
    const char *why;
    int code;
} change;

static void write_changed(const char *path, const char *from, const change *c)
{
    mr_error err = MR_ERROR_INIT;
    mri_tensor_file *f;
    mri_tensor_writer *w;
    MRT_OK(mri_tensor_file_open(&f, from, &err), &err);
    const uint32_t count = mri_tensor_file_count(f);
    mri_tensor_entry *e = calloc(count, sizeof *e);
    float **values = calloc(count, sizeof *values);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const mri_tensor_entry *was = mri_tensor_file_at(f, i);
        const bool this = strcmp(was->name, c->name) == 0;
        if (this && c->as && !*c->as) continue;
        e[kept] = *was;
        values[kept] = malloc((size_t)was->count * sizeof(float));
        MRT_OK(mri_tensor_file_read(f, i, values[kept], &err), &err);
        if (this && c->as) e[kept].name = c->as;
        if (this && c->shape == 1)
            for (uint32_t d = 0; d < was->ndim; d++) e[kept].dim[d] = was->dim[was->ndim - 1 - d];
        if (this && c->shape == 2) e[kept].dim[e[kept].ndim++] = 1;
        if (this && c->fill != 0) values[kept][was->count / 2] = c->fill;
        kept++;
    }
    MRT_OK(mri_tensor_writer_open(&w, path, e, kept, NULL, 0, &(mri_output_rules){.force = true}, &err),
           &err);
    for (uint32_t i = 0; i < kept; i++) MRT_OK(mri_tensor_writer_put(w, values[i], &err), &err);
    MRT_OK(mri_tensor_writer_commit(w, NULL, &err), &err);
    mri_tensor_writer_close(w);
    for (uint32_t i = 0; i < kept; i++) free(values[i]);
    free(values);
    free(e);
    mri_tensor_file_close(f);
}

static void test_what_does_not_fit(void **state)
{
    (void)state;
    const change changes[] = {
        {"2/dense/weights", "", 0, 0,
         "it has no 2/dense/weights, which network toy-take needs for layer 2, and 0 others", MR_EINVAL},
        {"1/batch_norm/mean", "", 0, 0, "it has no 1/batch_norm/mean", MR_EINVAL},
        {"1/batch_norm/variance", "other", 0, 0, "it has no 1/batch_norm/variance", MR_EINVAL},
        {"2/dense/weights", NULL, 1, 0, "2/dense/weights is 256 x 8: expected 8 x 256", MR_EINVAL},
        {"3/dense/bias", NULL, 2, 0, "3/dense/bias is 4 x 1: expected 4", MR_EINVAL},
        {"0/conv2d/bias", NULL, 0, NAN, "0/conv2d/bias has a number that is not finite", MR_EFORMAT},
        {"3/dense/weights", NULL, 0, INFINITY, "not finite", MR_EFORMAT},
    };
    static const char *const endings[] = {"safetensors", "npz"};
    reported s;
    mrt_rig rig;
    make_files("fits", four, 0);
    mrt_rig_open(&rig, &(mrt_rig_options){.net = four, .seed = 2});
    const mrt_hash before = mrt_hash_of(&rig, 0);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(changes); i++)
        for (int e = 0; e < 2; e++) {
            mr_error err = MR_ERROR_INIT;
            char from[4096], path[4096];
            snprintf(from, sizeof from, "%s", mrt_path("fits.safetensors"));
            snprintf(path, sizeof path, "%s", mrt_path("changed.%s", endings[e]));
            write_changed(path, from, &changes[i]);
            MRT_EQ(take(&rig, path, NULL, &s, NULL, &err), changes[i].code);
            MRT_HAS(err.text, changes[i].why);
            MRT_HAS(err.file, "changed.");
            MRT_TRUE(mrt_same(mrt_hash_of(&rig, 0), before));
        }
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(take(&rig, mrt_path("nothing.npz"), NULL, &s, NULL, &err), MR_ENOENT);
    MRT_EQ(take(&rig, mrt_path("nothing"), NULL, &s, NULL, &err), MR_ENOENT);
    mrt_write_file(mrt_path("text.safetensors"), "weights", 7);
    MRT_EQ(take(&rig, mrt_path("text.safetensors"), NULL, &s, NULL, &err), MR_EFORMAT);
    MRT_HAS(err.text, "neither safetensors");
    make_files("other", mrt_net_dense, 0);
    MRT_EQ(take(&rig, mrt_path("other.mrck"), NULL, &s, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "of model toy-dense: expected toy-take");
    MRT_EQ(take(&rig, mrt_path("other.npz"), NULL, &s, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "expected ours (0/conv2d/weights), found 0/dense/weights");
    MRT_TRUE(mrt_same(mrt_hash_of(&rig, 0), before));
    mrt_rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_bit_arrives), cmocka_unit_test(test_what_begins_with_them),
        cmocka_unit_test(test_averages),          cmocka_unit_test(test_a_new_head),
        cmocka_unit_test(test_what_does_not_fit),
    };
    return mrt_run(tests);
}
