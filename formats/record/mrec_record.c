/* formats/record/mrec_record.c: one record: header, field entries, payloads.
 *
 *   | head 40 | entry 16+8*ndim | entry ... | payload 0 | 0.. | payload 1 | 0.. | ... payload n |
 *   <------------ header_bytes ------------><----------------- covered by the payload CRC ----->
 *
 * A record describes itself completely, so that a file without an index (an interrupted run) can be read
 * record by record. Payloads start on multiples of 8 from the record's start. Any thread; nothing here
 * allocates. */
#include "base/util.h"
#include "formats/record/mrec.h"
#include "formats/source/value.h"

#define RECORD_MAGIC 0x4345524du /* "MREC" */

const void *mri_value_bytes(const mr_value *v, uint8_t scratch[8], size_t *bytes)
{
    *bytes = 8;
    if (v->type == MR_TYPE_INT) memcpy(scratch, &v->i, 8);
    else if (v->type == MR_TYPE_FLOAT) memcpy(scratch, &v->f, 8);
    else *bytes = v->bytes;
    return v->type == MR_TYPE_INT || v->type == MR_TYPE_FLOAT ? scratch : v->data;
}

static size_t payload_bytes(const mr_value *v)
{
    return v->type == MR_TYPE_INT || v->type == MR_TYPE_FLOAT ? 8 : v->bytes;
}

static uint32_t stored_dims(const mr_value *v)
{
    return v->type == MR_TYPE_PIXELS || v->type == MR_TYPE_TENSOR ? v->ndim : 0;
}

bool mri_record_measure(const mr_value *values, uint32_t count, mri_record_size *out)
{
    uint64_t header = MRI_RECORD_HEAD, total;
    for (uint32_t k = 0; k < count; k++) header += MRI_RECORD_FIELD + 8 * (uint64_t)stored_dims(&values[k]);
    total = header;
    for (uint32_t k = 0; k < count; k++) {
        const uint64_t bytes = payload_bytes(&values[k]);
        total = mri_align_up(total, 8);
        if (bytes > MRI_MAX_SAMPLE_BYTES - total) return false;
        total += bytes;
    }
    *out = (mri_record_size){(uint32_t)header, total};
    return true;
}

static const uint8_t zeros[8];

static uint32_t payload_crc(const mr_value *values, uint32_t count)
{
    uint32_t crc = 0;
    for (uint32_t k = 0; k < count; k++) {
        uint8_t scratch[8];
        size_t bytes;
        const void *data = mri_value_bytes(&values[k], scratch, &bytes);
        crc = mr_crc32c(crc, data, bytes);
        if (k + 1 < count) crc = mr_crc32c(crc, zeros, (size_t)mri_align_up(bytes, 8) - bytes);
    }
    return crc;
}

uint32_t mri_record_encode(const mr_value *values, uint32_t count, uint64_t source_index,
                           const mri_record_size *size, uint8_t *buf)
{
    memset(buf, 0, size->header_bytes);
    mri_put_le32(buf, RECORD_MAGIC);
    mri_put_le32(buf + 8, size->header_bytes);
    mri_put_le16(buf + 12, (uint16_t)count);
    mri_put_le64(buf + 16, size->record_bytes);
    mri_put_le64(buf + 24, source_index);
    mri_put_le32(buf + 32, payload_crc(values, count));
    uint8_t *p = buf + MRI_RECORD_HEAD;
    for (uint32_t k = 0; k < count; k++) {
        const mr_value *v = &values[k];
        const uint32_t ndim = stored_dims(v);
        p[0] = (uint8_t)v->type;
        p[1] = v->type == MR_TYPE_TENSOR ? (uint8_t)v->dtype : 0;
        p[2] = v->type == MR_TYPE_PIXELS ? (uint8_t)v->planes : 0;
        p[3] = (uint8_t)ndim;
        mri_put_le64(p + 8, payload_bytes(v));
        for (uint32_t d = 0; d < ndim; d++) mri_put_le64(p + MRI_RECORD_FIELD + 8 * (size_t)d, v->dim[d]);
        p += MRI_RECORD_FIELD + 8 * (size_t)ndim;
    }
    const uint32_t crc = mr_crc32c(0, buf + 8, size->header_bytes - 8);
    mri_put_le32(buf + 4, crc);
    return crc;
}

bool mri_values_coef(const mr_value *values, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        if (values[k].type == MR_TYPE_COEF) return true;
    return false;
}

bool mri_values_files(const mr_value *values, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        if (values[k].type > MR_TYPE_COEF) return true;
    return false;
}

