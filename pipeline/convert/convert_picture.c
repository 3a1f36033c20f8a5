/* pipeline/convert/convert_picture.c: one picture from its source's form to the one that is written. See
 * convert.h.
 *
 *   as it is   picture files: the same bytes, EXIF orientation and all. A file is decoded once to know that
 *              it can be (a truncated picture is found now, not in the middle of a training run); a JPEG gets
 *              its entry points on that occasion
 *   resized    decoded, resized, and encoded again: JPEG as JPEG, other files as PNG; a JPEG then goes on
 *              like any other
 *   coef       a JPEG's coefficients, as a payload; a payload stays one. What cannot be one stays as it is
 *   raw        decoded, resized, stored as pixels
 *   as a file  for formats that know no others: pixels as PNG, coefficients as the JPEG they are */
#include <stdio.h>

#include "base/util.h"
#include "formats/source/value.h"
#include "pipeline/augment/geometry.h"
#include "pipeline/convert/convert_sample.h"
#include "pipeline/decode/decoders.h"

/* Size after `resize`: the shorter side at most (with center_square: exactly) this number of pixels. */
static void target_size(const mr_convert_config *cfg, uint32_t w, uint32_t h, uint32_t *out_w,
                        uint32_t *out_h)
{
    const uint32_t shorter = w < h ? w : h, longer = w < h ? h : w;
    const bool exact = cfg->store == MR_STORE_RAW && cfg->center_square;
    *out_w = w;
    *out_h = h;
    if (cfg->resize == 0 || shorter == cfg->resize || (shorter < cfg->resize && !exact)) return;
    const uint32_t scaled =
        (uint32_t)mri_min_u64(((uint64_t)longer * cfg->resize + shorter / 2) / shorter, UINT32_MAX);
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

/* As mr_image_resize() and crop_square() do. */
static void resize_geometry(mri_geometry *g, uint32_t w, uint32_t h)
{
    const mri_axis x = mri_axis_of(g->out_w, 0, g->out_w, w), y = mri_axis_of(g->out_h, 0, g->out_h, h);
    mri_geometry_resample(g, &x, &y, false);
}

static int resize(const mr_convert_config *cfg, mr_image *image, mri_geometry *g, mr_error *err)
{
    uint32_t w, h;
    target_size(cfg, image->width, image->height, &w, &h);
    if ((uint64_t)w * h > cfg->decode.max_pixels) /* a very long strip, made larger */
        return mr_error_set(err, MR_ELIMIT, "resizing %u x %u to %u x %u needs more than %llu pixels",
                            image->width, image->height, w, h, (unsigned long long)cfg->decode.max_pixels);
    if (w != image->width || h != image->height) {
        mr_image smaller = {0};
        const int rc = mr_image_resize(image, w, h, &smaller, err);
        if (rc) return rc;
        mr_image_free(image);
        *image = smaller;
        resize_geometry(g, w, h);
    }
    if (cfg->store != MR_STORE_RAW || !cfg->center_square || !cfg->resize) return MR_OK;
    crop_square(image, cfg->resize);
    mri_geometry_window(g, (w - cfg->resize) / 2, (h - cfg->resize) / 2, cfg->resize, cfg->resize,
                        MRI_OUTSIDE_ZERO, false);
    return MR_OK;
}

/* data, malloc'd, in the place of what may have been made before. */
static void take_made(mri_convert_item *item, void *data, size_t bytes)
{
    free(item->made);
    item->made = data;
    item->made_bytes = bytes;
}

/* value becomes the picture's pixels; they are the item's to free. */
static void take_pixels(mri_convert_item *item, mr_image *image, mr_value *value)
{
    take_made(item, image->pixels, (size_t)image->height * image->width * image->channels);
    image->pixels = NULL;
    *value = (mr_value){.type = MR_TYPE_PIXELS,
                        .planes = MR_HWC,
                        .ndim = 3,
                        .data = item->made,
                        .bytes = item->made_bytes,
                        .dim = {image->height, image->width, image->channels}};
}

static int encode(const mr_convert_config *cfg, mri_convert_item *item, mr_image *image, mr_value *value,
                  mr_error *err)
{
    if (cfg->store == MR_STORE_RAW || value->type == MR_TYPE_PIXELS) {
        take_pixels(item, image, value);
        return MR_OK;
    }
    const bool jpeg = value->type == MR_TYPE_JPEG || value->type == MR_TYPE_COEF; /* which comes from one */
    const mr_type type = jpeg ? MR_TYPE_JPEG : MR_TYPE_PNG;
    void *data;
    size_t bytes;
    const int rc = type == MR_TYPE_PNG ? mr_image_encode_png(image, &data, &bytes, err)
                                       : mr_image_encode_jpeg(image, (int)cfg->quality, &data, &bytes, err);
    if (rc) return rc;
    take_made(item, data, bytes);
    *value = (mr_value){.type = type, .data = item->made, .bytes = item->made_bytes};
    return MR_OK;
}

/* Whether the picture keeps its size and form, known from the header alone. */
static bool stays(const mr_convert_config *cfg, const mr_value *value, mr_error *err, int *rc)
{
    uint32_t out_w, out_h;
    mr_image_header h;
    *rc = MR_OK;
    if (cfg->store == MR_STORE_RAW) return false;
    if (cfg->resize == 0) return true;
    *rc = mr_value_header(value, &h, err);
    if (*rc) return false;
    target_size(cfg, h.width, h.height, &out_w, &out_h);
    return h.width == out_w && h.height == out_h;
}

static int remake(const mr_convert_config *cfg, mri_convert_item *item, mr_value *value, mr_error *err)
{
    mr_image image = {0};
    mr_image_header stored;
    int rc = mr_value_header(value, &stored, err);
    if (rc == MR_OK) rc = mr_image_decode(value, &cfg->decode, &image, err);
    if (rc == MR_OK)
        mri_geometry_start(&item->geometry, stored.width, stored.height,
                           cfg->decode.ignore_exif ? 1 : stored.orientation);
    if (rc == MR_OK) rc = resize(cfg, &image, &item->geometry, err);
    if (rc == MR_OK) rc = encode(cfg, item, &image, value, err);
    mr_image_free(&image);
    return rc;
}

/* value becomes a file or payload that was made of it. */
static void replace(mri_convert_item *item, mr_value *value, mr_type type, void *data, size_t bytes)
{
    take_made(item, data, bytes);
    *value = (mr_value){.type = type, .data = data, .bytes = bytes};
}

/* Sequential Huffman coding where it is not yet; what that cannot hold stays as it is. */
static int transcode(const mr_convert_config *cfg, mri_transcoder *whole, mri_convert_item *item,
                     mr_value *value, mr_error *err)
{
    mr_image_header h;
    void *data;
    size_t bytes;
    int rc = mr_image_header_parse(value->data, value->bytes, &h, err);
    if (rc) return rc;
    if (!h.progressive && !h.arithmetic) return MR_OK;
    rc = mri_transcoder_make_sequential(whole, value->data, value->bytes, &cfg->decode, &data, &bytes, err);
    if (rc == MR_EUNSUPPORTED) return MR_OK;
    if (rc) return rc;
    replace(item, value, MR_TYPE_JPEG, data, bytes);
    item->transcoded = true;
    return MR_OK;
}

/* *done: nothing is left to look at. */
static int pack(const mr_convert_config *cfg, mri_transcoder *whole, mri_convert_item *item, mr_value *value,
                bool *done, mr_error *err)
{
    void *data;
    size_t bytes;
    int rc = mri_transcoder_pack(whole, value->data, value->bytes, &cfg->decode, &data, &bytes, err);
    item->kept = rc == MR_EUNSUPPORTED;
    if (rc) return item->kept ? MR_OK : rc;
    replace(item, value, MR_TYPE_COEF, data, bytes);
    *done = true;
    return MR_OK;
}

static int add_entries(const mri_convert_plan *plan, mri_transcoder *whole, mri_convert_item *item,
                       const mr_value *value, bool *done, mr_error *err)
{
    const int rc = mri_transcoder_entries(whole, value->data, value->bytes, &plan->cfg.decode, &item->entries,
                                          &item->entries_bytes, err);
    if (rc == MR_OK) *done = true;
    /* its fault */
    const bool unwanted = !plan->cfg.check && (rc == MR_EFORMAT || rc == MR_ELIMIT);
    return rc == MR_EUNSUPPORTED || unwanted ? MR_OK : rc;
}

/* Pixels as PNG, coefficients as JPEG; malloc'd. */
static int as_file(const mr_decode_config *cfg, mri_transcoder *whole, const mr_value *value, mr_type *type,
                   void **data, size_t *bytes, mr_error *err)
{
    *type = value->type == MR_TYPE_COEF ? MR_TYPE_JPEG : MR_TYPE_PNG;
    if (value->type == MR_TYPE_COEF)
        return mri_transcoder_unpack(whole, value->data, value->bytes, cfg, data, bytes, err);
    mr_image image;
    int rc = mr_image_decode(value, cfg, &image, err);
    if (rc == MR_OK) rc = mr_image_encode_png(&image, data, bytes, err);
    mr_image_free(&image);
    return rc;
}

/* A picture of the right size, in the form it is to be stored in; checked unless making that has shown that
 * it is sound. */
static int store(const mri_convert_plan *plan, mri_transcoder *whole, mri_convert_item *item, mr_value *value)
{
    const mr_convert_config *cfg = &plan->cfg;
    mr_error *err = &item->error;
    bool done = value->type == MR_TYPE_PIXELS || !cfg->check;
    int rc = MR_OK;
    value->entries = NULL; /* made anew */
    value->entries_bytes = 0;
    const bool file = value->type == MR_TYPE_COEF ? cfg->store == MR_STORE_JPEG : plan->kind->picture_files;
    void *data;
    size_t bytes;
    if (file && !mri_type_is_picture_file(value->type)) {
        mr_type type;
        rc = as_file(&cfg->decode, whole, value, &type, &data, &bytes, err);
        if (rc == MR_OK) replace(item, value, type, data, bytes);
    }
    if (rc == MR_OK && value->type == MR_TYPE_JPEG && cfg->transcode)
        rc = transcode(cfg, whole, item, value, err);
    if (rc == MR_OK && cfg->store == MR_STORE_COEF) {
        if (value->type == MR_TYPE_JPEG) rc = pack(cfg, whole, item, value, &done, err);
        else item->kept = value->type != MR_TYPE_COEF;
    }
    if (rc == MR_OK && plan->entries >= 0 && value->type == MR_TYPE_JPEG)
        rc = add_entries(plan, whole, item, value, &done, err);
    if (rc == MR_OK && !done) rc = mri_picture_check(whole, value, &cfg->decode, err);
    return rc;
}

int mri_convert_picture(const mri_convert_plan *plan, mri_transcoder *whole, mri_convert_item *item,
                        mr_value *value)
{
    int rc = mri_picture_allowed(value, &plan->cfg.decode, &item->error);
    if (rc) return rc;
    const bool keep = stays(&plan->cfg, value, &item->error, &rc);
    if (rc == MR_OK && !keep) rc = remake(&plan->cfg, item, value, &item->error);
    if (rc == MR_OK && plan->cfg.store != MR_STORE_RAW) rc = store(plan, whole, item, value);
    return rc;
}

int mri_convert_companion_pictures(const mri_convert_plan *plan, mri_transcoder *whole,
                                   mri_convert_item *item)
{
    mr_decode_config cfg = plan->cfg.decode;
    cfg.channels = 0;
    for (int k = 0; k < (int)plan->field_count; k++) {
        mr_value *v = &item->values[k];
        void *data;
        size_t bytes;
        if (k == plan->image || (v->type != MR_TYPE_PIXELS && v->type != MR_TYPE_COEF)) continue;
        mr_type type;
        const int rc = as_file(&cfg, whole, v, &type, &data, &bytes, &item->error);
        if (rc) return rc;
        free(item->companions[k]); /* its sources */
        item->companions[k] = data;
        item->companion_bytes += bytes;
        *v = (mr_value){.type = type, .data = data, .bytes = bytes};
    }
    return MR_OK;
}
