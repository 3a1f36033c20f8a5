/* tests/fuzz/fuzz_gunzip.c: gzip and zlib files unpacked whole.
 *
 * Input: a mode byte, then the file as it is, or with bit 0 members: u16 length, deflated bytes; head and
 * checksum are made around them. Bit 1: the unpacked size is given before, rightly when bit 2 is not set. Bit
 * 3: one zlib stream instead. What can be unpacked in one go must come out of the file. */
#include <fcntl.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/storage/gunzip.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_IN = 16 << 10, MOST_OUT = 256 << 10, MEMORY = 128 << 10, DECLARED = 2 << 20 };

static uint8_t packed[MOST_IN], plain[MOST_OUT];
static size_t packed_bytes, plain_bytes;

static void put(const void *data, size_t bytes)
{
    if (bytes > MOST_IN - packed_bytes) abort();
    if (bytes) memcpy(packed + packed_bytes, data, bytes);
    packed_bytes += bytes;
}

/* One member; false: these bytes are not exactly one deflated piece that fits. */
static bool put_member(const uint8_t *data, size_t bytes, bool zlib)
{
    static struct inflate_state s;
    static const uint8_t gzip_head[10] = {0x1f, 0x8b, 8}, zlib_head[2] = {0x78, 0x9c};
    isal_inflate_init(&s);
    s.next_in = (uint8_t *)(uintptr_t)data; /* only read */
    s.avail_in = (uint32_t)bytes;
    s.next_out = plain + plain_bytes;
    s.avail_out = (uint32_t)(MOST_OUT - plain_bytes);
    const bool whole = isal_inflate_stateless(&s) == ISAL_DECOMP_OK && s.avail_in == 0;
    uint8_t tail[8];
    if (zlib) {
        put(zlib_head, sizeof zlib_head);
        put(data, bytes);
        const uint32_t sum = isal_adler32(1, plain + plain_bytes, s.total_out);
        mri_put_le32(tail, __builtin_bswap32(sum));
        put(tail, 4);
    } else {
        put(gzip_head, sizeof gzip_head);
        put(data, bytes);
        mri_put_le32(tail, crc32_gzip_refl(0, plain + plain_bytes, s.total_out));
        mri_put_le32(tail + 4, s.total_out);
        put(tail, 8);
    }
    plain_bytes += s.total_out;
    return whole;
}

static bool put_members(const uint8_t *data, size_t bytes, bool zlib)
{
    bool whole = bytes >= 2;
    for (int k = 0; bytes >= 2 && k < (zlib ? 1 : 8); k++) {
        size_t n = data[0] | (size_t)data[1] << 8;
        data += 2;
        bytes -= 2;
        if (n > bytes) n = bytes;
        whole &= put_member(data, n, zlib);
        data += n;
        bytes -= n;
    }
    return whole;
}

static void check(int fd, uint64_t bytes, bool must)
{
    static uint8_t back[MOST_OUT];
    if (!must) return;
    if (bytes != plain_bytes || pread(fd, back, sizeof back, 0) != (ssize_t)plain_bytes ||
        memcmp(back, plain, plain_bytes) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1 || bytes > MOST_IN / 2) return 0;
    const int mode = data[0];
    const bool members = mode & 1;
    packed_bytes = plain_bytes = 0;
    bool whole = false;
    if (members) whole = put_members(data + 1, bytes - 1, mode & 8);
    else put(data + 1, bytes - 1);
    mrt_fuzz_begin(packed_bytes, DECLARED);
    const char *path = mrt_fuzz_file("x.gz", packed, packed_bytes);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t head[512];
    uint64_t made = plain_bytes + (mode & 4 ? 1 : 0);
    int unpacked, rc = MR_OK;
    bool in_memory;
    mr_error err = MR_ERROR_INIT;
    if (mri_is_packed(packed, packed_bytes)) {
        const size_t n =
            mri_gunzip_head(packed, packed_bytes < 4096 ? packed_bytes : 4096, head, sizeof head);
        if (n > sizeof head || (whole && memcmp(head, plain, n < plain_bytes ? n : plain_bytes) != 0))
            abort();
        if (mode & 2) {
            rc = mri_gunzip_file(fd, packed_bytes, path, made, MEMORY, &unpacked, &in_memory, &err);
            if (rc == MR_OK && whole && made != plain_bytes) abort();
        } else rc = mri_unpack_file(fd, packed_bytes, path, MEMORY, &unpacked, &made, &in_memory, &err);
        if (rc == MR_OK) {
            check(unpacked, made, whole);
            close(unpacked);
        } else if (!err.text[0] || (whole && !(mode & 6))) abort();
    }
    close(fd);
    mrt_fuzz_end();
    return 0;
}
