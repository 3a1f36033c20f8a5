/* pipeline/convert/convert_companions.c: boxes and masks go where a conversion took their picture: cut,
 * resized, turned upright. See convert.h.
 *
 *   boxes        by mr_field_role(): new corners, cut to the picture; other columns unchanged
 *   box_labels   the labels of the remaining boxes
 *   mask         cut and resized (nearest neighbour); a PNG becomes a gray one with the same numbers
 *
 * Boxes are fractions of the picture here: boxes in pixels are reported at the first picture whose boxes
 * cannot be fractions. Fields of other names may not refer to positions in the picture, and stay
 * unchanged. */
#include <stdio.h>

#include "base/util.h"
#include "pipeline/convert/convert_sample.h"
#include "pipeline/fields/fields.h"

typedef struct following { /* of one sample */
    mri_convert_item *item;
    uint32_t *which; /* boxes that are left, by number */
    uint32_t kept;
    uint64_t boxes; /* and how many there were */
} following;

static bool moves(const mri_geometry *g)
{
    return g->orientation > 1 || g->out_w != g->stored_w || g->out_h != g->stored_h;
}

mr_role mri_convert_role(const mri_convert_plan *plan, uint32_t field)
{
    return plan->from[field] < 0 ? MR_ROLE_PLAIN : mr_field_role(plan->info, (uint32_t)plan->from[field]);
}

void mri_convert_open_shapes(mri_convert_plan *plan)
{
    if (plan->image < 0 || (plan->cfg.store != MR_STORE_RAW && plan->cfg.resize == 0)) return;
    for (uint32_t k = 0; k < plan->field_count; k++)
        if (mri_convert_role(plan, k) != MR_ROLE_PLAIN) plan->fields[k].ndim = 0;
}

/* Memory for a field's new value, which the item owns. */
static uint8_t *room_for(mri_convert_item *item, uint32_t field, size_t bytes)
{
    uint8_t *data = malloc(bytes ? bytes : 1);
    free(item->companions[field]);
    item->companions[field] = data;
    item->companion_bytes += bytes + 1; /* also that there is one */
    return data;
}

static int no_memory(mr_error *err) { return mr_error_set(err, MR_ENOMEM, "no memory for boxes or a mask"); }

/* ---- boxes ---- */

/* Rows of the value with new corners, in its own type of number. */
static void put_rows(const mr_value *v, const following *f, const float *corners, uint32_t columns,
                     uint8_t *to)
{
    const size_t number = mr_dtype_bytes(v->dtype), row = columns * number;
    const uint8_t *from = v->data;
    for (uint32_t k = 0; k < f->kept; k++, to += row) {
        memcpy(to, from + f->which[k] * row, row);
        for (size_t c = 0; c < 4; c++) {
            const float narrow = corners[(size_t)k * columns + c];
            const double wide = narrow;
            memcpy(to + c * number, v->dtype == MR_F64 ? (const void *)&wide : &narrow, number);
        }
    }
}

static int follow_boxes(following *f, uint32_t field, mr_value *v, mr_error *err)
{
    if (v->ndim != 2 || v->dim[0] > UINT32_MAX / 4 || v->dim[1] > UINT32_MAX / 4)
        return mr_error_set(err, MR_EFORMAT, "expected n x 4 or more numbers, found %u dimensions", v->ndim);
    const uint32_t n = (uint32_t)v->dim[0], columns = (uint32_t)v->dim[1];
    size_t count;
    if (!mri_mul_size((size_t)n * columns, sizeof(float), &count)) return no_memory(err);
    float *corners = malloc(count ? count : 1);
    free(f->which);
    f->which = malloc(n ? n * sizeof *f->which : 1);
    uint8_t *to = room_for(f->item, field, v->bytes);
    int rc = corners && f->which && to ? MR_OK : no_memory(err);
    if (rc == MR_OK)
        rc = mri_boxes_place(&f->item->geometry, v, false, columns, n, corners, f->which, &f->kept, err);
    if (rc == MR_OK) {
        put_rows(v, f, corners, columns, to);
        f->boxes = n;
        v->dim[0] = f->kept;
        v->data = to;
        v->bytes = (size_t)f->kept * columns * mr_dtype_bytes(v->dtype);
    }
    free(corners);
    return rc;
}

