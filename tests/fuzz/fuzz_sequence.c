/* tests/fuzz/fuzz_sequence.c: sequences of numbers over hostile bytes. Input: one byte that says where the class stands, the text. */
#include "fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const keys[] = {NULL, "first", "none", "2"};
    char                     path[64];
    if (bytes < 1) return 0;
    const int fd = mrt_fuzz_file(data + 1, bytes - 1, path);
    fuzz_open_format(path, "sequence", keys[data[0] % 4]);
    close(fd);
    return 0;
}
