/* formats/record/writer_resume.c: go on with an interrupted .mrec file.
 *
 * The part file begins with the same header, schema, classes and provenance that a fresh one gets now; if
 * not, it belongs to another run and is left alone. Then records are read one by one, each checked as a
 * reader would, until one is not whole; the writer goes on there. The result is the same, byte for byte, as
 * without the interruption. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/record/writer.h"
#include "formats/storage/storage.h"

/* The header as it was when the file was begun: a run may have been stopped between its finished header and
 * the rename. */
static void as_begun(const mr_writer *w, const mri_mrec_header *found, uint8_t block[MRI_MREC_BLOCK])
{
    mri_mrec_header h = *found;
    if ((h.flags & MRI_MREC_COMPLETE) && w->h.record_align == 0) h.record_align = 0;
    h.flags = 0;
    h.count = h.file_bytes = h.data_bytes = h.index_offset = h.index_bytes = 0;
    h.record_bytes_total = h.record_bytes_max = h.fingerprint = 0;
    h.label_min = h.label_max = 0;
    mri_mrec_header_encode(&h, block);
}

/* Torn before its first record: are the existing bytes the beginning of this file? */
static int compare_torn(const mr_writer *w, mri_file_scan *win, mr_error *err)
{
    const uint8_t *p;
    const size_t bytes = (size_t)win->file_bytes;
    const int rc = bytes ? mri_file_scan_get(win, 0, bytes, &p, err) : MR_OK;
    if (!rc && bytes && memcmp(p, w->prefix, bytes) == 0) mri_output_adopt(w->out);
    return rc;
}

/* *same: the part file begins as this one does. False: it was torn before its first record, begin anew. */
static int compare_prefix(const mr_writer *w, mri_file_scan *win, bool *same, mr_error *err)
{
    *same = false;
    if (win->file_bytes < w->h.data_offset) return compare_torn(w, win, err);
    const uint8_t *p;
    mri_mrec_header found;
    int rc = mri_file_scan_get(win, 0, MRI_MREC_BLOCK, &p, err);
    if (rc) return rc;
    rc = mri_mrec_header_decode(p, &found, err);
    if (rc == MR_EUNSUPPORTED) {
        mr_error_at(err, w->part, MR_NOWHERE, MR_NOWHERE);
        return rc;
    }
    if (rc) return MR_OK;
    uint8_t block[MRI_MREC_BLOCK];
    as_begun(w, &found, block);
    if (memcmp(block, w->prefix, sizeof block) != 0) {
        mr_error_set(err, MR_EEXIST,
                     "it was begun with other fields, classes, provenance or alignment: remove it, or "
                     "start over without resume");
        mr_error_at(err, w->part, MR_NOWHERE, MR_NOWHERE);
        return MR_EEXIST;
    }
    rc = mri_file_scan_get(win, 0, (size_t)w->h.data_offset, &p, err);
    if (rc) return rc;
    const size_t rest = (size_t)w->h.data_offset - MRI_MREC_BLOCK;
    *same = memcmp(p + MRI_MREC_BLOCK, w->prefix + MRI_MREC_BLOCK, rest) == 0;
    if (*same) mri_output_adopt(w->out);
    return MR_OK;
}

/* The record that should start after the last one. *whole is false where the file stops making sense. */
static int take_record(mr_writer *w, mri_file_scan *win, bool *whole, mr_error *err)
{
    *whole = false;
    const uint8_t *p;
    mri_record_size size;
    /* the first record lies at the start of the data, on every alignment */
    const uint64_t offset = w->h.count == 0 ? w->end : mri_align_up(w->end, w->align);
    if (offset > win->file_bytes || win->file_bytes - offset < MRI_RECORD_HEAD) return MR_OK;
    int rc = mri_file_scan_get(win, w->end, (size_t)(offset - w->end) + MRI_RECORD_HEAD, &p, err);
    if (rc) return rc;
    if (!mri_all_zero(p, (size_t)(offset - w->end)) || !mri_record_peek(p + (offset - w->end), &size))
        return MR_OK;
    if (size.record_bytes > win->file_bytes - offset) return MR_OK;
    rc = mri_file_scan_get(win, offset, (size_t)size.record_bytes, &p, err);
    if (rc) return rc;
    mr_sample sample;
    mri_record_facts facts;
    if (mri_record_parse(&w->meta, p, (size_t)size.record_bytes, &sample, &facts, NULL) != MR_OK)
        return MR_OK;
    if (facts.source_index < w->next_source || facts.source_index == UINT64_MAX) return MR_OK;
    *whole = true;
    return mri_writer_accept(w, offset, &facts, err);
}

uint64_t mri_writer_left(const char *path)
{
    uint8_t block[MRI_MREC_BLOCK];
    mri_mrec_header h;
    struct stat st;
    uint64_t left = 0;
    char part[PATH_MAX];
    if ((size_t)snprintf(part, sizeof part, "%s.part", path) >= sizeof part) return 0;
    const int fd = open(part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_SH | LOCK_NB) == 0 &&
        mri_pread_all(fd, block, sizeof block, 0, part, NULL) == MR_OK &&
        mri_mrec_header_decode(block, &h, NULL) == MR_OK && (uint64_t)st.st_size > h.data_offset)
        left = (uint64_t)st.st_size - h.data_offset;
    close(fd);
    return left;
}

int mri_writer_resume(mr_writer *w, mr_error *err)
{
    struct stat st;
    if (fstat(w->fd, &st) != 0) return mr_error_sys(err, errno, "cannot look at the file aside");
    mri_file_scan win;
    mri_file_scan_init(&win, w->fd, w->part, (uint64_t)st.st_size);
    bool more;
    int rc = compare_prefix(w, &win, &more, err);
    while (!rc && more) rc = take_record(w, &win, &more, err);
    mri_file_scan_fini(&win);
    if (!rc) w->buf_at = w->end;
    return rc;
}
