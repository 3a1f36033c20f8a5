/* tests/fuzz/sets/fuzz_idx.c: the IDX source, gzip included, over hostile bytes.
 *
 * Input: u16 length of the labels file, its bytes, then the images file; both lie in one folder. */
#include "tests/fuzz/fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) return 0;
    size_t labels = data[0] | (size_t)data[1] << 8;
    if (labels > bytes - 2) labels = bytes - 2;
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    mrt_fuzz_file("train-labels", data + 2, labels);
    const char *path = mrt_fuzz_file("train-images", data + 2 + labels, bytes - 2 - labels);
    fuzz_open_format(bytes % 2 ? MRT_FUZZ_FOLDER : path, "idx", NULL);
    mrt_fuzz_end();
    return 0;
}
