/* formats/record/mrec_meta.c: what a .mrec file says about all its records: schema, class names, provenance.
 *
 * The writer puts these in front of the data before the first record, so that an interrupted file can be
 * distinguished from one that was started with other fields. Each part has its CRC in the header; the zeros
 * between them are checked too. */
#include "base/util.h"
#include "formats/record/mrec.h"
#include "formats/source/classes.h"
#include "formats/source/value.h"

bool mri_all_zero(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    for (size_t k = 0; k < bytes; k++)
        if (p[k]) return false;
    return true;
}

void mri_meta_fini(mri_meta *m)
{
    free(m->class_names);
    free(m->provenance);
    m->class_names = NULL;
    m->provenance = NULL;
}

/* ---- the writer's settings ---- */
static int copy_classes(mri_meta *m, const mr_writer_config *cfg, mr_error *err)
{
    if (cfg->class_count == 0) return MR_OK;
    size_t text = 0;
    for (uint32_t k = 0; k < cfg->class_count; k++) {
        if (!cfg->class_names || !cfg->class_names[k])
            return mr_error_set(err, MR_EINVAL, "%u classes, but class %u has no name", cfg->class_count, k);
        text += strlen(cfg->class_names[k]) + 1;
        if (text > MRI_MAX_CLASSES_BYTES - 8)
            return mr_error_set(err, MR_ELIMIT, "more than 64 MiB of class names");
    }
    m->class_names = mri_class_names_copy(cfg->class_names, cfg->class_count);
    if (!m->class_names)
        return mr_error_set(err, MR_ENOMEM, "no memory for %u class names", cfg->class_count);
    m->class_count = cfg->class_count;
    return MR_OK;
}

static void find_conventional_fields(mri_meta *m)
{
    m->label_field = mri_field_label(m->fields, m->field_count);
    m->image_field = mri_field_image(m->fields, m->field_count);
}

int mri_meta_copy(mri_meta *m, const mr_writer_config *cfg, mr_error *err)
{
    *m = (mri_meta){0};
    if (!cfg->fields) return mr_error_set(err, MR_EINVAL, "a record file needs fields");
    int rc = mri_schema_check(cfg->fields, cfg->field_count, MR_EINVAL, err);
    if (rc) return rc;
    m->field_count = cfg->field_count;
    for (uint32_t k = 0; k < cfg->field_count; k++) { /* without members that the type does not use: equal
                                                         schemas, equal bytes */
        const mr_field *from = &cfg->fields[k];
        mr_field *to = &m->fields[k];
        memcpy(to->name, from->name, strlen(from->name));
        to->type = from->type;
        to->dtype = from->type == MR_TYPE_TENSOR ? from->dtype : 0;
        to->ndim = from->ndim;
        memcpy(to->dim, from->dim, from->ndim * sizeof to->dim[0]);
    }
    find_conventional_fields(m);
    m->label_start = cfg->label_start;
    m->coef = true; /* the finished header shows whether any came */
    const char *text = cfg->provenance ? cfg->provenance : "";
    const size_t text_bytes = strlen(text);
    if (text_bytes > MRI_MAX_PROVENANCE_BYTES)
        return mr_error_set(err, MR_ELIMIT, "more than 16 MiB of provenance text");
    rc = copy_classes(m, cfg, err);
    if (rc) return rc;
    m->provenance = malloc(text_bytes + 1);
    if (!m->provenance) {
        mri_meta_fini(m);
        return mr_error_set(err, MR_ENOMEM, "no memory for %zu bytes of provenance", text_bytes);
    }
    memcpy(m->provenance, text, text_bytes + 1);
    return MR_OK;
}

/* ---- to bytes ---- */
static size_t schema_bytes(const mri_meta *m)
{
    size_t bytes = 8;
    for (uint32_t k = 0; k < m->field_count; k++)
        bytes += 8 + 8 * (size_t)m->fields[k].ndim + (size_t)mri_align_up(strlen(m->fields[k].name), 8);
    return bytes;
}

static void put_schema(const mri_meta *m, uint8_t *p)
{
    mri_put_le32(p, m->field_count);
    p += 8;
    for (uint32_t k = 0; k < m->field_count; k++) {
        const mr_field *f = &m->fields[k];
        const size_t name_bytes = strlen(f->name);
        p[0] = (uint8_t)f->type;
        p[1] = (uint8_t)f->dtype;
        p[2] = (uint8_t)f->ndim;
        p[3] = (uint8_t)name_bytes;
        for (uint32_t d = 0; d < f->ndim; d++) mri_put_le64(p + 8 + 8 * (size_t)d, f->dim[d]);
        p += 8 + 8 * (size_t)f->ndim;
        memcpy(p, f->name, name_bytes);
        p += mri_align_up(name_bytes, 8);
    }
}

