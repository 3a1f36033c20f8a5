/* formats/source/value.h: whether a schema is sound and a value fits its field. Private. */
#ifndef MRI_VALUE_H
#define MRI_VALUE_H

#include "millrace/formats.h"

#define MRI_MAX_SAMPLE_BYTES ((uint64_t)1 << 31) /* encoded: of a sample in its file, of a record */

/* MR_OK, or `code` with the reason: the caller knows whether a wrong schema is a wrong argument or a wrong
 * file. */
int mri_schema_check(const mr_field *fields, uint32_t field_count, int code, mr_error *err);
int mri_value_check(const mr_field *field, const mr_value *value, int code, mr_error *err);

/* A picture file's bytes, of any kind that is decoded. */
static inline bool mri_type_is_picture_file(mr_type t)
{
    return t == MR_TYPE_JPEG || t == MR_TYPE_PNG || t == MR_TYPE_GIF || t == MR_TYPE_BMP ||
           t == MR_TYPE_WEBP || t == MR_TYPE_TIFF || t == MR_TYPE_HEIC || t == MR_TYPE_AVIF;
}

/* The types of a picture's value, and of its field. */
static inline bool mri_type_is_picture(mr_type t)
{
    return mri_type_is_picture_file(t) || t == MR_TYPE_PIXELS || t == MR_TYPE_IMAGE || t == MR_TYPE_COEF;
}

/* What MR_TYPE_TEXT promises: no overlong forms, no surrogates, no cut ends. */
bool mri_text_is_utf8(const void *text, size_t bytes);

/* Elements of dim[0..ndim) times element_bytes; false when that does not fit. */
bool mri_shape_bytes(const uint64_t *dim, uint32_t ndim, size_t element_bytes, size_t *out);

/* Index of the field with this name, or -1. */
int mri_field_find(const mr_field *fields, uint32_t field_count, const char *name);

/* By convention "image" (a picture type) and "label" (INT) are the data of training; -1 when absent. */
int mri_field_image(const mr_field *fields, uint32_t field_count);
int mri_field_label(const mr_field *fields, uint32_t field_count);

/* Entry points of the JPEGs in "image" (formats/record/FORMAT.md, section 3): BYTES, empty where there are
 * none; -1 when absent. */
#define MRI_ENTRIES_NAME "image.entries"
int mri_field_entries(const mr_field *fields, uint32_t field_count);

/* A field as sources build it. */
mr_field mri_field(const char *name, mr_type type);
mr_field mri_field_pixels(const char *name, uint32_t height, uint32_t width, uint32_t channels);

#endif
