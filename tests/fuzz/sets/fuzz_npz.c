/* tests/fuzz/sets/fuzz_npz.c: zip archives of arrays over hostile bytes. Input: the archive.
 *
 * After most mutations the checksums of the members are put right, or their content would never be looked
 * at. */
#include <fcntl.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/arrays/zip.h"
#include "formats/storage/spill.h"
#include "tests/fuzz/fuzz_source.h"

#ifdef MRT_LIBFUZZER /* a replay of the corpus mutates nothing */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned int seed);

enum { LOCAL = 30, CENTRAL = 46 };

/* Of a member's data as it would be unpacked; false: it cannot be. */
static bool crc_of(const uint8_t *packed, size_t bytes, unsigned method, uint32_t *crc)
{
    static uint8_t out[1 << 16];
    static struct inflate_state s;
    if (method == 0) return *crc = crc32_gzip_refl(0, packed, bytes), true;
    isal_inflate_init(&s);
    s.next_in = (uint8_t *)(uintptr_t)packed; /* only read */
    s.avail_in = (uint32_t)bytes;
    s.next_out = out;
    s.avail_out = sizeof out;
    if (method != 8 || isal_inflate_stateless(&s) != ISAL_DECOMP_OK) return false;
    *crc = crc32_gzip_refl(0, out, s.total_out);
    return true;
}

static void repair(uint8_t *p, size_t bytes)
{
    for (size_t at = 0; at + CENTRAL <= bytes; at++) {
        if (mri_le32(p + at) != 0x02014b50u) continue;
        const size_t local = mri_le32(p + at + 42), packed = mri_le32(p + at + 20);
        uint32_t crc;
        if (local > bytes || bytes - local < LOCAL) continue;
        const size_t data = local + LOCAL + mri_le16(p + local + 26) + mri_le16(p + local + 28);
        if (data > bytes || packed > bytes - data || !crc_of(p + data, packed, mri_le16(p + at + 10), &crc))
            continue;
        mri_put_le32(p + at + 16, crc);
        if (local + 18 <= at) mri_put_le32(p + local + 14, crc);
        at += CENTRAL - 1;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned int seed)
{
    bytes = LLVMFuzzerMutate(data, bytes, max_bytes);
    if (seed % 8) repair(data, bytes);
    return bytes;
}
#endif

/* Every member that can be unpacked has the directory's size and checksum. */
static void unpack_all(const char *path, size_t bytes)
{
    mri_zip z;
    mr_error err = MR_ERROR_INIT;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (mri_zip_open(&z, fd, bytes, path, &err) == MR_OK) {
        for (uint32_t k = 0; k < z.count && k < 4; k++) {
            mri_zip_member *m = &z.member[k];
            mri_spill out;
            if (mri_zip_locate(&z, m, &err) != MR_OK || mri_spill_open(&out, FUZZ_MEMORY, &err) != MR_OK)
                continue;
            if (m->offset + m->packed > bytes) abort();
            if (mri_zip_unpack(&z, m, &out, &err) == MR_OK &&
                (mri_spill_finish(&out, &err) != MR_OK || out.bytes != m->bytes))
                abort();
            mri_spill_close(&out);
        }
        mri_zip_close(&z);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    const char *path = mrt_fuzz_file("x.npz", data, bytes);
    if (bytes % 2) unpack_all(path, bytes);
    else fuzz_open_format(path, "npy", bytes % 4 ? "none" : NULL);
    mrt_fuzz_end();
    return 0;
}
