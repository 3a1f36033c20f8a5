/* formats/image/bmp_layout.h: where the pixels of a BMP lie in its file. Private.
 *
 *   "BM", bytes, 0, offset of the pixels | header: its bytes, w, h, planes, bits, ... | masks | colours |
 * pixels
 *
 * Headers of OS/2 1.x (12 bytes) and of Windows (40 bytes and more). Rows begin at the bottom
 * unless the height is negative, and fill up to 4 bytes. */
#ifndef MRI_BMP_LAYOUT_H
#define MRI_BMP_LAYOUT_H

#include "base/util.h"
#include "millrace/formats.h"

typedef enum mri_bmp_coding { MRI_BMP_PLAIN, MRI_BMP_RLE8, MRI_BMP_RLE4 } mri_bmp_coding;

typedef struct mri_bmp_layout {
    uint32_t width, height;
    uint32_t bits; /* of a pixel: 1, 4, 8 (an index), 16, 24, 32 */
    mri_bmp_coding coding;
    bool top_down;
    const uint8_t *colours; /* blue, green, red, and with colour_bytes 4 one byte more */
    uint32_t colour_count, colour_bytes;
    uint32_t mask[3]; /* 16 and 32 bits: red, green, blue; one run of bits each */
    size_t data;      /* offset of the pixels */
    size_t row_bytes; /* PLAIN */
} mri_bmp_layout;

bool mri_bmp_is(const uint8_t *p, size_t bytes);

/* Any bytes are safe. Does not look whether the pixels are all there. MR_EFORMAT, MR_EUNSUPPORTED: err says
 * why. */
int mri_bmp_layout_parse(mri_bmp_layout *out, const uint8_t *p, size_t bytes, mr_error *err);

#endif
