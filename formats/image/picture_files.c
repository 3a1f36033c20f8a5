/* formats/image/picture_files.c: see picture_files.h. */
#include "formats/image/picture_files.h"

#include <strings.h>

#include "formats/image/bmp_layout.h"
#include "formats/image/gif_layout.h"
#include "formats/image/tiff_layout.h"
#include "formats/image/webp_layout.h"

/* The first ending of a kind is that of new files. */
static const struct {
    const char *ending, *name;
    mr_type type;
} endings[] = {
    {"jpg", "JPEG", MR_TYPE_JPEG},  {"jpeg", "JPEG", MR_TYPE_JPEG}, {"png", "PNG", MR_TYPE_PNG},
    {"jpe", "JPEG", MR_TYPE_JPEG},  {"jfif", "JPEG", MR_TYPE_JPEG}, {"jif", "JPEG", MR_TYPE_JPEG},
    {"webp", "WebP", MR_TYPE_WEBP}, {"gif", "GIF", MR_TYPE_GIF},    {"bmp", "BMP", MR_TYPE_BMP},
    {"dib", "BMP", MR_TYPE_BMP},    {"tiff", "TIFF", MR_TYPE_TIFF}, {"tif", "TIFF", MR_TYPE_TIFF},
};

mr_type mri_picture_ending(const char *ending, size_t bytes)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(endings); k++)
        if (strlen(endings[k].ending) == bytes && strncasecmp(endings[k].ending, ending, bytes) == 0)
            return endings[k].type;
    return 0;
}

const char *mri_picture_ending_of(mr_type type)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(endings); k++)
        if (endings[k].type == type) return endings[k].ending;
    return NULL;
}

const char *mri_picture_ending_at(size_t k)
{
    return k < MRI_ARRAY_COUNT(endings) ? endings[k].ending : NULL;
}

const char *mri_picture_kind_name(mr_type type)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(endings); k++)
        if (endings[k].type == type) return endings[k].name;
    return NULL;
}

mr_type mri_other_sniff(const uint8_t *p, size_t bytes)
{
    if (mri_gif_is(p, bytes)) return MR_TYPE_GIF;
    if (mri_bmp_is(p, bytes)) return MR_TYPE_BMP;
    if (mri_webp_is(p, bytes)) return MR_TYPE_WEBP;
    return mri_tiff_is(p, bytes) ? MR_TYPE_TIFF : 0;
}

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

int mri_other_header(mr_type type, const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err)
{
    switch (type) {
    case MR_TYPE_GIF: return gif_header(p, bytes, out, err);
    case MR_TYPE_BMP: return bmp_header(p, bytes, out, err);
    case MR_TYPE_WEBP: return webp_header(p, bytes, out, err);
    default: return tiff_header(p, bytes, out, err);
    }
}
