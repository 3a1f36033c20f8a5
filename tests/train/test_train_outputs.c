/* What comes out of an evaluation, sample by sample: in order, the same bits on any devices, and what loss
 * and accuracy are made of; of one logit two; what has no outputs is refused. MRT_DEVICES: the kind of
 * devices. */
#include <math.h>

#include "tests/train/rig.h"

enum { COUNT = 37, BATCH = 10 };

typedef struct outputs_rig {
    mr_device **devices;
    uint32_t count;
    mr_source *src;
    mr_loader *loader;
    mr_net *net;
    mr_trainer *t;
    mr_point point;
} outputs_rig;

static mr_net *classifier(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "classifier", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    mr_net_logit_factor(net, 0.5f);
    return net;
}

static mr_net *one_logit(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "binary", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_dense(net, 1, MR_ACT_NONE);
    return net;
}

/* The loss against labels is not at the end. */
static mr_net *inside(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "inside", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    mr_net_loss_labels(net, 1);
    mr_net_dense(net, MRT_PIXELS, MR_ACT_NONE);
    mr_net_reshape(net, MRT_SIDE, MRT_SIDE, 1);
    mr_net_loss_pair(net, MR_PAIR_SQUARES, 0, 1);
    return net;
}

static void open_rig(outputs_rig *r, uint32_t devices, mr_net *(*make)(void), bool keep_host)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader_config loader;
    mr_trainer_config cfg;
    const char *kind = getenv("MRT_DEVICES");
    char spec[32];
    *r = (outputs_rig){0};
    if (kind && strcmp(kind, "cuda") == 0)
        snprintf(spec, sizeof spec, "cuda:%.*s", (int)(2 * devices - 1), "0,1,2");
    else snprintf(spec, sizeof spec, "cpu:%u", devices);
    mr_devices_config d;
    mr_devices_defaults(&d);
    d.deterministic = true;
    MRT_OK(mr_devices_open(&r->devices, &r->count, spec, &d, &err), &err);
    MRT_EQ(r->count, devices);
    MRT_OK(mr_source_open(&r->src, mrt_toy_set("outputs", 0, COUNT), NULL, &err), &err);
    mr_loader_defaults(&loader);
    loader.batch = BATCH;
    loader.order = MR_ORDER_SEQUENTIAL;
    loader.epochs = UINT64_MAX;
    loader.keep_host = keep_host;
    loader.devices = r->devices, loader.device_count = r->count;
    MRT_OK(mr_loader_open(&r->loader, r->src, &loader, &err), &err);
    r->net = make();
    MRT_OK(mr_net_check(r->net, &err), &err);
    MRT_TRUE(mr_net_logits(r->net, &r->point));
    mr_trainer_defaults(&cfg);
    cfg.net = r->net;
    cfg.devices = r->devices, cfg.device_count = r->count;
    cfg.batch = BATCH;
    cfg.seed = 5;
    cfg.inference = true;
    cfg.kept = &r->point, cfg.kept_count = 1;
    MRT_OK(mr_trainer_open(&r->t, &cfg, &err), &err);
}

static void close_rig(outputs_rig *r)
{
    mr_trainer_close(r->t);
    mr_loader_close(r->loader);
    mr_net_destroy(r->net);
    mr_devices_close(r->devices, r->count);
    mr_source_close(r->src);
}

typedef struct reported {
    uint32_t count, right, classes;
    float logits[COUNT][MRT_CLASSES];
    double loss;
    int fail_at; /* -1: never */
} reported;

static int on_outputs(void *context, const mr_outputs *o, mr_error *err)
{
    reported *s = context;
    if (s->fail_at >= 0 && (int)s->count >= s->fail_at) return mr_error_set(err, MR_EIO, "enough");
    s->classes = o->classes;
    for (uint32_t i = 0; i < o->count; i++, s->count++) {
        const float *z = o->logits + (size_t)i * o->classes;
        uint32_t best = 0;
        double sum = 0;
        MRT_EQ(o->ids[i], s->count);
        for (uint32_t c = 0; c < o->classes; c++) {
            s->logits[s->count][c] = z[c];
            sum += exp((double)z[c]);
            if (z[c] > z[best]) best = c;
        }
        s->right += (int32_t)best == o->labels[i];
        s->loss += log(sum) - (double)z[o->labels[i] < (int32_t)o->classes ? o->labels[i] : 0];
    }
    return MR_OK;
}

