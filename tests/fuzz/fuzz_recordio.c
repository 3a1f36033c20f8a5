/* tests/fuzz/fuzz_recordio.c: hostile RecordIO bytes and the lists beside them, and frames built from hostile data.
 *
 * Input: a mode byte; with bit 0 or 1 two bytes for the length of .idx and .lst each, and these; the rest is the .rec file. bit 2:
 * packed labels, the class is the second; bit 3: the rest is data to be framed and found again instead. Files lie in a folder in
 * memory, /dev/shm where there is one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "formats/recordio.h"
#include "fuzz.h"
#include "millrace/formats.h"

static char             folder[64];
static volatile uint8_t touched; /* each byte that a sample points to */

static void remove_folder(void)
{
    static const char *const names[] = {"x.rec", "x.idx", "x.lst"};
    char                     path[80];
    for (int k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[k]);
        unlink(path);
    }
    rmdir(folder);
}

static void make_folder(void)
{
    if (folder[0]) return;
    snprintf(folder, sizeof folder, "%s/fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder)) __builtin_trap();
    atexit(remove_folder);
}

static void put(const char *ending, const void *data, size_t bytes, int there)
{
    char path[80];
    snprintf(path, sizeof path, "%s/x.%s", folder, ending);
    if (!there) {
        if (unlink(path) != 0 && errno != ENOENT) __builtin_trap();
        return;
    }
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes) __builtin_trap();
    close(fd);
}

static size_t take_list(const char *ending, const uint8_t **data, size_t *bytes, int there)
{
    size_t n = 0;
    if (there && *bytes >= 2) {
        n = (size_t)(*data)[0] | (size_t)(*data)[1] << 8;
        *data += 2;
        *bytes -= 2;
        if (n > *bytes) n = *bytes;
    }
    put(ending, *data, n, there);
    *data += n;
    *bytes -= n;
    return n;
}

static void frame_and_find(const uint8_t *data, size_t bytes)
{
    const uint64_t      size = mri_recordio_bytes(data, (uint32_t)bytes);
    uint8_t            *framed = malloc((size_t)size), *back = malloc(bytes ? bytes : 1);
    mri_recordio_memory m = {framed, size};
    mri_recordio_input  in = mri_recordio_in_memory(&m);
    mri_recordio_record r;
    if (!framed || !back || mri_recordio_build(data, (uint32_t)bytes, framed) != framed + size) __builtin_trap();
    if (mri_recordio_look(&in, 0, &r, NULL) != MR_OK || r.bytes != size || r.data_bytes != bytes) __builtin_trap();
    if (mri_recordio_copy(&in, &r, back, bytes, NULL) != MR_OK || (bytes && memcmp(back, data, bytes) != 0)) __builtin_trap();
    free(framed);
    free(back);
}

static void read_all(const mr_source *src)
{
    void  *buf = NULL;
    size_t buf_bytes = 0;
    for (uint64_t i = 0; i < mr_source_info_of(src)->count && i < 200; i++) {
        mr_sample s;
        int64_t   label;
        mr_error  err = MR_ERROR_INIT;
        const int known = mr_source_label(src, i, &label);
        const int rc = mr_source_read(src, i, &buf, &buf_bytes, &s, &err);
        if (rc == MR_OK && known == MR_OK && label != s.value[1].i) __builtin_trap();
        if (rc != MR_OK && (err.sample != i || !err.text[0])) __builtin_trap();
        for (size_t k = 0; rc == MR_OK && k < s.value[0].bytes; k++) touched ^= ((const uint8_t *)s.value[0].data)[k];
    }
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    const int mode = *data++;
    bytes--;
    if (mode & 8) {
        frame_and_find(data, bytes);
        return 0;
    }
    make_folder();
    take_list("idx", &data, &bytes, mode & 1);
    take_list("lst", &data, &bytes, mode & 2);
    put("rec", data, bytes, 1);
    mr_source       *src;
    mr_error         err = MR_ERROR_INIT;
    mr_source_config cfg;
    char             path[80];
    mr_source_defaults(&cfg);
    cfg.format = "recordio";
    cfg.no_index_file = true;
    cfg.memory_bytes = 64 * bytes + ((uint64_t)1 << 20);
    if (mode & 4) cfg.label_key = "1";
    snprintf(path, sizeof path, "%s/x.rec", folder);
    if (mr_source_open(&src, path, &cfg, &err) == MR_OK) {
        read_all(src);
        mr_source_close(src);
    } else if (!err.text[0]) __builtin_trap();
    return 0;
}
