/* tests/fuzz/fuzz_cifar.c: one CIFAR binary file of hostile bytes, by content and by name.
 *
 * Input: a mode byte (bit 0: told that it is CIFAR; bit 1: CIFAR-100), then labels: each stands for a record, so that a file of
 * many records stays a small input; what is left over when bit 2 is set makes the size wrong. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "millrace/formats.h"

enum { PIXELS = 3072, MOST = 80 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t file[MOST * (PIXELS + 2) + 1];
    if (bytes < 1) return 0;
    const int mode = *data++;
    bytes--;
    const size_t labels = mode & 2 ? 2 : 1;
    size_t       size = 0;
    for (size_t k = 0; k < MOST && bytes >= labels; k++) {
        memcpy(file + size, data, labels);
        memset(file + size + labels, (int)k, PIXELS);
        data += labels;
        bytes -= labels;
        size += labels + PIXELS;
    }
    if (mode & 4) size++;
    char             path[64];
    const int        fd = mrt_fuzz_file(file, size, path);
    mr_error         err = MR_ERROR_INIT;
    mr_source       *src;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    if (mode & 1) cfg.format = mode & 2 ? "cifar100" : "cifar10";
    if (mr_source_open(&src, path, &cfg, &err) == MR_OK) {
        void  *buf = NULL;
        size_t buf_bytes = 0;
        for (uint64_t i = 0; i < mr_source_info_of(src)->count && i < 2 * MOST; i++) {
            mr_sample s;
            mr_source_read(src, i, &buf, &buf_bytes, &s, &err);
        }
        free(buf);
        mr_source_close(src);
    }
    close(fd);
    return 0;
}
