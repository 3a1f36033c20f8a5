/* tests/fuzz/sets/fuzz_mrec.c: .mrec reader, verifier and source over hostile bytes.
 *
 * Input: a mode byte, then pieces (u16 length, bytes), each put on the next multiple of 4096 of the file:
 * header, sections, data, index. A file is mostly zeros, and this keeps the input small. Bit 0 of the mode
 * repairs the checksums first, so that the data after them are reached; bit 1 keeps the index out of
 * memory. */
#include "tests/fuzz/fuzz_source.h"

enum { BLOCK = 4096, MOST = 8 * BLOCK };

static uint64_t get64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
static uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static void put32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }

static size_t build(const uint8_t *data, size_t bytes, uint8_t *file)
{
    size_t at = 0;
    while (bytes >= 2 && at < MOST) {
        size_t piece = data[0] | (size_t)data[1] << 8;
        data += 2;
        bytes -= 2;
        if (piece > bytes) piece = bytes;
        if (piece > MOST - at) piece = MOST - at;
        memcpy(file + at, data, piece);
        data += piece;
        bytes -= piece;
        at = (at + piece + BLOCK - 1) / BLOCK * BLOCK;
    }
    return at;
}

static void repair_records(uint8_t *file, size_t size, uint64_t at, uint64_t align)
{
    while (at < size && size - at >= 40) {
        uint8_t *p = file + at;
        const uint64_t header = get32(p + 8), record = get64(p + 16);
        if (header < 40 || header > record || record > size - at) return;
        put32(p + 32, mr_crc32c(0, p + header, record - header));
        put32(p + 4, mr_crc32c(0, p + 8, header - 8));
        at = (at + record + align - 1) / align * align;
    }
}

static void repair(uint8_t *file, size_t size)
{
    if (size < BLOCK) return;
    for (int part = 0; part < 3; part++) {
        const uint64_t offset = get64(file + 40 + 16 * part), bytes = get64(file + 48 + 16 * part);
        if (offset < size && bytes <= size - offset)
            put32(file + 144 + 4 * part, mr_crc32c(0, file + offset, bytes));
    }
    const uint64_t align = get32(file + 20);
    if (align >= 8 && align <= BLOCK && get64(file + 88) < size)
        repair_records(file, size, get64(file + 88), align);
    for (uint64_t at = get64(file + 104); at < size && size - at >= BLOCK; at += BLOCK)
        put32(file + at + 4, mr_crc32c(0, file + at + 8, BLOCK - 8));
    put32(file + BLOCK - 4, mr_crc32c(0, file, BLOCK - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t file[MOST];
    if (bytes < 1) return 0;
    memset(file, 0, sizeof file);
    const size_t size = build(data + 1, bytes - 1, file);
    if (data[0] & 1) repair(file, size);
    mrt_fuzz_begin(size, FUZZ_DECLARED);
    const char *path = mrt_fuzz_file("x.mrec", file, size);
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg = fuzz_config("mrec", NULL);
    fuzz_labels_are_hints = data[0] & 2; /* a page of the index is not read for each record */
    if (data[0] & 2) cfg.memory_bytes = 0;
    const int verified = mr_mrec_verify(path, NULL, NULL, NULL, &err);
    const int opened = fuzz_open(path, &cfg);
    if (verified == MR_OK && opened != MR_OK && opened != MR_ELIMIT)
        abort(); /* verify looks at everything that open does */
    mrt_fuzz_end();
    return 0;
}
