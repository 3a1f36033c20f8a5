/* formats/record/writer.c: write a .mrec file: append, finish, give up.
 *
 *   PATH.part:  | header (unfinished), schema, classes, provenance | record | record | ...
 *               appended in 4 MiB pieces
 *   finish:     | ... | record | 0.. | index pages |
 *               sync, finished header, sync, read back, rename to PATH, sync the folder
 *
 * The data in front of the records are written before the first one, so an interrupted file
 * shows its settings (writer_resume.c). The guarantees of every output
 * (formats/storage/output.h) apply. No threads. */
#include "formats/record/writer.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/util.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/storage/storage.h"

#define BUFFER_BYTES ((size_t)4 << 20)

void mr_writer_defaults_sized(mr_writer_config *cfg, size_t struct_size)
{
    const mr_writer_config all = {0};
    mri_settings_give(cfg, struct_size, &all, sizeof all);
}

/* ---- buffered writes ---- */
static int flush(mr_writer *w, mr_error *err)
{
    const int rc = mri_pwrite_all(w->fd, w->buf, w->filled, w->buf_at, w->part, err);
    if (rc) return rc;
    if (w->filled) mri_output_write_back(w->out, w->buf_at, w->filled);
    w->buf_at += w->filled;
    w->filled = 0;
    return MR_OK;
}

static int put(void *to, const void *data, size_t bytes, mr_error *err)
{
    mr_writer *w = to;
    const uint8_t *p = data;
    while (bytes > 0) {
        if (w->filled == 0 && bytes >= BUFFER_BYTES) { /* large values go past the buffer */
            const int rc = mri_pwrite_all(w->fd, p, bytes, w->buf_at, w->part, err);
            if (rc) return rc;
            mri_output_write_back(w->out, w->buf_at, bytes);
            w->buf_at += bytes;
            return MR_OK;
        }
        const size_t room = BUFFER_BYTES - w->filled, part = bytes < room ? bytes : room;
        memcpy(w->buf + w->filled, p, part);
        w->filled += part;
        p += part;
        bytes -= part;
        if (w->filled == BUFFER_BYTES) {
            const int rc = flush(w, err);
            if (rc) return rc;
        }
    }
    return MR_OK;
}

static int put_zeros(mr_writer *w, uint64_t bytes, mr_error *err)
{
    static const uint8_t zeros[MRI_MREC_BLOCK];
    return put(w, zeros, (size_t)bytes, err); /* callers pad to at most a block */
}

/* ---- open ---- */
static void destroy(mr_writer *w, bool keep)
{
    mri_index_log_fini(&w->log);
    mri_fingerprint_destroy(w->print);
    mri_output_close(w->out, keep);
    mri_meta_fini(&w->meta);
    free(w->prefix);
    free(w->buf);
    free(w);
}

static int prepare(mr_writer *w, const mr_writer_config *cfg, mr_error *err)
{
    int rc = mri_meta_copy(&w->meta, cfg, err);
    if (rc) return rc;
    rc = mri_meta_encode(&w->meta, cfg->record_align, &w->h, &w->prefix, err);
    if (rc) return rc;
    w->buf = mri_alloc_aligned(MRI_MREC_BLOCK, BUFFER_BYTES);
    w->print = mri_fingerprint_create(w->h.schema_crc, w->h.classes_crc);
    if (!w->buf || !w->print) return mr_error_set(err, MR_ENOMEM, "no memory for a writer");
    w->verify = cfg->verify;
    w->align = cfg->record_align;
    w->end = w->buf_at = w->h.data_offset;
    return MR_OK;
}

static int open_output(mr_writer *w, const char *path, const mr_writer_config *cfg, mr_error *err)
{
    const mri_output_rules rules = {.force = cfg->force,
                                    .take_part = cfg->force,
                                    .resume = cfg->resume,
                                    .input = mri_source_input,
                                    .context = cfg->input};
    const int rc = mri_output_open(&w->out, path, &rules, err);
    if (rc) return rc;
    w->fd = mri_output_fd(w->out);
    w->path = mri_output_path(w->out);
    w->part = mri_output_part(w->out);
    return mri_index_log_init(&w->log, w->path, err);
}

/* The part file begins anew, or goes on where whole records end. */
static int begin(mr_writer *w, bool resume, mr_error *err)
{
    int rc = resume ? mri_writer_resume(w, err) : MR_OK;
    if (!rc && w->h.count == 0) rc = mri_output_empty(w->out, err);
    else if (!rc && ftruncate(w->fd, (off_t)w->end) != 0)
        rc = mri_error_place(err, mr_error_sys(err, errno, "cannot cut the file aside"), w->part, MR_NOWHERE,
                             MR_NOWHERE);
    if (rc) return rc;
    return mri_pwrite_all(w->fd, w->prefix, (size_t)w->h.data_offset, 0, w->part, err);
}

