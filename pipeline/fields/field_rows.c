/* pipeline/fields/field_rows.c: values into the rows of a batch, and rows together when the last one is
 * there. See fields.h. */
#include <stdio.h>

#include "pipeline/decode/decoders.h"
#include "pipeline/fields/fields.h"

/* count elements of the padding number, each of the field's own shape. */
static void fill(const mri_field_plan *p, uint8_t *at, size_t elements)
{
    const size_t number = mr_dtype_bytes(p->dtype), bytes = elements * p->element_bytes;
    bool even = true; /* all of its bytes are the same */
    for (size_t k = 1; k < number; k++) even = even && p->pad[k] == p->pad[0];
    if (even) memset(at, p->pad[0], bytes);
    else
        for (size_t k = 0; k < bytes; k += number) memcpy(at + k, p->pad, number);
}

static uint8_t *row_at(const mri_field_plan *p, const mri_rows *rows, uint32_t i)
{
    return rows->data + i * p->row_bytes;
}

static int too_many(const mri_field_plan *p, uint64_t found, const char *what, mr_error *err)
{
    return mr_error_set(err, MR_ELIMIT,
                        "expected at most %u %s, found %llu: raise the field's most (--fields %s:most=%llu)",
                        p->most, what, (unsigned long long)found, p->name, (unsigned long long)found);
}

/* ------------------------------------------------------------------------------ plain */

static int place_list(const mri_field_plan *p, const mri_rows *rows, uint32_t i, const mr_value *v,
                      mr_error *err)
{
    if (v->ndim != 1)
        return mr_error_set(
            err, MR_EFORMAT,
            "expected a list, of one dimension, as the schema says or leaves open; found %u dimensions",
            v->ndim);
    if (v->dim[0] > p->most) return too_many(p, v->dim[0], "elements", err);
    if (v->bytes) memcpy(row_at(p, rows, i), v->data, v->bytes);
    rows->length[i] = (int32_t)v->dim[0];
    return MR_OK;
}

/* A text or a string of bytes. */
static int place_bytes(const mri_field_plan *p, const mri_rows *rows, uint32_t i, const mr_value *v,
                       mr_error *err)
{
    if (v->bytes > p->most) return too_many(p, v->bytes, "bytes", err);
    if (v->bytes) memcpy(row_at(p, rows, i), v->data, v->bytes);
    rows->length[i] = (int32_t)v->bytes;
    return MR_OK;
}

static int place_plain(const mri_field_plan *p, const mri_rows *rows, uint32_t i, const mr_value *v,
                       mr_error *err)
{
    uint8_t *row = row_at(p, rows, i);
    if (v->type == MR_TYPE_INT) return memcpy(row, &v->i, sizeof v->i), MR_OK;
    if (v->type == MR_TYPE_FLOAT) return memcpy(row, &v->f, sizeof v->f), MR_OK;
    if (p->type != MR_TYPE_TENSOR) return place_bytes(p, rows, i, v, err);
    if (v->dtype != p->dtype)
        return mr_error_set(err, MR_EFORMAT, "expected elements of %s, found %s", mr_dtype_name(p->dtype),
                            mr_dtype_name(v->dtype));
    if (p->varies) return place_list(p, rows, i, v, err);
    if (v->bytes != p->row_bytes)
        return mr_error_set(err, MR_EFORMAT, "expected %zu bytes, as the schema's shape says, found %zu",
                            p->row_bytes, v->bytes);
    if (v->bytes) memcpy(row, v->data, v->bytes);
    return MR_OK;
}

/* ------------------------------------------------------------------------------ boxes */

static int place_boxes(const mri_field_plan *p, mri_field_scratch *s, const mri_rows *rows, uint32_t i,
                       const mr_value *v, const mri_geometry *g, mr_error *err)
{
    if (v->ndim == 2 && v->dim[1] != p->columns)
        return mr_error_set(err, MR_EFORMAT, "expected boxes of %u numbers, found %llu", p->columns,
                            (unsigned long long)v->dim[1]);
    if (v->ndim == 2 && v->dim[0] > p->most) return too_many(p, v->dim[0], "boxes", err);
    const int rc = mri_boxes_place(g, v, p->in_pixels, p->columns, p->most,
                                   (float *)(void *)row_at(p, rows, i), s->which, &s->kept, err);
    if (rc != MR_OK) return rc;
    s->boxes = v->dim[0];
    rows->length[i] = (int32_t)s->kept;
    return MR_OK;
}

