/* pipeline/picture.c: one face for JPEG, PNG and raw pixels: look first, then decode the wanted part.
 *
 * The kind comes from the content, never from a name or from what a field claims. Nothing is allocated before the header has
 * been checked against max_pixels. */
#include "pipeline/decoders.h"

void mri_decoder_free(mri_decoder *d)
{
    mri_jpeg_destroy(d->jpeg);
    mri_buffer_free(&d->pixels);
    mri_buffer_free(&d->other);
    *d = (mri_decoder){0};
}

static int check_limit(uint64_t width, uint64_t height, const mr_decode_config *cfg, mr_error *err)
{
    if (width <= cfg->max_pixels / height) return MR_OK;
    return mr_error_set(err, MR_ELIMIT, "picture of %llu x %llu pixels is over the limit of %llu pixels (--max-pixels)",
                        (unsigned long long)width, (unsigned long long)height, (unsigned long long)cfg->max_pixels);
}

static int open_pixels(mri_picture *p, const mr_decode_config *cfg, mr_error *err)
{
    const mr_value *v = p->value;
    size_t bytes;
    if (v->ndim != 3 || v->dim[0] == 0 || v->dim[1] == 0 || v->dim[2] < 1 || v->dim[2] > 4 || v->dim[0] > INT32_MAX ||
        v->dim[1] > INT32_MAX)
        return mr_error_set(err, MR_EFORMAT, "pixels: expected dimensions height, width and 1 to 4 channels");
    const int rc = check_limit(v->dim[1], v->dim[0], cfg, err);
    if (rc) return rc;
    if (!mri_picture_bytes(v->dim[1], v->dim[0], (uint32_t)v->dim[2], &bytes) || bytes != v->bytes)
        return mr_error_set(err, MR_EFORMAT, "pixels: %zu bytes do not make %llu x %llu x %llu", v->bytes,
                            (unsigned long long)v->dim[0], (unsigned long long)v->dim[1], (unsigned long long)v->dim[2]);
    p->height = (uint32_t)v->dim[0];
    p->width = (uint32_t)v->dim[1];
    p->channels = v->dim[2] <= 2 ? 1 : 3;
    return MR_OK;
}

int mri_picture_open(mri_picture *p, const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    *p = (mri_picture){.value = value, .orientation = 1};
    if (value->type == MR_TYPE_PIXELS) return open_pixels(p, cfg, err);
    if (value->type != MR_TYPE_JPEG && value->type != MR_TYPE_PNG && value->type != MR_TYPE_BYTES)
        return mr_error_set(err, MR_EFORMAT, "expected a picture, found a value of type %d", (int)value->type);
    int rc = mr_image_header_parse(value->data, value->bytes, &p->header, err);
    if (rc == MR_OK) rc = check_limit(p->header.width, p->header.height, cfg, err);
    if (rc) return rc;
    if (!cfg->ignore_exif) p->orientation = p->header.orientation;
    const bool swap = mri_orient_swaps(p->orientation);
    p->width = swap ? p->header.height : p->header.width;
    p->height = swap ? p->header.width : p->header.height;
    p->channels = p->header.channels <= 2 ? 1 : 3;
    return MR_OK;
}

static int pixels_view(mri_decoder *d, const mri_picture *p, uint32_t channels, mri_rect part, mri_view *out, mr_error *err)
{
    const mr_value *v = p->value;
    const uint32_t  stored = (uint32_t)v->dim[2];
    const bool      planes = v->planes == MR_CHW && stored > 1;
    mri_view view = {.pixels = v->data, .width = p->width, .height = p->height, .channels = stored,
                     .stride = (size_t)p->width * (planes ? 1 : stored),
                     .plane_bytes = planes ? (size_t)p->width * p->height : 0};
    view = mri_view_part(&view, part);
    if (stored != channels) {
        size_t bytes;
        if (!mri_picture_bytes(part.width, part.height, channels, &bytes) || mri_buffer_need(&d->other, bytes))
            return mr_error_set(err, MR_ENOMEM, "no memory for %u x %u pixels", part.width, part.height);
        mri_convert_channels(&view, channels, d->other.data);
        view = (mri_view){.pixels = d->other.data, .width = part.width, .height = part.height, .channels = channels,
                          .stride = (size_t)part.width * channels};
    }
    *out = view;
    return MR_OK;
}

static int decode_stored(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg, uint32_t channels, mri_rect part,
                         mri_view *out, mr_error *err)
{
    if (p->header.type == MR_TYPE_PNG) {
        mri_view whole;
        const int rc = mri_png_decode(p->value->data, p->value->bytes, &p->header, channels, &d->pixels, &whole, err);
        if (rc == MR_OK) *out = mri_view_part(&whole, part);
        return rc;
    }
    if (!d->jpeg && mri_jpeg_create(&d->jpeg)) return mr_error_set(err, MR_ENOMEM, "JPEG: no memory for a decoder");
    const mri_jpeg_request request = {.data = p->value->data, .bytes = p->value->bytes, .header = &p->header,
                                      .channels = channels, .max_scans = cfg->max_scans, .max_pixels = cfg->max_pixels,
                                      .part = part};
    return mri_jpeg_decode(d->jpeg, &request, &d->pixels, out, err);
}

int mri_picture_decode(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg, uint32_t channels, mri_rect part,
                       mri_view *out, mr_error *err)
{
    if (p->header.type == 0) return pixels_view(d, p, channels, part, out, err);
    const mri_rect stored = mri_orient_rect(part, p->orientation, p->header.width, p->header.height);
    int rc = decode_stored(d, p, cfg, channels, stored, out, err);
    if (rc || p->orientation == 1) return rc;
    size_t bytes;
    if (!mri_picture_bytes(part.width, part.height, channels, &bytes) || mri_buffer_need(&d->other, bytes))
        return mr_error_set(err, MR_ENOMEM, "no memory for %u x %u pixels", part.width, part.height);
    mri_orient(out, p->orientation, d->other.data);
    *out = (mri_view){.pixels = d->other.data, .width = part.width, .height = part.height, .channels = channels,
                      .stride = (size_t)part.width * channels};
    return MR_OK;
}
