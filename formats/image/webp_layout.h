/* formats/image/webp_layout.h: where the first picture of a WebP lies in its file. Private.
 *
 *   "RIFF" bytes "WEBP" | VP8  bytes frame | ...                         lossy, no alpha
 *                       | VP8L bytes frame | ...                         lossless
 *                       | VP8X flags w-1 h-1 | ALPH | VP8 or VP8L | EXIF ...
 *                       | VP8X flags w-1 h-1 | ANIM | ANMF x/2 y/2 w-1 h-1 ... chunks of a frame | ANMF ...
 *
 * Later frames are not looked at. */
#ifndef MRI_WEBP_LAYOUT_H
#define MRI_WEBP_LAYOUT_H

#include "base/util.h"
#include "millrace/formats.h"

typedef struct mri_webp_layout {
    uint32_t width, height;          /* of the picture */
    uint32_t x, y, frame_w, frame_h; /* of the first frame in it */
    bool alpha;
    uint32_t orientation;    /* of its EXIF, 1 to 8 */
    size_t data, data_bytes; /* the input of a decoder: the file, or of an animation the frame's chunks */
} mri_webp_layout;

bool mri_webp_is(const uint8_t *p, size_t bytes);

/* Any bytes are safe. Does not look whether the frame is all there. MR_EFORMAT: err says why. */
int mri_webp_layout_parse(mri_webp_layout *out, const uint8_t *p, size_t bytes, mr_error *err);

#endif
