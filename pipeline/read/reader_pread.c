/* pipeline/read/reader_pread.c: the plain kind of reader: one request at a time, in the caller's thread. Its
 * parallelism is the number of reader threads. */
#include "pipeline/read/reader_kind.h"

static int pread_open(mri_reader *r, mr_error *err)
{
    (void)r, (void)err;
    return MR_OK;
}

static void pread_close(mri_reader *r) { (void)r; }

static int pread_advance(mri_reader *r, bool block, mr_error *err)
{
    (void)block, (void)err;
    mri_read *q = mri_read_pop(&r->pending);
    if (!q) return MR_OK;
    if (mri_read_start(r, q, true) == MRI_FINISHED) return MR_OK;
    mri_read_now(r, q);
    return MR_OK;
}

const mri_reader_kind mri_reader_pread = {"pread", pread_open, pread_close, pread_advance, NULL, NULL};
