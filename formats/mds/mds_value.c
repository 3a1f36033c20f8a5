/* formats/mds/mds_value.c: the values in a sample of MDS, and the first bytes of a shard. See mds.h. */
#include "formats/mds/mds.h"

/* ---- a sample ---- */
int mri_mds_split(const mri_mds_schema *s, const void *data, size_t bytes, mri_mds_cell *cells, mr_error *err)
{
    const uint8_t *head = data;
    uint64_t at = (uint64_t)s->varied * MRI_MDS_NUMBER;
    if (at > bytes)
        return mr_error_set(err, MR_EFORMAT,
                            "the sample is cut: expected the sizes of %u columns, found %zu bytes", s->varied,
                            bytes);
    for (uint32_t k = 0; k < s->count; k++) {
        const mri_mds_column *c = &s->column[k];
        uint32_t own = c->bytes;
        if (!own) {
            own = mri_le32(head);
            head += MRI_MDS_NUMBER;
        }
        if (own > bytes - at)
            return mr_error_set(err, MR_EFORMAT, "column \"%s\": expected %u bytes, found %llu", c->name, own,
                                (unsigned long long)(bytes - at));
        cells[k] = (mri_mds_cell){(const uint8_t *)data + at, own};
        at += own;
    }
    if (at == bytes) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "the columns have %llu bytes, and the sample has %zu",
                        (unsigned long long)at, bytes);
}

/* ---- numbers ---- */
static int64_t signed_of(const uint8_t *p, uint32_t bytes)
{
    switch (bytes) {
    case 1: return (int8_t)p[0];
    case 2: return (int16_t)mri_le16(p);
    case 4: return (int32_t)mri_le32(p);
    default: return (int64_t)mri_le64(p);
    }
}

static int take_fixed(const mri_mds_column *c, const uint8_t *p, int64_t *out, mr_error *err)
{
    *out = signed_of(p, c->bytes);
    if (!c->is_unsigned) return MR_OK;
    if (c->bytes < 8) *out &= (int64_t)(((uint64_t)1 << 8 * c->bytes) - 1);
    if (*out >= 0) return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED, "column \"%s\": %llu is more than 63 bits", c->name,
                        (unsigned long long)mri_le64(p));
}

/* "-12" */
static int take_digits(const mri_mds_column *c, const mri_mds_cell *cell, int64_t *out, mr_error *err)
{
    const bool minus = cell->bytes > 1 && cell->data[0] == '-';
    bool fine = cell->bytes > (uint32_t)minus;
    *out = 0;
    for (uint32_t k = minus; fine && k < cell->bytes; k++) {
        const int digit = cell->data[k] - '0';
        fine = digit >= 0 && digit <= 9 && !__builtin_mul_overflow(*out, 10, out) &&
               !__builtin_sub_overflow(*out, digit, out);
    }
    if (fine && !minus) fine = !__builtin_sub_overflow((int64_t)0, *out, out);
    if (fine) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "column \"%s\": expected a whole number of 64 bits as text",
                        c->name);
}

int mri_mds_int(const mri_mds_column *c, const mri_mds_cell *cell, int64_t *out, mr_error *err)
{
    return c->kind == MRI_MDS_STR_INT ? take_digits(c, cell, out, err) : take_fixed(c, cell->data, out, err);
}

/* Exact: 16 and 32 bits fit into 64. */
static double float_of(const uint8_t *p, uint32_t bytes)
{
    double wide;
    float narrow;
    if (bytes == 8) return memcpy(&wide, p, sizeof wide), wide;
    if (bytes == 4) return memcpy(&narrow, p, sizeof narrow), (double)narrow;
    const uint16_t half = mri_le16(p);
    const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    uint64_t bits;
    if (exponent == 0) wide = (double)fraction * 0x1p-24;
    else {
        bits = (exponent == 31 ? (uint64_t)2047 : exponent + 1008) << 52 | (uint64_t)fraction << 42;
        memcpy(&wide, &bits, sizeof wide);
    }
    return half & 0x8000 ? -wide : wide;
}

/* ---- arrays ---- */
/* | ndim << 2 | log2 of the bytes of a dimension | dimensions | elements | */
static int take_shape(const mri_mds_column *c, const mri_mds_cell *cell, mr_value *v, uint64_t *head,
                      mr_error *err)
{
    const uint32_t ndim = cell->bytes ? cell->data[0] >> 2 : 0,
                   width = cell->bytes ? 1u << (cell->data[0] & 3) : 1;
    *head = 1 + (uint64_t)ndim * width;
    if (*head > cell->bytes)
        return mr_error_set(err, MR_EFORMAT, "column \"%s\": expected a shape of %llu bytes, found %u",
                            c->name, (unsigned long long)*head, cell->bytes);
    if (ndim > MR_MAX_DIMS)
        return mr_error_set(err, MR_EUNSUPPORTED, "column \"%s\": %u dimensions: at most %d are read",
                            c->name, ndim, MR_MAX_DIMS);
    v->ndim = ndim;
    for (uint32_t k = 0; k < ndim; k++) {
        uint64_t n = 0;
        memcpy(&n, cell->data + 1 + k * width, width);
        v->dim[k] = n;
    }
    return MR_OK;
}

