/* tests/fuzz/pictures/fuzz_png.c: any bytes offered as a PNG. Each chunk's checksum is put right after most
 * mutations, or hardly any would get past the first chunk. */
#include "tests/fuzz/pictures/fuzz_picture.h"

#include "base/util.h"
#include "pipeline/decode/decoders.h"

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

/* As a mask: what can be taken as numbers can be taken as a picture. */
static void fuzz_samples(const uint8_t *data, size_t bytes)
{
    mr_image_header header;
    mr_image image;
    mri_buffer buffer = {0};
    const mr_value value = {.type = MR_TYPE_PNG, .data = data, .bytes = bytes};
    if (mr_image_header_parse(data, bytes, &header, NULL) != MR_OK || header.type != MR_TYPE_PNG) return;
    if ((uint64_t)header.width * header.height > 1 << 18) return;
    const int rc = mri_png_samples(data, bytes, &header, &buffer, NULL);
    if (rc == MR_OK && header.bit_depth == 8 && header.channels == 1) { /* gray of 8 bits: the same numbers */
        if (mr_image_decode(&value, NULL, &image, NULL) != MR_OK) abort();
        if (memcmp(image.pixels, buffer.data, (size_t)header.width * header.height) != 0) abort();
        mr_image_free(&image);
    }
    mri_buffer_free(&buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes > 0) fuzz_picture(MR_TYPE_PNG, data, bytes);
    if (bytes > 0) fuzz_samples(data, bytes);
    return 0;
}