/* Of the boxes that are left. */
static int place_values(const mri_field_plan *p, const mri_field_scratch *s, const mri_rows *rows, uint32_t i,
                        const mr_value *v, mr_error *err)
{
    if (v->dtype != p->dtype || v->ndim != 1 || v->dim[0] != s->boxes)
        return mr_error_set(err, MR_EFORMAT,
                            "expected %llu values of %s, one for each box; found %llu of %s in %u dimensions",
                            (unsigned long long)s->boxes, mr_dtype_name(p->dtype),
                            (unsigned long long)(v->ndim ? v->dim[0] : 1), mr_dtype_name(v->dtype), v->ndim);
    uint8_t *row = row_at(p, rows, i);
    const uint8_t *from = v->data;
    for (uint32_t k = 0; k < s->kept; k++)
        memcpy(row + k * p->element_bytes, from + s->which[k] * p->element_bytes, p->element_bytes);
    rows->length[i] = (int32_t)s->kept;
    return MR_OK;
}

/* ------------------------------------------------------------------------------ masks */

static int check_mask_size(const mri_geometry *g, uint64_t width, uint64_t height, mr_error *err)
{
    if (width == g->stored_w && height == g->stored_h) return MR_OK;
    return mr_error_set(err, MR_EFORMAT,
                        "expected a mask of %u x %u pixels, as its picture is stored; found %llu x %llu",
                        g->stored_w, g->stored_h, (unsigned long long)width, (unsigned long long)height);
}

static int png_mask(const mr_value *v, const mri_geometry *g, mri_buffer *room, const uint8_t **out,
                    mr_error *err)
{
    mr_image_header header;
    const int kind = mr_image_sniff(v->data, v->bytes);
    if (kind != MR_TYPE_PNG)
        return mr_error_set(err, MR_EFORMAT, "expected a mask as PNG, found %s",
                            kind == MR_TYPE_JPEG ? "a JPEG: it does not keep numbers" : "other bytes");
    int rc = mr_image_header_parse(v->data, v->bytes, &header, err);
    if (rc == MR_OK)
        rc = check_mask_size(g, header.width, header.height, err); /* before memory is taken: the picture's
                                                                      was in bounds */
    if (rc == MR_OK) rc = mri_png_samples(v->data, v->bytes, &header, room, err);
    *out = room->data;
    return rc;
}

static int raw_mask(const mr_value *v, const mri_geometry *g, const uint8_t **out, mr_error *err)
{
    const bool one = v->ndim == 2 || (v->ndim == 3 && v->dim[2] == 1);
    if (!one || (v->type == MR_TYPE_TENSOR && v->dtype != MR_U8))
        return mr_error_set(err, MR_EFORMAT,
                            "expected a mask of height x width numbers of 8 bits, found %u dimensions%s",
                            v->ndim, v->ndim == 3 ? " with more than one channel" : "");
    *out = v->data;
    const int rc = check_mask_size(g, v->dim[1], v->dim[0], err);
    if (rc != MR_OK || v->bytes == (size_t)g->stored_w * g->stored_h) return rc;
    return mr_error_set(err, MR_EFORMAT, "expected %zu bytes for the mask, found %zu",
                        (size_t)g->stored_w * g->stored_h, v->bytes);
}

int mri_mask_numbers(const mr_value *v, const mri_geometry *g, mri_buffer *room, const uint8_t **out,
                     mr_error *err)
{
    const bool raw = v->type == MR_TYPE_PIXELS || v->type == MR_TYPE_TENSOR;
    return raw ? raw_mask(v, g, out, err) : png_mask(v, g, room, out, err);
}

