/* formats/image/exif.h: the orientation, the only EXIF entry that changes a picture. Private. */
#ifndef MRI_EXIF_H
#define MRI_EXIF_H

#include "base/util.h"

/* Orientation, 1 to 8, of an EXIF part (a little TIFF file); 1 when the orientation is absent or broken. Any
 * bytes are safe. */
uint32_t mri_exif_orientation(const uint8_t *tiff, size_t bytes);
/* The same for the body of a JPEG's APP1 segment; 0 when that is something else. Of several EXIF parts the
 * first counts. */
uint32_t mri_exif_app1(const uint8_t *body, size_t bytes);

#endif
