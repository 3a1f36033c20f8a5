/* tests/cli/train/own_nets.c: trains networks from the builder, which the command has no name for, and leaves
 * their checkpoints.
 *
 *   own_nets classes|targets|bare|numbers DATA FOLDER EPOCHS STEPS
 *   own_nets write|others DATA     records without pictures: a field of six numbers, and a class
 */
#include <millrace/formats.h>
#include <millrace/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 6, SAMPLES = 60, CLASSES = 3 };

static mr_error err = MR_ERROR_INIT;

static void must(int rc)
{
    char line[1024];
    if (rc == MR_OK) return;
    fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    exit(1);
}

/* Of class c the numbers c and c + 3 are larger than the others. */
static void write_data(const char *path, const char *name)
{
    mr_field fields[] = {{.type = MR_TYPE_TENSOR, .dtype = MR_F32, .ndim = 1, .dim = {NUMBERS}},
                         {.name = "label", .type = MR_TYPE_INT}};
    static const char *const names[] = {"a", "b", "c"};
    snprintf(fields[0].name, sizeof fields[0].name, "%s", name);
    mr_writer *w;
    mr_writer_config cfg;
    mr_writer_defaults(&cfg);
    cfg.fields = fields, cfg.field_count = 2;
    cfg.class_names = names, cfg.class_count = CLASSES;
    must(mr_writer_open(&w, path, &cfg, NULL, &err));
    for (uint64_t k = 0; k < SAMPLES; k++) {
        float x[NUMBERS];
        for (uint64_t i = 0; i < NUMBERS; i++)
            x[i] = (float)((k * 7 + i * 5) % 11) / 22 + (i % CLASSES == k % CLASSES ? 1.0f : 0.0f);
        const mr_value v[] = {{.type = MR_TYPE_TENSOR,
                               .dtype = MR_F32,
                               .ndim = 1,
                               .dim = {NUMBERS},
                               .data = x,
                               .bytes = sizeof x},
                              {.type = MR_TYPE_INT, .i = (int64_t)(k % CLASSES)}};
        must(mr_writer_append(w, k, v, &err));
    }
    must(mr_writer_finish(w, &err));
}

static mr_net *build(const char *kind, const mr_loader_info *in, uint32_t classes)
{
    mr_net *net = NULL;
    if (strcmp(kind, "bare") == 0) {
        must(mr_net_create_bare(&net, "of-numbers"));
        mr_net_field(net, &(mr_field_input){.name = "numbers", .c = NUMBERS, .mean = 0.5f});
        mr_net_dense(net, 16, MR_ACT_TANH);
        mr_net_dense(net, classes, MR_ACT_NONE);
        return net;
    }
    if (strcmp(kind, "numbers") == 0) {
        must(mr_net_create_numbers(&net, "of-words", in->field[0].most, CLASSES));
        mr_net_embedding(net, 4);
        mr_net_gru(net, 8, false);
        mr_net_dense(net, classes, MR_ACT_NONE);
        return net;
    }
    const bool targets = strcmp(kind, "targets") == 0;
    must(mr_net_create(&net, targets ? "of-targets" : "of-classes", in->height, in->width, in->channels));
    mr_net_conv2d(net, 8, 3, 2, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_RELU);
    mr_net_dropout(net, 0.25f);
    if (targets) {
        mr_net_dense(net, 1, MR_ACT_NONE);
        mr_net_targets(net, MR_TARGET_HUBER, "position");
        return net;
    }
    mr_net_dense(net, classes, MR_ACT_NONE);
    mr_net_loss_labels(net, 0.5f); /* one of its own */
    return net;
}

int main(int argc, char **argv)
{
    mr_source *source = NULL;
    mr_device **devices = NULL;
    uint32_t count = 0;
    if (argc == 3) {
        write_data(argv[2], strcmp(argv[1], "write") == 0 ? "numbers" : "others");
        return 0;
    }
    if (argc != 6) return 2;
    const bool bare = strcmp(argv[1], "bare") == 0;
    must(mr_source_open(&source, argv[2], NULL, &err));
    must(mr_devices_open(&devices, &count, "cpu:1", NULL, &err));
    const bool numbers = strcmp(argv[1], "numbers") == 0;
    const mr_source_info *of = mr_source_info_of(source);
    const mr_loader_field field = {.name = numbers ? of->fields[of->length_field].name
                                           : bare  ? "numbers"
                                                   : "position",
                                   .most = numbers ? of->length_most : 0,
                                   .pad = numbers ? -1 : 0};
    mr_loader *loader = NULL;
    mr_loader_config feed;
    mr_loader_defaults(&feed);
    feed.devices = devices, feed.device_count = count;
    feed.batch = 20, feed.epochs = UINT64_MAX, feed.seed = 4, feed.training = true;
    feed.augment = bare || numbers ? "none" : "resize(16x16),flip";
    feed.count_unlabelled = strcmp(argv[1], "targets") == 0;
    if (strcmp(argv[1], "classes") != 0) feed.fields = &field, feed.field_count = 1;
    if (numbers) feed.width_multiple = field.most;
    must(mr_loader_open(&loader, source, &feed, &err));
    const mr_loader_info *info = mr_loader_info_of(loader);

    mr_net *net = build(argv[1], info, mr_source_info_of(source)->class_count);
    must(mr_net_check(net, &err));
    mr_trainer *trainer = NULL;
    mr_trainer_config how;
    mr_trainer_defaults(&how);
    how.net = net, how.devices = devices, how.device_count = count, how.batch = info->batch, how.seed = 4;
    how.update = mr_update_rule_find("adam")->desc;
    how.update.lr = 3e-3f;
    how.schedule = (mr_schedule){.kind = MR_LR_COSINE, .lr = 3e-3f};
    how.epochs = strtoull(argv[4], NULL, 10);
    how.fields = info->field, how.field_count = info->field_count;
    memcpy(how.mean, info->mean, sizeof how.mean);
    memcpy(how.std, info->std, sizeof how.std);
    must(mr_trainer_open(&trainer, &how, &err));

    mr_fit_config fit;
    mr_report report;
    uint64_t low, high;
    mr_fit_defaults(&fit);
    fit.epochs = how.epochs;
    fit.max_steps = strtoull(argv[5], NULL, 10);
    fit.checkpoint_dir = argv[3];
    fit.data = mr_source_info_of(source);
    must(mr_fit(trainer, loader, &fit, &report, &err));
    must(mr_trainer_weights_hash(trainer, 0, &low, &high, &err));
    printf("%016llx%016llx %.6f\n", (unsigned long long)high, (unsigned long long)low, report.loss);
    mr_trainer_close(trainer);
    mr_loader_close(loader);
    mr_net_destroy(net);
    mr_devices_close(devices, count);
    mr_source_close(source);
    return 0;
}