/* A sample without a mask has the filler everywhere. */
static int place_mask(const mri_field_plan *p, mri_field_scratch *s, const mri_rows *rows, uint32_t i,
                      const mr_value *v, const mri_geometry *g, mr_error *err)
{
    const uint8_t *mask = NULL;
    if (v->bytes == 0 && v->type != MR_TYPE_PIXELS) {
        memset(row_at(p, rows, i), p->pad[0], p->row_bytes);
        return MR_OK;
    }
    const int rc = mri_mask_numbers(v, g, &s->mask, &mask, err);
    if (rc == MR_OK) mri_mask_place(g, mask, g->stored_w, p->pad[0], row_at(p, rows, i));
    return rc;
}

/* ------------------------------------------------------------------------------ a sample, a batch */

static int place_one(const mri_field_plan *p, mri_field_scratch *s, const mri_rows *rows, uint32_t i,
                     const mr_value *v, const mri_geometry *g, mr_error *err)
{
    switch (p->role) {
    case MR_ROLE_BOXES: return place_boxes(p, s, rows, i, v, g, err);
    case MR_ROLE_BOX_VALUES: return place_values(p, s, rows, i, v, err);
    case MR_ROLE_MASK: return place_mask(p, s, rows, i, v, g, err);
    default: return place_plain(p, rows, i, v, err);
    }
}

/* Put "field boxes: " in front of the error. */
static int in_field(const char *name, int rc, mr_error *err)
{
    if (!err) return rc;
    char text[sizeof err->text];
    snprintf(text, sizeof text, "%s", err->text);
    return mr_error_set(err, rc, "field %s: %.*s", name, (int)(sizeof text - MR_MAX_NAME - 17), text);
}

int mri_fields_place(const mri_fields *f, mri_field_scratch *s, const mri_rows *rows, uint32_t i,
                     const mr_sample *sample, const mri_geometry *g, mr_error *err)
{
    for (uint32_t k = 0; k < f->count; k++) {
        const mri_field_plan *p = &f->field[k];
        const int rc = place_one(p, s, &rows[k], i, &sample->value[p->at], g, err);
        if (rc != MR_OK) return in_field(p->name, rc, err);
    }
    return MR_OK;
}

int mri_fields_crop_boxes(const mri_fields *f, const mr_sample *sample, mri_boxes *out, mr_error *err)
{
    if (!f->crop) return MR_OK;
    *out = (mri_boxes){&sample->value[f->crop_at], f->crop_in_pixels};
    const int rc = mri_boxes_check(out, err);
    return rc == MR_OK ? MR_OK : in_field(f->crop, rc, err);
}

void mri_fields_blank(const mri_fields *f, const mri_rows *rows, uint32_t i)
{
    for (uint32_t k = 0; k < f->count; k++) {
        const mri_field_plan *p = &f->field[k];
        if (p->varies) rows[k].length[i] = 0;
        else fill(p, row_at(p, &rows[k], i), 1);
    }
}

/* Rows only ever move towards the front, past nothing that is still needed: the padding of row i ends where
 * row i + 1 goes. */
static void close_field(const mri_field_plan *p, mri_rows *rows, uint32_t count)
{
    uint32_t longest = 1; /* also where all rows are empty: one width for all batches stays one */
    for (uint32_t i = 0; i < count; i++)
        if ((uint32_t)rows->length[i] > longest) longest = (uint32_t)rows->length[i];
    rows->width = ((longest - 1) / p->multiple + 1) * p->multiple;
    const size_t width_bytes = rows->width * p->element_bytes;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *to = rows->data + i * width_bytes;
        const size_t length = (uint32_t)rows->length[i];
        memmove(to, row_at(p, rows, i), length * p->element_bytes);
        fill(p, to + length * p->element_bytes, rows->width - length);
    }
}

void mri_fields_close(const mri_fields *f, mri_rows *rows, uint32_t count)
{
    for (uint32_t k = 0; k < f->count; k++) {
        rows[k].width = 1;
        if (f->field[k].varies) close_field(&f->field[k], &rows[k], count);
    }
}

void mri_fields_show(const mri_fields *f, const mri_rows *rows, uint32_t first, mr_batch_field *out)
{
    for (uint32_t k = 0; k < f->count; k++)
        out[k] =
            (mr_batch_field){.data = rows[k].data + (size_t)first * rows[k].width * f->field[k].element_bytes,
                             .length = rows[k].length ? rows[k].length + first : NULL,
                             .width = rows[k].width};
}
