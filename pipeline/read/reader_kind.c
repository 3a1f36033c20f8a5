/* pipeline/read/reader_kind.c: what every kind of reader does with one request: windows for O_DIRECT, going
 * on after short reads. */
#include "pipeline/read/reader_kind.h"

#include <errno.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/source/source.h"

void mri_read_push(mri_read_list *l, mri_read *q)
{
    q->next = NULL;
    if (l->tail) l->tail->next = q;
    else l->head = q;
    l->tail = q;
}

mri_read *mri_read_pop(mri_read_list *l)
{
    mri_read *q = l->head;
    if (!q) return NULL;
    l->head = q->next;
    if (!l->head) l->tail = NULL;
    return q;
}

void mri_read_now(mri_reader *r, mri_read *q)
{
    ssize_t n;
    do n = pread(mri_read_fd(r, q), q->buffer + q->done, q->window - q->done, (off_t)(q->at + q->done));
    while (!mri_read_took(r, q, n < 0 ? -errno : (int)n));
}

size_t mri_reader_room(bool direct, uint64_t offset, size_t bytes)
{
    if (!direct) return bytes;
    const uint64_t start = mri_align_down(offset, MRI_DIRECT_ALIGN);
    return (size_t)(mri_align_up(offset + bytes, MRI_DIRECT_ALIGN) - start);
}

static bool is_direct(const mri_reader *r, const mri_read *q)
{
    return q->file != MR_FILE_OF_SAMPLE && r->direct_fds && r->direct_fds[mri_read_file_index(r, q)] >= 0;
}

int mri_read_fd(const mri_reader *r, const mri_read *q)
{
    if (q->file == MR_FILE_OF_SAMPLE) return q->fd;
    if (is_direct(r, q)) return r->direct_fds[mri_read_file_index(r, q)];
    if (q->file == MRI_FILE_OF_CACHE) return r->cfg.extra_fd;
    mr_source_file file;
    return mr_source_file_at(r->cfg.source, q->file, &file) == MR_OK ? file.fd : -1;
}

void mri_read_start(mri_reader *r, mri_read *q)
{
    const bool direct = is_direct(r, q);
    q->status = MR_OK;
    q->sys_errno = 0;
    q->got = 0;
    q->done = 0;
    q->fd = -1;
    q->path = NULL;
    q->at = direct ? mri_align_down(q->offset, MRI_DIRECT_ALIGN) : q->offset;
    q->window = mri_reader_room(direct, q->offset, q->bytes);
    q->data = q->buffer + (q->offset - q->at);
    if (q->file == MR_FILE_OF_SAMPLE) {
        q->path = r->free_paths[--r->free_path_count]; /* as many names as requests can be active */
        mr_source_sample_path(r->cfg.source, q->sample, q->path, MRI_PATH_ROOM);
    }
}

#define MRI_SECTOR_BYTES 512 /* the smallest there is */

bool mri_read_took(mri_reader *r, mri_read *q, int result)
{
    if (r->cfg.filter) result = r->cfg.filter(r->cfg.filter_context, result, q->window - q->done);
    r->counts.reads++;
    if (result == -EINTR || result == -EAGAIN) {
        r->counts.again++;
        return false;
    }
    const size_t lead = (size_t)(q->offset - q->at), needed = lead + q->bytes;
    if (result < 0) {
        mri_read_finish(r, q, MR_EIO, -result);
        return true;
    }
    q->done += (size_t)result;
    r->counts.bytes += (uint64_t)result;
    if (q->done >= needed) { /* with O_DIRECT the window may reach past the end of the file */
        mri_read_finish(r, q, MR_OK, 0);
        return true;
    }
    /* O_DIRECT reads whole sectors but for the last: going on from here would be refused as unaligned */
    const bool last = is_direct(r, q) && q->done % MRI_SECTOR_BYTES != 0;
    if (result == 0 || last) {
        q->got = q->done > lead ? q->done - lead : 0;
        mri_read_finish(r, q, MR_EFORMAT, 0);
        return true;
    }
    r->counts.shorts++;
    return false;
}

void mri_read_finish(mri_reader *r, mri_read *q, int status, int sys_errno)
{
    q->status = status;
    q->sys_errno = sys_errno;
    if (q->fd >= 0) close(q->fd); /* a read-only file: nothing to wait for */
    q->fd = -1;
    if (q->path) r->free_paths[r->free_path_count++] = q->path;
    q->path = NULL;
    mri_read_push(&r->done, q);
}
