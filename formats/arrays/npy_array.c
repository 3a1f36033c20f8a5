/* formats/arrays/npy_array.c: see npy_array.h. */
#include "formats/arrays/npy_array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/storage/storage.h"

#define CHECKED_AT_OPEN_BYTES                                                                                \
    ((uint64_t)256 << 20) /* a tenth of a second from memory, a second from a disk, which training reads     \
                             anyway */

int mri_npy_no_memory(mr_error *err, const char *path)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for arrays"), path, MR_NOWHERE,
                           MR_NOWHERE);
}

void mri_npy_array_close(mri_npy_array *x)
{
    if (x->fd >= 0 && x->fd != x->spill.fd) close(x->fd);
    mri_spill_close(&x->spill);
    free(x->path);
    *x = (mri_npy_array){.fd = -1, .spill.fd = -1};
}

/* The header at base of x->fd; bytes: the array with its header. */
static int read_header(mri_npy_array *x, uint64_t base, uint64_t bytes, mr_error *err)
{
    const size_t n = (size_t)mri_min_u64(bytes, MRI_NPY_HEAD_BYTES);
    uint8_t *head = malloc(n + 1);
    if (!head) return mri_npy_no_memory(err, x->path);
    int rc = mri_pread_all(x->fd, head, n, base, x->path, err);
    if (!rc) {
        rc = mri_npy_parse(head, n, bytes, &x->a, err);
        if (rc && err)
            mri_error_place(err, rc, x->path, base + (err->offset == MR_NOWHERE ? 0 : err->offset),
                            MR_NOWHERE);
    }
    free(head);
    x->first = base + x->a.header_bytes;
    return rc;
}

int mri_npy_open_file(const char *path, int *fd, uint64_t *bytes, mr_error *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = *fd < 0 ? mr_error_sys(err, errno, "cannot open") : MR_OK;
    if (!rc && fstat(*fd, &st) != 0) rc = mr_error_sys(err, errno, "cannot look at it");
    if (!rc && !S_ISREG(st.st_mode))
        rc = mr_error_set(err, MR_EFORMAT, "expected a file, found none that is regular");
    if (rc) return mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
    *bytes = (uint64_t)st.st_size;
    return MR_OK;
}

int mri_npy_array_file(mri_npy_array *x, const char *path, mr_error *err)
{
    x->path = strdup(path);
    if (!x->path) return mri_npy_no_memory(err, path);
    const int rc = mri_npy_open_file(path, &x->fd, &x->file_bytes, err);
    return rc ? rc : read_header(x, 0, x->file_bytes, err);
}

/* Members that are only stored are read in place. Their CRC is one over all samples, so that no sample can be
 * compared with it when it is read: it is checked here where reading it all costs little, else by
 * the check of the source. check: in any case. */
static int open_member(mri_npy_store *s, const char *name, mri_npy_array *x, bool check,
                       uint64_t memory_bytes, mr_error *err)
{
    mri_zip_member *m = mri_zip_find(&s->zip, name);
    x->path = strdup(s->path);
    if (!x->path) return mri_npy_no_memory(err, s->path);
    int rc = mri_zip_locate(&s->zip, m, err);
    if (rc) return rc;
    if (m->method == 0 && !check) {
        x->unchecked = m->bytes > CHECKED_AT_OPEN_BYTES ? m : NULL;
        if (!x->unchecked) rc = mri_zip_check_stored(&s->zip, m, err);
        if (rc) return rc;
        x->fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 3);
        if (x->fd < 0)
            return mri_error_place(err, mr_error_sys(err, errno, "cannot open once more"), s->path,
                                   MR_NOWHERE, MR_NOWHERE);
        x->file_bytes = s->zip.file_bytes;
        return read_header(x, m->offset, m->bytes, err);
    }
    rc = mri_spill_open(&x->spill, memory_bytes, err);
    if (!rc) rc = mri_zip_unpack(&s->zip, m, &x->spill, err);
    if (!rc) rc = mri_spill_finish(&x->spill, err);
    if (rc) return rc;
    x->fd = x->spill.fd;
    x->file_bytes = x->spill.bytes;
    return read_header(x, 0, m->bytes, err);
}

int mri_npy_array_open(mri_npy_store *s, const char *name, mri_npy_array *x, bool check,
                       uint64_t memory_bytes, mr_error *err)
{
    char file[MRI_NPY_NAME_BYTES + 8], path[sizeof s->path + sizeof file];
    *x = (mri_npy_array){.fd = -1, .spill.fd = -1};
    snprintf(file, sizeof file, "%s.npy", name);
    snprintf(path, sizeof path, "%s/%s", s->path, file);
    const int rc =
        s->is_zip ? open_member(s, file, x, check, memory_bytes, err) : mri_npy_array_file(x, path, err);
    if (rc) mri_npy_array_close(x);
    return rc;
}

int mri_npy_array_swap(mri_npy_array *x, uint64_t memory_bytes, mr_error *err)
{
    mri_spill swapped;
    const size_t width = x->a.element_bytes;
    const uint64_t bytes = x->a.count * width;
    uint8_t piece[4096];
    int rc = mri_spill_open(&swapped, memory_bytes, err);
    if (rc) return rc;
    for (uint64_t at = 0; !rc && at < bytes; at += sizeof piece) { /* a multiple of every width */
        const size_t n = (size_t)mri_min_u64(sizeof piece, bytes - at);
        rc = mri_pread_all(x->fd, piece, n, x->first + at, x->path, err);
        for (size_t k = 0; k + width <= n; k += width)
            for (size_t b = 0; b < width / 2; b++) {
                const uint8_t low = piece[k + b];
                piece[k + b] = piece[k + width - 1 - b];
                piece[k + width - 1 - b] = low;
            }
        if (!rc) rc = mri_spill_write(&swapped, piece, n, err);
    }
    if (!rc) rc = mri_spill_finish(&swapped, err);
    if (rc) {
        mri_spill_close(&swapped);
        return rc;
    }
    if (x->fd != x->spill.fd) close(x->fd);
    mri_spill_close(&x->spill);
    x->spill = swapped;
    x->fd = swapped.fd;
    x->first = 0;
    x->file_bytes = bytes;
    x->a.swapped = false;
    return MR_OK;
}
