/* formats/storage/gunzip.c: gzip and zlib through ISA-L, into a file descriptor, so that packed data is read
 * like any other file.
 *
 * How much comes out may be known before (from the header inside): a packed file that gives more is stopped
 * there, and a claim that no gzip of this size can hold is refused before anything is unpacked. Where it
 * goes, and how much may: spill.h. */
#include "formats/storage/gunzip.h"

#include <isa-l/igzip_lib.h>

#include "base/util.h"
#include "formats/storage/spill.h"

enum { PIECE = 64 << 10, MOST_PER_BYTE = 1032 /* deflate: 258 bytes from two bits */ };
#define UNKNOWN    UINT64_MAX
#define FREE_BYTES ((uint64_t)256 << 20)
#define RATIO_MOST 256

bool mri_unpack_is_too_much(uint64_t packed_bytes, uint64_t unpacked_bytes)
{
    return unpacked_bytes > FREE_BYTES && unpacked_bytes / RATIO_MOST > packed_bytes;
}

int mri_unpack_too_much(uint64_t packed_bytes, uint64_t unpacked_bytes, mr_error *err)
{
    return mr_error_set(
        err, MR_ELIMIT,
        "%llu packed bytes become %llu or more: more than %d from each are not unpacked, as this may "
        "be meant to fill the disk; if it is not, unpack the file yourself (gzip -d)",
        (unsigned long long)packed_bytes, (unsigned long long)unpacked_bytes, RATIO_MOST);
}

bool mri_is_gzip(const void *head, size_t bytes)
{
    const uint8_t *p = head;
    return bytes >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8;
}

static bool is_zlib(const void *head, size_t bytes)
{
    const uint8_t *p = head;
    return bytes >= 8 && p[0] == 0x78 && (p[1] & 0x20) == 0 && (p[0] << 8 | p[1]) % 31 == 0;
}

bool mri_is_packed(const void *head, size_t bytes)
{
    return mri_is_gzip(head, bytes) || is_zlib(head, bytes);
}

size_t mri_gunzip_head(const void *head, size_t head_bytes, void *out, size_t out_bytes)
{
    struct inflate_state s;
    isal_inflate_init(&s);
    s.crc_flag = is_zlib(head, head_bytes) ? ISAL_ZLIB : ISAL_GZIP;
    s.next_in = (uint8_t *)(uintptr_t)head; /* only read */
    s.avail_in = (uint32_t)head_bytes;
    s.next_out = out;
    s.avail_out = (uint32_t)out_bytes;
    /* what came out is good whatever it says: damage behind is found when all is unpacked */
    isal_inflate(&s);
    return out_bytes - s.avail_out;
}

typedef struct unpack {
    struct inflate_state s;
    uint8_t in[PIECE], out[PIECE];
    int fd;
    const char *path;
    uint64_t read, packed;
    uint64_t expected; /* UNKNOWN: as much as there is */
    mri_spill spill;   /* what came out */
    bool zlib;
} unpack;

static int wrong(const unpack *u, mr_error *err, int code, const char *what)
{
    mr_error_set(err, code, "%s: %s (after %llu unpacked bytes)", u->zlib ? "zlib" : "gzip", what,
                 (unsigned long long)u->spill.bytes);
    return mri_error_place(err, code, u->path, u->read - u->s.avail_in, MR_NOWHERE);
}

/* ---- the stream ---- */
static int refill(unpack *u, mr_error *err)
{
    if (u->s.avail_in > 0 || u->read == u->packed) return MR_OK;
    const size_t bytes = (size_t)mri_min_u64(PIECE, u->packed - u->read);
    const int rc = mri_pread_all(u->fd, u->in, bytes, u->read, u->path, err);
    if (rc) return rc;
    u->read += bytes;
    u->s.next_in = u->in;
    u->s.avail_in = (uint32_t)bytes;
    return MR_OK;
}

static int drain(unpack *u, mr_error *err)
{
    const size_t bytes = PIECE - u->s.avail_out;
    if (bytes > u->expected - u->spill.bytes)
        return wrong(u, err, MR_EFORMAT, "more is packed than the header inside says");
    const uint64_t all = u->spill.bytes + bytes;
    const int rc = mri_unpack_is_too_much(u->packed, all) ? mri_unpack_too_much(u->packed, all, err)
                                                          : mri_spill_write(&u->spill, u->out, bytes, err);
    if (rc) return mri_error_place(err, rc, err && err->file[0] ? NULL : u->path, MR_NOWHERE, MR_NOWHERE);
    u->s.next_out = u->out;
    u->s.avail_out = PIECE;
    return MR_OK;
}

