/* own_operation.c: an operation of one's own in the augmentation, between operations of the language.
 *
 *   own_operation DATA [WORKERS]
 *
 * salt(P) makes each pixel black or white with probability P. All that is random comes from the draws that
 * are handed in, so batches are the same with any number of workers: the sum that is printed, too. */
#include <millrace/pipeline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int salt(void *context, const mr_own_picture *picture, uint8_t *pixels, mr_error *err)
{
    (void)context;
    const double part = picture->arguments[0];
    const size_t count = (size_t)picture->height * picture->width;
    if (part < 0 || part > 1) return mr_error_set(err, MR_EINVAL, "expected a probability, found %g", part);
    for (size_t k = 0; k < count; k++) {
        const uint32_t word = mr_own_draw(picture, k);
        if (word / 4294967296.0 < part)
            memset(pixels + k * picture->channels, word & 1 ? 255 : 0, picture->channels);
    }
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
    uint64_t pictures = 0, sum = 0;
    const mr_own_operation operations[] = {
        {.name = "my_salt", .change = salt, .arguments_least = 1, .arguments_most = 1}};
    mr_loader_defaults(&cfg);
    cfg.workers = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    cfg.training = true;
    cfg.augment = "rrc(32),my_salt(0.1),flip";
    cfg.operations = operations;
    cfg.operation_count = 1;
    int rc = mr_source_open(&source, argc > 1 ? argv[1] : ".", NULL, &err);
    if (rc == MR_OK) rc = mr_loader_open(&loader, source, &cfg, &err);
    while (rc == MR_OK && (rc = mr_loader_next(loader, &batch, MR_FOREVER, &err)) == MR_OK) {
        const mr_loader_info *info = mr_loader_info_of(loader);
        const size_t bytes = (size_t)batch.count * info->height * info->width * info->channels;
        for (size_t k = 0; k < bytes; k++) sum += batch.pixels[k];
        pictures += batch.count;
        mr_loader_release(loader, &batch, NULL);
    }
    if (rc == MR_EEND)
        printf("%s: %llu pictures, sum %llu\n", mr_loader_info_of(loader)->augment,
               (unsigned long long)pictures, (unsigned long long)sum);
    else fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_loader_close(loader);
    mr_source_close(source);
    return rc == MR_EEND ? 0 : 1;
}
