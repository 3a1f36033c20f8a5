/* formats/source/value.c: names of types, sizes of shapes, and the rules a schema and its values keep. */
#include "formats/source/value.h"

#include <stdio.h>

#include "base/util.h"

static const char *const type_names[] = {"?",      "jpeg",  "png",  "pixels", "int",  "float",
                                         "tensor", "bytes", "text", "image",  "coef", "gif",
                                         "bmp",    "webp",  "tiff", "heic",   "avif"};
static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {{"?", 0},   {"u8", 1},  {"i8", 1},   {"i16", 2}, {"i32", 4},
              {"i64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};

size_t mr_dtype_bytes(mr_dtype dtype)
{
    return (unsigned)dtype < MRI_ARRAY_COUNT(dtypes) ? dtypes[dtype].bytes : 0;
}

const char *mr_dtype_name(mr_dtype dtype)
{
    return (unsigned)dtype < MRI_ARRAY_COUNT(dtypes) ? dtypes[dtype].name : dtypes[0].name;
}

const char *mr_type_name(mr_type type)
{
    return (unsigned)type < MRI_ARRAY_COUNT(type_names) ? type_names[type] : type_names[0];
}

bool mri_shape_bytes(const uint64_t *dim, uint32_t ndim, size_t element_bytes, size_t *out)
{
    size_t bytes = element_bytes;
    for (uint32_t k = 0; k < ndim; k++)
        if (dim[k] > SIZE_MAX || !mri_mul_size(bytes, (size_t)dim[k], &bytes)) return false;
    *out = bytes;
    return true;
}

static size_t utf8_bytes(uint8_t c)
{
    return c < 0x80                ? 1
           : c >= 0xc2 && c < 0xe0 ? 2
           : c >= 0xe0 && c < 0xf0 ? 3
           : c >= 0xf0 && c < 0xf5 ? 4
                                   : 0;
}

bool mri_text_is_utf8(const void *text, size_t bytes)
{
    for (const uint8_t *s = text, *end = s + bytes; s < end;) {
        const uint8_t c = *s;
        const size_t n = utf8_bytes(c);
        if (n == 0 || n > (size_t)(end - s)) return false;
        for (size_t k = 1; k < n; k++)
            if ((s[k] & 0xc0) != 0x80) return false;
        if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) || (c == 0xf0 && s[1] < 0x90) ||
            (c == 0xf4 && s[1] > 0x8f))
            return false;
        s += n;
    }
    return true;
}

int mri_field_find(const mr_field *fields, uint32_t field_count, const char *name)
{
    for (uint32_t k = 0; k < field_count; k++)
        if (strcmp(fields[k].name, name) == 0) return (int)k;
    return -1;
}

int mri_field_image(const mr_field *fields, uint32_t field_count)
{
    const int at = mri_field_find(fields, field_count, "image");
    return at >= 0 && mri_type_is_picture(fields[at].type) ? at : -1;
}

int mri_field_entries(const mr_field *fields, uint32_t field_count)
{
    const int image = mri_field_image(fields, field_count),
              at = mri_field_find(fields, field_count, MRI_ENTRIES_NAME);
    return image >= 0 && at >= 0 && fields[at].type == MR_TYPE_BYTES ? at : -1;
}

int mri_field_label(const mr_field *fields, uint32_t field_count)
{
    const int at = mri_field_find(fields, field_count, "label");
    return at >= 0 && fields[at].type == MR_TYPE_INT ? at : -1;
}

mr_field mri_field(const char *name, mr_type type)
{
    mr_field f = {.type = type};
    snprintf(f.name, sizeof f.name, "%s", name);
    return f;
}

mr_field mri_field_pixels(const char *name, uint32_t height, uint32_t width, uint32_t channels)
{
    mr_field f = mri_field(name, MR_TYPE_PIXELS);
    f.ndim = 3;
    f.dim[0] = height;
    f.dim[1] = width;
    f.dim[2] = channels;
    return f;
}

