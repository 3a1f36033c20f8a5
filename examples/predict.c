/* predict.c: the class that a checkpoint's network predicts for each sample of a data set.
 *
 *   predict CHECKPOINT DATA
 *
 * CHECKPOINT is a file, or a folder whose newest one is taken. Its settings say how pictures are
 * made. DATA need no labels. One line for each sample: its number, the class, the logit. */
#include <millrace/run.h>
#include <stdio.h>

static int on_outputs(void *context, const mr_outputs *o, mr_error *err)
{
    (void)context, (void)err;
    for (uint32_t k = 0; k < o->count; k++) {
        const float *logits = o->logits + (size_t)k * o->classes;
        uint32_t best = 0;
        for (uint32_t c = 1; c < o->classes; c++)
            if (logits[c] > logits[best]) best = c;
        if (o->ids[k] != MR_NOWHERE)
            printf("%llu %u %.4f\n", (unsigned long long)o->ids[k], best, logits[best]);
    }
    return MR_OK;
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
    mr_outputs_config outputs;
    char line[1024];
    mr_source_defaults(&source);
    mr_devices_defaults(&device);
    mr_loader_defaults(&batches);
    mr_trainer_defaults(&training);
    mr_outputs_defaults(&outputs);
    outputs.on_outputs = on_outputs;
    int rc = argc > 2 ? mr_checkpoint_open(&from, argv[1], MR_USE_PREDICT, &err)
                      : mr_error_set(&err, MR_EINVAL, "usage: predict CHECKPOINT DATA");
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
    if (rc == MR_OK) rc = mr_evaluate_outputs(trainer, loader, &outputs, NULL, NULL, NULL, &err);
    if (rc != MR_OK) fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_trainer_close(trainer); /* in the reverse order: each uses the handles opened before it */
    mr_loader_close(loader);
    mr_devices_close(devices, device_count);
    mr_source_close(data);
    mr_checkpoint_close(from);
    return rc == MR_OK ? 0 : 1;
}
