/* loader.c: the library in ten lines: open any data set, take batches.
 *
 *   loader DATA
 *
 * DATA is whatever `millrace inspect` understands: a folder of pictures, a record file, TFRecords, ... */
#include <millrace/pipeline.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *source = NULL;
    mr_loader *loader = NULL;
    mr_loader_config cfg;
    mr_batch batch;
    char line[1024];
    mr_loader_defaults(&cfg);
    int rc = mr_source_open(&source, argc > 1 ? argv[1] : ".", NULL, &err);
    if (rc == MR_OK) rc = mr_loader_open(&loader, source, &cfg, &err);
    while (rc == MR_OK && (rc = mr_loader_next(loader, &batch, MR_FOREVER, &err)) == MR_OK) {
        printf("batch %llu: %u samples, first label %d\n", (unsigned long long)batch.step, batch.count,
               batch.labels[0]); /* batch.pixels: uint8, count x height x width x channels */
        mr_loader_release(loader, &batch, NULL);
    }
    if (rc != MR_EEND) fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_loader_close(loader);
    mr_source_close(source);
    return rc == MR_EEND ? 0 : 1;
}
