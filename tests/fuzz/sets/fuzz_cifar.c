/* tests/fuzz/sets/fuzz_cifar.c: one CIFAR binary file of hostile bytes, by content and by name.
 *
 * Input: a mode byte (bit 0: opened as CIFAR; bit 1: CIFAR-100), then labels: each stands for a record,
 * so that a file of many records stays a small input; bit 2 makes the size wrong; bit 3: the file lies in a
 * folder under its usual name. */
#include "tests/fuzz/fuzz_source.h"

enum { PIXELS = 3072, MOST = 80 };

/* Records with `labels` bytes of labels: the pixels were put in place once. */
static uint8_t *blank(size_t labels)
{
    static uint8_t file[2][MOST * (PIXELS + 2) + 1];
    uint8_t *p = file[labels - 1];
    if (p[labels]) return p;
    for (size_t k = 0; k < MOST; k++) memset(p + k * (PIXELS + labels) + labels, (int)k + 1, PIXELS);
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    const int mode = *data++;
    const size_t labels = mode & 2 ? 2 : 1, one = labels + PIXELS;
    uint8_t *file = blank(labels);
    size_t count = (bytes - 1) / labels;
    if (count > MOST) count = MOST;
    for (size_t k = 0; k < count; k++) memcpy(file + k * one, data + k * labels, labels);
    mrt_fuzz_begin(bytes + count * one, FUZZ_DECLARED);
    const char *path =
        mrt_fuzz_file(mode & 2 ? "train.bin" : "data_batch_1.bin", file, count * one + (mode & 4 ? 1 : 0));
    fuzz_open_format(mode & 8 ? MRT_FUZZ_FOLDER : path, mode & 1 ? mode & 2 ? "cifar100" : "cifar10" : NULL,
                     NULL);
    mrt_fuzz_end();
    return 0;
}
