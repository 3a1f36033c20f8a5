/* custom_network.c: a network of one's own from the builder, trained for some steps.
 *
 *   custom_network DATA [STEPS [FOLDER]]
 *
 * With a folder the run is written there, network included, so that the command goes on with it: `millrace
 * eval DATA --checkpoint FOLDER`, predict, train --resume, export-weights, inspect --model FOLDER.
 *
 * The same seed gives the same weights on every run, for any number of workers. */
#include <millrace/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_error err = MR_ERROR_INIT;

/* Programs that go on after an error look at the code instead; base.h says what each one means. */
static void must(int rc)
{
    char line[1024];
    if (rc == MR_OK) return;
    fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    exit(1);
}

/* Two convolutions and a dense layer. mr_net_check() returns the first error of these calls. */
static mr_net *build(const mr_loader_info *in, uint32_t classes)
{
    mr_net *net = NULL;
    must(mr_net_create(&net, "two-convolutions", in->height, in->width, in->channels));
    mr_net_conv2d(net, 16, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_max_pool(net, 2, 2);
    mr_net_conv2d(net, 32, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_max_pool(net, 2, 2);
    mr_net_dense(net, classes, MR_ACT_NONE); /* logits */
    must(mr_net_check(net, &err));
    return net;
}

int main(int argc, char **argv)
{
    mr_source *source = NULL;
    mr_device **devices = NULL;
    uint32_t count = 0;
    must(mr_source_open(&source, argc > 1 ? argv[1] : ".", NULL, &err));
    must(mr_devices_open(&devices, &count, "cpu", NULL, &err)); /* or "cpu:2", "cuda:0,1", "sim:8" */

    mr_loader *loader = NULL;
    mr_loader_config feed;
    mr_loader_defaults(&feed);
    feed.devices = devices, feed.device_count = count; /* batches come in their memory, one part for each */
    feed.batch = 32, feed.epochs = UINT64_MAX;         /* mr_fit() says when it is enough */
    feed.augment = "resize(32x32),flip";
    feed.training = true;
    must(mr_loader_open(&loader, source, &feed, &err));
    const mr_loader_info *info = mr_loader_info_of(loader);

    mr_net *net = build(info, mr_source_info_of(source)->class_count);
    mr_trainer *trainer = NULL;
    mr_trainer_config how;
    mr_trainer_defaults(&how);
    how.net = net, how.devices = devices, how.device_count = count, how.batch = info->batch;
    how.update = (mr_update_desc){
        .kind = MR_UPDATE_ADAM, .lr = 3e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-7f};
    how.schedule = (mr_schedule){.kind = MR_LR_CONSTANT, .lr = 3e-3f};
    memcpy(how.mean, info->mean, sizeof how.mean); /* of the augmentation: pixels are normalised on the device
                                                    */
    memcpy(how.std, info->std, sizeof how.std);
    must(mr_trainer_open(&trainer, &how, &err));

    mr_fit_config fit;
    mr_report report;
    mr_fit_defaults(&fit);
    fit.max_steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 50;
    fit.checkpoint_dir = argc > 3 ? argv[3] : NULL;
    fit.data = mr_source_info_of(source); /* stored in the checkpoint */
    must(mr_fit(trainer, loader, &fit, &report, &err));
    printf("%s: %llu parameters, last epoch: loss %.4f, accuracy %.3f\n", mr_net_name(net),
           (unsigned long long)mr_net_param_count(net), report.loss, report.accuracy);
    mr_trainer_close(trainer); /* before its source and loader */
    mr_loader_close(loader);
    mr_net_destroy(net);
    mr_devices_close(devices, count);
    mr_source_close(source);
    return 0;
}
