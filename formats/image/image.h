/* formats/image/image.h: the facts about a picture before it is decoded. Private.
 *
 * Takes the bytes of a picture file; any bytes are safe. Gives size, kind and orientation (public:
 * mr_image_header_parse()), and in the headers
 *   jpeg_frame.h     a JPEG's markers
 *   jpeg_entry.h     entry points into it
 *   coef.h           its coefficients, packed
 *   picture_files.h  the endings of names
 *   other_kinds.h    other kinds (not included here)
 *   picture_kind.h   the kind of a file that is not a picture
 * Decodes nothing: that is pipeline/decode. Callers: formats and pipeline; it knows neither. */
#ifndef MRI_IMAGE_H
#define MRI_IMAGE_H

#include "formats/image/coef.h"
#include "formats/image/jpeg_entry.h"
#include "formats/image/jpeg_frame.h"
#include "formats/image/picture_files.h"
#include "formats/image/picture_kind.h"

#endif
