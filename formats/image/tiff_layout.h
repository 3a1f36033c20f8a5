/* formats/image/tiff_layout.h: the first directory of a TIFF, which describes its picture. Private.
 *
 *   "II*\0" or "MM\0*" (classic), "II+\0" or "MM\0+" (BigTIFF) | offset of the directory | ...
 *   directory: entries, each tag, type, count, value or its offset
 *
 * Only the tags that decide how pixels are stored are read; where strips and tiles lie is the decoder's
 * matter. */
#ifndef MRI_TIFF_LAYOUT_H
#define MRI_TIFF_LAYOUT_H

#include "base/util.h"
#include "millrace/formats.h"

enum { /* of the TIFF specification */
       MRI_TIFF_WHITE_IS_ZERO = 0,
       MRI_TIFF_BLACK_IS_ZERO = 1,
       MRI_TIFF_RGB = 2,
       MRI_TIFF_PALETTE = 3,
       MRI_TIFF_CMYK = 5,
       MRI_TIFF_YCBCR = 6,
       MRI_TIFF_JPEG = 7, /* a compression */
};

typedef struct mri_tiff_layout {
    uint32_t width, height;
    uint32_t bits;    /* of a sample: 1, 2, 4, 8, 16 */
    uint32_t samples; /* of a pixel; those beyond the colours are dropped */
    uint32_t colours; /* the first of them: 1, 3, or 4 (CMYK) */
    uint32_t kind;    /* MRI_TIFF_RGB, ... */
    uint32_t compression;
    bool planes;             /* samples lie apart */
    uint32_t orientation;    /* 1 to 8 */
    uint32_t tile_w, tile_h; /* 0: strips */
    uint32_t strip_rows;     /* rows of a strip */
} mri_tiff_layout;

bool mri_tiff_is(const uint8_t *p, size_t bytes);

/* Any bytes are safe. MR_EFORMAT, MR_EUNSUPPORTED: err says why. */
int mri_tiff_layout_parse(mri_tiff_layout *out, const uint8_t *p, size_t bytes, mr_error *err);

/* Bytes of a row of strips, or of a tile, as they are decoded, all samples of a plane. */
uint64_t mri_tiff_row_bytes(const mri_tiff_layout *t);
uint64_t mri_tiff_tile_bytes(const mri_tiff_layout *t);

#endif
