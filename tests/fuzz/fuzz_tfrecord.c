/* tests/fuzz/fuzz_tfrecord.c: the TFRecord source over hostile bytes: framing, packed streams, Examples.
 *
 * First byte of the input: 0, the rest is a file as it is; 1, the rest is the data of one record, framed here with right checksums (a
 * fuzzer does not find those); anything else, records of up to so many bytes are made of the rest, framed as well. */
#include <stdlib.h>
#include <string.h>

#include "formats/tfrecord.h"
#include "fuzz.h"
#include "millrace/formats.h"

static uint8_t *frame(const uint8_t *data, size_t bytes, size_t one, size_t *framed_bytes)
{
    const size_t count = one ? (bytes + one - 1) / one : 1;
    uint8_t     *out = malloc(bytes + 16 * count + 1);
    size_t       at = 0, used = 0;
    if (!out) abort();
    for (size_t k = 0; k < count; k++) {
        const size_t n = bytes - at < one ? bytes - at : one;
        mri_tfrecord_put_head(out + used, n);
        if (n) memcpy(out + used + 12, data + at, n);
        mri_tfrecord_put_tail(out + used + 12 + n, data + at, n);
        at += n;
        used += 16 + n;
    }
    *framed_bytes = used;
    return out;
}

static void read_all(const char *path)
{
    mr_error         err = MR_ERROR_INIT;
    mr_source       *src;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.format = "tfrecord";
    cfg.memory_bytes = 1 << 20;
    cfg.no_index_file = true;
    if (mr_source_open(&src, path, &cfg, &err) != MR_OK) return;
    void  *buf = NULL;
    size_t buf_bytes = 0;
    for (uint64_t i = 0; i < mr_source_info_of(src)->count && i < 64; i++) {
        mr_sample s;
        if (mr_source_read(src, i, &buf, &buf_bytes, &s, &err) != MR_OK) continue;
        volatile uint8_t sum = 0; /* every value lies where it says */
        for (uint32_t k = 0; k < s.value_count; k++)
            for (size_t b = 0; b < s.value[k].bytes; b++) sum = (uint8_t)(sum + ((const uint8_t *)s.value[k].data)[b]);
    }
    free(buf);
    mr_source_close(src);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    uint8_t *framed = NULL;
    size_t   n = bytes - 1;
    if (data[0] != 0) framed = frame(data + 1, bytes - 1, data[0] == 1 ? bytes : data[0], &n);
    char      path[64];
    const int fd = mrt_fuzz_file(framed ? framed : data + 1, n, path);
    read_all(path);
    close(fd);
    free(framed);
    return 0;
}
