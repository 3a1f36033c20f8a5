/* tests/fuzz/fuzz_tar.c: a tar archive of hostile bytes as a source, and names of any kind through the headers we write.
 *
 * Input: a mode byte, then the archive. Bit 0: checksums of what looks like a header are made right, so that changes get behind them;
 * bit 1: label_key and image_key are given; bit 2: what follows is a name, written and read back. The corpus is made by
 * corpus_tar.py. */
#include <stdlib.h>
#include <string.h>

#include "formats/tar.h"
#include "fuzz.h"
#include "millrace/formats.h"

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
    char             path[64];
    const int        fd = mrt_fuzz_file(archive, bytes, path);
    mr_error         err = MR_ERROR_INIT;
    mr_source       *src;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.format = "tar";
    cfg.no_index_file = true;
    cfg.memory_bytes = 4 << 20;
    if (keys) {
        cfg.image_key = "seg.png";
        cfg.label_key = "Species";
    }
    if (mr_source_open(&src, path, &cfg, &err) == MR_OK) {
        void  *buf = NULL;
        size_t buf_bytes = 0;
        for (uint64_t i = 0; i < mr_source_info_of(src)->count && i < 64; i++) {
            mr_sample s;
            if (mr_source_read(src, i, &buf, &buf_bytes, &s, &err) != MR_OK) continue;
            for (uint32_t k = 0; k < s.value_count; k++) { /* every byte that is handed out is there */
                const uint8_t *p = s.value[k].data;
                uint8_t        sum = 0;
                for (size_t b = 0; b < s.value[k].bytes; b++) sum ^= p[b];
                __asm__ volatile("" : : "r"(sum));
            }
        }
        free(buf);
        mr_source_close(src);
    }
    close(fd);
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
    static uint8_t out[4 * MRI_TAR_MOST_NAME];
    char           name[MRI_TAR_MOST_NAME + 2];
    uint64_t       size;
    size_t         used;
    if (bytes < sizeof size) return;
    memcpy(&size, data, sizeof size);
    bytes -= sizeof size;
    if (bytes > sizeof name - 1) bytes = sizeof name - 1;
    memcpy(name, data + sizeof size, bytes);
    name[bytes] = '\0';
    if (mri_tar_head_write(name, size, out, sizeof out, &used, NULL) != MR_OK) return;
    mri_tar_member m;
    mri_tar_init(&t, get, out, 0, UINT64_MAX);
    if (mri_tar_next(&t, &m, NULL) != MR_OK || strcmp(m.name, name) != 0 || m.bytes != size || m.data != used || m.kind != MRI_TAR_FILE) abort();
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
