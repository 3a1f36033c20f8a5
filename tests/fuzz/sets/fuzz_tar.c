/* tests/fuzz/sets/fuzz_tar.c: a tar archive of hostile bytes as a source, and names of any kind through the
 * headers we write.
 *
 * Input: a mode byte, then the archive. Bit 0: checksums of blocks like a header are made right, so that
 * changes pass them; bit 1: label_key and image_key are given; bit 2: the rest is a name, written
 * and read back. The corpus is made by corpus_tar.py. */
#include <stdio.h>

#include "formats/tar/tar.h"
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

static void read_all(const uint8_t *archive, size_t bytes, int keys)
{
    mr_source_config cfg = fuzz_config("tar", NULL);
    if (keys) {
        cfg.image_key = "seg.png";
        cfg.label_key = "Species";
    }
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    fuzz_open(mrt_fuzz_file("x.tar", archive, bytes), &cfg);
    mrt_fuzz_end();
}

static int get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    (void)bytes, (void)err;
    *out = (const uint8_t *)context + offset;
    return MR_OK;
}

static void round_trip(const uint8_t *data, size_t bytes)
{
    static mri_tar t;
    static uint8_t out[4 * MRI_TAR_MAX_NAME];
    char name[MRI_TAR_MAX_NAME + 2];
    uint64_t size;
    size_t used;
    if (bytes < sizeof size) return;
    memcpy(&size, data, sizeof size);
    bytes -= sizeof size;
    if (bytes > sizeof name - 1) bytes = sizeof name - 1;
    memcpy(name, data + sizeof size, bytes);
    name[bytes] = '\0';
    if (mri_tar_head_write(name, size, out, sizeof out, &used, NULL) != MR_OK) return;
    mri_tar_member m;
    mri_tar_init(&t, get, out, 0, UINT64_MAX);
    if (mri_tar_next(&t, &m, NULL) != MR_OK || strcmp(m.name, name) != 0 || m.bytes != size ||
        m.data != used || m.kind != MRI_TAR_FILE)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    const int mode = *data;
    if (mode & 4) {
        round_trip(data + 1, bytes - 1);
        return 0;
    }
    uint8_t *archive = malloc(bytes);
    if (!archive) abort();
    memcpy(archive, data + 1, bytes - 1);
    if (mode & 1) repair(archive, bytes - 1);
    read_all(archive, bytes - 1, mode & 2);
    free(archive);
    return 0;
}
