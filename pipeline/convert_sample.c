/* pipeline/convert_sample.c: one sample from its source to the values that are written. See convert.h.
 *
 * A picture that is kept as it is keeps its bytes, EXIF orientation and all; it is decoded once to know that it can be (a
 * truncated picture is found now, not in the middle of a training run). Everything else is decoded, resized and
 * either encoded again in its own format or stored as pixels. */
#include "pipeline/convert.h"

#include <stdio.h>

#include "base/util.h"

#define KEEP_BUFFER_BYTES ((size_t)1 << 20) /* larger read buffers are given back after each sample */

static bool is_picture(mr_type type)
{
    return type == MR_TYPE_JPEG || type == MR_TYPE_PNG || type == MR_TYPE_PIXELS || type == MR_TYPE_IMAGE;
}

static bool name_taken(const mr_source_info *info, const char *name, int by_other_than)
{
    for (uint32_t k = 0; k < info->field_count; k++)
        if ((int)k != by_other_than && strcmp(info->fields[k].name, name) == 0) return true;
    return false;
}

static void rename_field(mri_convert_plan *plan, int field, const char *name)
{
    if (!name_taken(plan->info, name, field)) snprintf(plan->fields[field].name, sizeof plan->fields[field].name, "%s", name);
}

/* Schema of the picture field: which type its values have and whether they all have one shape. */
static void plan_picture(const mri_convert_plan *plan, mr_field *f)
{
    const mr_convert_config *cfg = &plan->cfg;
    const mr_source_info    *info = plan->info;
    if (cfg->store == MR_STORE_JPEG) {
        if (f->type != MR_TYPE_PIXELS) f->type = MR_TYPE_IMAGE;
        if (cfg->resize) f->ndim = 0;
        return;
    }
    f->type = MR_TYPE_PIXELS;
    f->ndim = 0;
    const uint32_t channels = cfg->decode.channels ? cfg->decode.channels : info->channels == 2 || info->channels == 4 ? 3 : info->channels;
    const bool     square = cfg->center_square && cfg->resize;
    if (channels == 0 || (!square && (cfg->resize || info->height == 0 || info->width == 0))) return;
    f->ndim = 3;
    f->dim[0] = square ? cfg->resize : info->height;
    f->dim[1] = square ? cfg->resize : info->width;
    f->dim[2] = channels;
}

int mri_convert_plan_fields(mri_convert_plan *plan, mr_error *err)
{
    const mr_source_info    *info = plan->info;
    const mr_convert_config *cfg = &plan->cfg;
    const bool changes = cfg->store == MR_STORE_RAW || cfg->resize;
    if (info->image_field < 0 && changes)
        return mr_error_set(err, MR_EINVAL, "the data has no pictures to resize or decode; leave the settings for pictures out");
    if (info->field_count > MR_MAX_FIELDS)
        return mr_error_set(err, MR_ELIMIT, "expected at most %d fields, found %u", MR_MAX_FIELDS, info->field_count);
    plan->field_count = info->field_count;
    memcpy(plan->fields, info->fields, info->field_count * sizeof *plan->fields);
    if (info->image_field >= 0) {
        if (!is_picture(plan->fields[info->image_field].type))
            return mr_error_set(err, MR_EUNSUPPORTED, "field %s: expected pictures, found %s",
                                plan->fields[info->image_field].name, mr_type_name(plan->fields[info->image_field].type));
        rename_field(plan, info->image_field, "image");
        plan_picture(plan, &plan->fields[info->image_field]);
    }
    if (info->label_field >= 0) rename_field(plan, info->label_field, "label");
    return MR_OK;
}

/* ---- pictures ---- */

/* Size after `resize`: the shorter side at most (with center_square: exactly) so many pixels. */
static void target_size(const mr_convert_config *cfg, uint32_t w, uint32_t h, uint32_t *out_w, uint32_t *out_h)
{
    const uint32_t shorter = w < h ? w : h, longer = w < h ? h : w;
    const bool     exact = cfg->store == MR_STORE_RAW && cfg->center_square;
    *out_w = w;
    *out_h = h;
    if (cfg->resize == 0 || shorter == cfg->resize || (shorter < cfg->resize && !exact)) return;
    const uint32_t scaled = (uint32_t)mri_min_u64(((uint64_t)longer * cfg->resize + shorter / 2) / shorter, UINT32_MAX);
    *out_w = w < h ? cfg->resize : scaled;
    *out_h = w < h ? scaled : cfg->resize;
}

/* Cut to the centre side x side, in place. */
static void crop_square(mr_image *image, uint32_t side)
{
    const size_t pixel = image->channels, row = (size_t)image->width * pixel, out_row = (size_t)side * pixel;
    const size_t top = (image->height - side) / 2, left = (image->width - side) / 2;
    for (uint32_t y = 0; y < side; y++)
        memmove(image->pixels + y * out_row, image->pixels + (top + y) * row + left * pixel, out_row);
    image->width = image->height = side;
}

static int resize(const mr_convert_config *cfg, mr_image *image, mr_error *err)
{
    uint32_t w, h;
    target_size(cfg, image->width, image->height, &w, &h);
    if ((uint64_t)w * h > cfg->decode.max_pixels) /* a very long strip, made larger */
        return mr_error_set(err, MR_ELIMIT, "resizing %u x %u to %u x %u needs more than %llu pixels", image->width,
                            image->height, w, h, (unsigned long long)cfg->decode.max_pixels);
    if (w != image->width || h != image->height) {
        mr_image smaller = {0};
        const int rc = mr_image_resize(image, w, h, &smaller, err);
        if (rc) return rc;
        mr_image_free(image);
        *image = smaller;
    }
    if (cfg->store == MR_STORE_RAW && cfg->center_square && cfg->resize) crop_square(image, cfg->resize);
    return MR_OK;
}

