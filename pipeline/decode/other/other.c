/* pipeline/decode/other/other.c: see other.h. */
#include "pipeline/decode/other/other.h"

#include "formats/image/heif_coded.h"
#include "formats/image/picture_files.h"
#include "pipeline/decode/other/libraries.h"

void mri_others_free(mri_others *o)
{
    mri_gif_work_destroy(o->gif);
    mri_buffer_free(&o->room);
    *o = (mri_others){0};
}

static int decode_gif(mri_others *o, const uint8_t *data, size_t bytes, const mri_other_out *to,
                      mr_error *err)
{
    mri_gif_layout gif;
    const int rc = mri_gif_layout_parse(&gif, data, bytes, err);
    return rc ? rc : mri_gif_decode(&o->gif, &gif, data, bytes, to, err);
}

static int decode_bmp(const uint8_t *data, size_t bytes, const mri_other_out *to, mr_error *err)
{
    mri_bmp_layout bmp;
    const int rc = mri_bmp_layout_parse(&bmp, data, bytes, err);
    return rc ? rc : mri_bmp_decode(&bmp, data, bytes, to, err);
}

/* In place: a result never lies behind its source. */
static void make_gray(uint8_t *p, size_t count)
{
    for (size_t k = 0; k < count; k++) p[k] = mri_gray(p[3 * k], p[3 * k + 1], p[3 * k + 2]);
}

/* The whole picture; out is a part of it. */
static int decode_webp(const uint8_t *data, size_t bytes, uint32_t channels, mri_rect part, uint8_t *pixels,
                       mri_view *out, mr_error *err)
{
    mri_webp_layout webp;
    int rc = mri_webp_layout_parse(&webp, data, bytes, err);
    if (rc == MR_OK) rc = mri_webp_decode(&webp, data, bytes, part, pixels, err);
    if (rc) return rc;
    const size_t rows = part.y + (size_t)part.height;
    if (channels == 1) make_gray(pixels, rows * webp.width);
    const mri_view whole = mri_view_packed(pixels, webp.width, webp.height, channels);
    *out = mri_view_part(&whole, part);
    return MR_OK;
}

static int decode_tiff(mri_others *o, const uint8_t *data, size_t bytes, uint32_t channels, mri_rect part,
                       uint8_t *pixels, mr_error *err)
{
    mri_tiff_layout tiff;
    int rc = mri_tiff_layout_parse(&tiff, data, bytes, err);
    if (rc == MR_OK) rc = mri_tiff_decode(&tiff, data, bytes, part, &o->room, pixels, err);
    if (rc == MR_OK && channels == 1) make_gray(pixels, (size_t)part.width * part.height);
    return rc;
}

static int decode_heif(const mr_image_header *header, const uint8_t *data, size_t bytes, uint32_t channels,
                       mri_rect part, uint8_t *pixels, mr_error *err)
{
    const int rc = mri_heif_decode(header, data, bytes, part, pixels, err);
    if (rc == MR_OK && channels == 1) make_gray(pixels, (size_t)part.width * part.height);
    return rc;
}

int mri_other_ready(mr_type type, mr_error *err)
{
    switch (type) {
    case MR_TYPE_WEBP: return mri_webp_need(err) ? MR_OK : MR_EUNSUPPORTED;
    case MR_TYPE_TIFF: return mri_tiff_need(err) ? MR_OK : MR_EUNSUPPORTED;
    case MR_TYPE_HEIC:
    case MR_TYPE_AVIF: return mri_heif_need(type, err) ? MR_OK : MR_EUNSUPPORTED;
    default: return MR_OK;
    }
}

static bool is_heif(const mr_image_header *h) { return h->type == MR_TYPE_HEIC || h->type == MR_TYPE_AVIF; }

int mri_other_allowed(const mr_image_header *h, const void *data, size_t bytes, uint64_t max_pixels,
                      mr_error *err)
{
    const uint64_t coded = is_heif(h) ? mri_heif_coded_pixels(data, bytes) : 0;
    if (coded <= max_pixels) return MR_OK;
    const char *name = mri_picture_kind_name(h->type);
    if (coded == UINT64_MAX)
        return mr_error_set(err, MR_EFORMAT, "%s: its items (iloc) have too many pieces, or overlap: damaged",
                            name);
    return mr_error_set(
        err, MR_ELIMIT,
        "%s: it shows %u x %u pixels and contains a picture of %llu pixels, which is over the "
        "limit of %llu (--max-pixels)",
        name, h->width, h->height, (unsigned long long)coded, (unsigned long long)max_pixels);
}

uint64_t mri_other_library_bytes(const mr_image_header *h, const void *data, size_t bytes)
{
    mri_tiff_layout tiff;
    /* planes of two bytes a sample, the decoder's pictures, RGB */
    if (is_heif(h))
        return mri_times(24, mri_max_u64(mri_times(h->width, h->height), mri_heif_coded_pixels(data, bytes)));
    /* pixels of four bytes, alpha, rows */
    if (h->type == MR_TYPE_WEBP) return mri_times(6, mri_times(h->width, h->height));
    if (h->type != MR_TYPE_TIFF || mri_tiff_layout_parse(&tiff, data, bytes, NULL)) return 0;
    return mri_tiff_library_bytes(&tiff);
}

int mri_other_decode(mri_others *o, const void *data, size_t bytes, const mr_image_header *header,
                     uint32_t channels, mri_rect part, mri_buffer *buffer, mri_view *out, mr_error *err)
{
    const bool whole = header->type == MR_TYPE_WEBP,
               rgb = header->type != MR_TYPE_GIF && header->type != MR_TYPE_BMP;
    const uint32_t width = whole ? header->width : part.width, height = whole ? header->height : part.height;
    size_t room;
    if (!mri_picture_bytes(width, height, rgb ? 3 : channels, &room) || mri_buffer_need(buffer, room))
        return mr_error_set(err, MR_ENOMEM, "%s: no memory for %u x %u pixels",
                            mri_picture_kind_name(header->type), width, height);
    const mri_other_out to = {channels, part, buffer->data};
    *out = mri_view_packed(buffer->data, part.width, part.height, channels);
    switch (header->type) {
    case MR_TYPE_GIF: return decode_gif(o, data, bytes, &to, err);
    case MR_TYPE_BMP: return decode_bmp(data, bytes, &to, err);
    case MR_TYPE_WEBP: return decode_webp(data, bytes, channels, part, buffer->data, out, err);
    case MR_TYPE_HEIC:
    case MR_TYPE_AVIF: return decode_heif(header, data, bytes, channels, part, buffer->data, err);
    default: return decode_tiff(o, data, bytes, channels, part, buffer->data, err);
    }
}