static int follow_values(following *f, uint32_t field, mr_value *v, mr_error *err)
{
    if (!f->which) return MR_OK; /* no boxes among the fields */
    if (v->ndim != 1 || v->dim[0] != f->boxes)
        return mr_error_set(
            err, MR_EFORMAT, "expected %llu values, one for each box; found %llu in %u dimensions",
            (unsigned long long)f->boxes, (unsigned long long)(v->ndim ? v->dim[0] : 1), v->ndim);
    const size_t number = mr_dtype_bytes(v->dtype);
    const uint8_t *from = v->data;
    uint8_t *to = room_for(f->item, field, f->kept * number);
    if (!to) return no_memory(err);
    for (uint32_t k = 0; k < f->kept; k++) memcpy(to + k * number, from + f->which[k] * number, number);
    v->dim[0] = f->kept;
    v->data = to;
    v->bytes = f->kept * number;
    return MR_OK;
}

/* ---- masks ---- */

static int mask_as_png(following *f, uint32_t field, mr_value *v, mr_error *err)
{
    const mri_geometry *g = &f->item->geometry;
    const mr_image image = {
        .width = g->out_w, .height = g->out_h, .channels = 1, .pixels = f->item->companions[field]};
    void *data;
    size_t bytes;
    const int rc = mr_image_encode_png(&image, &data, &bytes, err);
    if (rc != MR_OK) return rc;
    free(f->item->companions[field]);
    f->item->companions[field] = data;
    f->item->companion_bytes += bytes;
    v->data = data;
    v->bytes = bytes;
    return MR_OK;
}

static int follow_mask(following *f, uint32_t field, mr_value *v, mr_error *err)
{
    const mri_geometry *g = &f->item->geometry;
    const uint8_t *from = NULL;
    mri_buffer room = {0};
    const size_t bytes = (size_t)g->out_w * g->out_h; /* the picture has as many pixels */
    if (v->type == MR_TYPE_TENSOR && v->ndim != 2 && v->ndim != 3)
        return MR_OK;                                             /* of something else, for all its name */
    if (v->bytes == 0 && v->type != MR_TYPE_PIXELS) return MR_OK; /* the sample lacks it */
    int rc = mri_mask_numbers(v, g, &room, &from, err);
    uint8_t *to = rc == MR_OK ? room_for(f->item, field, bytes) : NULL;
    if (rc == MR_OK && !to) rc = no_memory(err);
    if (rc == MR_OK) {
        mri_mask_place(g, from, g->stored_w, 0, to);
        v->data = to;
        v->bytes = bytes;
        v->dim[0] = g->out_h;
        v->dim[1] = g->out_w;
    }
    mri_buffer_free(&room);
    return rc == MR_OK && v->type != MR_TYPE_TENSOR && v->type != MR_TYPE_PIXELS
               ? mask_as_png(f, field, v, err)
               : rc;
}

/* ---- a sample ---- */

static int follow(following *f, mr_role role, uint32_t field, mr_error *err)
{
    mr_value *v = &f->item->values[field];
    switch (role) {
    case MR_ROLE_BOXES: return follow_boxes(f, field, v, err);
    case MR_ROLE_BOX_VALUES: return follow_values(f, field, v, err);
    case MR_ROLE_MASK: return follow_mask(f, field, v, err);
    default: return MR_OK;
    }
}

/* Add to the error: the field, why it matters, what to do. */
static int in_field(const mri_convert_plan *plan, uint32_t k, int rc, mr_error *err)
{
    char text[sizeof err->text];
    snprintf(text, sizeof text, "%s", err->text);
    return mr_error_set(
        err, rc,
        "field %s, which must follow its picture: %.*s; without --resize and --store raw it stays as it is",
        plan->fields[k].name, (int)(sizeof text - MR_MAX_NAME - 112), text);
}

int mri_convert_companions(const mri_convert_plan *plan, mri_convert_item *item)
{
    /* values need to know which boxes are left */
    static const mr_role in_order[] = {MR_ROLE_BOXES, MR_ROLE_BOX_VALUES, MR_ROLE_MASK};
    following f = {.item = item};
    int rc = MR_OK;
    for (size_t r = 0; r < MRI_ARRAY_COUNT(in_order) && moves(&item->geometry); r++)
        for (uint32_t k = 0; k < plan->field_count && rc == MR_OK; k++) {
            if ((int)k == plan->image || mri_convert_role(plan, k) != in_order[r]) continue;
            rc = follow(&f, in_order[r], k, &item->error);
            if (rc != MR_OK) in_field(plan, k, rc, &item->error);
        }
    free(f.which);
    return rc;
}
