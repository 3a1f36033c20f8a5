/* formats/image/picture_kind.h: what stands where a JPEG or PNG was expected, for the message. Private. */
#ifndef MRI_PICTURE_KIND_H
#define MRI_PICTURE_KIND_H

#include "base/util.h"

/* What these bytes, the first of a file or all of it, look like, with what to do about it where that is
 * known: "a GIF picture: convert it to JPEG or PNG"; where nothing is known, "bytes 01 02 ...". They are
 * neither JPEG nor PNG (mr_image_sniff()). buf is written where the text is not a fixed one; the result is
 * buf or static. */
#define MRI_PICTURE_KIND_BYTES 256 /* of buf: always enough */
const char *mri_picture_kind(const void *data, size_t bytes, char buf[MRI_PICTURE_KIND_BYTES]);

#endif
