/* Around the samples of its own in docs/library.md: the pictures are one file of the page's data. */
#include <millrace/loader.h>
#include <stdio.h>

static uint8_t picture[1 << 16];
static const uint8_t *jpeg[1000];
static size_t jpeg_bytes[1000];
static int32_t label[1000];
#include "paragraph_1.c"

int main(void)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *source = NULL;
    mr_loader *loader = NULL;
    mr_loader_config cfg;
    mr_batch batch;
    char line[1024];
    uint64_t count = 0, labels = 0;
    FILE *file = fopen("PHOTO.jpg", "rb");
    const size_t bytes = file ? fread(picture, 1, sizeof picture, file) : 0;
    if (!file || fclose(file) || !bytes) return 1;
    for (int k = 0; k < 1000; k++) jpeg[k] = picture, jpeg_bytes[k] = bytes, label[k] = k % 2;
#include "paragraph_2.c"
    mr_loader_defaults(&cfg);
    cfg.augment = "resize(16x16)";
    int rc = source ? mr_loader_open(&loader, source, &cfg, &err) : MR_EINVAL;
    while (rc == MR_OK && (rc = mr_loader_next(loader, &batch, MR_FOREVER, &err)) == MR_OK) {
        for (uint32_t k = 0; k < batch.count; k++) labels += (uint64_t)batch.labels[k];
        count += batch.count;
        mr_loader_release(loader, &batch, NULL);
    }
    if (rc != MR_EEND) fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_loader_close(loader);
    mr_source_close(source);
    return rc == MR_EEND && count == 1000 && labels == 500 ? 0 : 1;
}
