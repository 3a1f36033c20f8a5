/* formats/tar/tar_salvage_write.c: the archive that whole samples are written to. See tar_salvage.h. */
#include <errno.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/storage/output.h"
#include "formats/storage/storage.h"
#include "formats/tar/tar_classes.h"
#include "formats/tar/tar_salvage.h"
#include "formats/tar/tar_sums.h"
#include "millrace/formats.h"

enum { TAR_RECORD = 10240 };

static int get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    return mri_file_scan_get(context, offset, bytes, out, err);
}

typedef struct output {
    mri_output *file;
    FILE *stream;
    uint64_t at;
    mri_output_rules rules;
    mri_tar_sums sums;
} output;

static int write_bytes(output *o, const void *data, size_t bytes, mr_error *err)
{
    if (bytes && fwrite(data, 1, bytes, o->stream) != bytes)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot write"), mri_output_part(o->file),
                               MR_NOWHERE, MR_NOWHERE);
    o->at += bytes;
    return MR_OK;
}

static int write_zeros(output *o, uint64_t to, mr_error *err)
{
    static const uint8_t zeros[MRI_TAR_BLOCK];
    int rc = MR_OK;
    while (!rc && o->at < to) rc = write_bytes(o, zeros, (size_t)mri_min_u64(to - o->at, sizeof zeros), err);
    return rc;
}

static int write_member(output *o, const char *name, const void *data, size_t bytes, mr_error *err)
{
    uint8_t head[4096];
    size_t used;
    int rc = mri_tar_head_write(name, bytes, head, sizeof head, &used, err);
    if (!rc) rc = write_bytes(o, head, used, err);
    if (!rc) rc = write_bytes(o, data, bytes, err);
    return rc ? rc : write_zeros(o, mri_align_up(o->at, MRI_TAR_BLOCK), err);
}

static int write_sums(output *o, mr_error *err)
{
    const char *text;
    size_t bytes;
    const int rc = mri_tar_sums_make(&o->sums, o->at, &text, &bytes, err);
    return rc ? rc : write_member(o, o->sums.name, text, bytes, err);
}

void mri_tar_salvage_abandon(void *out)
{
    output *o = out;
    if (!o) return;
    mri_output_close(o->file, false);
    mri_tar_sums_fini(&o->sums);
    free(o);
}

int mri_tar_salvage_create(void **out, const void *classes, size_t classes_bytes, const char *path,
                           bool force, mr_error *err)
{
    output *o = calloc(1, sizeof *o);
    *out = NULL;
    if (!o) return mr_error_set(err, MR_ENOMEM, "no memory to write an archive");
    o->rules = (mri_output_rules){.force = force, .take_part = force};
    int rc = mri_output_open(&o->file, path, &o->rules, err);
    if (!rc && !(o->stream = mri_output_stream(o->file, err))) rc = MR_ENOMEM;
    if (!rc && classes) {
        const uint64_t data = mri_tar_head_bytes(MRI_TAR_CLASSES, classes_bytes);
        rc = mri_tar_sums_add(&o->sums, MRI_TAR_CLASSES, data, classes_bytes,
                              mr_crc32c(0, classes, classes_bytes), err);
        if (!rc) rc = write_member(o, MRI_TAR_CLASSES, classes, classes_bytes, err);
    }
    if (rc) mri_tar_salvage_abandon(o);
    else *out = o;
    return rc;
}

/* The checksums of the members in these bytes, which are a sample. */
static int add_sums(output *o, const mri_salvage_item *whole, mr_error *err)
{
    mri_tar tar;
    mri_tar_member m;
    mri_file_scan bytes = {.fd = -1,
                           .path = "",
                           .file_bytes = whole->bytes,
                           .buf = (uint8_t *)(uintptr_t)whole->data,
                           .cap = (size_t)whole->bytes,
                           .filled = (size_t)whole->bytes};
    int rc;
    mri_tar_init(&tar, get, &bytes, 0, whole->bytes);
    while ((rc = mri_tar_next(&tar, &m, err)) == MR_OK) {
        if (m.kind != MRI_TAR_FILE && m.kind != MRI_TAR_SPARSE) continue;
        rc = mri_tar_sums_add(&o->sums, m.name, o->at + m.data, m.bytes,
                              mr_crc32c(0, (const uint8_t *)whole->data + m.data, (size_t)m.bytes), err);
        if (rc) return rc;
    }
    return rc == MR_EEND ? MR_OK : rc;
}

int mri_tar_salvage_put(void *out, const mri_salvage_item *whole, mr_error *err)
{
    output *o = out;
    int rc = mri_tar_sums_due(&o->sums) ? write_sums(o, err) : MR_OK;
    if (!rc) rc = add_sums(o, whole, err);
    if (!rc) rc = write_bytes(o, whole->data, (size_t)whole->bytes, err);
    return rc ? rc : write_zeros(o, mri_align_up(o->at, MRI_TAR_BLOCK), err);
}

int mri_tar_salvage_finish(void *out, mr_error *err)
{
    output *o = out;
    int rc = o->sums.count ? write_sums(o, err) : MR_OK;
    if (!rc) rc = write_zeros(o, (o->at + MRI_TAR_END + TAR_RECORD - 1) / TAR_RECORD * TAR_RECORD, err);
    if (!rc) rc = mri_output_commit(o->file, NULL, NULL, err);
    mri_tar_salvage_abandon(o);
    return rc;
}
