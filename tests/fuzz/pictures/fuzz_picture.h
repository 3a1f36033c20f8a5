/* tests/fuzz/pictures/fuzz_picture.h: bytes through everything that looks at a picture: header, decode,
 * augmentation of a part. */
#ifndef MRT_FUZZ_PICTURE_H
#define MRT_FUZZ_PICTURE_H

#include <stdlib.h>
#include <string.h>

#include "pipeline/augment/augment.h"
#include "tests/fuzz/fuzz.h"

enum {
    PICTURE_PIXELS = 1 << 18,               /* the decoder's limit */
    PICTURE_DECLARED = 64 * PICTURE_PIXELS, /* pixels, coefficients of a progressive one, rows padded to whole
                                               MCUs, work space */
};

/* The part that a random crop decodes, and the whole, must agree on whether the bytes are a picture within
 * these limits; the crop sees less, so only one way. */
static inline void fuzz_picture(mr_type type, const uint8_t *data, size_t bytes)
{
    static mr_augment *a[3];
    static mri_scratch *s;
    static const char *const specs[3] = {"rrc(24,scale=0.01:1),flip", "resize(20),center(16),contrast(0:2)",
                                         "center(16),shift(0.5)"};
    static const uint32_t sides[3] = {24, 16, 16};
    if (!s) {
        if (mri_scratch_create(&s)) abort();
        for (int k = 0; k < 3; k++)
            if (mr_augment_create(&a[k], specs[k], true, NULL)) abort();
    }
    mrt_fuzz_begin(bytes, PICTURE_DECLARED);
    mr_image_header header;
    mr_error err = MR_ERROR_INIT;
    if (mr_image_header_parse(data, bytes, &header, &err) == MR_OK &&
        (header.width == 0 || header.height == 0))
        abort();

    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    cfg.max_pixels = PICTURE_PIXELS;
    cfg.max_scans = 12;
    const mr_value value = {.type = type, .data = data, .bytes = bytes};
    mr_image image;
    const int rc = mr_image_decode(&value, &cfg, &image, &err);
    if ((rc == MR_OK) != (image.pixels != NULL)) abort();
    mr_image_free(&image);
    uint8_t dst[24 * 24 * 3];
    for (uint64_t k = 0; k < 3; k++) {
        const mri_sample_key key = {bytes, data[bytes / 2], k};
        const int part = mri_augment_run(a[k], s, &value, &cfg, bytes % 2 ? 1 : 3, key, sides[k], sides[k],
                                         dst, NULL, NULL, NULL, &err);
        if (rc == MR_OK && part != MR_OK && part != MR_ELIMIT)
            abort(); /* a whole picture has all its parts */
    }
    mrt_fuzz_end();
}

#endif
