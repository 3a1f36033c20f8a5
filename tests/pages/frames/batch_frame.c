/* Around the batch of its own in docs/library.md: one step on a device of the processor. */
#include <millrace/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, CLASSES = 2, BATCH = 16 };

static mr_error err = MR_ERROR_INIT;

static void must(int rc)
{
    char line[1024];
    if (rc == MR_OK) return;
    fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    exit(1);
}

int main(void)
{
    mr_device **devices = NULL;
    uint32_t count = 0;
    must(mr_devices_open(&devices, &count, "cpu", NULL, &err));
    mr_net *net = NULL;
    must(mr_net_create(&net, "small", SIDE, SIDE, 1));
    mr_net_dense(net, CLASSES, MR_ACT_NONE);
    must(mr_net_check(net, &err));
    mr_trainer *trainer = NULL;
    mr_trainer_config how;
    mr_trainer_defaults(&how);
    how.net = net, how.devices = devices, how.device_count = count, how.batch = BATCH;
    must(mr_trainer_open(&trainer, &how, &err));

    void *device_pixels = NULL, *device_labels = NULL;
    mr_event *copied = NULL, *used = NULL;
    must(mr_device_alloc(devices[0], BATCH * SIDE * SIDE, &device_pixels, &err));
    must(mr_device_alloc(devices[0], BATCH * sizeof(int32_t), &device_labels, &err));
    must(mr_event_create(&used, devices[0], &err));
    memset(device_pixels, 7, BATCH * SIDE * SIDE); /* memory of the processor */
    memset(device_labels, 0, BATCH * sizeof(int32_t));
    const uint32_t n = BATCH;
    const uint64_t k = 0;
#include "paragraph_1.c"

    mr_metrics sums;
    must(mr_trainer_metrics(trainer, &sums, NULL, &err));
    mr_trainer_close(trainer);
    mr_event_destroy(used);
    mr_device_free(devices[0], device_pixels);
    mr_device_free(devices[0], device_labels);
    mr_net_destroy(net);
    mr_devices_close(devices, count);
    return sums.count == BATCH ? 0 : 1;
}
