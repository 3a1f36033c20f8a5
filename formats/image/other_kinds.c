/* formats/image/other_kinds.c: see other_kinds.h. */
#include "formats/image/other_kinds.h"

#include "base/util.h"
#include "formats/image/bmp_layout.h"
#include "formats/image/gif_layout.h"
#include "formats/image/heif_layout.h"
#include "formats/image/tiff_layout.h"
#include "formats/image/webp_layout.h"

static int gif_header(const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    mri_gif_layout gif;
    const int rc = mri_gif_layout_parse(&gif, p, bytes, err);
    if (rc) return rc;
    out->width = gif.width;
    out->height = gif.height;
    out->channels = gif.colour_count ? 3 : 1;
    out->bit_depth = 8;
    out->progressive = gif.interlaced;
    return MR_OK;
}

static int bmp_header(const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    mri_bmp_layout bmp;
    const int rc = mri_bmp_layout_parse(&bmp, p, bytes, err);
    if (rc) return rc;
    out->width = bmp.width;
    out->height = bmp.height;
    out->channels = 3;
    out->bit_depth = bmp.bits <= 8 ? bmp.bits : 8;
    return MR_OK;
}

static int webp_header(const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    mri_webp_layout webp;
    const int rc = mri_webp_layout_parse(&webp, p, bytes, err);
    if (rc) return rc;
    out->width = webp.width;
    out->height = webp.height;
    out->channels = webp.alpha ? 4 : 3;
    out->bit_depth = 8;
    out->orientation = webp.orientation;
    return MR_OK;
}

static int tiff_header(const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    mri_tiff_layout tiff;
    const int rc = mri_tiff_layout_parse(&tiff, p, bytes, err);
    if (rc) return rc;
    const uint32_t colours = tiff.kind == MRI_TIFF_PALETTE ? 3 : tiff.colours;
    out->width = tiff.width;
    out->height = tiff.height;
    out->channels = colours < 4 && tiff.samples > tiff.colours ? colours + 1 : colours;
    out->bit_depth = tiff.bits;
    out->orientation = tiff.orientation;
    return MR_OK;
}

static int heif_header(const char *name, const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    mri_heif_layout heif;
    const int rc = mri_heif_layout_parse(&heif, name, p, bytes, err);
    if (rc) return rc;
    out->width = heif.width;
    out->height = heif.height;
    out->channels = heif.channels;
    out->bit_depth = heif.bit_depth;
    return MR_OK;
}

static int heic_header(const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    return heif_header("HEIC", p, bytes, out, err);
}

static int avif_header(const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    return heif_header("AVIF", p, bytes, out, err);
}

static const struct {
    mr_type type;
    bool (*is)(const uint8_t *p, size_t bytes);
    int (*header)(const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err);
} kinds[] = {
    {MR_TYPE_GIF, mri_gif_is, gif_header},    {MR_TYPE_BMP, mri_bmp_is, bmp_header},
    {MR_TYPE_WEBP, mri_webp_is, webp_header}, {MR_TYPE_TIFF, mri_tiff_is, tiff_header},
    {MR_TYPE_HEIC, mri_heic_is, heic_header}, {MR_TYPE_AVIF, mri_avif_is, avif_header},
};

mr_type mri_other_sniff(const uint8_t *p, size_t bytes)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++)
        if (kinds[k].is(p, bytes)) return kinds[k].type;
    return 0;
}

int mri_other_header(mr_type type, const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    size_t k = 0;
    while (k < MRI_ARRAY_COUNT(kinds) - 1 && kinds[k].type != type) k++;
    return kinds[k].header(p, bytes, out, err);
}
