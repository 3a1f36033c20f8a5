/* pipeline/read/reader_kind.c: what every kind of reader does with one request: windows for O_DIRECT, going
 * on after short reads. */
#include "pipeline/read/reader_kind.h"

#include <errno.h>
#include <sys/stat.h>
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

void mri_read_push_front(mri_read_list *l, mri_read *q)
{
    q->next = l->head;
    l->head = q;
    if (!l->tail) l->tail = q;
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
    if (q->path) {
        q->fd = open(q->path, MRI_READ_OPEN_FLAGS);
        if (q->fd < 0) {
            mri_read_finish(r, q, MR_EIO, errno);
            return;
        }
        if (!mri_read_opened(r, q)) return;
    }
    do n = pread(mri_read_fd(r, q), q->buffer + q->done, q->window - q->done, (off_t)(q->at + q->done));
    while (!mri_read_took(r, q, n < 0 ? -errno : (int)n));
}

size_t mri_reader_room(bool direct, uint64_t offset, size_t bytes)
{
    if (!direct) return bytes;
    const uint64_t start = mri_align_down(offset, MRI_DIRECT_ALIGN);
    return (size_t)(mri_align_up(offset + bytes, MRI_DIRECT_ALIGN) - start);
}

enum {
    LEASE_NONE,
    LEASE_DIRECT,
    LEASE_SOURCE
}; /* LEASE_NONE: fd is the request's own, or kept open elsewhere */

int mri_read_fd(const mri_reader *r, const mri_read *q)
{
    if (q->file == MR_FILE_OF_SAMPLE || q->lease != LEASE_NONE) return q->fd;
    const uint32_t at = mri_read_file_index(r, q);
    if (r->direct_fds && r->direct_fds[at] >= 0) return r->direct_fds[at];
    if (q->file == MRI_FILE_OF_CACHE) return r->cfg.extra_fd;
    mr_source_file file;
    return mr_source_file_at(r->cfg.source, q->file, &file) == MR_OK ? file.fd : -1;
}

/* A descriptor for as long as the request runs, where they are not all open. MR_OK also where none is needed.
 */
static int borrow(mri_reader *r, mri_read *q, bool must, mr_error *why)
{
    const uint32_t at = mri_read_file_index(r, q);
    q->is_direct = r->direct_fds && r->direct_fds[at] >= 0;
    if (r->direct_pool) {
        void *object;
        const int rc = mri_open_pool_acquire(r->direct_pool, at, must, &object, why);
        if (rc) return rc;
        q->fd = (int)(intptr_t)object;
        q->lease = LEASE_DIRECT;
        q->is_direct = q->fd >= 0;
        if (q->is_direct) return MR_OK;
        mri_open_pool_release(r->direct_pool, at); /* a file system without O_DIRECT */
        q->lease = LEASE_NONE;
    }
    if (q->is_direct || !r->bounded || q->file == MRI_FILE_OF_CACHE) return MR_OK;
    const int rc = mri_source_file_acquire(r->cfg.source, q->file, must, &q->fd, why);
    if (!rc) q->lease = LEASE_SOURCE;
    return rc;
}

static void give_back(mri_reader *r, mri_read *q)
{
    if (q->lease == LEASE_DIRECT) mri_open_pool_release(r->direct_pool, mri_read_file_index(r, q));
    else if (q->lease == LEASE_SOURCE) mr_source_file_release(r->cfg.source, q->file);
    else if (q->fd >= 0) close(q->fd); /* its own, a read-only file: nothing to wait for */
    q->lease = LEASE_NONE;
    q->fd = -1;
}

mri_started mri_read_start(mri_reader *r, mri_read *q, bool must)
{
    mr_error why = MR_ERROR_INIT;
    q->status = MR_OK;
    q->sys_errno = 0;
    q->got = 0;
    q->done = 0;
    q->refusals = 0;
    q->fd = -1;
    q->lease = LEASE_NONE;
    q->is_direct = false;
    q->path = NULL;
    const int rc = q->file == MR_FILE_OF_SAMPLE ? MR_OK : borrow(r, q, must, &why);
    if (rc == MR_EAGAIN) return MRI_NOT_NOW;
    if (rc) {
        mri_read_finish(r, q, rc, why.sys_errno);
        return MRI_FINISHED;
    }
    const bool direct = q->is_direct;
    q->at = direct ? mri_align_down(q->offset, MRI_DIRECT_ALIGN) : q->offset;
    q->window = mri_reader_room(direct, q->offset, q->bytes);
    q->data = q->buffer + (q->offset - q->at);
    if (q->file == MR_FILE_OF_SAMPLE) {
        q->path = r->free_paths[--r->free_path_count]; /* as many names as requests can be active */
        mr_source_sample_path(r->cfg.source, q->sample, q->path, MRI_PATH_ROOM);
    }
    return MRI_STARTED;
}

#define MRI_SECTOR_BYTES 512 /* the smallest there is */

bool mri_read_opened(mri_reader *r, mri_read *q)
{
    struct stat st;
    if (fstat(q->fd, &st) != 0 || S_ISREG(st.st_mode)) return true;
    mri_read_finish(r, q, MR_EFORMAT, 0); /* as of a file without a byte */
    return false;
}

/* Files are opened with O_NONBLOCK so that a pipe in their place is not waited for. A kernel may then refuse
 * to wait for a regular file's disk, too, which is never useful here: the first refusal clears O_NONBLOCK. */
bool mri_read_asks_again(const mri_reader *r, mri_read *q)
{
    enum { IN_HASTE = 16, MOST = 2000 };
    const int fd = mri_read_fd(r, q);
    if (++q->refusals == 1 && fd >= 0) {
        const int flags = fcntl(fd, F_GETFL);
        if (flags >= 0 && (flags & O_NONBLOCK)) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }
    if (q->refusals > IN_HASTE) {
        const struct timespec nap = {.tv_nsec = 1000000};
        nanosleep(&nap, NULL);
    }
    return q->refusals < MOST;
}

bool mri_read_took(mri_reader *r, mri_read *q, int result)
{
    if (r->cfg.filter) result = r->cfg.filter(r->cfg.filter_context, result, q->window - q->done);
    r->counts.reads++;
    if (result == -EINTR || (result == -EAGAIN && mri_read_asks_again(r, q))) {
        r->counts.again++;
        return false;
    }
    q->refusals = 0;
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
    const bool last = q->is_direct && q->done % MRI_SECTOR_BYTES != 0;
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
    give_back(r, q);
    if (q->path) r->free_paths[r->free_path_count++] = q->path;
    q->path = NULL;
    mri_read_push(&r->done, q);
}
