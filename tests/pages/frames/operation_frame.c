/* Around the operation of its own in docs/augment.md. */
#include <millrace/loader.h>
#include <stdio.h>

/* after the headers, whose types it uses */
#include "paragraph_1.c"

int main(int argc, char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *source = NULL;
    mr_loader *loader = NULL;
    mr_loader_config cfg;
    mr_batch batch;
    char line[1024];
    uint64_t count = 0;
    mr_loader_defaults(&cfg);
    cfg.training = true;
    cfg.epochs = 1;
#include "paragraph_2.c"
    int rc = mr_source_open(&source, argc > 1 ? argv[1] : ".", NULL, &err);
    if (rc == MR_OK) rc = mr_loader_open(&loader, source, &cfg, &err);
    while (rc == MR_OK && (rc = mr_loader_next(loader, &batch, MR_FOREVER, &err)) == MR_OK) {
        count += batch.count;
        mr_loader_release(loader, &batch, NULL);
    }
    if (rc != MR_EEND) fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_loader_close(loader);
    mr_source_close(source);
    return rc == MR_EEND && count > 0 ? 0 : 1;
}