bool mri_record_peek(const uint8_t *head, mri_record_size *out)
{
    const uint32_t header_bytes = mri_le32(head + 8);
    const uint64_t record_bytes = mri_le64(head + 16);
    if (mri_le32(head) != RECORD_MAGIC || header_bytes < MRI_RECORD_HEAD ||
        header_bytes > MRI_RECORD_HEADER_MAX || record_bytes < header_bytes ||
        record_bytes > MRI_MAX_SAMPLE_BYTES)
        return false;
    *out = (mri_record_size){header_bytes, record_bytes};
    return true;
}

static bool place(const mri_meta *meta, const uint8_t *head, size_t bytes, uint32_t field,
                  mri_record_size *size, uint64_t *offset, uint64_t *payload_bytes)
{
    if (bytes < MRI_RECORD_HEAD || !mri_record_peek(head, size) || size->header_bytes > bytes) return false;
    if (mri_le16(head + 12) != meta->field_count) return false;
    uint64_t entry = MRI_RECORD_HEAD, at = size->header_bytes;
    for (uint32_t k = 0; k <= field; k++) {
        if (entry + MRI_RECORD_FIELD > size->header_bytes) return false;
        const uint64_t own = mri_le64(head + entry + 8);
        at = mri_align_up(at, 8);
        if (at > size->record_bytes || own > size->record_bytes - at) return false;
        *offset = at;
        *payload_bytes = own;
        entry += MRI_RECORD_FIELD + 8 * (uint64_t)head[entry + 3];
        at += own;
    }
    return true;
}

bool mri_record_place(const mri_meta *meta, const uint8_t *head, size_t bytes, uint32_t field,
                      uint64_t *offset, uint64_t *payload_bytes)
{
    mri_record_size size;
    return place(meta, head, bytes, field, &size, offset, payload_bytes);
}

bool mri_record_payload(const mri_meta *meta, const uint8_t *data, size_t bytes, uint32_t field,
                        const uint8_t **payload, size_t *payload_bytes)
{
    uint64_t at, own;
    mri_record_size size;
    if (!place(meta, data, bytes, field, &size, &at, &own) || size.record_bytes > bytes)
        return false; /* not the whole record */
    *payload = data + at;
    *payload_bytes = (size_t)own;
    return true;
}

/* ---- parse ---- */
/* offset counts from the record's start; the caller knows where that is */
static int wrong(mr_error *err, uint64_t offset, const char *what)
{
    mr_error_set(err, MR_EFORMAT, "%s", what);
    mr_error_at(err, NULL, offset, MR_NOWHERE);
    return MR_EFORMAT;
}

static int crc_differs(mr_error *err, uint64_t offset, const char *what, uint32_t expected, uint32_t found)
{
    mr_error_set(err, MR_ECHECKSUM,
                 "the checksum of the record's %s does not match: expected %08x, found %08x", what, expected,
                 found);
    mr_error_at(err, NULL, offset, MR_NOWHERE);
    return MR_ECHECKSUM;
}

static int check_head(const mri_meta *meta, const uint8_t *data, size_t bytes, bool trusted,
                      mri_record_size *size, mr_error *err)
{
    if (bytes < MRI_RECORD_HEAD || !mri_record_peek(data, size))
        return wrong(err, 0, "no record header here");
    if (size->record_bytes != bytes) {
        mr_error_set(err, MR_EFORMAT, "the record says it has %llu bytes, expected %zu",
                     (unsigned long long)size->record_bytes, bytes);
        mr_error_at(err, NULL, 16, MR_NOWHERE);
        return MR_EFORMAT;
    }
    const uint32_t stored = mri_le32(data + 4),
                   found = trusted ? stored : mr_crc32c(0, data + 8, size->header_bytes - 8);
    if (stored != found) return crc_differs(err, 4, "header", stored, found);
    if (mri_le16(data + 14) != 0 || mri_le32(data + 36) != 0)
        return wrong(err, 14, "reserved record bytes are not zero");
    if (mri_le16(data + 12) != meta->field_count) {
        mr_error_set(err, MR_EFORMAT, "the record has %u fields, the schema %u", mri_le16(data + 12),
                     meta->field_count);
        mr_error_at(err, NULL, 12, MR_NOWHERE);
        return MR_EFORMAT;
    }
    return MR_OK;
}

