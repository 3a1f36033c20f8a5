/* resume.c: a run of `millrace train --checkpoint FOLDER`, or of mr_fit(), goes on to its end.
 *
 *   resume FOLDER DATA [EPOCHS]
 *
 * FOLDER has the checkpoints of the run, DATA are those it was trained on. The run goes on with the batch
 * that it would have had; EPOCHS may be more than it was to have. Ctrl-C ends it between two steps, and the
 * next call goes on. */
#include <millrace/run.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile int stop;

static void on_signal(int number) { stop = number; }

static void on_message(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint *from = NULL;
    mr_source *data = NULL;
    mr_device **devices = NULL;
    mr_loader *loader = NULL;
    mr_trainer *trainer = NULL;
    mr_source_config source;
    mr_devices_config device;
    mr_loader_config batches;
    mr_trainer_config training;
    uint32_t device_count = 0;
    mr_fit_config fit;
    mr_report last;
    char line[1024];
    mr_source_defaults(&source);
    mr_devices_defaults(&device);
    mr_loader_defaults(&batches);
    mr_trainer_defaults(&training);
    mr_fit_defaults(&fit);
    signal(SIGINT, on_signal);
    if (argc > 3) batches.epochs = strtoull(argv[3], NULL, 10);
    int rc = argc > 2 ? mr_checkpoint_open(&from, argv[1], MR_USE_TRAIN, &err)
                      : mr_error_set(&err, MR_EINVAL, "usage: resume FOLDER DATA [EPOCHS]");
    if (mr_checkpoint_note(from)) fprintf(stderr, "%s\n", mr_checkpoint_note(from));
    if (rc == MR_OK) rc = mr_checkpoint_source(from, &source, &err);
    if (rc == MR_OK) rc = mr_source_open(&data, argv[2], &source, &err);
    if (rc == MR_OK) rc = mr_checkpoint_devices(from, &device, &err);
    if (rc == MR_OK) rc = mr_devices_open(&devices, &device_count, "cpu", &device, &err);
    if (rc == MR_OK) rc = mr_checkpoint_loader(from, data, &batches, &err);
    batches.devices = training.devices = devices;
    batches.device_count = training.device_count = device_count;
    if (rc == MR_OK) rc = mr_loader_open(&loader, data, &batches, &err);
    if (rc == MR_OK) rc = mr_checkpoint_trainer(from, loader, &training, &err);
    if (rc == MR_OK) rc = mr_trainer_open(&trainer, &training, &err);
    if (rc == MR_OK) rc = mr_trainer_load(trainer, mr_checkpoint_path(from), NULL, &err);
    fit.epochs = batches.epochs;
    fit.checkpoint_dir = argv[1];
    fit.data = data ? mr_source_info_of(data) : NULL;
    fit.stop = &stop;
    fit.callbacks.on_message = on_message;
    if (rc == MR_OK) rc = mr_fit(trainer, loader, &fit, &last, &err);
    if (rc == MR_OK)
        printf("epoch %llu: loss %.4f, accuracy %.4f\n", (unsigned long long)last.epoch + 1, last.loss,
               last.accuracy);
    else fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_trainer_close(trainer); /* in the reverse order: each uses the handles opened before it */
    mr_loader_close(loader);
    mr_devices_close(devices, device_count);
    mr_source_close(data);
    mr_checkpoint_close(from);
    return rc == MR_OK ? 0 : 1;
}