static void tell(outputs_rig *r, reported *s, double *loss, double *accuracy)
{
    mr_error err = MR_ERROR_INIT;
    mr_outputs_config cfg;
    uint64_t count;
    *s = (reported){.fail_at = -1};
    mr_outputs_defaults(&cfg);
    cfg.on_outputs = on_outputs, cfg.context = s;
    MRT_OK(mr_evaluate_outputs(r->t, r->loader, &cfg, loss, accuracy, loss ? &count : NULL, &err), &err);
    MRT_EQ(s->count, COUNT);
}

static void test_they_are_what_sums_are_of(void **state)
{
    (void)state;
    mr_net *(*const nets[])(void) = {classifier, inside};
    for (int n = 0; n < 2; n++) {
        outputs_rig r;
        static reported s, again;
        double loss, accuracy, plain, other;
        mr_error err = MR_ERROR_INIT;
        open_rig(&r, 2, nets[n], true);
        tell(&r, &s, &loss, &accuracy);
        MRT_EQ(lrint(accuracy * COUNT), s.right);
        if (n == 0) MRT_TRUE(fabs(loss - s.loss / COUNT) < 1e-5);
        MRT_OK(mr_evaluate(r.t, r.loader, &plain, &other, NULL, &err), &err);
        MRT_TRUE(plain == loss && other == accuracy);
        tell(&r, &again, NULL, NULL); /* without sums */
        MRT_TRUE(memcmp(s.logits, again.logits, sizeof s.logits) == 0);
        close_rig(&r);
    }
}

static void test_any_devices_tell_the_same(void **state)
{
    (void)state;
    static reported one, other;
    outputs_rig r;
    double loss, accuracy;
    open_rig(&r, 1, classifier, true);
    tell(&r, &one, &loss, &accuracy);
    close_rig(&r);
    for (uint32_t devices = 2; devices <= 3; devices++) {
        open_rig(&r, devices, classifier, true);
        tell(&r, &other, &loss, &accuracy);
        MRT_TRUE(memcmp(one.logits, other.logits, sizeof one.logits) == 0);
        close_rig(&r);
    }
}

static void test_one_logit_is_two(void **state)
{
    (void)state;
    static reported s;
    outputs_rig r;
    open_rig(&r, 2, one_logit, true);
    tell(&r, &s, NULL, NULL); /* labels that it has no class for are nobody's business */
    MRT_EQ(s.classes, 2);
    for (int i = 0; i < COUNT; i++) MRT_TRUE(s.logits[i][0] == 0 && s.logits[i][1] != 0);
    close_rig(&r);
}

static void test_errors(void **state)
{
    (void)state;
    static reported s;
    outputs_rig r;
    mr_error err = MR_ERROR_INIT;
    mr_outputs_config cfg;
    open_rig(&r, 1, classifier, false);
    mr_outputs_defaults(&cfg);
    MRT_EQ(mr_evaluate_outputs(r.t, r.loader, &cfg, NULL, NULL, NULL, &err), MR_EINVAL);
    cfg.on_outputs = on_outputs, cfg.context = &s;
    s = (reported){.fail_at = -1};
    MRT_EQ(mr_evaluate_outputs(r.t, r.loader, &cfg, NULL, NULL, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "keep_host");
    close_rig(&r);
    open_rig(&r, 1, classifier, true);
    s = (reported){.fail_at = BATCH};
    MRT_EQ(mr_evaluate_outputs(r.t, r.loader, &cfg, NULL, NULL, NULL, &err), MR_EIO);
    MRT_STR(err.text, "enough");
    MRT_EQ(s.count, BATCH);
    const int stop = 1;
    cfg.stop = &stop;
    MRT_EQ(mr_evaluate_outputs(r.t, r.loader, &cfg, NULL, NULL, NULL, &err), MR_ECANCELED);
    close_rig(&r);
    mr_net *coder = mrt_net_coder(), *bare;
    mr_point p;
    MRT_TRUE(mr_net_logits(coder, &p));
    mr_net_destroy(coder);
    MRT_EQ(mr_net_create(&bare, "coder", 2, 2, 1), MR_OK);
    mr_net_loss_pair(bare, MR_PAIR_SQUARES, 0, 1);
    MRT_TRUE(!mr_net_logits(bare, &p));
    mr_net_destroy(bare);
}

/* A loader whose pictures are of another size: refused before a device reads past their end. */
static void test_pictures_of_another_size_are_refused(void **state)
{
    (void)state;
    outputs_rig r;
    mr_error err = MR_ERROR_INIT;
    mr_loader *other;
    mr_loader_config cfg;
    double loss, accuracy;
    uint64_t count;
    char text[64];
    open_rig(&r, 1, classifier, false);
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t h = MRT_SIDE + (k == 0), w = MRT_SIDE + (k == 1);
        mr_loader_defaults(&cfg);
        cfg.batch = BATCH;
        snprintf(text, sizeof text, "resize(%ux%u)", h, w);
        cfg.augment = text;
        cfg.channels = k == 2 ? 3 : 1;
        cfg.devices = r.devices, cfg.device_count = r.count;
        MRT_OK(mr_loader_open(&other, r.src, &cfg, &err), &err);
        MRT_EQ(mr_evaluate(r.t, other, &loss, &accuracy, &count, &err), MR_EINVAL);
        snprintf(text, sizeof text, "the loader brings %u x %u x %u", h, w, cfg.channels);
        MRT_HAS(err.text, text);
        mr_loader_close(other);
    }
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    MRT_OK(mr_loader_open(&other, r.src, &cfg, &err), &err);
    MRT_EQ(mr_evaluate(r.t, other, &loss, &accuracy, &count, &err), MR_EINVAL);
    MRT_HAS(err.text, "opened without devices");
    mr_loader_close(other);
    close_rig(&r);
}

