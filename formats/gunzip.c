/* formats/gunzip.c: gzip through ISA-L, into a file descriptor, so that packed data is read like any other file.
 *
 * How much comes out is known before (from the header inside); a packed file that gives more is stopped there, and a claim
 * that no gzip of this size can hold is refused before anything is unpacked. */
#include "formats/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/source.h"

enum { PIECE = 256 << 10, MOST_PER_BYTE = 1032 /* deflate: 258 bytes from two bits */ };
#define MEMORY_FILE_BYTES ((uint64_t)256 << 20)

bool mri_is_gzip(const void *head, size_t bytes)
{
    const uint8_t *p = head;
    return bytes >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8;
}

size_t mri_gunzip_head(const void *head, size_t head_bytes, void *out, size_t out_bytes)
{
    struct inflate_state s;
    isal_inflate_init(&s);
    s.crc_flag = ISAL_GZIP;
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
    uint64_t             read, packed, written, expected;
} unpack;

static int wrong(const unpack *u, mr_error *err, int code, const char *what)
{
    mr_error_set(err, code, "gzip: %s (after %llu unpacked bytes)", what, (unsigned long long)u->written);
    return mri_told(err, code, u->path, u->read - u->s.avail_in, MR_NOWHERE);
}

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
    const int rc = mri_pwrite_all(u->out_fd, u->out, bytes, u->written, "unpacked copy", err);
    if (rc) return rc;
    u->written += bytes;
    u->s.next_out = u->out;
    u->s.avail_out = PIECE;
    return MR_OK;
}

static int one_member(unpack *u, mr_error *err)
{
    isal_inflate_reset(&u->s);
    u->s.crc_flag = ISAL_GZIP;
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
        if (u->s.avail_in > 0 && u->s.next_in[0] != 0x1f) return wrong(u, err, MR_EFORMAT, "bytes after the end");
    } while (u->s.avail_in > 0);
    return u->written == u->expected ? MR_OK : wrong(u, err, MR_EFORMAT, "less is packed than the header inside says");
}

static int anonymous_file(uint64_t bytes, uint64_t memory_bytes, bool *in_memory, mr_error *err)
{
    *in_memory = bytes <= mri_min_u64(memory_bytes, MEMORY_FILE_BYTES);
    int fd = -1;
    if (*in_memory) {
        fd = memfd_create("millrace-unpacked", MFD_CLOEXEC);
    } else {
        const char *folder = getenv("TMPDIR");
        fd = open(folder && *folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    if (fd < 0)
        mr_error_sys(err, errno, "cannot make a file for %llu unpacked bytes: unpack it yourself, or point TMPDIR to a "
                     "folder with room", (unsigned long long)bytes);
    return fd;
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
    unpack *u = malloc(sizeof *u);
    if (!u) return mr_error_set(err, MR_ENOMEM, "no memory to unpack");
    u->fd = fd;
    u->path = path;
    u->read = u->written = 0;
    u->packed = packed_bytes;
    u->expected = expected;
    u->s.avail_in = 0;
    u->out_fd = anonymous_file(expected, memory_bytes, in_memory, err);
    int rc = u->out_fd >= 0 ? all_members(u, err) : MR_EIO;
    if (rc && u->out_fd >= 0) close(u->out_fd);
    else *out_fd = u->out_fd;
    free(u);
    return rc;
}
