/* formats/image/other_kinds.h: kinds of pictures besides JPEG and PNG, as one table. Private.
 *
 *   takes     the first bytes of a file
 *   gives     its kind and its header
 *   callers   image_header.c */
#ifndef MRI_OTHER_KINDS_H
#define MRI_OTHER_KINDS_H

#include "millrace/formats.h"

/* MR_TYPE_GIF, MR_TYPE_BMP, MR_TYPE_WEBP, MR_TYPE_TIFF, MR_TYPE_HEIC, MR_TYPE_AVIF, or 0. */
mr_type mri_other_sniff(const uint8_t *p, size_t bytes);

/* Header of a file of that kind; *out has orientation 1 before. MR_EFORMAT, MR_EUNSUPPORTED: err says why. */
int mri_other_header(mr_type type, const uint8_t *p, size_t bytes, mr_image_header *out, mr_error *err);

#endif
