/* formats/recordio/recordio.c: read and write RecordIO frames; see recordio.h for their picture. */
#include "formats/recordio/recordio.h"

enum { WHOLE = 0, FIRST = 1, MIDDLE = 2, LAST = 3, FLAG_SHIFT = 29, MAGIC_BYTES = 4 };

typedef struct part {
    uint32_t flag, bytes;
} part;

static uint64_t padded(uint64_t bytes) { return mri_align_up(bytes, 4); }

/* ---- frames ---- */
static int wrong_at(mr_error *err, uint64_t offset)
{
    mr_error_at(err, NULL, offset, MR_NOWHERE);
    return MR_EFORMAT;
}

static int read_part(const mri_recordio_input *in, uint64_t offset, part *out, mr_error *err)
{
    const uint64_t left = offset < in->end ? in->end - offset : 0;
    if (left < MRI_RECORDIO_HEAD_BYTES) {
        mr_error_set(err, MR_EFORMAT,
                     "cut in a record's header: expected %u bytes, found %llu: copy the file again",
                     MRI_RECORDIO_HEAD_BYTES, (unsigned long long)left);
        return wrong_at(err, offset);
    }
    const uint8_t *p;
    const int rc = in->get(in->context, offset, MRI_RECORDIO_HEAD_BYTES, &p, err);
    if (rc) return rc;
    if (mri_le32(p) != MRI_RECORDIO_MAGIC) {
        mr_error_set(err, MR_EFORMAT, "no record starts here: expected the magic number 0x%08x, found 0x%08x",
                     MRI_RECORDIO_MAGIC, mri_le32(p));
        return wrong_at(err, offset);
    }
    const uint32_t word = mri_le32(p + 4);
    *out = (part){word >> FLAG_SHIFT, word & MRI_RECORDIO_MAX_BYTES};
    return MR_OK;
}

static int check_flag(uint32_t flag, bool first, uint64_t offset, mr_error *err)
{
    if (first ? flag == WHOLE || flag == FIRST : flag == MIDDLE || flag == LAST) return MR_OK;
    mr_error_set(err, MR_EFORMAT, "parts of records in a wrong order: expected flag %s, found %u",
                 first ? "0 or 1 of a record's start" : "2 or 3 of the same record's next part", flag);
    return wrong_at(err, offset + MAGIC_BYTES);
}

static int check_inside(const mri_recordio_input *in, uint64_t offset, const part *p, mr_error *err)
{
    const uint64_t left = in->end - offset - MRI_RECORDIO_HEAD_BYTES;
    if (padded(p->bytes) <= left) return MR_OK;
    if (p->bytes <= left)
        mr_error_set(err, MR_EFORMAT,
                     "cut in a record's padding: expected %llu bytes of it, found %llu: copy the file again",
                     (unsigned long long)(padded(p->bytes) - p->bytes),
                     (unsigned long long)(left - p->bytes));
    else
        mr_error_set(err, MR_EFORMAT,
                     "a record of %u bytes, and %llu are left: cut short, or the length is damaged", p->bytes,
                     (unsigned long long)left);
    return wrong_at(err, offset + MAGIC_BYTES);
}

int mri_recordio_read_headers(const mri_recordio_input *in, uint64_t offset, mri_recordio_record *out,
                              mr_error *err)
{
    *out = (mri_recordio_record){.offset = offset};
    part p = {0};
    for (uint64_t at = offset; out->parts == 0 || p.flag == FIRST || p.flag == MIDDLE;
         at = offset + out->bytes) {
        int rc = read_part(in, at, &p, err);
        if (!rc) rc = check_flag(p.flag, out->parts == 0, at, err);
        if (!rc) rc = check_inside(in, at, &p, err);
        if (rc) return rc;
        out->data_bytes += (out->parts ? MAGIC_BYTES : 0) + (uint64_t)p.bytes;
        out->bytes += MRI_RECORDIO_HEAD_BYTES + padded(p.bytes);
        out->parts++;
    }
    return MR_OK;
}

int mri_recordio_copy(const mri_recordio_input *in, const mri_recordio_record *r, void *out, uint64_t bytes,
                      mr_error *err)
{
    static const uint32_t magic = MRI_RECORDIO_MAGIC;
    uint8_t *to = out, *const end = to + bytes;
    for (uint64_t at = r->offset; to < end;) {
        if (at != r->offset) { /* between parts */
            const size_t n = (size_t)mri_min_u64(MAGIC_BYTES, (uint64_t)(end - to));
            memcpy(to, &magic, n);
            to += n;
        }
        part p;
        int rc = read_part(in, at, &p, err);
        if (rc) return rc;
        const size_t n = (size_t)mri_min_u64(p.bytes, (uint64_t)(end - to));
        const uint8_t *from;
        if (n) rc = in->get(in->context, at + MRI_RECORDIO_HEAD_BYTES, n, &from, err);
        if (rc) return rc;
        if (n) memcpy(to, from, n);
        to += n;
        at += MRI_RECORDIO_HEAD_BYTES + padded(p.bytes);
    }
    return MR_OK;
}

