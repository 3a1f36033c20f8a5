/* tests/fuzz/fuzz_source.h: a source over hostile files: open, read its samples, close. */
#ifndef MRT_FUZZ_SOURCE_H
#define MRT_FUZZ_SOURCE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "millrace/formats.h"
#include "tests/fuzz/fuzz.h"

enum {
    FUZZ_MEMORY = 1 << 20,           /* the memory limit of a source */
    FUZZ_DECLARED = 2 * FUZZ_MEMORY, /* that, and the buffers of fixed size that unpacking and converting take
                                        meanwhile */
    FUZZ_SAMPLES = 64,               /* looked at */
};

/* Every byte that is handed out is there: the sanitizers look. */
static inline void fuzz_touch(const void *data, size_t bytes)
{
    static uint8_t sink[4096];
    for (size_t at = 0; at < bytes; at += sizeof sink) {
        memcpy(sink, (const uint8_t *)data + at, bytes - at < sizeof sink ? bytes - at : sizeof sink);
        __asm__ volatile("" : : "r"(sink) : "memory");
    }
}

static bool fuzz_labels_are_hints; /* mr_source_label() need not equal the sample's label */

/* One sample: the source's earlier facts about it must hold. */
static inline void fuzz_sample(const mr_source *src, uint64_t i, void **buf, size_t *buf_bytes)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_error err = MR_ERROR_INIT;
    mr_extent e;
    mr_sample s;
    int64_t label;
    if (mr_source_extent(src, i, &e, &err) == MR_OK && e.bytes > info->max_extent_bytes) abort();
    const int known = mr_source_label(src, i, &label);
    if (known == MR_OK && info->class_count && (label < 0 || label >= info->class_count)) abort();
    const int rc = mr_source_read(src, i, buf, buf_bytes, &s, &err);
    char name[64];
    fuzz_touch(name, strlen(mr_source_sample_name(src, i, NULL, 0, name, sizeof name)));
    if (rc != MR_OK && !err.text[0]) abort();
    if (rc != MR_OK) return;
    if (s.value_count != info->field_count) abort();
    if (known == MR_OK && info->label_field >= 0 && !fuzz_labels_are_hints &&
        s.value[info->label_field].i != label)
        abort();
    for (uint32_t k = 0; k < s.value_count; k++) fuzz_touch(s.value[k].data, s.value[k].bytes);
}

static inline void fuzz_samples(const mr_source *src)
{
    const mr_source_info *info = mr_source_info_of(src);
    void *buf = NULL;
    size_t buf_bytes = 0;
    if (info->count == 0 || info->field_count == 0) abort();
    for (uint64_t i = 0; i < info->count && i < FUZZ_SAMPLES; i++) fuzz_sample(src, i, &buf, &buf_bytes);
    if (info->count > FUZZ_SAMPLES) fuzz_sample(src, info->count - 1, &buf, &buf_bytes);
    free(buf);
}

static inline mr_source_config fuzz_config(const char *format, const char *label_key)
{
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.format = format;
    cfg.label_key = label_key;
    cfg.memory_bytes = FUZZ_MEMORY;
    cfg.no_index_file = true;
    return cfg;
}

/* Open it and read its samples. Returns the result of opening. */
static inline int fuzz_open(const char *path, const mr_source_config *cfg)
{
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    const int rc = mr_source_open(&src, path, cfg, &err);
    if ((rc == MR_OK) != (src != NULL) || (rc && !err.text[0])) abort();
    if (rc == MR_OK) fuzz_samples(src);
    mr_source_close(src);
    return rc;
}

static inline int fuzz_open_format(const char *path, const char *format, const char *label_key)
{
    const mr_source_config cfg = fuzz_config(format, label_key);
    return fuzz_open(path, &cfg);
}

#endif
