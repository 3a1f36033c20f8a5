/* pipeline/decode/image.c: one picture at a time, for tools: decode and resize into memory of the caller's
 * own. */
#include "base/abi.h"
#include "base/floats.h"
#include "formats/source/value.h"
#include "pipeline/decode/decoders.h"

void mr_image_part_defaults_sized(mr_image_part *part, size_t struct_size)
{
    const mr_image_part all = {0};
    mri_settings_give(part, struct_size, &all, sizeof all);
}

void mr_image_free(mr_image *image)
{
    if (!image) return;
    free(image->pixels);
    *image = (mr_image){0};
}

static int image_alloc(mr_image *out, uint32_t width, uint32_t height, uint32_t channels, mr_error *err)
{
    size_t bytes;
    *out = (mr_image){.width = width, .height = height, .channels = channels};
    if (mri_picture_bytes(width, height, channels, &bytes)) out->pixels = malloc(bytes);
    if (out->pixels) return MR_OK;
    *out = (mr_image){0};
    return mr_error_set(err, MR_ENOMEM, "no memory for a picture of %u x %u pixels", width, height);
}

static int decode_whole(const mr_value *value, const mr_decode_config *cfg, mr_image *out, mr_error *err)
{
    if (cfg->channels != 0 && cfg->channels != 1 && cfg->channels != 3)
        return mr_error_set(err, MR_EINVAL, "channels is %u; expected 0 (as stored), 1 or 3", cfg->channels);

    mri_picture picture;
    mri_decoder decoder = {0};
    mri_view view = {0};
    int rc = mri_picture_open(&picture, &decoder, value, cfg, err);
    const uint32_t channels = cfg->channels ? cfg->channels : picture.channels;
    if (rc == MR_OK)
        rc = mri_picture_decode(&decoder, &picture, cfg, channels,
                                (mri_rect){0, 0, picture.width, picture.height}, &view, err);
    if (rc == MR_OK) {
        mri_buffer *whole = view.pixels == decoder.pixels.data ? &decoder.pixels : &decoder.other;
        if (view.pixels == whole->data) { /* a fresh decoder's buffer has just the picture's size: hand it
                                             over */
            *out = (mr_image){view.width, view.height, channels, whole->data};
            *whole = (mri_buffer){0};
        } else {
            rc = image_alloc(out, view.width, view.height, channels, err);
            if (rc == MR_OK)
                mri_copy_window(&view, 0, 0, view.width, view.height, MRI_OUTSIDE_ZERO, false, out->pixels);
        }
    }
    mri_decoder_free(&decoder);
    return rc;
}

int mr_image_decode(const mr_value *value, const mr_decode_config *cfg, mr_image *out, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_GIVEN(err, out);
    mr_decode_config all;
    *out = (mr_image){0};
    MRI_GIVEN(err, value);
    const int rc = mri_decode_settings(&all, cfg, err);
    return rc == MR_OK ? decode_whole(value, &all, out, err) : rc;
}

int mr_image_can_decode(mr_type type, mr_error *err)
{
    if (mri_type_is_picture_file(type)) return mri_other_ready(type, err);
    return mr_error_set(err, MR_EINVAL, "expected the type of a picture file, found %s", mr_type_name(type));
}

/* ---- part of one ---- */

static int check_part(mr_image_part *p, const mri_picture *picture, const mr_decode_config *cfg,
                      mr_error *err)
{
    const uint32_t w = picture->width, h = picture->height;
    if (p->x >= w || p->y >= h || p->width > w - p->x || p->height > h - p->y)
        return mr_error_set(err, MR_EINVAL,
                            "the part of %u x %u pixels at %u, %u is not inside a picture of %u x %u",
                            p->width, p->height, p->x, p->y, w, h);
    if (!p->width) p->width = w - p->x;
    if (!p->height) p->height = h - p->y;
    if (!p->out_width) p->out_width = p->width;
    if (!p->out_height) p->out_height = p->height;
    const uint32_t most = MRI_RESAMPLE_MAX_SIDE;
    if (p->out_width > most || p->out_height > most || w > most || h > most)
        return mr_error_set(err, MR_EINVAL, "from %u x %u to %u x %u: sides go up to %u", w, h, p->out_width,
                            p->out_height, most);
    return mri_check_pixels(p->out_width, p->out_height, cfg->max_pixels, err);
}