static int get_memory(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    const mri_recordio_memory *m = context;
    if (offset > m->bytes || bytes > m->bytes - offset)
        return mr_error_set(err, MR_EFORMAT, "expected %zu bytes at %llu of %llu", bytes,
                            (unsigned long long)offset, (unsigned long long)m->bytes);
    *out = m->data + offset;
    return MR_OK;
}

mri_recordio_input mri_recordio_in_memory(mri_recordio_memory *m)
{
    return (mri_recordio_input){get_memory, m, m->bytes};
}

/* ---- a picture's header ---- */
int mri_picture_head_parse(const void *data, uint64_t data_bytes, mri_picture_head *out, mr_error *err)
{
    if (data_bytes < MRI_PICTURE_HEAD_BYTES)
        return mr_error_set(
            err, MR_EFORMAT,
            "expected a picture's header of %u bytes (label and numbers), found a record of %llu",
            MRI_PICTURE_HEAD_BYTES, (unsigned long long)data_bytes);
    const uint8_t *p = data;
    *out = (mri_picture_head){.label_count = mri_le32(p), .id = mri_le64(p + 8), .id2 = mri_le64(p + 16)};
    memcpy(&out->label, p + 4, sizeof out->label);
    out->bytes = MRI_PICTURE_HEAD_BYTES + (uint64_t)out->label_count * sizeof(float);
    if (out->bytes > data_bytes)
        return mr_error_set(err, MR_EFORMAT, "%u labels of 4 bytes are announced, and %llu bytes follow",
                            out->label_count, (unsigned long long)(data_bytes - MRI_PICTURE_HEAD_BYTES));
    return MR_OK;
}

/* ---- object detection ---- */
/* What dividing pixels by a width may be off. */
static const float rounding = 1e-4f;

static float label_at(const uint8_t *labels, uint32_t at)
{
    float v;
    memcpy(&v, labels + (size_t)at * sizeof v, sizeof v);
    return v;
}

static bool is_whole(float v, float least, float most)
{
    return v >= least && v <= most && v == (float)(int)v;
}

static bool is_object(float class, const float box[4])
{
    bool inside = is_whole(class, 0, 1 << 20);
    for (int k = 0; k < 4; k++) inside = inside && box[k] >= -rounding && box[k] <= 1 + rounding;
    return inside && box[0] <= box[2] && box[1] <= box[3];
}

int64_t mri_object_at(const uint8_t *labels, const mri_objects *o, uint32_t k, float box[4])
{
    const uint32_t at = o->first + k * o->width;
    for (uint32_t c = 0; c < 4; c++) box[c] = label_at(labels, at + 1 + c);
    return (int64_t)label_at(labels, at);
}

/* Read the widths from the header, and compute the number of objects. */
static bool objects_in(const uint8_t *labels, uint32_t count, float most, mri_objects *out)
{
    const float head = count > 0 ? label_at(labels, 0) : 0, width = count > 1 ? label_at(labels, 1) : 0;
    if (!is_whole(head, 2, most) || !is_whole(width, 5, most)) return false;
    const uint32_t first = (uint32_t)head, each = (uint32_t)width;
    *out = (mri_objects){first, each, 0};
    if (count < first || (count - first) % each) return false;
    out->count = (count - first) / each;
    return true;
}

int mri_objects_of(const uint8_t *labels, uint32_t count, mri_objects *out, mr_error *err)
{
    mri_objects o = {0};
    *out = o;
    if (!objects_in(labels, count, 1 << 20, &o) && o.first)
        return mr_error_set(err, MR_EFORMAT,
                            "objects: expected %u labels and %u for each object, found %u labels", o.first,
                            o.width, count);
    if (!o.first)
        return mr_error_set(
            err, MR_EFORMAT,
            "objects: expected the widths of a header (2 or more) and of an object (5 or more) "
            "as the first of %u labels, found %g and %g",
            count, count > 0 ? (double)label_at(labels, 0) : 0, count > 1 ? (double)label_at(labels, 1) : 0);
    for (uint32_t k = 0; k < o.count; k++) {
        float b[4];
        const uint32_t at = o.first + k * o.width;
        const float class = label_at(labels, at);
        for (uint32_t c = 0; c < 4; c++) b[c] = label_at(labels, at + 1 + c);
        if (!is_object(class, b))
            return mr_error_set(
                err, MR_EFORMAT,
                "object %u: expected a class and a box (left, top, right, bottom, from 0 to 1), "
                "found %g and %g %g %g %g",
                k, (double)class, (double)b[0], (double)b[1], (double)b[2], (double)b[3]);
    }
    *out = o;
    return MR_OK;
}

