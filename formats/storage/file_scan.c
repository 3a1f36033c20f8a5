/* formats/storage/file_scan.c: a file read front to back, for callers that read every byte (verify, resume)
 * and callers that read only headers and skip the bytes between them (tar).
 *
 * One buffer slides over the file. It grows to the largest piece asked for and never holds more. Pieces
 * double while it goes on from one to the next, so that most is read 4 MiB at a time; a leap over something
 * large begins with a small one again, so that little of it is read. To leap over less costs more than to
 * read it: a disk has brought that much by the time it has begun a new read. */
#include "formats/storage/file_scan.h"
#include "base/util.h"

#define SMALLEST_PIECE ((size_t)16 << 10)
#define LARGEST_PIECE  ((size_t)4 << 20)
#define LEAP_BYTES     ((uint64_t)256 << 10)

void mri_file_scan_init(mri_file_scan *w, int fd, const char *path, uint64_t file_bytes)
{
    *w = (mri_file_scan){.fd = fd, .path = path, .file_bytes = file_bytes, .ahead = SMALLEST_PIECE};
}

void mri_file_scan_fini(mri_file_scan *w)
{
    free(w->buf);
    w->buf = NULL;
}

static int grow(mri_file_scan *w, size_t bytes, mr_error *err)
{
    if (bytes <= w->cap) return MR_OK;
    uint8_t *buf = realloc(w->buf, bytes);
    if (!buf) {
        mr_error_set(err, MR_ENOMEM, "no memory for a piece of %zu bytes", bytes);
        mr_error_at(err, w->path, w->at, MR_NOWHERE);
        return MR_ENOMEM;
    }
    w->buf = buf;
    w->cap = bytes;
    return MR_OK;
}

static int fill(mri_file_scan *w, uint64_t offset, size_t bytes, mr_error *err)
{
    const bool leapt = offset < w->at || (offset > w->end && offset - w->end >= LEAP_BYTES);
    const size_t ahead = leapt ? SMALLEST_PIECE : w->ahead;
    const size_t want = (size_t)mri_min_u64(bytes > ahead ? bytes : ahead, w->file_bytes - offset);
    w->filled = 0;
    int rc = grow(w, want > 0 ? want : 1, err);
    if (!rc) rc = mri_pread_all(w->fd, w->buf, want, offset, w->path, err);
    if (rc) return rc;
    w->at = offset;
    w->filled = want;
    w->ahead = 2 * ahead < LARGEST_PIECE ? 2 * ahead : LARGEST_PIECE;
    return MR_OK;
}

int mri_file_scan_get(mri_file_scan *w, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    if (offset > w->file_bytes || bytes > w->file_bytes - offset) {
        mr_error_set(err, MR_EFORMAT, "the file ends early: expected %zu bytes, found %llu", bytes,
                     (unsigned long long)(offset > w->file_bytes ? 0 : w->file_bytes - offset));
        mr_error_at(err, w->path, offset, MR_NOWHERE);
        return MR_EFORMAT;
    }
    const bool inside =
        offset >= w->at && offset - w->at <= w->filled && bytes <= w->filled - (offset - w->at);
    if (!inside) {
        const int rc = fill(w, offset, bytes, err);
        if (rc) return rc;
    }
    w->end = offset + bytes;
    *out = w->buf + (offset - w->at);
    return MR_OK;
}
