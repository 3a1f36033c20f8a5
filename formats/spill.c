/* formats/spill.c: see spill.h. */
#include "formats/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/gunzip.h"

enum { BUFFER_BYTES = 256 << 10 };
#define MEMORY_MOST ((uint64_t)256 << 20)

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
    const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        mr_error_sys(err, errno, "cannot make an unpacked copy in %s: unpack the data yourself, or point TMPDIR to a folder "
                     "with room", folder);
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

static int flush(mri_spill *s, mr_error *err)
{
    const uint64_t written = s->bytes - s->buf_used;
    if (s->in_memory && s->bytes > s->memory_limit) {
        const int rc = leave_memory(s, written, err);
        if (rc) return rc;
    }
    if (!s->in_memory && !mri_disk_has_room(s->fd, written, &s->looked_at))
        return mr_error_set(err, MR_ELIMIT, "less than 1 GiB would be left on the disk it is unpacked to: point TMPDIR to one with "
                            "more room");
    const int rc = mri_pwrite_all(s->fd, s->buf, s->buf_used, written, name_shown, err);
    s->buf_used = 0;
    return rc;
}

int mri_spill_write(mri_spill *s, const void *data, size_t bytes, mr_error *err)
{
    const uint8_t *from = data;
    while (bytes > 0) {
        const size_t n = (size_t)mri_min_u64(bytes, BUFFER_BYTES - s->buf_used);
        memcpy(s->buf + s->buf_used, from, n);
        s->buf_used += n;
        s->bytes += n;
        from += n;
        bytes -= n;
        const int rc = s->buf_used == BUFFER_BYTES ? flush(s, err) : MR_OK;
        if (rc) return rc;
    }
    return MR_OK;
}

int mri_spill_finish(mri_spill *s, mr_error *err)
{
    const int rc = s->buf_used > 0 ? flush(s, err) : MR_OK;
    free(s->buf);
    s->buf = NULL;
    return rc;
}

/* What is over the limit is in the buffer only until it is flushed. */
uint64_t mri_spill_memory(const mri_spill *s) { return s->in_memory ? mri_min_u64(s->bytes, s->memory_limit) : 0; }

void mri_spill_close(mri_spill *s)
{
    if (s->fd >= 0) close(s->fd);
    free(s->buf);
    *s = (mri_spill){.fd = -1};
}
