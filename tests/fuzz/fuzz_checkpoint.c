/* tests/fuzz/fuzz_checkpoint.c: a checkpoint changed by somebody who can compute its checksums.
 *
 * Input: a byte for the number of tensors (1 to 4) and, bit 7, whether checksums are left wrong; then changes
 * to a sound file: u16 place, one byte count, the bytes; a place at the end makes it longer. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "train/state/checkpoint.h"

enum { HEADER = 1024, ENTRY = 128, FLOATS = 4, MOST = 8192, DECLARED = 1 << 20 /* verify reads in pieces */ };

static size_t sound(uint8_t *p, uint32_t tensors)
{
    static const uint8_t magic[8] = {0x89, 'M', 'R', 'C', 'K', '\r', '\n', 0x1a};
    const uint64_t data = mri_align_up(HEADER + ENTRY * tensors, 64), size = data + 64 * tensors;
    memset(p, 0, MOST);
    memcpy(p, magic, sizeof magic);
    mri_put_le32(p + 8, 1);
    mri_put_le32(p + 12, HEADER);
    mri_put_le64(p + 16, size);
    mri_put_le32(p + 24, tensors);
    mri_put_le64(p + 32, HEADER);
    mri_put_le64(p + 40, data);
    for (int k = 0; k < 4; k++) mri_put_le32(p + 48 + 4 * k, 8);
    mri_put_le64(p + 64, FLOATS);
    memcpy(p + 128, "lenet5", 6);
    for (uint32_t k = 0; k < tensors; k++) {
        uint8_t *e = p + HEADER + ENTRY * k;
        memcpy(e, "0/dense/weights", 15);
        e[0] = (uint8_t)('0' + k);
        mri_put_le32(e + 68, 2);
        mri_put_le64(e + 72, 2);
        mri_put_le64(e + 80, FLOATS / 2);
        mri_put_le64(e + 104, data + 64 * k);
        mri_put_le64(e + 112, FLOATS);
    }
    return (size_t)size;
}

static size_t change(uint8_t *p, size_t size, const uint8_t *data, size_t bytes)
{
    while (bytes >= 3) {
        size_t at = (data[0] | (size_t)data[1] << 8) % MOST, n = data[2];
        data += 3;
        bytes -= 3;
        if (n > bytes) n = bytes;
        if (at > size) at = size;
        if (n > MOST - at) n = MOST - at;
        memcpy(p + at, data, n);
        if (at + n > size) size = at + n;
        data += n;
        bytes -= n;
    }
    return size;
}

/* The network, at the end of the file; `bytes` bytes come before it. */
static size_t repair_net(uint8_t *p, size_t size)
{
    const size_t bytes = mri_le32(p + 1000);
    if (bytes > size) return size;
    if (bytes) mri_put_le32(p + 1004, mr_crc32c(0, p + size - bytes, bytes));
    return size - bytes;
}

/* Targets and weights of classes, which lie behind all else. */
static void repair_wants(uint8_t *p, size_t size)
{
    const size_t bytes = (mri_le32(p + 984) ? 64 : 0) + 4 * (size_t)mri_le32(p + 988),
                 padded = (size_t)mri_align_up(bytes, 64);
    if (bytes && padded <= size) mri_put_le32(p + 992, mr_crc32c(0, p + size - padded, bytes));
}

/* Repair the entries of the directory, as far as they lie in the file. */
static void repair(uint8_t *p, size_t size)
{
    const size_t count = mri_le32(p + 24) % 64;
    for (size_t k = 0; k < count && HEADER + ENTRY * (k + 1) <= size; k++) {
        uint8_t *e = p + HEADER + ENTRY * k;
        const uint64_t at = mri_le64(e + 104), floats = mri_le64(e + 112);
        if (at <= size && floats <= (size - at) / sizeof(float))
            mri_put_le32(e + 120, mr_crc32c(0, p + at, floats * sizeof(float)));
    }
    if (HEADER + ENTRY * count <= size) mri_put_le32(p + 28, mr_crc32c(0, p + HEADER, ENTRY * count));
    repair_wants(p, repair_net(p, size));
    mri_put_le32(p + HEADER - 4, mr_crc32c(0, p, HEADER - 4));
}

static void read_all(const mri_checkpoint *ck)
{
    mr_error err = MR_ERROR_INIT;
    const bool sane = mri_checkpoint_verify(ck, &err) == MR_OK;
    for (uint32_t k = 0; k < ck->tensor_count; k++) {
        float *out = malloc(ck->tensors[k].count * sizeof *out);
        if (!out) abort();
        if (mri_checkpoint_read(ck, k, out, &err) != MR_OK && sane) abort();
        free(out);
    }
    mr_net *net;
    if (mri_checkpoint_net_read(ck, &net, &err) != MR_OK && sane) abort();
    mr_net_destroy(net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t file[MOST];
    if (bytes < 1) return 0;
    const size_t size = change(file, sound(file, 1 + data[0] % 4), data + 1, bytes - 1);
    if (!(data[0] & 0x80)) repair(file, size);
    mrt_fuzz_begin(size, DECLARED);
    mri_checkpoint *ck;
    mr_error err = MR_ERROR_INIT;
    const int rc = mri_checkpoint_open(&ck, mrt_fuzz_file("x.mrck", file, size), &err);
    if ((rc == MR_OK) != (ck != NULL) || (rc && !err.text[0]) || (rc && bytes == 1 && data[0] < 0x80))
        abort();
    if (ck) read_all(ck);
    mri_checkpoint_close(ck);
    mrt_fuzz_end();
    return 0;
}
