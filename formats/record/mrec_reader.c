/* formats/record/mrec_reader.c: open a .mrec file, find a record, split it into values.
 *
 * open checks header, sections, and the index when it is to stay in memory. After that nothing changes any
 * more, so every other function may be called from any thread; a page of a huge index is read and checked on
 * the caller's stack. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/record/mrec_file.h"

static int error_at(const mr_mrec *m, mr_error *err, int code, uint64_t offset, uint64_t record)
{
    mr_error_at(err, m->path, offset, record);
    return code;
}

static int mrec_pread(const mr_mrec *m, void *data, size_t bytes, uint64_t offset, mr_error *err)
{
    return m->remote ? mri_remote_read(m->remote, data, bytes, offset, err)
                     : mri_pread_all(m->fd, data, bytes, offset, m->path, err);
}

static int open_file(mr_mrec *m, uint64_t *bytes, mr_error *err)
{
    m->fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe in its place must not make us wait */
    if (m->fd < 0) return error_at(m, err, mr_error_sys(err, errno, "cannot open"), MR_NOWHERE, MR_NOWHERE);
    struct stat st;
    if (fstat(m->fd, &st) != 0)
        return error_at(m, err, mr_error_sys(err, errno, "cannot look at it"), MR_NOWHERE, MR_NOWHERE);
    if (!S_ISREG(st.st_mode))
        return error_at(m, err, mr_error_set(err, MR_EFORMAT, "not a regular file"), MR_NOWHERE, MR_NOWHERE);
    *bytes = (uint64_t)st.st_size;
    return MR_OK;
}

