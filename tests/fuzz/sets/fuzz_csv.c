/* tests/fuzz/sets/fuzz_csv.c: a table of pictures over hostile bytes. Input: the table; a.jpg and b.png lie
 * in its folder. */
#include "tests/fuzz/fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xd9}, png[] = "\x89PNG\r\n\x1a\n";
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    mrt_fuzz_file("a.jpg", jpeg, sizeof jpeg);
    mrt_fuzz_file("b.png", png, sizeof png - 1);
    const char *path = mrt_fuzz_file("list", data, bytes);
    fuzz_open_format(path, bytes % 2 ? NULL : "csv", bytes % 3 == 0 ? "2" : NULL);
    mrt_fuzz_end();
    return 0;
}
