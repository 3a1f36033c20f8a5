/* tests/fuzz/sets/fuzz_archive.c: class folders in an archive of hostile bytes, tar or zip, by its content
 * and by name.
 *
 * Input: a mode byte, then the archive. Bit 0: checksums of what looks like a tar header are made right; bit
 * 1: the format is named; bit 2: every folder is a class. The corpus is made by corpus_archive.py. */
#include <stdio.h>

#include "tests/fuzz/fuzz_source.h"

static void repair(uint8_t *p, size_t bytes)
{
    for (uint8_t *h = p; bytes - (size_t)(h - p) >= 512; h += 512) {
        if (memcmp(h + 257, "ustar", 5) != 0) continue;
        unsigned sum = 8 * ' ';
        for (int k = 0; k < 512; k++) sum += k >= 148 && k < 156 ? 0 : h[k];
        char text[8];
        snprintf(text, sizeof text, "%06o", sum & 0777777);
        memcpy(h + 148, text, 7);
        h[155] = ' ';
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    const uint8_t mode = data[0];
    uint8_t *archive = malloc(bytes);
    if (!archive) return 0;
    memcpy(archive, data + 1, bytes - 1);
    if (mode & 1) repair(archive, bytes - 1);
    mr_source_config cfg = fuzz_config(mode & 2 ? "archive" : NULL, NULL);
    if (mode & 4) cfg.classes = MR_CLASSES_DEPTH;
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    fuzz_open(mrt_fuzz_file("x", archive, bytes - 1), &cfg);
    mrt_fuzz_end();
    free(archive);
    return 0;
}
