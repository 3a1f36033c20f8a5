/* tests/fuzz/fuzz_source.h: a source over hostile files: open, read what is in it, close. */
#ifndef MRT_FUZZ_SOURCE_H
#define MRT_FUZZ_SOURCE_H

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "millrace/formats.h"

static char fuzz_folder[64] = "/dev/shm/millrace-fuzz-XXXXXX";
static char fuzz_names[4][32];

static inline void fuzz_clean(void)
{
    char path[256];
    for (int k = 0; k < 4 && fuzz_names[k][0]; k++) {
        snprintf(path, sizeof path, "%s/%s", fuzz_folder, fuzz_names[k]);
        unlink(path);
    }
    rmdir(fuzz_folder);
}

/* A file of at most four different names in the folder. */
static inline void fuzz_put(const char *name, const void *data, size_t bytes)
{
    static int ready;
    if (!ready) {
        if (!mkdtemp(fuzz_folder)) {
            strcpy(fuzz_folder, "/tmp/millrace-fuzz-XXXXXX");
            if (!mkdtemp(fuzz_folder)) abort();
        }
        atexit(fuzz_clean);
        ready = 1;
    }
    int k = 0;
    while (k < 3 && fuzz_names[k][0] && strcmp(fuzz_names[k], name) != 0) k++;
    snprintf(fuzz_names[k], sizeof fuzz_names[k], "%s", name);
    char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder, name);
    FILE *f = fopen(path, "wbe");
    if (!f || (bytes > 0 && fwrite(data, 1, bytes, f) != bytes) || fclose(f) != 0) abort();
}

/* What an open source says of itself must hold for every sample it gives. */
static inline void fuzz_samples(const mr_source *src)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_error              err = MR_ERROR_INIT;
    void                 *buf = NULL;
    size_t                buf_bytes = 0;
    if (info->count == 0 || info->field_count == 0) abort();
    for (uint64_t i = 0; i < info->count && i < 64; i++) {
        mr_extent e;
        mr_sample s;
        int64_t   label;
        if (mr_source_extent(src, i, &e, &err) == MR_OK && e.bytes > info->max_extent_bytes) abort();
        if (mr_source_label(src, i, &label) == MR_OK && info->class_count && (label < 0 || label >= info->class_count)) abort();
        if (mr_source_read(src, i, &buf, &buf_bytes, &s, &err) != MR_OK) continue;
        if (s.value_count != info->field_count) abort();
        uint8_t sum = 0;
        for (size_t k = 0; k < s.value[0].bytes; k++) sum ^= ((const uint8_t *)s.value[0].data)[k]; /* all of it can be read */
        if (sum == 0xa5 && s.value[0].bytes == 0) abort();
    }
    free(buf);
}

static inline int fuzz_open_format(const char *path, const char *format, const char *label_key)
{
    mr_source_config cfg;
    mr_source       *src;
    mr_error         err = MR_ERROR_INIT;
    mr_source_defaults(&cfg);
    cfg.format = format;
    cfg.label_key = label_key;
    cfg.memory_bytes = 1 << 20;
    const int rc = mr_source_open(&src, path, &cfg, &err);
    if ((rc == MR_OK) != (src != NULL) || (rc && !err.text[0])) abort();
    if (rc == MR_OK) fuzz_samples(src);
    mr_source_close(src);
    return rc;
}

#endif