static int open_writer(mr_writer *w, const char *path, const mr_writer_config *cfg, mr_error *err)
{
    const uint32_t align = cfg->record_align;
    if (align != 0 && (align < 8 || align > MRI_MREC_BLOCK || (align & (align - 1))))
        return mr_error_set(err, MR_EINVAL,
                            "record alignment %u: expected a power of two from 8 to 4096, or 0", align);
    int rc = prepare(w, cfg, err);
    if (!rc) rc = open_output(w, path, cfg, err);
    if (!rc) rc = begin(w, cfg->resume, err);
    return rc;
}

int mr_writer_open(mr_writer **out, const char *path, const mr_writer_config *cfg, uint64_t *resume_source,
                   mr_error *err)
{
    if (resume_source) *resume_source = 0;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    mr_writer_config mine;
    mr_writer_defaults(&mine);
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "writer", err);
    if (rc) return rc;
    mr_writer *w = calloc(1, sizeof *w);
    if (!w) return mr_error_set(err, MR_ENOMEM, "no memory for a writer");
    w->process = mri_process();
    w->log.fd = -1;
    rc = open_writer(w, path, &mine, err);
    if (rc) {
        destroy(w, true); /* a part file of an earlier run stays as it was */
        return rc;
    }
    if (resume_source) *resume_source = w->next_source;
    *out = w;
    return MR_OK;
}

/* ---- append ---- */
int mri_writer_accept(mr_writer *w, uint64_t offset, const mri_record_facts *facts, mr_error *err)
{
    const mri_index_entry e = {offset, facts->bytes, facts->label, facts->header_crc};
    const int rc = mri_index_log_add(&w->log, &e, err);
    if (rc) return rc;
    mri_fingerprint_add(w->print, &e);
    w->align = mri_writer_align(w, facts->bytes);
    w->end = offset + facts->bytes;
    if (w->h.count == 0 || facts->label < w->h.label_min) w->h.label_min = facts->label;
    if (w->h.count == 0 || facts->label > w->h.label_max) w->h.label_max = facts->label;
    w->h.count++;
    w->coef |= facts->coef;
    w->files |= facts->files;
    w->h.record_bytes_total += facts->bytes;
    w->h.record_bytes_max = mri_max_u64(w->h.record_bytes_max, facts->bytes);
    w->next_source = facts->source_index + 1;
    return MR_OK;
}

static int check_values(const mr_writer *w, uint64_t source_index, const mr_value *values, mr_error *err)
{
    int rc = MR_OK;
    if (source_index < w->next_source || source_index == UINT64_MAX)
        rc = mr_error_set(err, MR_EINVAL,
                          "source index %llu: expected %llu or more, they rise from record to record",
                          (unsigned long long)source_index, (unsigned long long)w->next_source);
    for (uint32_t k = 0; !rc && k < w->meta.field_count; k++)
        rc = mri_value_check(&w->meta.fields[k], &values[k], MR_EINVAL, err);
    const int label_field = w->meta.label_field;
    if (!rc && label_field >= 0 && w->meta.class_count > 0) {
        const int64_t label = values[label_field].i;
        if (label < 0 || label >= w->meta.class_count)
            rc = mr_error_set(err, MR_EINVAL, "label %lld is outside the %u classes", (long long)label,
                              w->meta.class_count);
    }
    if (rc) mr_error_at(err, w->path, MR_NOWHERE, source_index);
    return rc;
}

static int put_record(mr_writer *w, const mr_value *values, const uint8_t *header,
                      const mri_record_size *size, mr_error *err)
{
    const uint64_t offset = mri_align_up(w->end, mri_writer_align(w, size->record_bytes));
    int rc = put_zeros(w, offset - w->end, err);
    if (!rc) rc = put(w, header, size->header_bytes, err);
    for (uint32_t k = 0; !rc && k < w->meta.field_count; k++) {
        uint8_t scratch[8];
        size_t bytes;
        const void *data = mri_value_bytes(&values[k], scratch, &bytes);
        rc = put(w, data, bytes, err);
        if (!rc && k + 1 < w->meta.field_count) rc = put_zeros(w, mri_align_up(bytes, 8) - bytes, err);
    }
    return rc;
}

