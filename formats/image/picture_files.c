/* formats/image/picture_files.c: see picture_files.h. */
#include "formats/image/picture_files.h"

#include <strings.h>

/* The first ending of a kind is that of new files. */
static const struct {
    const char *ending, *name;
    mr_type type;
} endings[] = {
    {"jpg", "JPEG", MR_TYPE_JPEG},  {"jpeg", "JPEG", MR_TYPE_JPEG}, {"png", "PNG", MR_TYPE_PNG},
    {"jpe", "JPEG", MR_TYPE_JPEG},  {"jfif", "JPEG", MR_TYPE_JPEG}, {"jif", "JPEG", MR_TYPE_JPEG},
    {"webp", "WebP", MR_TYPE_WEBP}, {"gif", "GIF", MR_TYPE_GIF},    {"bmp", "BMP", MR_TYPE_BMP},
    {"dib", "BMP", MR_TYPE_BMP},    {"tiff", "TIFF", MR_TYPE_TIFF}, {"tif", "TIFF", MR_TYPE_TIFF},
    {"heic", "HEIC", MR_TYPE_HEIC}, {"heif", "HEIC", MR_TYPE_HEIC}, {"avif", "AVIF", MR_TYPE_AVIF},
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
