/* tests/fuzz/fuzz_csv.c: a table of pictures over hostile bytes. Input: the table; beside it lie a.jpg and b.png. */
#include "fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xd9}, png[] = "\x89PNG\r\n\x1a\n";
    static int           ready;
    if (!ready) {
        fuzz_put("a.jpg", jpeg, sizeof jpeg);
        fuzz_put("b.png", png, sizeof png - 1);
        ready = 1;
    }
    fuzz_put("list", data, bytes);
    char path[128];
    snprintf(path, sizeof path, "%s/list", fuzz_folder);
    fuzz_open_format(path, NULL, NULL);
    fuzz_open_format(path, "csv", bytes % 3 == 0 ? "2" : NULL);
    return 0;
}