int mr_writer_append(mr_writer *w, uint64_t source_index, const mr_value *values, mr_error *err)
{
    MRI_OWN(err, w);
    MRI_GIVEN(err, values);
    if (w->failure.code) {
        if (err) *err = w->failure;
        return w->failure.code;
    }
    int rc = check_values(w, source_index, values, err);
    if (rc) return rc;
    mri_record_size size;
    if (!mri_record_measure(values, w->meta.field_count, &size)) {
        mr_error_set(err, MR_ELIMIT, "the record is larger than the format's 2 GiB");
        mr_error_at(err, w->path, MR_NOWHERE, source_index);
        return MR_ELIMIT;
    }
    uint8_t header[MRI_RECORD_HEADER_MAX];
    const uint32_t crc = mri_record_encode(values, w->meta.field_count, source_index, &size, header);
    const int64_t label = w->meta.label_field >= 0 ? values[w->meta.label_field].i : 0;
    const mri_record_facts facts = {size.record_bytes,
                                    source_index,
                                    label,
                                    crc,
                                    mri_values_coef(values, w->meta.field_count),
                                    mri_values_files(values, w->meta.field_count)};
    const uint64_t offset = mri_align_up(w->end, mri_writer_align(w, size.record_bytes));
    mr_error failure = MR_ERROR_INIT;
    rc = put_record(w, values, header, &size, &failure);
    if (!rc) rc = mri_writer_accept(w, offset, &facts, &failure);
    if (rc) { /* the buffer may hold half a record now */
        w->failure = failure;
        if (err) *err = failure;
    }
    return rc;
}

uint64_t mr_writer_count(const mr_writer *w) { return w ? w->h.count : 0; }

uint64_t mr_writer_bytes(const mr_writer *w) { return w ? w->end : 0; }

uint64_t mr_writer_record_bytes(const mr_writer *w, const mr_value *values)
{
    mri_record_size size;
    if (!w || !values) return 0;
    if (!mri_record_measure(values, w->meta.field_count, &size)) return UINT64_MAX;
    return mri_align_up(size.record_bytes, mri_writer_align(w, size.record_bytes));
}

/* ---- finish ---- */
static int put_index(mr_writer *w, mr_error *err)
{
    mri_mrec_header *h = &w->h;
    h->data_bytes = w->end - h->data_offset;
    h->index_offset = mri_align_up(w->end, MRI_MREC_BLOCK);
    h->index_bytes = mri_index_pages(h->count) * MRI_MREC_BLOCK;
    h->file_bytes = h->index_offset + h->index_bytes;
    int rc = put_zeros(w, h->index_offset - w->end, err);
    if (!rc) rc = mri_index_log_emit(&w->log, put, w, err);
    if (!rc) rc = flush(w, err);
    return rc;
}

/* Only now can a reader take the file for a whole one: everything else is on disk. */
static int put_header(mr_writer *w, mr_error *err)
{
    uint8_t block[MRI_MREC_BLOCK];
    w->h.flags |= MRI_MREC_COMPLETE | (w->coef ? MRI_MREC_COEF : 0) | (w->files ? MRI_MREC_FILES : 0);
    if (w->files) w->h.minor = MRI_MREC_MINOR;
    w->h.record_align = w->align ? w->align : 8;
    w->h.fingerprint = mri_fingerprint_value(w->print);
    mri_mrec_header_encode(&w->h, block);
    return mri_pwrite_all(w->fd, block, sizeof block, 0, w->part, err);
}

static int complete(mr_writer *w, mr_error *err)
{
    int rc = w->failure.code;
    if (rc && err) *err = w->failure;
    if (!rc) rc = put_index(w, err);
    if (!rc) rc = mri_output_sync(w->out, err);
    if (!rc) rc = put_header(w, err);
    return rc;
}

static bool keep_first_finding(void *context, const mr_error *what)
{
    *(mr_error *)context = *what;
    return false;
}

static int read_back(void *context, int fd, const char *part, mr_error *err)
{
    mr_error found = MR_ERROR_INIT;
    (void)context;
    (void)fd;
    const int rc = mr_mrec_verify(part, keep_first_finding, &found, NULL, err);
    if (found.code != MR_OK && err) *err = found;
    return rc;
}

int mr_writer_finish(mr_writer *w, mr_error *err)
{
    MRI_OWN(err, w);
    int rc = complete(w, err);
    if (!rc) rc = mri_output_commit(w->out, w->verify ? read_back : NULL, NULL, err);
    destroy(w, true);
    return rc;
}

int mri_writer_seal(mr_writer *w, mr_error *err)
{
    int rc = complete(w, err);
    if (!rc) rc = mri_output_sync(w->out, err);
    if (!rc && w->verify) rc = read_back(NULL, w->fd, w->part, err);
    destroy(w, true);
    return rc;
}

void mr_writer_abort(mr_writer *w, bool keep)
{
    if (!w || mri_is_inherited(w->process)) return;
    if (keep && !w->failure.code) flush(w, NULL); /* what does not get there is done again on resume */
    destroy(w, keep);
}