/* ---- a sound schema ---- */
static int check_shape(const mr_field *f, int code, mr_error *err)
{
    const bool tensor = f->type == MR_TYPE_TENSOR,
               pixels = f->type == MR_TYPE_PIXELS || f->type == MR_TYPE_IMAGE;
    if (tensor && mr_dtype_bytes(f->dtype) == 0)
        return mr_error_set(err, code, "field \"%s\": element type %d is unknown", f->name, f->dtype);
    if (f->ndim == 0) return MR_OK;
    if (!tensor && !pixels)
        return mr_error_set(err, code, "field \"%s\": type %s has no shape, found %u dimensions", f->name,
                            mr_type_name(f->type), f->ndim);
    if (pixels ? f->ndim != 3 : f->ndim > MR_MAX_DIMS)
        return mr_error_set(err, code, "field \"%s\": expected %s dimensions, found %u", f->name,
                            pixels ? "3 (height, width, channels)" : "at most 8", f->ndim);
    for (uint32_t k = 0; k < f->ndim; k++)
        if (f->dim[k] == 0) return mr_error_set(err, code, "field \"%s\": dimension %u is 0", f->name, k);
    size_t bytes;
    if (!mri_shape_bytes(f->dim, f->ndim, tensor ? mr_dtype_bytes(f->dtype) : 1, &bytes))
        return mr_error_set(err, code, "field \"%s\": the shape has more elements than memory can hold",
                            f->name);
    return MR_OK;
}

int mri_schema_check(const mr_field *fields, uint32_t field_count, int code, mr_error *err)
{
    if (field_count == 0 || field_count > MR_MAX_FIELDS)
        return mr_error_set(err, code, "expected 1 to %d fields, found %u", MR_MAX_FIELDS, field_count);
    for (uint32_t k = 0; k < field_count; k++) {
        const mr_field *f = &fields[k];
        if (!f->name[0] || !memchr(f->name, '\0', sizeof f->name))
            return mr_error_set(err, code, "field %u: expected a name of 1 to %d bytes", k, MR_MAX_NAME);
        if (f->type < MR_TYPE_JPEG || f->type > MR_TYPE_IMAGE)
            return mr_error_set(err, code, "field \"%s\": type %d is unknown", f->name, f->type);
        if (mri_field_find(fields, k, f->name) >= 0)
            return mr_error_set(err, code, "two fields are named \"%s\"", f->name);
        const int rc = check_shape(f, code, err);
        if (rc) return rc;
    }
    return MR_OK;
}

/* ---- a value in its field ---- */
static int check_dims(const mr_field *f, const mr_value *v, int code, mr_error *err)
{
    if (v->ndim > MR_MAX_DIMS)
        return mr_error_set(err, code, "field \"%s\": %u dimensions, at most %d are possible", f->name,
                            v->ndim, MR_MAX_DIMS);
    if (f->ndim != 0) {
        bool same = v->ndim == f->ndim;
        for (uint32_t k = 0; same && k < f->ndim; k++) same = v->dim[k] == f->dim[k];
        if (!same)
            return mr_error_set(err, code, "field \"%s\": the shape is not the schema's fixed one", f->name);
    }
    size_t bytes;
    const size_t element = v->type == MR_TYPE_TENSOR ? mr_dtype_bytes(v->dtype) : 1;
    if (!mri_shape_bytes(v->dim, v->ndim, element, &bytes) || bytes != v->bytes)
        return mr_error_set(err, code, "field \"%s\": the shape does not give the %zu bytes that are there",
                            f->name, v->bytes);
    return MR_OK;
}

static int check_pixels(const mr_field *f, const mr_value *v, int code, mr_error *err)
{
    if (v->ndim != 3 || v->dim[0] == 0 || v->dim[1] == 0 || v->dim[2] == 0)
        return mr_error_set(
            err, code, "field \"%s\": pixels need a height, a width and channels, none of them 0", f->name);
    if (v->planes != MR_HWC && v->planes != MR_CHW)
        return mr_error_set(err, code, "field \"%s\": pixel order %d is unknown", f->name, v->planes);
    return check_dims(f, v, code, err);
}

int mri_value_check(const mr_field *f, const mr_value *v, int code, mr_error *err)
{
    const bool fits = f->type == MR_TYPE_IMAGE ? mri_type_is_picture(v->type) && v->type != MR_TYPE_IMAGE
                                               : v->type == f->type;
    if (!fits)
        return mr_error_set(err, code, "field \"%s\": expected %s, found %s", f->name, mr_type_name(f->type),
                            mr_type_name(v->type));
    if (v->type == MR_TYPE_INT || v->type == MR_TYPE_FLOAT) return MR_OK;
    if (!v->data && v->bytes > 0)
        return mr_error_set(err, code, "field \"%s\": %zu bytes, but no data", f->name, v->bytes);
    if (v->type == MR_TYPE_PIXELS) return check_pixels(f, v, code, err);
    if (v->type != MR_TYPE_TENSOR) return MR_OK;
    if (v->dtype != f->dtype)
        return mr_error_set(err, code, "field \"%s\": expected elements of %s, found %s", f->name,
                            mr_dtype_name(f->dtype), mr_dtype_name(v->dtype));
    return check_dims(f, v, code, err);
}
