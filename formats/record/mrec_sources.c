/* formats/record/mrec_sources.c: which samples of the source the records of a file are. See mrec.h. */
#include "base/util.h"
#include "formats/record/mrec_file.h"
#include "formats/record/writer.h"

enum { SOURCE_AT = 24 }; /* in a record's head: FORMAT.md */

static int read_head(int fd, const char *path, uint64_t offset, uint64_t *source, mri_record_size *size,
                     mr_error *err)
{
    uint8_t head[MRI_RECORD_HEAD];
    const int rc = mri_pread_all(fd, head, sizeof head, offset, path, err);
    if (rc) return rc;
    if (!mri_record_peek(head, size))
        return mri_error_place(err, mr_error_set(err, MR_EFORMAT, "expected a record here, found none"), path,
                               offset, MR_NOWHERE);
    *source = mri_le64(head + SOURCE_AT);
    return MR_OK;
}

int mri_mrec_sources(const mr_mrec *m, mri_source_fn *each, void *context, mr_error *err)
{
    const mr_mrec_info *info = mr_mrec_info_of(m);
    mri_record_size size;
    uint64_t offset, bytes, source = 0;
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < info->count; k++) {
        rc = mr_mrec_extent(m, k, &offset, &bytes, err);
        if (!rc) rc = read_head(mr_mrec_fd(m), m->path, offset, &source, &size, err);
        if (!rc) rc = each(context, source, err);
    }
    return rc;
}

int mri_writer_sources(const mr_writer *w, mri_source_fn *each, void *context, mr_error *err)
{
    mri_record_size size;
    uint64_t source = 0, offset = w->h.data_offset;
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < w->h.count; k++) {
        rc = read_head(w->fd, w->part, offset, &source, &size, err);
        if (!rc) rc = each(context, source, err);
        if (!rc) offset = mri_align_up(offset + size.record_bytes, w->align);
    }
    return rc;
}