static size_t classes_bytes(const mri_meta *m)
{
    size_t bytes = 8;
    for (uint32_t k = 0; k < m->class_count; k++) bytes += strlen(m->class_names[k]) + 1;
    return bytes;
}

static void put_classes(const mri_meta *m, uint8_t *p)
{
    mri_put_le32(p, m->class_count);
    p += 8;
    for (uint32_t k = 0; k < m->class_count; k++) {
        const size_t len = strlen(m->class_names[k]) + 1;
        memcpy(p, m->class_names[k], len);
        p += len;
    }
}

int mri_meta_encode(const mri_meta *m, uint32_t record_align, mri_mrec_header *h, uint8_t **out,
                    mr_error *err)
{
    *h = (mri_mrec_header){.major = MRI_MREC_MAJOR,
                           .minor = MRI_MREC_MINOR_WRITTEN,
                           .record_align = record_align,
                           .label_start = m->label_start};
    h->schema_offset = MRI_MREC_BLOCK;
    h->schema_bytes = schema_bytes(m);
    h->classes_offset = mri_align_up(h->schema_offset + h->schema_bytes, 8);
    h->classes_bytes = classes_bytes(m);
    h->provenance_offset = mri_align_up(h->classes_offset + h->classes_bytes, 8);
    h->provenance_bytes = strlen(m->provenance);
    h->data_offset = mri_align_up(h->provenance_offset + h->provenance_bytes, MRI_MREC_BLOCK);

    uint8_t *p = calloc(1, h->data_offset);
    if (!p)
        return mr_error_set(err, MR_ENOMEM, "no memory for %llu bytes of header",
                            (unsigned long long)h->data_offset);
    put_schema(m, p + h->schema_offset);
    put_classes(m, p + h->classes_offset);
    memcpy(p + h->provenance_offset, m->provenance, h->provenance_bytes);
    h->schema_crc = mr_crc32c(0, p + h->schema_offset, h->schema_bytes);
    h->classes_crc = mr_crc32c(0, p + h->classes_offset, h->classes_bytes);
    h->provenance_crc = mr_crc32c(0, p + h->provenance_offset, h->provenance_bytes);
    mri_mrec_header_encode(h, p);
    *out = p;
    return MR_OK;
}

/* ---- from bytes ---- */
static int broken(mr_error *err, const char *path, uint64_t offset, const char *what)
{
    mr_error_set(err, MR_EFORMAT, "%s", what);
    mr_error_at(err, path, offset, MR_NOWHERE);
    return MR_EFORMAT;
}

static int get_field(mr_field *f, const uint8_t *p, size_t left, size_t *used)
{
    if (left < 8) return MR_EFORMAT;
    const size_t ndim = p[2], name_bytes = p[3], padded = (size_t)mri_align_up(name_bytes, 8);
    if (ndim > MR_MAX_DIMS || name_bytes == 0 || name_bytes > MR_MAX_NAME) return MR_EFORMAT;
    if (left - 8 < 8 * ndim + padded || !mri_all_zero(p + 4, 4)) return MR_EFORMAT;
    *f = (mr_field){.type = p[0], .dtype = p[1], .ndim = (uint32_t)ndim};
    for (size_t d = 0; d < ndim; d++) f->dim[d] = mri_le64(p + 8 + 8 * d);
    const uint8_t *name = p + 8 + 8 * ndim;
    if (memchr(name, '\0', name_bytes) || !mri_all_zero(name + name_bytes, padded - name_bytes))
        return MR_EFORMAT;
    if (f->type != MR_TYPE_TENSOR && f->dtype != 0) return MR_EFORMAT;
    memcpy(f->name, name, name_bytes);
    *used = 8 + 8 * ndim + padded;
    return MR_OK;
}

static int get_schema(mri_meta *m, const uint8_t *p, size_t bytes, const char *path, uint64_t offset,
                      mr_error *err)
{
    const uint32_t count = bytes >= 8 ? mri_le32(p) : 0;
    if (count == 0 || count > MR_MAX_FIELDS || mri_le32(p + 4) != 0)
        return broken(err, path, offset, "schema: expected 1 to 32 fields");
    size_t at = 8;
    for (uint32_t k = 0; k < count; k++) {
        size_t used = 0;
        if (get_field(&m->fields[k], p + at, bytes - at, &used) != MR_OK)
            return broken(err, path, offset + at,
                          "schema: a field's name, type or shape is not as specified");
        at += used;
    }
    if (at != bytes) return broken(err, path, offset + at, "schema: bytes after the last field");
    m->field_count = count;
    const int rc = mri_schema_check(m->fields, count, MR_EFORMAT, err);
    if (rc) {
        mr_error_at(err, path, offset, MR_NOWHERE);
        return rc;
    }
    find_conventional_fields(m);
    return MR_OK;
}