/* Points of one channel and of a number that no block divides: convolutions hold both in blocks of 16
 * channels. */
static mr_net *grey(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "grey", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 16, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_conv2d(net, 1, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_conv2d(net, 5, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

enum { GUARD = 64, MOST_VALUES = BATCH * MRT_PIXELS * 16 + GUARD };

/* A point's values for the first batch; nothing is written after them. */
static uint32_t values_of(bool reference, uint32_t layer, float *out)
{
    mr_error err = MR_ERROR_INIT;
    outputs_rig r = {.count = 1};
    mr_loader_config loader;
    mr_trainer_config cfg;
    mr_devices_config d;
    mr_batch b;
    uint32_t samples, h, w, c;
    mr_devices_defaults(&d);
    d.reference = reference;
    d.compute_threads = 1; /* OpenMP waits in ways the thread sanitizer does not see */
    MRT_OK(mr_devices_open(&r.devices, &r.count, "cpu:1", &d, &err), &err);
    MRT_OK(mr_source_open(&r.src, mrt_toy_set("outputs", 0, COUNT), NULL, &err), &err);
    mr_loader_defaults(&loader);
    loader.batch = BATCH;
    loader.order = MR_ORDER_SEQUENTIAL;
    loader.devices = r.devices, loader.device_count = r.count;
    MRT_OK(mr_loader_open(&r.loader, r.src, &loader, &err), &err);
    r.net = grey();
    MRT_OK(mr_net_check(r.net, &err), &err);
    r.point = layer;
    mr_trainer_defaults(&cfg);
    cfg.net = r.net;
    cfg.devices = r.devices, cfg.device_count = r.count;
    cfg.batch = BATCH;
    cfg.seed = 5;
    cfg.inference = true;
    cfg.kept = &r.point, cfg.kept_count = 1;
    MRT_OK(mr_trainer_open(&r.t, &cfg, &err), &err);
    MRT_OK(mr_loader_next(r.loader, &b, MR_FOREVER, &err), &err);
    MRT_OK(mr_trainer_forward(r.t, &b, &err), &err);
    MRT_TRUE(mr_net_shape(r.net, layer, &h, &w, &c));
    const uint32_t values = BATCH * h * w * c;
    for (uint32_t i = 0; i < MOST_VALUES; i++) out[i] = 1e30f;
    MRT_OK(mr_trainer_values(r.t, layer, BATCH, out, &samples, &err), &err);
    MRT_EQ(samples, BATCH);
    for (uint32_t i = values; i < MOST_VALUES; i++) MRT_TRUE(out[i] == 1e30f);
    mr_loader_release(r.loader, &b, mr_trainer_streams(r.t));
    close_rig(&r);
    return values;
}

static void test_points_hold_rows_of_channels(void **state)
{
    (void)state;
    float *fast = malloc(MOST_VALUES * sizeof *fast), *plain = malloc(MOST_VALUES * sizeof *plain);
    assert_non_null(fast);
    assert_non_null(plain);
    for (uint32_t layer = 1; layer <= 3; layer++) {
        const uint32_t values = values_of(false, layer, fast);
        MRT_EQ(values_of(true, layer, plain), values);
        for (uint32_t i = 0; i < values; i++)
            MRT_TRUE(fabsf(fast[i] - plain[i]) <= 1e-4f * (1 + fabsf(plain[i])));
    }
    free(fast);
    free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_hold_rows_of_channels),
        cmocka_unit_test(test_pictures_of_another_size_are_refused),
        cmocka_unit_test(test_they_are_what_sums_are_of),
        cmocka_unit_test(test_any_devices_tell_the_same),
        cmocka_unit_test(test_one_logit_is_two),
        cmocka_unit_test(test_errors),
    };
    return mrt_run(tests);
}