static int decode_part(const mr_value *value, mr_image_part *p, const mr_decode_config *cfg, mr_image *out,
                       mr_error *err)
{
    if (cfg->channels != 0 && cfg->channels != 1 && cfg->channels != 3)
        return mr_error_set(err, MR_EINVAL, "channels is %u; expected 0 (as stored), 1 or 3", cfg->channels);
    mri_picture picture;
    mri_decoder decoder = {0};
    int rc = mri_picture_open(&picture, &decoder, value, cfg, err);
    if (rc == MR_OK) rc = check_part(p, &picture, cfg, err);
    if (rc == MR_OK) {
        const uint32_t channels = cfg->channels ? cfg->channels : picture.channels;
        const bool as_it_is = p->out_width == p->width && p->out_height == p->height; /* then chroma beyond
                                                                                         the part counts, as
                                                                                         in the whole */
        const mri_axis x = as_it_is ? mri_axis_window(picture.width, p->x, p->width)
                                    : mri_axis_of(picture.width, p->x, p->width, p->out_width),
                       y = as_it_is ? mri_axis_window(picture.height, p->y, p->height)
                                    : mri_axis_of(picture.height, p->y, p->height, p->out_height);
        rc = image_alloc(out, p->out_width, p->out_height, channels, err);
        if (rc == MR_OK)
            rc = mri_picture_resample(&decoder, &picture, cfg, channels, &x, &y, MRI_FILTER_BILINEAR, p->flip,
                                      out->pixels, err);
    }
    mri_decoder_free(&decoder);
    if (rc != MR_OK) mr_image_free(out);
    return rc;
}

int mr_image_decode_part(const mr_value *value, const mr_image_part *part, const mr_decode_config *cfg,
                         mr_image *out, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    mr_decode_config all;
    mr_image_part p = {.struct_size = sizeof p};
    MRI_GIVEN(err, out);
    *out = (mr_image){0};
    MRI_GIVEN(err, value);
    int rc = mri_decode_settings(&all, cfg, err);
    if (rc == MR_OK) rc = mri_settings_take(&p, sizeof p, part, "image_part", err);
    return rc == MR_OK ? decode_part(value, &p, &all, out, err) : rc;
}

int mr_image_resize(const mr_image *in, uint32_t width, uint32_t height, mr_image *out, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_GIVEN(err, out);
    MRI_GIVEN(err, in);
    *out = (mr_image){0};
    if (!in->pixels || (in->channels != 1 && in->channels != 3))
        return mr_error_set(err, MR_EINVAL, "resize takes pictures of 1 or 3 channels, found %u",
                            in->channels);
    if (width == 0 || height == 0 || in->width == 0 || in->height == 0 || width > MRI_RESAMPLE_MAX_SIDE ||
        height > MRI_RESAMPLE_MAX_SIDE || in->width > MRI_RESAMPLE_MAX_SIDE ||
        in->height > MRI_RESAMPLE_MAX_SIDE)
        return mr_error_set(err, MR_EINVAL, "resize of %u x %u to %u x %u: sides go from 1 to %u", in->width,
                            in->height, width, height, MRI_RESAMPLE_MAX_SIDE);
    int rc = image_alloc(out, width, height, in->channels, err);
    if (rc) return rc;
    const mri_view view = mri_view_packed(in->pixels, in->width, in->height, in->channels);
    const mri_axis x = mri_axis_of(in->width, 0, in->width, width),
                   y = mri_axis_of(in->height, 0, in->height, height);
    mri_decoder decoder = {0};
    rc = mri_view_resample(&decoder, &view, 0, 0, &x, &y, MRI_FILTER_BILINEAR, false, out->pixels, err);
    mri_decoder_free(&decoder);
    if (rc == MR_OK) return MR_OK;
    mr_image_free(out);
    return rc;
}