static int read_header(mr_mrec *m, uint64_t file_bytes, mr_error *err)
{
    if (file_bytes < MRI_MREC_BLOCK)
        return error_at(m, err,
                        mr_error_set(err, MR_EFORMAT,
                                     "too short for a .mrec file: expected at least %d bytes, found %llu",
                                     MRI_MREC_BLOCK, (unsigned long long)file_bytes),
                        0, MR_NOWHERE);
    uint8_t block[MRI_MREC_BLOCK];
    int rc = mrec_pread(m, block, sizeof block, 0, err);
    if (rc) return rc;
    rc = mri_mrec_header_decode(block, &m->h, err);
    if (!rc) rc = mri_mrec_header_check(&m->h, file_bytes, err);
    return rc ? error_at(m, err, rc, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

/* All of it lies in front of the data. */
static int read_meta(mr_mrec *m, mr_error *err)
{
    mri_block_request w = {0};
    const int here = m->remote ? mri_remote_pin(&w, m->remote, 0, m->h.data_offset, err) : MR_OK;
    if (here) return here;
    const int rc = mri_meta_read(&m->meta, m->fd, m->path, &m->h, err);
    if (m->remote) mri_block_request_end(&w);
    return rc;
}

static uint64_t page_offset(const mr_mrec *m, uint64_t page)
{
    return m->h.index_offset + page * MRI_MREC_BLOCK;
}

static int check_page(const mr_mrec *m, uint64_t page, const uint8_t *bytes, mri_index_walk *walk,
                      mr_error *err)
{
    const uint32_t entries = mri_index_entries(m->h.count, page);
    const int rc = mri_index_check(bytes, page, entries, err);
    if (rc) return error_at(m, err, rc, page_offset(m, page), MR_NOWHERE);
    for (uint32_t slot = 0; slot < entries; slot++) {
        mri_index_entry e;
        mri_index_get(bytes, slot, &e);
        const int wrong = mri_index_walk_step(walk, &e, err);
        if (wrong) return error_at(m, err, wrong, page_offset(m, page), page * MRI_INDEX_PER_PAGE + slot);
    }
    return MR_OK;
}

static int load_index(mr_mrec *m, mr_error *err)
{
    m->index = malloc(m->h.index_bytes ? (size_t)m->h.index_bytes : 1);
    if (!m->index)
        return error_at(m, err,
                        mr_error_set(err, MR_ENOMEM, "no memory for %llu bytes of index",
                                     (unsigned long long)m->h.index_bytes),
                        MR_NOWHERE, MR_NOWHERE);
    int rc = mrec_pread(m, m->index, (size_t)m->h.index_bytes, m->h.index_offset, err);
    mri_index_walk walk;
    mri_index_walk_init(&walk, &m->h);
    const uint64_t pages = mri_index_pages(m->h.count);
    for (uint64_t page = 0; !rc && page < pages; page++)
        rc = check_page(m, page, m->index + page * MRI_MREC_BLOCK, &walk, err);
    if (rc) return rc;
    rc = mri_index_walk_end(&walk, err);
    return rc ? error_at(m, err, rc, 96, MR_NOWHERE) : MR_OK;
}

static void fill_info(mr_mrec *m)
{
    m->info = (mr_mrec_info){
        .version_major = m->h.major,
        .version_minor = m->h.minor,
        .count = m->h.count,
        .file_bytes = m->h.file_bytes,
        .data_offset = m->h.data_offset,
        .index_offset = m->h.index_offset,
        .record_align = m->h.record_align,
        .field_count = m->meta.field_count,
        .fields = m->meta.fields,
        .class_count = m->meta.class_count,
        .class_names = m->meta.class_names,
        .provenance = m->meta.provenance,
        .fingerprint = m->h.fingerprint,
        .label_start = m->h.label_start,
    };
}

static int open_any(mr_mrec **out, const char *path, mri_remote_file *remote, uint64_t index_memory_bytes,
                    mr_error *err)
{
    *out = NULL;
    mr_mrec *m = calloc(1, sizeof *m);
    if (m) m->path = strdup(path);
    if (!m || !m->path) {
        free(m);
        return mr_error_set(err, MR_ENOMEM, "no memory to open a file");
    }
    uint64_t bytes = remote ? mri_remote_bytes(remote) : 0;
    m->remote = remote;
    m->fd = remote ? mri_remote_fd(remote) : -1;
    int rc = remote ? MR_OK : open_file(m, &bytes, err);
    if (!rc) rc = read_header(m, bytes, err);
    if (!rc) rc = read_meta(m, err);
    if (!rc && m->h.index_bytes <= index_memory_bytes) rc = load_index(m, err);
    if (rc) {
        mr_mrec_close(m);
        return rc;
    }
    fill_info(m);
    *out = m;
    return MR_OK;
}

int mr_mrec_open(mr_mrec **out, const char *path, uint64_t index_memory_bytes, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    if (mri_is_url(path))
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "only files here are opened this way: download it, or open it as a data set");
    return open_any(out, path, NULL, index_memory_bytes, err);
}

int mri_mrec_open_remote(mr_mrec **out, mri_remote_file *remote, uint64_t index_memory_bytes, mr_error *err)
{
    return open_any(out, mri_remote_shown(remote), remote, index_memory_bytes, err);
}

void mr_mrec_close(mr_mrec *m)
{
    if (!m) return;
    if (m->fd >= 0 && !m->remote) close(m->fd);
    mri_meta_fini(&m->meta);
    free(m->index);
    free(m->path);
    free(m);
}

const mr_mrec_info *mr_mrec_info_of(const mr_mrec *m) { return m ? &m->info : NULL; }

int mr_mrec_fd(const mr_mrec *m) { return m ? m->fd : -1; }

uint64_t mri_mrec_memory_bytes(const mr_mrec *m)
{
    return sizeof *m + m->meta.memory_bytes + (m->index ? m->h.index_bytes : 0);
}

/* ---- labels ---- */
/* One page of a run of them. */
static int labels_of_page(const mr_mrec *m, uint64_t page, const uint8_t *bytes, int64_t *min, int64_t *max,
                          mr_error *err)
{
    const uint32_t entries = mri_index_entries(m->h.count, page);
    const int rc = m->index ? MR_OK : mri_index_check(bytes, page, entries, err);
    if (rc) return error_at(m, err, rc, page_offset(m, page), MR_NOWHERE);
    for (uint32_t slot = 0; slot < entries; slot++) {
        mri_index_entry e;
        mri_index_get(bytes, slot, &e);
        if ((page == 0 && slot == 0) || e.label < *min) *min = e.label;
        if ((page == 0 && slot == 0) || e.label > *max) *max = e.label;
    }
    return MR_OK;
}

static int labels_of_index(const mr_mrec *m, int64_t *min, int64_t *max, mr_error *err)
{
    enum { RUN = 256 }; /* 1 MiB */
    const uint64_t pages = mri_index_pages(m->h.count);
    uint8_t *run = m->index ? NULL : malloc((size_t)RUN * MRI_MREC_BLOCK);
    int rc = m->index || run ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory to read an index");
    for (uint64_t page = 0; !rc && page < pages; page++) {
        const uint64_t left = pages - page;
        if (run && page % RUN == 0)
            rc = mrec_pread(m, run, (size_t)mri_min_u64(left, RUN) * MRI_MREC_BLOCK, page_offset(m, page),
                            err);
        const uint8_t *bytes =
            m->index ? m->index + page * MRI_MREC_BLOCK : run + page % RUN * MRI_MREC_BLOCK;
        if (!rc) rc = labels_of_page(m, page, bytes, min, max, err);
    }
    free(run);
    return rc;
}

int mri_mrec_labels(const mr_mrec *m, int64_t *min, int64_t *max, mr_error *err)
{
    *min = m->h.label_min;
    *max = m->h.label_max;
    return mri_mrec_header_has_labels(&m->h) ? MR_OK : labels_of_index(m, min, max, err);
}

/* ---- records ---- */
static bool lies_in_data(const mr_mrec *m, const mri_index_entry *e)
{
    const uint64_t data_end = m->h.data_offset + m->h.data_bytes;
    return e->offset >= m->h.data_offset && e->offset <= data_end && e->bytes <= data_end - e->offset &&
           e->bytes <= m->h.record_bytes_max && e->offset % m->h.record_align == 0;
}

int mri_mrec_index_page(const mr_mrec *m, uint64_t page, uint8_t out[MRI_MREC_BLOCK], mr_error *err)
{
    const uint32_t entries = mri_index_entries(m->h.count, page);
    int rc = mrec_pread(m, out, MRI_MREC_BLOCK, page_offset(m, page), err);
    if (rc) return rc;
    rc = mri_index_check(out, page, entries, err);
    for (uint32_t slot = 0; !rc && slot < entries; slot++) {
        mri_index_entry e;
        mri_index_get(out, slot, &e);
        if (lies_in_data(m, &e)) continue;
        rc = mr_error_set(err, MR_EFORMAT, "the index places the record outside the data");
        mr_error_at(err, NULL, MR_NOWHERE, page * MRI_INDEX_PER_PAGE + slot);
    }
    return rc ? error_at(m, err, rc, page_offset(m, page), MR_NOWHERE) : MR_OK;
}

int mri_mrec_entry(const mr_mrec *m, uint64_t record, mri_index_entry *out, mr_error *err)
{
    if (record >= m->h.count)
        return error_at(
            m, err, mr_error_set(err, MR_EINVAL, "there are %llu records", (unsigned long long)m->h.count),
            MR_NOWHERE, record);
    const uint64_t page = record / MRI_INDEX_PER_PAGE;
    const uint32_t slot = (uint32_t)(record % MRI_INDEX_PER_PAGE);
    if (m->index) {
        mri_index_get(m->index + page * MRI_MREC_BLOCK, slot, out);
        return MR_OK;
    }
    uint8_t bytes[MRI_MREC_BLOCK];
    const int rc = mri_mrec_index_page(m, page, bytes, err);
    if (rc) return error_at(m, err, rc, MR_NOWHERE, record);
    mri_index_get(bytes, slot, out);
    return MR_OK;
}

int mr_mrec_extent(const mr_mrec *m, uint64_t record, uint64_t *offset, uint64_t *bytes, mr_error *err)
{
    mri_index_entry e;
    MRI_GIVEN(err, m);
    MRI_GIVEN(err, offset);
    MRI_GIVEN(err, bytes);
    const int rc = mri_mrec_entry(m, record, &e, err);
    if (rc) return rc;
    *offset = e.offset;
    *bytes = e.bytes;
    return MR_OK;
}

/* A whole record in the wrong place has good checksums of its own: only the index can tell. */
static int check_place(const mr_mrec *m, uint64_t record, const mri_record_facts *facts, mr_error *err)
{
    mri_index_entry e;
    const int rc = mri_mrec_entry(m, record, &e, err);
    if (rc) return rc;
    if (e.header_crc == facts->header_crc && e.label == facts->label) return MR_OK;
    return mr_error_set(err, MR_EFORMAT,
                        "this is not the record the index knows here: expected header checksum %08x and "
                        "label %lld, found %08x and %lld",
                        e.header_crc, (long long)e.label, facts->header_crc, (long long)facts->label);
}

/* err speaks of bytes within the record so far: make it bytes within the file. Only on the way of errors. */
static int placed(const mr_mrec *m, uint64_t record, int code, mr_error *err)
{
    mri_index_entry e;
    if (err && mri_mrec_entry(m, record, &e, NULL) == MR_OK)
        mr_error_at(err, NULL, e.offset + (err->offset == MR_NOWHERE ? 0 : err->offset), MR_NOWHERE);
    return error_at(m, err, code, MR_NOWHERE, record);
}

int mr_mrec_parse(const mr_mrec *m, uint64_t record, const void *data, size_t bytes, mr_sample *out,
                  uint64_t *source_index, mr_error *err)
{
    mri_record_facts facts;
    MRI_GIVEN(err, m);
    MRI_GIVEN(err, data);
    MRI_GIVEN(err, out);
    int rc = mri_record_parse(&m->meta, data, bytes, out, &facts, err);
    if (rc) return placed(m, record, rc, err);
    /* in memory only: a page read for each record would double the I/O, and verify looks at every page */
    if (m->index || record >= m->h.count) {
        rc = check_place(m, record, &facts, err);
        if (rc) return record < m->h.count ? placed(m, record, rc, err) : rc;
    }
    if (source_index) *source_index = facts.source_index;
    return MR_OK;
}
