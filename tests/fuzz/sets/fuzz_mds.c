/* tests/fuzz/fuzz_mds.c: hostile MDS shards and the index next to them.
 *
 * Input: a mode byte. Bit 0: two bytes for the length of index.json, and this, stand in front of the shard,
 * which is opened through it. Else the rest is a shard alone. Bit 1: --label-key u8. Bit 2: the rest is the
 * columns' JSON and, after two bytes for its length, samples: the table of offsets is made here. */
#include "tests/fuzz/fuzz_source.h"

static uint8_t *frame(const uint8_t *data, size_t bytes, size_t *out_bytes)
{
    size_t config = bytes < 2 ? 0 : (size_t)data[0] | (size_t)data[1] << 8;
    if (bytes >= 2) data += 2, bytes -= 2;
    if (config > bytes) config = bytes;
    const uint32_t samples = (uint32_t)(bytes - config), first = 16 + (uint32_t)config,
                   half = first + samples / 2, end = first + samples, head[4] = {2, first, half, end};
    uint8_t *out = malloc(end);
    if (!out) abort();
    memcpy(out, head, sizeof head);
    if (bytes) memcpy(out + sizeof head, data, bytes);
    *out_bytes = end;
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    const int mode = *data++;
    const char *key = mode & 2 ? "u8" : NULL;
    bytes--;
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    if (mode & 1 && bytes >= 2) {
        size_t n = (size_t)data[0] | (size_t)data[1] << 8;
        if (n > bytes - 2) n = bytes - 2;
        const char *index = mrt_fuzz_file("index.json", data + 2, n);
        mrt_fuzz_file("s", data + 2 + n, bytes - 2 - n);
        fuzz_open_format(index, "mds", key);
    } else {
        size_t framed_bytes = bytes;
        uint8_t *framed = mode & 4 ? frame(data, bytes, &framed_bytes) : NULL;
        fuzz_open_format(mrt_fuzz_file("x.mds", framed ? framed : data, framed_bytes), "mds", key);
        free(framed);
    }
    mrt_fuzz_end();
    return 0;
}
