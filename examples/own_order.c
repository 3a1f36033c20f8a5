/* own_order.c: an order of one's own: which sample stands at each position of an epoch.
 *
 *   own_order DATA
 *
 * A curriculum over three epochs: the first one has the first third of the samples, the next ones a third
 * more each. Every epoch has as many positions as there are samples, so in the first one each sample comes
 * three times. */
#include <millrace/pipeline.h>
#include <stdio.h>

enum { EPOCHS = 3 };

/* Threads of the loader ask, in any order and again: the same for the same epoch and position, always. */
static int curriculum(void *context, uint64_t epoch, uint64_t first, uint32_t count, uint64_t *out,
                      mr_error *err)
{
    (void)err;
    const uint64_t all = *(const uint64_t *)context;
    uint64_t some = all * (epoch + 1) / EPOCHS;
    if (some == 0) some = 1;
    for (uint32_t k = 0; k < count; k++) out[k] = (first + k) % some;
    return MR_OK;
}

int main(int argc, char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *source = NULL;
    mr_loader *loader = NULL;
    mr_loader_config cfg;
    mr_batch batch;
    char line[1024];
    uint64_t all = 0, largest = 0;
    mr_loader_defaults(&cfg);
    cfg.epochs = EPOCHS;
    cfg.sampler = curriculum;
    cfg.sampler_context = &all;
    int rc = mr_source_open(&source, argc > 1 ? argv[1] : ".", NULL, &err);
    if (rc == MR_OK) {
        all = cfg.sampler_count = mr_source_info_of(source)->count;
        rc = mr_loader_open(&loader, source, &cfg, &err);
    }
    while (rc == MR_OK && (rc = mr_loader_next(loader, &batch, MR_FOREVER, &err)) == MR_OK) {
        for (uint32_t k = 0; k < batch.count; k++)
            if (batch.ids[k] > largest) largest = batch.ids[k];
        if (batch.last)
            printf("epoch %llu: samples 0 to %llu\n", (unsigned long long)batch.epoch,
                   (unsigned long long)largest);
        mr_loader_release(loader, &batch, NULL);
    }
    if (rc != MR_EEND) fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_loader_close(loader);
    mr_source_close(source);
    return rc == MR_EEND ? 0 : 1;
}
