/* tests/fuzz/sets/fuzz_sequence.c: sequences of numbers over hostile bytes. Input: one byte that says where
 * the class stands, the text. */
#include "tests/fuzz/fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const keys[] = {NULL, "first", "none", "2"};
    if (bytes < 1) return 0;
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    fuzz_open_format(mrt_fuzz_file("train.csv", data + 1, bytes - 1), "sequence", keys[data[0] % 4]);
    if (data[0] & 4) fuzz_open_format(MRT_FUZZ_FOLDER, "sequence", keys[data[0] % 4]);
    mrt_fuzz_end();
    return 0;
}
