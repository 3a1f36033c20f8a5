/* formats/image/picture_kind.h: names the kind of data found in place of a picture, for messages.
 * Private. */
#ifndef MRI_PICTURE_KIND_H
#define MRI_PICTURE_KIND_H

#include "base/util.h"

/* Describe these bytes, the first of a file or all of it, which are no picture that is decoded
 * (mr_image_sniff()), and say what to do when that is known: "an ICO picture: convert it to JPEG or PNG"; for
 * unknown content "bytes 01 02 ...". The result is buf or a static text. */
#define MRI_PICTURE_KIND_BYTES 256 /* of buf: always enough */
const char *mri_picture_kind(const void *data, size_t bytes, char buf[MRI_PICTURE_KIND_BYTES]);

/* Could these bytes have been a picture once? True for damage (nothing, zeros, a cut head, a pointer in its
 * place) and for bytes of no kind that is known; false for text and for files of other kinds. */
bool mri_picture_lost(const void *data, size_t bytes);

#endif
