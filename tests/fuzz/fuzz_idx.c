/* tests/fuzz/fuzz_idx.c: the IDX source, gzip included, over hostile bytes.
 *
 * Input: u16 length of the labels file, its bytes, then the images file. Both lie in a folder of their own, written anew each time. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "millrace/formats.h"

static char folder[64] = "/dev/shm/millrace-fuzz-XXXXXX";

static void clean(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/train-images", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/train-labels", folder);
    unlink(path);
    rmdir(folder);
}

static void put(const char *name, const uint8_t *data, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wbe");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int ready;
    if (!ready) {
        if (!mkdtemp(folder)) {
            strcpy(folder, "/tmp/millrace-fuzz-XXXXXX");
            if (!mkdtemp(folder)) abort();
        }
        atexit(clean);
        ready = 1;
    }
    if (bytes < 2) return 0;
    size_t labels = data[0] | (size_t)data[1] << 8;
    if (labels > bytes - 2) labels = bytes - 2;
    put("train-labels", data + 2, labels);
    put("train-images", data + 2 + labels, bytes - 2 - labels);
    mr_error         err = MR_ERROR_INIT;
    mr_source       *src;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.format = "idx";
    cfg.memory_bytes = 1 << 20;
    if (mr_source_open(&src, folder, &cfg, &err) != MR_OK) return 0;
    void  *buf = NULL;
    size_t buf_bytes = 0;
    for (uint64_t i = 0; i < mr_source_info_of(src)->count && i < 64; i++) {
        mr_sample s;
        mr_source_read(src, i, &buf, &buf_bytes, &s, &err);
    }
    free(buf);
    mr_source_close(src);
    return 0;
}
