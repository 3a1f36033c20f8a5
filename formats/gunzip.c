/* formats/gunzip.c: gzip and zlib through ISA-L, into a file descriptor, so that packed data is read like any other file.
 *
 * How much comes out may be known before (from the header inside): a packed file that gives more is stopped there, and a claim
 * that no gzip of this size can hold is refused before anything is unpacked. Where it is not known, memory is bounded by what the
 * caller allows, then disk by what must stay free.
 *
 *   memory file ── too small ──► copied to a file without a name ── 1 GiB left on that disk ──► MR_ELIMIT */
#include "formats/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/source.h"

enum { PIECE = 256 << 10, MOST_PER_BYTE = 1032 /* deflate: 258 bytes from two bits */ };
#define MEMORY_FILE_BYTES ((uint64_t)256 << 20)
#define DISK_LEFT_BYTES ((uint64_t)1 << 30)
#define DISK_STEP_BYTES ((uint64_t)64 << 20) /* written between two looks at what is left */
#define UNKNOWN UINT64_MAX

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

bool mri_is_packed(const void *head, size_t bytes) { return mri_is_gzip(head, bytes) || is_zlib(head, bytes); }

size_t mri_gunzip_head(const void *head, size_t head_bytes, void *out, size_t out_bytes)
{
    struct inflate_state s;
    isal_inflate_init(&s);
    s.crc_flag = is_zlib(head, head_bytes) ? ISAL_ZLIB : ISAL_GZIP;
    s.next_in = (uint8_t *)(uintptr_t)head; /* only read */
    s.avail_in = (uint32_t)head_bytes;
    s.next_out = out;
    s.avail_out = (uint32_t)out_bytes;
    isal_inflate(&s); /* what came out is good whatever it says: damage behind is found when all is unpacked */
    return out_bytes - s.avail_out;
}

typedef struct unpack {
    struct inflate_state s;
    uint8_t              in[PIECE], out[PIECE];
    int                  fd, out_fd;
    const char          *path;
    uint64_t             read, packed, written;
    uint64_t             expected;      /* UNKNOWN: as much as there is */
    uint64_t             memory_bytes;  /* allowed in memory */
    uint64_t             looked_at;     /* written when the disk was looked at last */
    bool                 zlib, in_memory;
} unpack;

static int wrong(const unpack *u, mr_error *err, int code, const char *what)
{
    mr_error_set(err, code, "%s: %s (after %llu unpacked bytes)", u->zlib ? "zlib" : "gzip", what, (unsigned long long)u->written);
    return mri_told(err, code, u->path, u->read - u->s.avail_in, MR_NOWHERE);
}

