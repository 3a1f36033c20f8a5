/* two_inputs.c: a network with two inputs and two outputs.
 *
 *   two_inputs DATA.mrec [STEPS [FOLDER]]
 *
 * DATA.mrec is written by convert.c: a picture, its class, and the number "position". The network takes the
 * picture and the number. It predicts the class from both, and the number from the picture alone.
 *
 *   picture ─► convolutions ─► features ─┬─────────► concat ─► class       against the label
 *   position ────────────────────────────│────────────┘
 *                                        └─► one number                    against position */
#include <millrace/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_error err = MR_ERROR_INIT;

static void must(int rc)
{
    char line[1024];
    if (rc == MR_OK) return;
    fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    exit(1);
}

static mr_net *build(const mr_loader_info *in, uint32_t classes)
{
    mr_net *net = NULL;
    must(mr_net_create(&net, "two-inputs", in->height, in->width, in->channels));
    mr_net_conv2d(net, 16, 3, 2, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_conv2d(net, 32, 3, 2, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_dense(net, 32, MR_ACT_RELU);
    const mr_point features = mr_net_here(net);

    mr_net_field(net, &(mr_field_input){.name = "position", .mean = 0.5f, .std = 0.3f});
    const mr_point position = mr_net_here(net);

    mr_net_concat(net, &features, 1); /* 1 + 32 numbers */
    mr_net_dense(net, 32, MR_ACT_RELU);
    mr_net_dense(net, classes, MR_ACT_NONE);
    mr_net_loss_labels(net, 1);

    mr_net_from(net, features);
    mr_net_dense(net, 1, MR_ACT_NONE);
    mr_net_loss_pair(net, MR_PAIR_SQUARES, position, 0.5f);
    must(mr_net_check(net, &err));
    return net;
}

static void print_layers(const mr_net *net)
{
    mr_layer_row row;
    for (uint32_t i = 0; mr_net_layer(net, i, &row); i++) printf("%2u %-30s %s\n", i, row.name, row.output);
}

int main(int argc, char **argv)
{
    mr_source *source = NULL;
    mr_device **devices = NULL;
    uint32_t count = 0;
    must(mr_source_open(&source, argc > 1 ? argv[1] : "data.mrec", NULL, &err));
    must(mr_devices_open(&devices, &count, "cpu", NULL, &err));

    mr_loader *loader = NULL;
    mr_loader_config feed;
    const mr_loader_field fields[] = {{.name = "position"}};
    mr_loader_defaults(&feed);
    feed.devices = devices, feed.device_count = count;
    feed.batch = 32, feed.epochs = UINT64_MAX;
    feed.augment = "resize(32x32)";
    feed.fields = fields, feed.field_count = 1; /* batches bring it beside picture and label */
    must(mr_loader_open(&loader, source, &feed, &err));
    const mr_loader_info *info = mr_loader_info_of(loader);

    mr_net *net = build(info, mr_source_info_of(source)->class_count);
    mr_trainer *trainer = NULL;
    mr_trainer_config how;
    mr_trainer_defaults(&how);
    how.net = net, how.devices = devices, how.device_count = count, how.batch = info->batch;
    how.update = mr_update_rule_find("adam")->desc;
    how.schedule = (mr_schedule){.kind = MR_LR_CONSTANT, .lr = 3e-3f};
    how.fields = info->field, how.field_count = info->field_count; /* the fields of the batches
                                                                    */
    memcpy(how.mean, info->mean, sizeof how.mean);
    memcpy(how.std, info->std, sizeof how.std);
    must(mr_trainer_open(&trainer, &how, &err));

    mr_fit_config fit;
    mr_report report;
    mr_fit_defaults(&fit);
    fit.max_steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 50;
    fit.checkpoint_dir = argc > 3 ? argv[3] : NULL; /* for `millrace eval`, which finds the network in it */
    fit.data = mr_source_info_of(source);
    must(mr_fit(trainer, loader, &fit, &report, &err));
    print_layers(net);
    printf("%s: %llu parameters, last epoch: loss of both %.4f, accuracy %.3f\n", mr_net_name(net),
           (unsigned long long)mr_net_param_count(net), report.loss, report.accuracy);
    mr_trainer_close(trainer);
    mr_loader_close(loader);
    mr_net_destroy(net);
    mr_devices_close(devices, count);
    mr_source_close(source);
    return 0;
}
