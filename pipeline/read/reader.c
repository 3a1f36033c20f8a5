/* pipeline/read/reader.c: opens a reader of the right kind, and hands requests to it and back; errors with a
 * place. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "pipeline/read/reader_kind.h"

enum {
    MOST_DIRECT = 64
}; /* of one reader, all open from the start; of more files these are open at a time */

/* -1: a file system without O_DIRECT is read through the page cache. */
static int open_direct(const mri_reader *r, uint32_t at)
{
    mr_source_file file;
    if (at == r->file_count) { /* the very file that was asked about, whatever has its name by now */
        char same[32];
        snprintf(same, sizeof same, "/proc/self/fd/%d", r->cfg.extra_fd);
        return open(same, O_RDONLY | O_DIRECT | O_CLOEXEC);
    }
    if (mr_source_file_at(r->cfg.source, at, &file) != MR_OK || !file.direct_ok) return -1;
    return open(file.path, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

static int direct_pool_open(void *context, uint32_t number, void **object, mr_error *err)
{
    const int fd = open_direct(context, number);
    *object = (void *)(intptr_t)fd;
    return fd < 0 && (errno == EMFILE || errno == ENFILE) ? mr_error_sys(err, errno, "cannot open") : MR_OK;
}

static void direct_pool_close(void *object)
{
    if ((intptr_t)object >= 0) close((int)(intptr_t)object);
}

static int open_direct_files(mri_reader *r, mr_error *err)
{
    const uint32_t wanted = r->fd_count < MOST_DIRECT ? r->fd_count : MOST_DIRECT;
    const uint32_t most = mri_open_allow(wanted);
    if (most < r->fd_count) {
        const mri_open_ops ops = {direct_pool_open, direct_pool_close, r};
        return mri_open_pool_create(&r->direct_pool, r->fd_count, most, &ops, err);
    }
    r->direct_allowed = most;
    r->direct_fds = malloc(r->fd_count * sizeof *r->direct_fds);
    if (!r->direct_fds) return mr_error_set(err, MR_ENOMEM, "no memory for %u file handles", r->fd_count);
    for (uint32_t i = 0; i < r->fd_count; i++) r->direct_fds[i] = open_direct(r, i);
    return MR_OK;
}

static bool is_in_memory(const mr_source_file *file)
{
    struct statfs fs;
    if ((file->fd >= 0 ? fstatfs(file->fd, &fs) : statfs(file->path, &fs)) != 0) return false;
    return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
}

/* No read of these ever waits, so the way through a ring and its worker threads would only cost: bench loader
 * on unpacked MNIST, 0.9 million samples a second through io_uring, 1.95 without it. Of files that are not
 * all open the first stands for all: they lie together. */
static int find_files_in_memory(mri_reader *r, mr_error *err)
{
    bool closed_ones = false, known = false;
    for (uint32_t i = 0; i < r->file_count; i++) {
        mr_source_file file;
        if (mr_source_file_at(r->cfg.source, i, &file) != MR_OK) continue;
        const bool closed = file.fd < 0;
        r->bounded |= closed;
        if (closed && known ? !closed_ones : !is_in_memory(&file)) {
            known |= closed;
            continue;
        }
        if (closed) known = closed_ones = true;
        if (!r->in_memory) r->in_memory = calloc(r->file_count, sizeof *r->in_memory);
        if (!r->in_memory) return mr_error_set(err, MR_ENOMEM, "no memory for %u file marks", r->file_count);
        r->in_memory[i] = true;
    }
    return MR_OK;
}

static int allocate_paths(mri_reader *r, mr_error *err)
{
    r->paths = malloc((size_t)r->cfg.depth * MRI_PATH_ROOM);
    r->free_paths = malloc(r->cfg.depth * sizeof *r->free_paths);
    if (!r->paths || !r->free_paths)
        return mr_error_set(err, MR_ENOMEM, "no memory for %u file names", r->cfg.depth);
    for (uint32_t i = 0; i < r->cfg.depth; i++) r->free_paths[i] = r->paths + (size_t)i * MRI_PATH_ROOM;
    r->free_path_count = r->cfg.depth;
    return MR_OK;
}

int mri_reader_create(mri_reader **out, mr_io kind, const mri_reader_config *cfg, mr_error *err)
{
    *out = NULL;
    mri_reader *r = calloc(1, sizeof *r);
    if (!r) return mr_error_set(err, MR_ENOMEM, "no memory for a reader");
    r->cfg = *cfg;
    if (r->cfg.depth == 0) r->cfg.depth = 1;
    r->kind = kind == MR_IO_PREAD ? &mri_reader_pread : &mri_reader_uring;
    if (mri_source_is_remote(cfg->source)) r->kind = &mri_reader_remote;
    if (mri_source_is_begun(cfg->source)) r->kind = &mri_reader_own;
    r->wake_fd = -1;
    r->file_count = mr_source_info_of(cfg->source)->file_count;

    r->fd_count = r->file_count + (cfg->extra_path != NULL);

    int rc = mri_source_has_sample_files(cfg->source) ? allocate_paths(r, err) : MR_OK;
    if (rc == MR_OK) rc = find_files_in_memory(r, err);
    if (rc == MR_OK && cfg->direct && r->fd_count > 0) rc = open_direct_files(r, err);
    if (rc == MR_OK) rc = r->kind->open(r, err);
    r->stop = r->kind->stop;
    r->wake = r->kind->wake;
    if (rc != MR_OK) {
        r->kind = NULL;
        mri_reader_destroy(r);
        return rc;
    }
    *out = r;
    return MR_OK;
}

void mri_reader_stop(mri_reader *r)
{
    if (r->stop) r->stop(r);
}

void mri_reader_wake(mri_reader *r)
{
    if (r->wake) r->wake(r);
}

void mri_reader_destroy(mri_reader *r)
{
    if (!r) return;
    if (r->kind) {
        r->pending = (mri_read_list){NULL, NULL}; /* never started: nothing to wait for */
        while (r->active > 0)
            if (r->kind->advance(r, true, NULL) != MR_OK) break;
        r->kind->close(r);
    }
    for (uint32_t i = 0; r->direct_fds && i < r->fd_count; i++)
        if (r->direct_fds[i] >= 0) close(r->direct_fds[i]);
    if (r->wake_fd >= 0) close(r->wake_fd);
    mri_open_give_back(r->direct_allowed);
    mri_open_pool_destroy(r->direct_pool);
    free(r->direct_fds);
    free(r->in_memory);
    free(r->free_paths);
    if (!r->lost) free(r->paths);
    free(r);
}

void mri_read_forget(mri_read *q)
{
    if (q->made) free(q->made->buffer);
    free(q->made);
    q->made = NULL;
}

void mri_reader_submit(mri_reader *r, mri_read *q)
{
    r->submitted++;
    q->fd = -1;
    q->path = NULL;
    q->data = q->buffer;
    if (q->bytes == 0) { /* an empty file: its format decides what that means */
        q->status = MR_OK;
        mri_read_push(&r->done, q);
    } else {
        mri_read_push(&r->pending, q);
    }
}

int mri_reader_reap(mri_reader *r, bool block, mri_read **out, mr_error *err)
{
    *out = NULL;
    if (!r->done.head && (r->active > 0 || r->pending.head)) {
        const int rc = r->kind->advance(r, block, err);
        if (rc != MR_OK) return rc;
    }
    *out = mri_read_pop(&r->done);
    if (*out) r->submitted--;
    return MR_OK;
}

uint32_t mri_reader_in_flight(const mri_reader *r) { return r->submitted; }

bool mri_reader_keeps_buffers(const mri_reader *r) { return r->lost; }

mri_reader_counts mri_reader_counts_of(const mri_reader *r) { return r->counts; }

/* A set that refuses one of its files says why whenever it is asked: the request has room for a code. */
static int why_refused(const mri_read *q, const mr_source *source, mr_error *err)
{
    int fd;
    if (q->sys_errno != ESTALE || q->file >= MRI_FILE_OF_CACHE) return MR_OK;
    const int rc = mri_source_file_acquire(source, q->file, true, &fd, err);
    if (!rc) mr_source_file_release(source, q->file);
    return rc;
}

int mri_read_error(const mri_read *q, const mr_source *source, mr_error *err)
{
    if (q->made && q->file == MR_FILE_OF_SAMPLE && q->made->rc != MR_OK) {
        if (err) *err = q->made->error;
        return mri_error_place(err, q->made->rc, NULL, MR_NOWHERE, q->sample);
    }
    const int refused = why_refused(q, source, err);
    if (refused) return mri_error_place(err, refused, NULL, MR_NOWHERE, q->sample);
    int rc = q->status;
    mri_remote_file *remote = q->file < MRI_FILE_OF_CACHE ? mri_source_remote_at(source, q->file) : NULL;
    if (remote && q->want.status != MR_OK) {
        rc = mri_block_request_status(&q->want, err);
    } else if (q->sys_errno) {
        rc = q->sys_errno == EACCES || q->sys_errno == EPERM
                 ? mri_error_denied(err, mr_error_sys(err, q->sys_errno, "cannot open"))
                 : mr_error_sys(err, q->sys_errno, "cannot read %zu bytes", q->bytes);
    } else if (rc == MR_EFORMAT) {
        mr_error_set(err, rc,
                     "the file ends early: expected %zu bytes, found %zu; was it changed while in use?",
                     q->bytes, q->got);
    }
    char name[MRI_PATH_ROOM];
    mr_error_at(err, mr_source_sample_path(source, q->sample, name, sizeof name), q->offset, q->sample);
    return rc;
}