static int take_array(const mri_mds_column *c, const mri_mds_cell *cell, mr_value *v, mr_error *err)
{
    uint64_t head = 0;
    size_t bytes = 0;
    *v = (mr_value){.type = MR_TYPE_TENSOR, .dtype = c->dtype, .ndim = c->ndim};
    memcpy(v->dim, c->dim, sizeof v->dim);
    const int rc = c->ndim ? MR_OK : take_shape(c, cell, v, &head, err);
    if (rc) return rc;
    if (!mri_shape_bytes(v->dim, v->ndim, mr_dtype_bytes(c->dtype), &bytes) || bytes != cell->bytes - head)
        return mr_error_set(err, MR_EFORMAT,
                            "column \"%s\": the shape does not fit the %llu bytes of elements", c->name,
                            (unsigned long long)(cell->bytes - head));
    v->data = cell->data + head;
    v->bytes = bytes;
    return MR_OK;
}

size_t mri_mds_put_shape(const uint64_t *dim, uint32_t ndim, uint8_t *out)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < ndim; k++) most = mri_max_u64(most, dim[k]);
    const uint32_t log = most < 1u << 8 ? 0 : most < 1u << 16 ? 1 : most >> 32 == 0 ? 2 : 3;
    out[0] = (uint8_t)(ndim << 2 | log);
    for (uint32_t k = 0; k < ndim; k++) memcpy(out + 1 + ((size_t)k << log), &dim[k], (size_t)1 << log);
    return 1 + ((size_t)ndim << log);
}

/* ---- pictures ---- */
/* | width u32 | height u32 | bytes of the mode u32 | mode | pixels | */
static int take_pil(const mri_mds_column *c, const mri_mds_cell *cell, mr_value *v, mr_error *err)
{
    enum { HEAD = 12, MOST_MODE = 16 };
    const uint32_t width = cell->bytes >= HEAD ? mri_le32(cell->data) : 0,
                   height = cell->bytes >= HEAD ? mri_le32(cell->data + 4) : 0,
                   mode = cell->bytes >= HEAD ? mri_le32(cell->data + 8) : 0;
    if (!width || !height || !mode || mode > MOST_MODE || cell->bytes - HEAD < mode)
        return mr_error_set(err, MR_EFORMAT,
                            "column \"%s\": expected width, height and mode of a picture, found %u bytes",
                            c->name, cell->bytes);
    const char *text = (const char *)cell->data + HEAD;
    const uint32_t channels = mode == 1 && *text == 'L'                  ? 1
                              : mode == 3 && memcmp(text, "RGB", 3) == 0 ? 3
                                                                         : 0;
    if (!channels)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "column \"%s\": expected pixels of mode L or RGB, found mode %.*s", c->name,
                            (int)mode, text);
    *v = (mr_value){.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {height, width, channels}};
    size_t bytes;
    if (!mri_shape_bytes(v->dim, 3, 1, &bytes) || bytes != cell->bytes - HEAD - mode)
        return mr_error_set(err, MR_EFORMAT, "column \"%s\": %u x %u pixels do not have %u bytes", c->name,
                            width, height, cell->bytes - HEAD - mode);
    v->data = text + mode;
    v->bytes = bytes;
    return MR_OK;
}

static int take_file(const mri_mds_column *c, const mri_mds_cell *cell, mr_value *v, mr_error *err)
{
    const int type = mr_image_sniff(cell->data, cell->bytes);
    *v = (mr_value){.type = (mr_type)type, .data = cell->data, .bytes = cell->bytes};
    return type ? MR_OK
                : mr_error_set(err, MR_EFORMAT, "column \"%s\": expected a picture, found %u other bytes",
                               c->name, cell->bytes);
}

int mri_mds_value(const mri_mds_column *c, const mri_mds_cell *cell, mr_value *out, mr_error *err)
{
    *out = (mr_value){.type = MR_TYPE_BYTES, .data = cell->data, .bytes = cell->bytes};
    switch (c->kind) {
    case MRI_MDS_INT:
    case MRI_MDS_STR_INT: *out = (mr_value){.type = MR_TYPE_INT}; return mri_mds_int(c, cell, &out->i, err);
    case MRI_MDS_FLOAT:
        *out = (mr_value){.type = MR_TYPE_FLOAT, .f = float_of(cell->data, c->bytes)};
        return MR_OK;
    case MRI_MDS_PICTURE: return take_file(c, cell, out, err);
    case MRI_MDS_PIL: return take_pil(c, cell, out, err);
    case MRI_MDS_ARRAY: return take_array(c, cell, out, err);
    case MRI_MDS_TEXT:
        out->type = MR_TYPE_TEXT;
        if (mri_text_is_utf8(cell->data, cell->bytes)) return MR_OK;
        return mr_error_set(err, MR_EFORMAT, "column \"%s\": expected text as UTF-8", c->name);
    default: return MR_OK;
    }
}

/* ---- the first bytes ---- */
enum { LEAST_OF_TABLE = 512 }; /* rising offsets, where the columns are further on */

bool mri_mds_is_shard(const uint8_t *head, size_t bytes)
{
    if (bytes < 2 * MRI_MDS_NUMBER) return false;
    const uint64_t count = mri_le32(head), table = 8 + 4 * count, first = mri_le32(head + 4);
    if (count == 0 || first <= table || first - table > MRI_MDS_MAX_CONFIG) return false;
    for (size_t at = 8; at + 4 <= bytes && at < table; at += 4)
        if (mri_le32(head + at) <= mri_le32(head + at - 4)) return false;
    return table < bytes ? head[table] == '{' : bytes >= LEAST_OF_TABLE;
}
