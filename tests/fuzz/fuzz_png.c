/* tests/fuzz/fuzz_png.c: any bytes offered as a PNG. Each chunk's checksum is put right after most mutations, or hardly any would
 * get past the first chunk. */
#include "fuzz_picture.h"

#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#ifdef MRT_LIBFUZZER /* a replay of the corpus mutates nothing */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned int seed);

static uint32_t crc_of(const uint8_t *p, size_t bytes)
{
    uint32_t crc = 0xffffffffu;
    for (size_t at = 0; at < bytes; at++) {
        crc ^= p[at];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned int seed)
{
    bytes = LLVMFuzzerMutate(data, bytes, max_bytes);
    if (seed % 8 == 0) return bytes;
    for (size_t at = 8; bytes >= at + 12;) {
        const size_t length = mri_be32(data + at);
        if (length > bytes - at - 12) break;
        mri_put_le32(data + at + 8 + length, __builtin_bswap32(crc_of(data + at + 4, length + 4)));
        at += 12 + length;
    }
    return bytes;
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes > 0) fuzz_picture(MR_TYPE_PNG, data, bytes);
    return 0;
}
