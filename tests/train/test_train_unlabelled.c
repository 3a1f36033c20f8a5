/* Data without labels: a network without a classifier trains on them as on the same pictures with labels, bit
 * for bit; padding counts nothing; a network that needs labels is refused. */
#include <math.h>

#include "tests/train/rig.h"

enum { COUNT = 37, BATCH = 10 };

static mr_net *coder(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "coder", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_dense(net, 12, MR_ACT_RELU);
    mr_net_dropout(net, 0.25f);
    mr_net_dense(net, MRT_PIXELS, MR_ACT_NONE);
    mr_net_reshape(net, MRT_SIDE, MRT_SIDE, 1);
    mr_net_loss_pair(net, MR_PAIR_CROSS_ENTROPY, 0, 1);
    return net;
}

static mr_source *open_set(bool labelled)
{
    static const mr_field fields[] = {
        {.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {MRT_SIDE, MRT_SIDE, 1}},
        {.name = "label", .type = MR_TYPE_INT}};
    static uint8_t pixels[COUNT * MRT_PIXELS];
    static int32_t labels[COUNT];
    const char *path = mrt_path(labelled ? "labelled.mrec" : "unlabelled.mrec");
    mr_error err = MR_ERROR_INIT;
    mr_writer_config cfg;
    mr_writer *w;
    mr_source *src;
    mr_writer_defaults(&cfg);
    cfg.fields = fields;
    cfg.field_count = labelled ? 2 : 1;
    cfg.force = true;
    mrt_toy(0, COUNT, pixels, labels);
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    for (uint64_t i = 0; i < COUNT; i++) {
        const mr_value v[] = {{.type = MR_TYPE_PIXELS,
                               .ndim = 3,
                               .dim = {MRT_SIDE, MRT_SIDE, 1},
                               .data = pixels + i * MRT_PIXELS,
                               .bytes = MRT_PIXELS},
                              {.type = MR_TYPE_INT, .i = labels[i]}};
        MRT_OK(mr_writer_append(w, i, v, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    MRT_OK(mr_source_open(&src, path, NULL, &err), &err);
    return src;
}

static mr_loader *open_loader(const mr_source *src, const mrt_rig *rig, mr_tail tail, bool count)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg;
    mr_loader *l;
    mr_loader_defaults(&cfg);
    cfg.batch = BATCH;
    cfg.seed = 3;
    cfg.order = MR_ORDER_SEQUENTIAL; /* for validation, too */
    cfg.epochs = UINT64_MAX;
    cfg.tail = tail;
    cfg.workers = 1;
    cfg.count_unlabelled = count;
    if (rig) cfg.devices = rig->devices, cfg.device_count = rig->count;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    return l;
}

static void test_samples_count_and_padding_does_not(void **state)
{
    (void)state;
    for (int labelled = 0; labelled < 2; labelled++)
        for (int count = 0; count < 2; count++) {
            mr_error err = MR_ERROR_INIT;
            mr_source *src = open_set(labelled);
            mr_loader *l = open_loader(src, NULL, MR_TAIL_PAD, count);
            const mr_loader_info *info = mr_loader_info_of(l);
            MRT_TRUE(info->labelled == labelled && info->counts == (labelled || count));
            uint32_t counted = 0, padded = 0;
            for (bool last = false; !last;) {
                mr_batch b;
                MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
                last = b.last;
                counted += b.counted;
                for (uint32_t i = 0; i < b.count; i++) {
                    const bool is_padding = b.last && i >= COUNT % BATCH;
                    padded += is_padding;
                    if (is_padding || (!labelled && !count)) MRT_EQ(b.labels[i], -1);
                    else if (!labelled) MRT_EQ(b.labels[i], 0);
                    else MRT_TRUE(b.labels[i] >= 0 && b.labels[i] < MRT_CLASSES);
                }
                MRT_EQ(mr_loader_release(l, &b, NULL), MR_OK);
            }
            MRT_TRUE(counted == (labelled || count ? COUNT : 0) && padded == 3);
            mr_loader_close(l);
            mr_source_close(src);
        }
}

typedef struct outcome {
    mrt_hash hash;
    double loss, val_loss;
    uint64_t samples, val_samples;
} outcome;

static outcome trained(bool labelled, const char *devices, mr_tail tail)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src = open_set(labelled);
    mrt_rig rig;
    mr_fit_config cfg;
    mr_report last;
    outcome out;
    mrt_rig_open(&rig,
                 &(mrt_rig_options){
                     .devices = devices, .batch = BATCH, .seed = 2, .update = MR_UPDATE_ADAM, .net = coder});
    mr_loader *train = open_loader(src, &rig, tail, true), *val = open_loader(src, &rig, tail, true);
    mr_fit_defaults(&cfg);
    cfg.epochs = 2;
    cfg.val = val;
    MRT_OK(mr_fit(rig.t, train, &cfg, &last, &err), &err);
    MRT_TRUE(isnan(last.accuracy) && isnan(last.val_accuracy) && last.has_val);
    out = (outcome){.loss = last.loss, .samples = last.samples};
    MRT_OK(mr_evaluate(rig.t, val, &out.val_loss, NULL, &out.val_samples, &err), &err);
    MRT_TRUE(out.val_loss == last.val_loss);
    out.hash = mrt_hash_of(&rig, 0);
    mr_loader_close(train);
    mr_loader_close(val);
    mrt_rig_close(&rig);
    mr_source_close(src);
    return out;
}

static void test_labels_make_no_difference(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:3"};
    static const mr_tail tails[] = {MR_TAIL_KEEP, MR_TAIL_PAD};
    for (size_t d = 0; d < 2; d++)
        for (size_t k = 0; k < 2; k++) {
            const outcome with = trained(true, devices[d], tails[k]),
                          without = trained(false, devices[d], tails[k]);
            MRT_TRUE(mrt_same(with.hash, without.hash));
            MRT_TRUE(with.loss == without.loss && with.val_loss == without.val_loss && with.loss > 0);
            MRT_TRUE(with.samples == COUNT && without.samples == COUNT && without.val_samples == COUNT);
        }
}

static void refused(mr_net *(*net)(void), bool labelled_train, bool count, const char *why)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src = open_set(labelled_train), *bare = open_set(false);
    mrt_rig rig;
    mr_fit_config cfg;
    double loss;
    mrt_rig_open(&rig, &(mrt_rig_options){.devices = "cpu", .batch = BATCH, .net = net});
    mr_loader *train = open_loader(src, &rig, MR_TAIL_KEEP, count),
              *val = open_loader(bare, &rig, MR_TAIL_KEEP, count);
    mr_fit_defaults(&cfg);
    cfg.epochs = 1;
    if (labelled_train) cfg.val = val; /* it is this one */
    MRT_EQ(mr_fit(rig.t, train, &cfg, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, why);
    MRT_EQ(mr_evaluate(rig.t, val, &loss, NULL, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, why);
    mr_loader_close(train);
    mr_loader_close(val);
    mrt_rig_close(&rig);
    mr_source_close(src);
    mr_source_close(bare);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    for (int labelled = 0; labelled < 2; labelled++) {
        refused(mrt_net_dense, labelled, false, "predicts classes: expected data with labels");
        refused(mrt_net_dense, labelled, true, "predicts classes: expected data with labels");
        refused(coder, labelled, false, "open it with count_unlabelled");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_count_and_padding_does_not),
        cmocka_unit_test(test_labels_make_no_difference),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
    };
    return mrt_run(tests);
}