static int one_member(unpack *u, mr_error *err)
{
    isal_inflate_reset(&u->s);
    u->s.crc_flag = u->zlib ? ISAL_ZLIB : ISAL_GZIP;
    while (u->s.block_state != ISAL_BLOCK_FINISH) {
        int rc = refill(u, err);
        if (rc) return rc;
        const uint32_t before = u->s.avail_in;
        const int said = isal_inflate(&u->s);
        if (said == ISAL_INCORRECT_CHECKSUM)
            return wrong(u, err, MR_ECHECKSUM, "the checksum does not match");
        if (said < 0) return wrong(u, err, MR_EFORMAT, "damaged");
        const bool idle = u->s.avail_out == PIECE && u->s.avail_in == before;
        rc = drain(u, err);
        if (rc) return rc;
        if (idle && u->s.block_state != ISAL_BLOCK_FINISH)
            return wrong(u, err, MR_EFORMAT, u->read == u->packed ? "the file ends early" : "damaged");
    }
    return MR_OK;
}

static int all_members(unpack *u, mr_error *err)
{
    isal_inflate_init(&u->s);
    u->s.next_out = u->out;
    u->s.avail_out = PIECE;
    do {
        int rc = one_member(u, err);
        if (!rc) rc = refill(u, err);
        if (rc) return rc;
        if (u->s.avail_in > 0 && (u->zlib || u->s.next_in[0] != 0x1f))
            return wrong(u, err, MR_EFORMAT, "bytes after the end");
    } while (u->s.avail_in > 0);
    if (u->spill.bytes < u->expected && u->expected != UNKNOWN)
        return wrong(u, err, MR_EFORMAT, "less is packed than the header inside says");
    return mri_spill_finish(&u->spill, err);
}

static int unpack_all(unpack *u, uint64_t memory_bytes, mr_error *err)
{
    int rc = mri_spill_open(&u->spill, memory_bytes, err);
    if (rc) return rc;
    rc = mri_spill_expect(&u->spill, u->expected == UNKNOWN ? u->packed : u->expected, err);
    if (!rc) rc = all_members(u, err);
    if (rc) mri_spill_close(&u->spill);
    return rc;
}

static int unpack_file(int fd, uint64_t packed_bytes, const char *path, uint64_t expected,
                       uint64_t memory_bytes, bool zlib, int *out_fd, uint64_t *out_bytes, bool *in_memory,
                       mr_error *err)
{
    unpack *u = malloc(sizeof *u);
    if (!u) return mr_error_set(err, MR_ENOMEM, "no memory to unpack");
    u->fd = fd;
    u->path = path;
    u->read = 0;
    u->packed = packed_bytes;
    u->expected = expected;
    u->zlib = zlib;
    u->s.avail_in = 0;
    const int rc = unpack_all(u, memory_bytes, err);
    if (!rc) {
        *out_fd = u->spill.fd; /* the caller's from here on */
        *out_bytes = u->spill.bytes;
        *in_memory = u->spill.in_memory;
    }
    free(u);
    return rc;
}

int mri_gunzip_file(int fd, uint64_t packed_bytes, const char *path, uint64_t expected, uint64_t memory_bytes,
                    int *out_fd, bool *in_memory, mr_error *err)
{
    *out_fd = -1;
    if (expected / MOST_PER_BYTE > packed_bytes) {
        mr_error_set(err, MR_EFORMAT,
                     "the header inside speaks of %llu bytes, more than %llu packed bytes can hold",
                     (unsigned long long)expected, (unsigned long long)packed_bytes);
        return mri_error_place(err, MR_EFORMAT, path, 0, MR_NOWHERE);
    }
    if (mri_unpack_is_too_much(packed_bytes, expected))
        return mri_error_place(err, mri_unpack_too_much(packed_bytes, expected, err), path, MR_NOWHERE,
                               MR_NOWHERE);
    uint64_t written;
    return unpack_file(fd, packed_bytes, path, expected, memory_bytes, false, out_fd, &written, in_memory,
                       err);
}

int mri_unpack_file(int fd, uint64_t packed_bytes, const char *path, uint64_t memory_bytes, int *out_fd,
                    uint64_t *out_bytes, bool *in_memory, mr_error *err)
{
    *out_fd = -1;
    uint8_t head[16];
    const size_t bytes = (size_t)mri_min_u64(sizeof head, packed_bytes);
    const int rc = mri_pread_all(fd, head, bytes, 0, path, err);
    if (rc) return rc;
    return unpack_file(fd, packed_bytes, path, UNKNOWN, memory_bytes, is_zlib(head, bytes), out_fd, out_bytes,
                       in_memory, err);
}
