/* formats/window.c: a file read front to back in large pieces, for those who look at every byte (verify, resume).
 *
 * One buffer slides over the file. It grows to the largest piece asked for and never holds more. */
#include "base/util.h"
#include "formats/mrec.h"

#define WINDOW_BYTES ((size_t)4 << 20)

void mri_window_init(mri_window *w, int fd, const char *path, uint64_t file_bytes)
{
    *w = (mri_window){.fd = fd, .path = path, .file_bytes = file_bytes};
}

void mri_window_fini(mri_window *w)
{
    free(w->buf);
    w->buf = NULL;
}

static int grow(mri_window *w, size_t bytes, mr_error *err)
{
    if (bytes <= w->cap) return MR_OK;
    const size_t cap = bytes > WINDOW_BYTES ? bytes : (size_t)mri_min_u64(WINDOW_BYTES, w->file_bytes);
    uint8_t     *buf = realloc(w->buf, cap);
    if (!buf) {
        mr_error_set(err, MR_ENOMEM, "no memory for a piece of %zu bytes", cap);
        mr_error_at(err, w->path, w->at, MR_NOWHERE);
        return MR_ENOMEM;
    }
    w->buf = buf;
    w->cap = cap;
    return MR_OK;
}

int mri_window_get(mri_window *w, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    if (offset > w->file_bytes || bytes > w->file_bytes - offset) {
        mr_error_set(err, MR_EFORMAT, "the file ends early: expected %zu bytes, found %llu", bytes,
                     (unsigned long long)(offset > w->file_bytes ? 0 : w->file_bytes - offset));
        mr_error_at(err, w->path, offset, MR_NOWHERE);
        return MR_EFORMAT;
    }
    const bool inside = offset >= w->at && offset - w->at <= w->filled && bytes <= w->filled - (offset - w->at);
    if (!inside) {
        w->filled = 0;
        int rc = grow(w, bytes > 0 ? bytes : 1, err);
        if (rc) return rc;
        const size_t want = (size_t)mri_min_u64(w->cap, w->file_bytes - offset);
        rc = mri_pread_all(w->fd, w->buf, want, offset, w->path, err);
        if (rc) return rc;
        w->at = offset;
        w->filled = want;
    }
    *out = w->buf + (offset - w->at);
    return MR_OK;
}