/* ---- where it goes ---- */
static int make_file(bool in_memory, uint64_t bytes, mr_error *err)
{
    int fd = -1;
    if (in_memory) {
        fd = memfd_create("millrace-unpacked", MFD_CLOEXEC);
    } else {
        const char *folder = getenv("TMPDIR");
        fd = open(folder && *folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    if (fd < 0)
        mr_error_sys(err, errno, "cannot make a file for %llu unpacked bytes or more: unpack it yourself, or point TMPDIR to a "
                     "folder with room", (unsigned long long)bytes);
    return fd;
}

static int move_to_disk(unpack *u, mr_error *err)
{
    const int fd = make_file(false, u->written, err);
    if (fd < 0) return MR_EIO;
    uint8_t *piece = malloc(PIECE);
    int      rc = piece ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory to unpack");
    for (uint64_t at = 0; !rc && at < u->written; at += PIECE) {
        const size_t bytes = (size_t)mri_min_u64(PIECE, u->written - at);
        rc = mri_pread_all(u->out_fd, piece, bytes, at, "unpacked copy", err);
        if (!rc) rc = mri_pwrite_all(fd, piece, bytes, at, "unpacked copy", err);
    }
    free(piece);
    close(rc ? fd : u->out_fd);
    if (rc) return rc;
    u->out_fd = fd;
    u->in_memory = false;
    u->looked_at = 0;
    return MR_OK;
}

bool mri_disk_has_room(int fd, uint64_t written, uint64_t *looked_at)
{
    struct statvfs v;
    if (*looked_at && written - *looked_at < DISK_STEP_BYTES) return true;
    *looked_at = written;
    return fstatvfs(fd, &v) != 0 || (uint64_t)v.f_bavail * v.f_frsize >= DISK_LEFT_BYTES + DISK_STEP_BYTES;
}

/* Room for `bytes` more. */
static int make_room(unpack *u, size_t bytes, mr_error *err)
{
    if (u->in_memory && bytes <= u->memory_bytes - u->written) return MR_OK;
    const int rc = u->in_memory ? move_to_disk(u, err) : MR_OK;
    if (rc || mri_disk_has_room(u->out_fd, u->written, &u->looked_at)) return rc;
    return wrong(u, err, MR_ELIMIT, "less than 1 GiB would be left on the disk it is unpacked to: point TMPDIR to one with more room");
}

/* ---- the stream ---- */
static int refill(unpack *u, mr_error *err)
{
    if (u->s.avail_in > 0 || u->read == u->packed) return MR_OK;
    const size_t bytes = (size_t)mri_min_u64(PIECE, u->packed - u->read);
    const int    rc = mri_pread_all(u->fd, u->in, bytes, u->read, u->path, err);
    if (rc) return rc;
    u->read += bytes;
    u->s.next_in = u->in;
    u->s.avail_in = (uint32_t)bytes;
    return MR_OK;
}

static int drain(unpack *u, mr_error *err)
{
    const size_t bytes = PIECE - u->s.avail_out;
    if (bytes > u->expected - u->written)
        return wrong(u, err, MR_EFORMAT, "more is packed than the header inside says");
    int rc = bytes > 0 ? make_room(u, bytes, err) : MR_OK;
    if (!rc) rc = mri_pwrite_all(u->out_fd, u->out, bytes, u->written, "unpacked copy", err);
    if (rc) return rc;
    u->written += bytes;
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
        const int      said = isal_inflate(&u->s);
        if (said == ISAL_INCORRECT_CHECKSUM) return wrong(u, err, MR_ECHECKSUM, "the checksum does not match");
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
        if (u->s.avail_in > 0 && (u->zlib || u->s.next_in[0] != 0x1f)) return wrong(u, err, MR_EFORMAT, "bytes after the end");
    } while (u->s.avail_in > 0);
    return u->written == u->expected || u->expected == UNKNOWN ? MR_OK : wrong(u, err, MR_EFORMAT, "less is packed than the header inside says");
}

static int unpack_all(unpack *u, mr_error *err)
{
    const uint64_t first = u->expected == UNKNOWN ? u->packed : u->expected;
    u->in_memory = first <= u->memory_bytes;
    u->out_fd = make_file(u->in_memory, first, err);
    if (u->out_fd < 0) return MR_EIO;
    const int rc = all_members(u, err);
    if (rc) close(u->out_fd);
    return rc;
}

static int unpack_file(int fd, uint64_t packed_bytes, const char *path, uint64_t expected, uint64_t memory_bytes, bool zlib,
                       int *out_fd, uint64_t *out_bytes, bool *in_memory, mr_error *err)
{
    unpack *u = malloc(sizeof *u);
    if (!u) return mr_error_set(err, MR_ENOMEM, "no memory to unpack");
    u->fd = fd;
    u->path = path;
    u->read = u->written = u->looked_at = 0;
    u->packed = packed_bytes;
    u->expected = expected;
    u->memory_bytes = mri_min_u64(memory_bytes, MEMORY_FILE_BYTES);
    u->zlib = zlib;
    u->s.avail_in = 0;
    const int rc = unpack_all(u, err);
    if (!rc) {
        *out_fd = u->out_fd;
        *out_bytes = u->written;
        *in_memory = u->in_memory;
    }
    free(u);
    return rc;
}

int mri_gunzip_file(int fd, uint64_t packed_bytes, const char *path, uint64_t expected, uint64_t memory_bytes, int *out_fd,
                    bool *in_memory, mr_error *err)
{
    *out_fd = -1;
    if (expected / MOST_PER_BYTE > packed_bytes) {
        mr_error_set(err, MR_EFORMAT, "the header inside speaks of %llu bytes, more than %llu packed bytes can hold",
                     (unsigned long long)expected, (unsigned long long)packed_bytes);
        return mri_told(err, MR_EFORMAT, path, 0, MR_NOWHERE);
    }
    uint64_t written;
    return unpack_file(fd, packed_bytes, path, expected, memory_bytes, false, out_fd, &written, in_memory, err);
}

int mri_unpack_file(int fd, uint64_t packed_bytes, const char *path, uint64_t memory_bytes, int *out_fd, uint64_t *out_bytes,
                    bool *in_memory, mr_error *err)
{
    *out_fd = -1;
    uint8_t      head[16];
    const size_t bytes = (size_t)mri_min_u64(sizeof head, packed_bytes);
    const int    rc = mri_pread_all(fd, head, bytes, 0, path, err);
    if (rc) return rc;
    return unpack_file(fd, packed_bytes, path, UNKNOWN, memory_bytes, is_zlib(head, bytes), out_fd, out_bytes, in_memory, err);
}
