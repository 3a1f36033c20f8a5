/* formats/record/index_log.c: index pages of a file being written, in a fixed piece of memory and an unnamed
 * file. */
#include <unistd.h>

#include "base/util.h"
#include "formats/record/writer.h"

enum { LOG_PAGES = 256 }; /* 1 MiB: 32512 records before anything is spilled */

int mri_index_log_init(mri_index_log *log, const char *path, mr_error *err)
{
    *log = (mri_index_log){.fd = -1, .path = path};
    log->chunk = malloc((size_t)LOG_PAGES * MRI_MREC_BLOCK);
    return log->chunk ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for index pages");
}

void mri_index_log_fini(mri_index_log *log)
{
    free(log->chunk);
    log->chunk = NULL;
    if (log->fd >= 0) close(log->fd);
    log->fd = -1;
}

static int spill(mri_index_log *log, mr_error *err)
{
    if (log->fd < 0) {
        const int rc = mri_output_spill(&log->fd, log->path, err);
        if (rc) return rc;
    }
    const size_t bytes = (size_t)log->pages * MRI_MREC_BLOCK;
    const int rc = mri_pwrite_all(log->fd, log->chunk, bytes, log->spilled, log->path, err);
    if (rc) return rc;
    log->spilled += bytes;
    log->pages = 0;
    return MR_OK;
}

static void seal(mri_index_log *log)
{
    mri_index_seal(log->chunk + (size_t)log->pages * MRI_MREC_BLOCK, log->number, log->slot);
    log->pages++;
    log->number++;
    log->slot = 0;
}

int mri_index_log_add(mri_index_log *log, const mri_index_entry *e, mr_error *err)
{
    if (log->pages == LOG_PAGES) {
        const int rc = spill(log, err);
        if (rc) return rc;
    }
    mri_index_put(log->chunk + (size_t)log->pages * MRI_MREC_BLOCK, log->slot++, e);
    if (log->slot == MRI_INDEX_PER_PAGE) seal(log);
    return MR_OK;
}

int mri_index_log_emit(mri_index_log *log,
                       int (*put)(void *to, const void *data, size_t bytes, mr_error *err), void *to,
                       mr_error *err)
{
    if (log->slot > 0) seal(log);
    if (log->spilled == 0) return put(to, log->chunk, (size_t)log->pages * MRI_MREC_BLOCK, err);
    int rc = log->pages > 0 ? spill(log, err) : MR_OK;
    const size_t step = (size_t)LOG_PAGES * MRI_MREC_BLOCK;
    for (uint64_t at = 0; !rc && at < log->spilled; at += step) {
        const size_t bytes = (size_t)mri_min_u64(step, log->spilled - at);
        rc = mri_pread_all(log->fd, log->chunk, bytes, at, log->path, err);
        if (!rc) rc = put(to, log->chunk, bytes, err);
    }
    return rc;
}