/* Boxes that reach out of their picture are boxes nevertheless: the sample is bad, not another kind of set.
 */
bool mri_labels_of_detection(const uint8_t *labels, uint32_t count, bool *empty)
{
    enum { MOST_WIDTH = 64 };
    mri_objects o = {0};
    *empty = false;
    if (!objects_in(labels, count, MOST_WIDTH, &o)) return false;
    *empty = o.count == 0;
    bool classes = o.count > 0;
    for (uint32_t k = 0; classes && k < o.count; k++)
        classes = is_whole(label_at(labels, o.first + k * o.width), 0, 1 << 20);
    return classes;
}

/* ---- what else such records hold ---- */
/* | 0a or 12 | bytes | 0a | bytes | key ... | 12 ...: an entry of the maps of features or labels. */
bool mri_is_protobuf_record(const uint8_t *data, size_t bytes, uint64_t data_bytes)
{
    size_t at = 1;
    uint64_t entry = 0;
    if (bytes < 8 || (data[0] != 0x0a && data[0] != 0x12)) return false;
    for (unsigned shift = 0; at < bytes && shift < 35; shift += 7) {
        entry |= (uint64_t)(data[at] & 0x7f) << shift;
        if (!(data[at++] & 0x80)) break;
    }
    if (entry > data_bytes - at || at + 2 > bytes || data[at] != 0x0a) return false;
    const size_t key = data[at + 1], end = at + 2 + key;
    if (key == 0 || key > 64 || end >= bytes || data[end] != 0x12) return false;
    for (size_t k = at + 2; k < end; k++)
        if (data[k] < 0x20 || data[k] > 0x7e) return false;
    return true;
}

uint8_t *mri_picture_head_build(const mri_picture_head *h, const float *labels, uint8_t *out)
{
    const float label = h->label_count ? 0.0f : h->label;
    const size_t packed = (size_t)h->label_count * sizeof *labels;
    mri_put_le32(out, h->label_count);
    memcpy(out + 4, &label, sizeof label);
    mri_put_le64(out + 8, h->id);
    mri_put_le64(out + 16, h->id2);
    if (packed) memcpy(out + MRI_PICTURE_HEAD_BYTES, labels, packed);
    return out + MRI_PICTURE_HEAD_BYTES + packed;
}

/* ---- write ---- */
/* The next place from `from` (a multiple of 4) on where data holds the magic, or data_bytes. */
static uint32_t next_magic(const uint8_t *data, uint32_t data_bytes, uint32_t from)
{
    for (uint32_t at = from; data_bytes - at >= MAGIC_BYTES; at += 4)
        if (mri_le32(data + at) == MRI_RECORDIO_MAGIC) return at;
    return data_bytes;
}

uint64_t mri_recordio_bytes(const void *data, uint32_t data_bytes)
{
    uint64_t total = MRI_RECORDIO_HEAD_BYTES + padded(data_bytes);
    for (uint32_t at = next_magic(data, data_bytes, 0); at < data_bytes;
         at = next_magic(data, data_bytes, at + MAGIC_BYTES))
        total += MRI_RECORDIO_HEAD_BYTES - MAGIC_BYTES; /* a header in place of the magic */
    return total;
}

static uint8_t *put_part(uint8_t *out, uint32_t flag, const uint8_t *data, uint32_t bytes)
{
    const uint32_t pad = (uint32_t)padded(bytes) - bytes;
    mri_put_le32(out, MRI_RECORDIO_MAGIC);
    mri_put_le32(out + 4, flag << FLAG_SHIFT | bytes);
    if (bytes) memcpy(out + MRI_RECORDIO_HEAD_BYTES, data, bytes);
    memset(out + MRI_RECORDIO_HEAD_BYTES + bytes, 0, pad);
    return out + MRI_RECORDIO_HEAD_BYTES + bytes + pad;
}

uint8_t *mri_recordio_build(const void *data, uint32_t data_bytes, uint8_t *out)
{
    const uint8_t *p = data;
    uint32_t from = 0;
    for (uint32_t at; (at = next_magic(p, data_bytes, from)) < data_bytes; from = at + MAGIC_BYTES)
        out = put_part(out, from == 0 ? FIRST : MIDDLE, p + from, at - from);
    return put_part(out, from == 0 ? WHOLE : LAST, p + from, data_bytes - from);
}
