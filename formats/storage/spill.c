/* formats/storage/spill.c: see spill.h.
 *
 *   memory file ── over memory_limit ──► copied to a file without a name
 *                                           └── less than 1 GiB left on that disk ──► MR_ELIMIT */
#include "formats/storage/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/storage/kept.h"

enum { BUFFER_BYTES = 64 << 10 };
#define MEMORY_MOST     ((uint64_t)256 << 20)
#define DISK_LEFT_BYTES ((uint64_t)1 << 30)
#define DISK_STEP_BYTES ((uint64_t)64 << 20) /* written between two checks of the free space */

static const char name_shown[] = "unpacked copy";

int mri_spill_open(mri_spill *s, uint64_t memory_bytes, mr_error *err)
{
    *s = (mri_spill){.fd = -1, .in_memory = true, .memory_limit = mri_min_u64(memory_bytes, MEMORY_MOST)};
    s->buf = malloc(BUFFER_BYTES);
    if (!s->buf) return mr_error_set(err, MR_ENOMEM, "no memory to unpack");
    s->fd = memfd_create("millrace-unpacked", MFD_CLOEXEC);
    if (s->fd >= 0) return MR_OK;
    mr_error_sys(err, errno, "cannot make a file in memory");
    free(s->buf);
    s->buf = NULL;
    return MR_EIO;
}

static int open_on_disk(mr_error *err)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/var/tmp";
    const int fd = mri_kept_scratch(folder);
    if (fd < 0)
        mr_error_sys(err, errno,
                     "cannot make an unpacked copy in %s: unpack the data yourself, or point "
                     "TMPDIR to a folder with room",
                     folder);
    return fd;
}

static int copy_to(int fd, int from, uint64_t bytes, mr_error *err)
{
    uint8_t *piece = malloc(BUFFER_BYTES);
    if (!piece) return mr_error_set(err, MR_ENOMEM, "no memory to unpack");
    int rc = MR_OK;
    for (uint64_t at = 0; !rc && at < bytes; at += BUFFER_BYTES) {
        const size_t n = (size_t)mri_min_u64(BUFFER_BYTES, bytes - at);
        rc = mri_pread_all(from, piece, n, at, name_shown, err);
        if (!rc) rc = mri_pwrite_all(fd, piece, n, at, name_shown, err);
    }
    free(piece);
    return rc;
}

static int leave_memory(mri_spill *s, uint64_t written, mr_error *err)
{
    const int fd = open_on_disk(err);
    if (fd < 0) return MR_EIO;
    const int rc = copy_to(fd, s->fd, written, err);
    close(rc ? fd : s->fd);
    if (rc) return rc;
    s->fd = fd;
    s->in_memory = false;
    return MR_OK;
}

int mri_spill_expect(mri_spill *s, uint64_t bytes, mr_error *err)
{
    return s->in_memory && bytes > s->memory_limit ? leave_memory(s, s->bytes - s->buf_used, err) : MR_OK;
}

/* Would 1 GiB still be left after some more? A disk that cannot be asked ends by itself. */
static bool disk_has_room(mri_spill *s, uint64_t written)
{
    struct statvfs v;
    if (s->looked_at && written - s->looked_at < DISK_STEP_BYTES) return true;
    s->looked_at = written;
    return fstatvfs(s->fd, &v) != 0 || (uint64_t)v.f_bavail * v.f_frsize >= DISK_LEFT_BYTES + DISK_STEP_BYTES;
}

/* The last `bytes` of all, which stand in no file yet. */
static int put(mri_spill *s, const uint8_t *data, size_t bytes, mr_error *err)
{
    const uint64_t written = s->bytes - bytes;
    if (s->in_memory && s->bytes > s->memory_limit) {
        const int rc = leave_memory(s, written, err);
        if (rc) return rc;
    }
    if (!s->in_memory && !disk_has_room(s, written))
        return mr_error_set(
            err, MR_ELIMIT,
            "less than 1 GiB would be left on the disk it is unpacked to (%llu bytes so far): point TMPDIR "
            "to one with more room",
            (unsigned long long)written);
    return mri_pwrite_all(s->fd, data, bytes, written, name_shown, err);
}

static int flush(mri_spill *s, mr_error *err)
{
    const int rc = put(s, s->buf, s->buf_used, err);
    s->buf_used = 0;
    return rc;
}

int mri_spill_write(mri_spill *s, const void *data, size_t bytes, mr_error *err)
{
    const uint8_t *from = data;
    int rc = MR_OK;
    while (bytes > 0 && !rc) {
        const bool whole = s->buf_used == 0 && bytes >= BUFFER_BYTES; /* needs no copy */
        const size_t n = whole ? BUFFER_BYTES : (size_t)mri_min_u64(bytes, BUFFER_BYTES - s->buf_used);
        s->bytes += n;
        if (whole) {
            rc = put(s, from, n, err);
        } else {
            memcpy(s->buf + s->buf_used, from, n);
            s->buf_used += n;
            if (s->buf_used == BUFFER_BYTES) rc = flush(s, err);
        }
        from += n;
        bytes -= n;
    }
    return rc;
}

int mri_spill_finish(mri_spill *s, mr_error *err)
{
    const int rc = s->buf_used > 0 ? flush(s, err) : MR_OK;
    free(s->buf);
    s->buf = NULL;
    return rc;
}

/* Data over the limit stays in the buffer only until it is flushed. */
uint64_t mri_spill_memory(const mri_spill *s)
{
    return s->in_memory ? mri_min_u64(s->bytes, s->memory_limit) : 0;
}

void mri_spill_close(mri_spill *s)
{
    if (s->fd >= 0) close(s->fd);
    free(s->buf);
    *s = (mri_spill){.fd = -1};
}
