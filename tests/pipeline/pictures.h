/* tests/pipeline/pictures.h: pictures made to order for the image tests, and slow, obvious references. */
#ifndef MRT_PICTURES_H
#define MRT_PICTURES_H

#include "millrace/pipeline.h"

typedef struct mrt_jpeg_kind {
    int h, v; /* luma sampling factors; chroma 1 x 1 */
    bool progressive, arithmetic, multi_scan;
    int components; /* 1, 3 (YCbCr), 4 (CMYK) */
    bool adobe;     /* with components 4: Adobe marker */
    int quality, restart_rows;
    int orientation;                /* EXIF, 0: none */
    bool big_endian;                /* of the EXIF part */
    void (*tune)(void *compressor); /* anything else: called last, with the struct jpeg_compress_struct */
} mrt_jpeg_kind;

/* Smooth shapes plus noise; malloc'd. */
uint8_t *mrt_picture(uint32_t width, uint32_t height, uint32_t channels, uint64_t seed);
/* A JPEG of such a picture; malloc'd. */
uint8_t *mrt_jpeg(const mrt_jpeg_kind *kind, uint32_t width, uint32_t height, uint64_t seed, size_t *bytes);
/* A JPEG's bytes with this EXIF orientation in front; malloc'd. */
uint8_t *mrt_oriented(const void *jpeg, size_t *bytes, uint32_t orientation);
/* libjpeg's own decode of a whole file, no frills; malloc'd; components as stored (4 for CMYK). */
uint8_t *mrt_plain_decode(const uint8_t *data, size_t bytes, int want_components);
/* A value holding the bytes of a JPEG or PNG (the type it claims does not matter). */
mr_value mrt_encoded(const void *data, size_t bytes);
mr_value mrt_pixels(const uint8_t *data, uint32_t width, uint32_t height, uint32_t channels,
                    mr_planes planes);

#endif