/* value becomes the picture's pixels; they are the item's to free. */
static void take_pixels(mri_convert_item *item, mr_image *image, mr_value *value)
{
    item->made = image->pixels;
    item->made_bytes = (size_t)image->height * image->width * image->channels;
    image->pixels = NULL;
    *value = (mr_value){.type = MR_TYPE_PIXELS, .planes = MR_HWC, .ndim = 3, .data = item->made, .bytes = item->made_bytes,
                        .dim = {image->height, image->width, image->channels}};
}

static int encode(const mr_convert_config *cfg, mri_convert_item *item, mr_image *image, mr_value *value, mr_error *err)
{
    if (cfg->store == MR_STORE_RAW || value->type == MR_TYPE_PIXELS) {
        take_pixels(item, image, value);
        return MR_OK;
    }
    const mr_type type = value->type;
    const int rc = type == MR_TYPE_PNG ? mr_image_encode_png(image, &item->made, &item->made_bytes, err)
                                       : mr_image_encode_jpeg(image, (int)cfg->quality, &item->made, &item->made_bytes, err);
    if (rc) return rc;
    *value = (mr_value){.type = type, .data = item->made, .bytes = item->made_bytes};
    return MR_OK;
}

/* Whether the bytes can stay as they are, known from the header alone. */
static bool stays(const mr_convert_config *cfg, const mr_value *value, mr_error *err, int *rc)
{
    uint32_t w = 0, h = 0, out_w, out_h;
    *rc = MR_OK;
    if (cfg->store == MR_STORE_RAW) return false;
    if (cfg->resize == 0) return true;
    if (value->type == MR_TYPE_PIXELS) {
        h = (uint32_t)value->dim[0];
        w = (uint32_t)value->dim[1];
    } else {
        mr_image_header header;
        *rc = mr_image_header_parse(value->data, value->bytes, &header, err);
        if (*rc) return false;
        w = header.width;
        h = header.height;
    }
    target_size(cfg, w, h, &out_w, &out_h);
    return w == out_w && h == out_h;
}

static int convert_picture(const mri_convert_plan *plan, mri_convert_item *item, mr_value *value)
{
    const mr_convert_config *cfg = &plan->cfg;
    mr_error *err = &item->error;
    int       rc;
    const bool keep = stays(cfg, value, err, &rc);
    if (rc) return rc;
    if (keep && (!cfg->check || value->type == MR_TYPE_PIXELS)) return MR_OK;
    mr_image image = {0};
    rc = mr_image_decode(value, &cfg->decode, &image, err);
    if (rc == MR_OK && !keep) rc = resize(cfg, &image, err);
    if (rc == MR_OK && !keep) rc = encode(cfg, item, &image, value, err);
    mr_image_free(&image);
    return rc;
}

/* ---- the sample ---- */

static int check_label(const mri_convert_plan *plan, const mr_value *label, mr_error *err)
{
    if (plan->info->class_count == 0 || label->type != MR_TYPE_INT) return MR_OK;
    if (label->i >= 0 && label->i < (int64_t)plan->info->class_count) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "expected a label from 0 to %u, found %lld", plan->info->class_count - 1,
                        (long long)label->i);
}

/* The system or the settings, not this sample: going on would only fail again. */
static bool concerns_run(const mri_convert_plan *plan, int rc)
{
    if (rc == MR_EFORMAT || rc == MR_ECHECKSUM || rc == MR_EUNSUPPORTED || rc == MR_ELIMIT) return false;
    const bool own_file = plan->info->file_count == 0; /* one unreadable file of many is a bad sample */
    return !(own_file && (rc == MR_EIO || rc == MR_ENOENT));
}

static void place_error(const mri_convert_plan *plan, mri_convert_item *item)
{
    char path[512];
    if (item->error.file[0] == '\0')
        mr_error_at(&item->error, mr_source_sample_path(plan->src, item->source_index, path, sizeof path), MR_NOWHERE, MR_NOWHERE);
    mr_error_at(&item->error, NULL, MR_NOWHERE, item->source_index);
}

void mri_convert_sample(const mri_convert_plan *plan, mri_convert_item *item)
{
    const mr_source_info *info = plan->info;
    mr_extent             extent = {0};
    item->error = (mr_error)MR_ERROR_INIT;
    item->rc = mr_source_extent(plan->src, item->source_index, &extent, &item->error);
    item->bytes_in = extent.bytes;
    if (item->rc == MR_OK)
        item->rc = mr_source_read(plan->src, item->source_index, &item->buffer, &item->buffer_bytes, &item->sample,
                                  &item->error);
    if (item->rc == MR_OK && info->label_field >= 0)
        item->rc = check_label(plan, &item->sample.value[info->label_field], &item->error);
    if (item->rc == MR_OK && info->image_field >= 0)
        item->rc = convert_picture(plan, item, &item->sample.value[info->image_field]);
    item->fatal = item->rc != MR_OK && concerns_run(plan, item->rc);
    if (item->rc != MR_OK) place_error(plan, item);
}

void mri_convert_item_clear(mri_convert_item *item)
{
    free(item->made);
    item->made = NULL;
    item->made_bytes = 0;
    if (item->buffer_bytes > KEEP_BUFFER_BYTES) {
        free(item->buffer);
        item->buffer = NULL;
        item->buffer_bytes = 0;
    }
}

void mri_convert_item_fini(mri_convert_item *item)
{
    free(item->made);
    free(item->buffer);
}
