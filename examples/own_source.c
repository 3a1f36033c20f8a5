/* own_source.c: samples that the program makes when they are wanted, in place of a data set on disk.
 *
 *   own_source [COUNT]
 *
 * Sample k is a square on black, at a place that follows from k; its class says whether it lies in the left
 * or in the right half. Workers call square(), several at a time: it must give the same for the same number,
 * always. */
#include <millrace/pipeline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, SQUARE = 8 };

static int square(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    (void)context;
    uint8_t pixels[SIDE][SIDE] = {{0}};
    const uint32_t x = (uint32_t)(sample * 7 % (SIDE - SQUARE)), y = (uint32_t)(sample * 5 % (SIDE - SQUARE));
    for (uint32_t k = 0; k < SQUARE; k++) memset(&pixels[y + k][x], 255, SQUARE);
    const mr_value values[] = {
        {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {SIDE, SIDE, 1}, .data = pixels, .bytes = sizeof pixels},
        {.type = MR_TYPE_INT, .i = x + SQUARE / 2 >= SIDE / 2},
    };
    return mr_own_sample_give(to, values, err); /* copied */
}

int main(int argc, char **argv)
{
    static const char *const classes[] = {"left", "right"};
    static const mr_field fields[] = {{.name = "image", .type = MR_TYPE_IMAGE},
                                      {.name = "label", .type = MR_TYPE_INT}};
    mr_error err = MR_ERROR_INIT;
    mr_source *source = NULL;
    mr_loader *loader = NULL;
    mr_own_config own;
    mr_loader_config cfg;
    mr_batch batch;
    char line[1024];
    uint64_t of_class[2] = {0};
    mr_own_defaults(&own);
    own.count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    own.field_count = 2, own.fields = fields;
    own.class_count = 2, own.class_names = classes;
    own.fetch = square;
    mr_loader_defaults(&cfg);
    cfg.augment = "resize(32x32)"; /* samples of one's own may differ in size */
    int rc = mr_source_create(&source, &own, &err);
    if (rc == MR_OK) rc = mr_loader_open(&loader, source, &cfg, &err);
    while (rc == MR_OK && (rc = mr_loader_next(loader, &batch, MR_FOREVER, &err)) == MR_OK) {
        for (uint32_t k = 0; k < batch.count; k++) of_class[batch.labels[k]]++;
        mr_loader_release(loader, &batch, NULL);
    }
    if (rc == MR_EEND)
        printf("%s: %llu, %s: %llu\n", classes[0], (unsigned long long)of_class[0], classes[1],
               (unsigned long long)of_class[1]);
    else fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_loader_close(loader);
    mr_source_close(source);
    return rc == MR_EEND ? 0 : 1;
}