/* One field entry; *at moves over it. */
static int parse_entry(const uint8_t *data, uint32_t header_bytes, uint32_t *at, mr_value *v, mr_error *err)
{
    const uint8_t *p = data + *at;
    const uint32_t left = header_bytes - *at;
    if (left < MRI_RECORD_FIELD) return wrong(err, *at, "the record header ends inside a field entry");
    const uint32_t ndim = p[3];
    v->type = p[0]; /* one by one: clearing the whole value first costs a small record more than the rest of
                       this */
    v->dtype = p[1];
    v->planes = p[2];
    v->ndim = ndim;
    v->data = v->entries = NULL;
    v->bytes = (size_t)mri_le64(p + 8);
    v->entries_bytes = 0;
    v->i = 0;
    v->f = 0;
    if (ndim > MR_MAX_DIMS || left - MRI_RECORD_FIELD < 8 * ndim || mri_le32(p + 4) != 0)
        return wrong(err, *at, "a field entry is not as specified");
    const bool pixels = v->type == MR_TYPE_PIXELS, tensor = v->type == MR_TYPE_TENSOR;
    if ((!tensor && p[1] != 0) || (!pixels && p[2] != 0) || (!pixels && !tensor && ndim != 0))
        return wrong(err, *at, "a field entry has parts its type does not have");
    for (uint32_t d = 0; d < MR_MAX_DIMS; d++)
        v->dim[d] = d < ndim ? mri_le64(p + MRI_RECORD_FIELD + 8 * (size_t)d) : 0;
    *at += MRI_RECORD_FIELD + 8 * ndim;
    return MR_OK;
}

/* The payload of one value at *at, which moves over it. */
static int take_payload(const uint8_t *data, size_t bytes, size_t *at, mr_value *v, mr_error *err)
{
    const size_t start = (size_t)mri_align_up(*at, 8);
    if (start > bytes || v->bytes > bytes - start)
        return wrong(err, *at, "a field's bytes reach past the record's end");
    if (!mri_all_zero(data + *at, start - *at))
        return wrong(err, *at, "padding inside the record is not zero");
    v->data = data + start;
    *at = start + v->bytes;
    if (v->type != MR_TYPE_INT && v->type != MR_TYPE_FLOAT) return MR_OK;
    if (v->bytes != 8) return wrong(err, start, "a number must have 8 bytes");
    if (v->type == MR_TYPE_INT) memcpy(&v->i, v->data, 8);
    else memcpy(&v->f, v->data, 8);
    v->data = NULL;
    v->bytes = 0;
    return MR_OK;
}

static int parse_values(const mri_meta *meta, const uint8_t *data, const mri_record_size *size,
                        mr_sample *out, mr_error *err)
{
    uint32_t entry = MRI_RECORD_HEAD;
    size_t at = size->header_bytes;
    for (uint32_t k = 0; k < meta->field_count; k++) {
        mr_value *v = &out->value[k];
        const uint32_t entry_at = entry;
        int rc = parse_entry(data, size->header_bytes, &entry, v, err);
        if (!rc) rc = take_payload(data, (size_t)size->record_bytes, &at, v, err);
        if (rc) return rc;
        rc = mri_value_check(&meta->fields[k], v, MR_EFORMAT, err);
        if (!rc && v->type == MR_TYPE_COEF && !meta->coef)
            rc = mr_error_set(err, MR_EFORMAT,
                              "field \"%s\": coefficients, but the file's header does not announce them",
                              meta->fields[k].name);
        if (rc) {
            mr_error_at(err, NULL, entry_at, MR_NOWHERE);
            return rc;
        }
    }
    if (entry != size->header_bytes)
        return wrong(err, entry, "record header bytes after the last field entry");
    if (at != size->record_bytes) return wrong(err, at, "bytes after the last field's payload");
    out->value_count = meta->field_count;
    return MR_OK;
}

int mri_record_parse_trusted(const mri_meta *meta, const uint8_t *data, size_t bytes, mr_sample *out,
                             mr_error *err)
{
    mri_record_size size;
    const int rc = check_head(meta, data, bytes, true, &size, err);
    return rc ? rc : parse_values(meta, data, &size, out, err);
}

int mri_record_parse(const mri_meta *meta, const uint8_t *data, size_t bytes, mr_sample *out,
                     mri_record_facts *facts, mr_error *err)
{
    mri_record_size size;
    int rc = check_head(meta, data, bytes, false, &size, err);
    if (rc) return rc;
    const uint32_t stored = mri_le32(data + 32);
    const uint32_t found = mr_crc32c(0, data + size.header_bytes, bytes - size.header_bytes);
    if (stored != found) return crc_differs(err, size.header_bytes, "payload", stored, found);
    rc = parse_values(meta, data, &size, out, err);
    if (rc) return rc;
    const int64_t label = meta->label_field >= 0 ? out->value[meta->label_field].i : 0;
    if (meta->label_field >= 0 && meta->class_count > 0 && (label < 0 || label >= meta->class_count)) {
        mr_error_set(err, MR_EFORMAT, "label %lld is outside the %u classes", (long long)label,
                     meta->class_count);
        return MR_EFORMAT;
    }
    *facts = (mri_record_facts){bytes,
                                mri_le64(data + 24),
                                label,
                                mri_le32(data + 4),
                                mri_values_coef(out->value, out->value_count),
                                mri_values_files(out->value, out->value_count)};
    return MR_OK;
}
