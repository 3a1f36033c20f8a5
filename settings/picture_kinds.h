/* settings/picture_kinds.h: the kinds of picture files, in the order of --pictures and of the bits
 * MR_PICTURES_JPEG, ... Private. */
#ifndef MRI_PICTURE_KINDS_H
#define MRI_PICTURE_KINDS_H

/* A list of X(KIND, name) with Y in place of X after the first: MR_TYPE_KIND is the type, name its
 * mr_type_name(). */
#define MRI_PICTURE_KINDS(X, Y)                                                                              \
    X(JPEG, "jpeg")                                                                                          \
    Y(PNG, "png")                                                                                            \
    Y(GIF, "gif")                                                                                            \
    Y(BMP, "bmp")                                                                                            \
    Y(WEBP, "webp")                                                                                          \
    Y(TIFF, "tiff")                                                                                          \
    Y(HEIC, "heic")                                                                                          \
    Y(AVIF, "avif")

#define MRI_PICTURE_NAME(kind, name)      name
#define MRI_PICTURE_NEXT_NAME(kind, name) , name
#define MRI_PICTURE_TYPE(kind, name)      MR_TYPE_##kind,

/* "jpeg", "png", ...; MR_TYPE_JPEG, MR_TYPE_PNG, ... with a comma at the end. */
#define MRI_PICTURE_NAMES MRI_PICTURE_KINDS(MRI_PICTURE_NAME, MRI_PICTURE_NEXT_NAME)
#define MRI_PICTURE_TYPES MRI_PICTURE_KINDS(MRI_PICTURE_TYPE, MRI_PICTURE_TYPE)

#endif
