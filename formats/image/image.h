/* formats/image/image.h: what a picture's bytes say before it is decoded. Private.
 *
 * Takes the bytes of a JPEG or PNG, or of what was taken for one; any bytes are safe. Gives size, kind and
 * orientation (public: mr_image_header_parse()), and
 *   jpeg_frame.h     a JPEG's markers
 *   jpeg_entry.h     entry points into it
 *   coef.h           its coefficients, packed
 *   picture_kind.h   what it is when it is no picture
 * Decodes nothing: that is pipeline/decode. Formats and pipeline may use it; it knows neither. */
#ifndef MRI_IMAGE_H
#define MRI_IMAGE_H

#include "formats/image/coef.h"
#include "formats/image/jpeg_entry.h"
#include "formats/image/jpeg_frame.h"
#include "formats/image/picture_kind.h"

#endif