static int get_classes(mri_meta *m, const uint8_t *p, size_t bytes, const char *path, uint64_t offset,
                       mr_error *err)
{
    if (bytes < 8 || mri_le32(p + 4) != 0) return broken(err, path, offset, "class names: no count in front");
    const uint32_t count = mri_le32(p);
    const size_t text = bytes - 8;
    size_t found = 0;
    for (size_t k = 0; k < text; k++) found += p[8 + k] == '\0';
    if (found != count || (text > 0 && p[bytes - 1] != '\0'))
        return broken(err, path, offset, "class names: their count differs from the number of names");
    if (count == 0) return MR_OK;
    const size_t pointers = (size_t)count * sizeof(char *); /* count <= bytes <= 64 MiB */
    m->class_names = malloc(pointers + text);
    if (!m->class_names) return mr_error_set(err, MR_ENOMEM, "no memory for %u class names", count);
    char *at = (char *)m->class_names + pointers;
    memcpy(at, p + 8, text);
    for (uint32_t k = 0; k < count; k++) {
        m->class_names[k] = at;
        at += strlen(at) + 1;
    }
    m->class_count = count;
    m->memory_bytes += pointers + text;
    return MR_OK;
}

/* One part and a zero byte after it, checked against its CRC; malloc'd. */
static int read_part(uint8_t **out, int fd, const char *path, const char *name, uint64_t offset,
                     uint64_t bytes, uint32_t crc, mr_error *err)
{
    *out = malloc((size_t)bytes + 1);
    if (!*out)
        return mr_error_set(err, MR_ENOMEM, "no memory for %llu bytes of %s", (unsigned long long)bytes,
                            name);
    int rc = mri_pread_all(fd, *out, (size_t)bytes, offset, path, err);
    if (!rc) {
        const uint32_t found = mr_crc32c(0, *out, (size_t)bytes);
        if (found != crc) {
            rc = mr_error_set(err, MR_ECHECKSUM,
                              "the checksum of %s does not match: expected %08x, found %08x", name, crc,
                              found);
            mr_error_at(err, path, offset, MR_NOWHERE);
        }
    }
    if (rc) {
        free(*out);
        *out = NULL;
        return rc;
    }
    (*out)[bytes] = '\0';
    return MR_OK;
}

/* The zeros from the end of one part to the start of the next: less than a block in the versions known here,
 * where parts of later versions cannot be. */
static int check_gap(int fd, const char *path, uint64_t from, uint64_t to, mr_error *err)
{
    uint8_t block[MRI_MREC_BLOCK];
    const int rc = mri_pread_all(fd, block, (size_t)(to - from), from, path, err);
    if (rc) return rc;
    if (!mri_all_zero(block, (size_t)(to - from))) return broken(err, path, from, "padding that is not zero");
    return MR_OK;
}

static int check_gaps(int fd, const char *path, const mri_mrec_header *h, mr_error *err)
{
    if (h->minor > MRI_MREC_MINOR) return MR_OK;
    int rc = check_gap(fd, path, h->schema_offset + h->schema_bytes, h->classes_offset, err);
    if (!rc) rc = check_gap(fd, path, h->classes_offset + h->classes_bytes, h->provenance_offset, err);
    if (!rc) rc = check_gap(fd, path, h->provenance_offset + h->provenance_bytes, h->data_offset, err);
    return rc;
}

int mri_meta_read(mri_meta *m, int fd, const char *path, const mri_mrec_header *h, mr_error *err)
{
    *m = (mri_meta){
        .memory_bytes = sizeof *m, .coef = (h->flags & MRI_MREC_COEF) != 0, .label_start = h->label_start};
    uint8_t *schema = NULL, *classes = NULL, *provenance = NULL;
    int rc = check_gaps(fd, path, h, err);
    if (!rc)
        rc =
            read_part(&schema, fd, path, "the schema", h->schema_offset, h->schema_bytes, h->schema_crc, err);
    if (!rc) rc = get_schema(m, schema, h->schema_bytes, path, h->schema_offset, err);
    if (!rc)
        rc = read_part(&classes, fd, path, "class names", h->classes_offset, h->classes_bytes, h->classes_crc,
                       err);
    if (!rc) rc = get_classes(m, classes, h->classes_bytes, path, h->classes_offset, err);
    if (!rc)
        rc = read_part(&provenance, fd, path, "provenance", h->provenance_offset, h->provenance_bytes,
                       h->provenance_crc, err);
    if (!rc && memchr(provenance, '\0', h->provenance_bytes))
        rc = broken(err, path, h->provenance_offset, "provenance: a zero byte inside the text");
    free(schema);
    free(classes);
    if (rc) {
        free(provenance);
        mri_meta_fini(m);
        return rc;
    }
    m->provenance = (char *)provenance;
    m->memory_bytes += h->provenance_bytes + 1;
    return MR_OK;
}
