/* convert.c: record files written by hand: a schema, values, records.
 *
 *   convert DATA OUT.mrec
 *
 * Keeps picture and class of each sample and adds a number of its own. `millrace convert` and mr_convert() do
 * more: they check every picture, run on many threads, resume, and split into shards. */
#include <millrace/formats.h>
#include <stdio.h>
#include <stdlib.h>

/* A record for every sample of src. */
static int write_records(mr_writer *out, const mr_source *src, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    void *buffer = NULL; /* memory of a sample's values until the next one is read */
    size_t buffer_bytes = 0;
    mr_sample sample;
    int rc = MR_OK;
    for (uint64_t i = 0; rc == MR_OK && i < info->count; i++) {
        rc = mr_source_read(src, i, &buffer, &buffer_bytes, &sample, err);
        if (rc) break;
        const mr_value values[] = {sample.value[info->image_field],
                                   sample.value[info->label_field],
                                   {.type = MR_TYPE_FLOAT, .f = (double)i / (double)info->count}};
        rc = mr_writer_append(out, i, values, err);
    }
    free(buffer);
    return rc;
}

int main(int argc, char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src = NULL;
    mr_writer *out = NULL;
    mr_writer_config cfg;
    char line[1024];
    if (argc != 3) {
        fprintf(stderr, "usage: convert DATA OUT.mrec\n");
        return 2;
    }
    int rc = mr_source_open(&src, argv[1], NULL, &err);
    if (rc == MR_OK && (mr_source_info_of(src)->image_field < 0 || mr_source_info_of(src)->label_field < 0))
        rc = mr_error_set(&err, MR_EFORMAT, "expected pictures with classes");
    if (rc == MR_OK) {
        const mr_source_info *info = mr_source_info_of(src);
        const mr_field fields[] = {info->fields[info->image_field],
                                   info->fields[info->label_field],
                                   {.name = "position", .type = MR_TYPE_FLOAT}};
        mr_writer_defaults(&cfg);
        cfg.fields = fields;
        cfg.field_count = 3;
        cfg.class_names = info->class_names;
        cfg.class_count = info->class_count;
        cfg.force = true; /* replaces a file of that name, when the new one is whole */
        rc = mr_writer_open(&out, argv[2], &cfg, NULL, &err);
    }
    if (rc == MR_OK) rc = write_records(out, src, &err);
    if (rc == MR_OK) {
        printf("%s: %llu records, %llu bytes\n", argv[2], (unsigned long long)mr_writer_count(out),
               (unsigned long long)mr_writer_bytes(out));
        rc = mr_writer_finish(out, &err); /* index, header, and only now the name */
    } else {
        mr_writer_abort(out, false);
    }
    if (rc != MR_OK) fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_source_close(src);
    return rc == MR_OK ? 0 : 1;
}
