/* pipeline/cache/cache_form.h: the form in which samples are kept: encoded bytes, coefficients, or pixels.
 * Private.
 *
 * For every crop and under this loader's settings, a kept form decodes to the same pixels as the original. */
#ifndef MRI_CACHE_FORM_H
#define MRI_CACHE_FORM_H

#include "pipeline/decode/decoders.h"

typedef struct mri_cache_form {
    const char *name; /* 1..23 letters, part of a disk cache's name: a form that changes takes another */
    /* The most bytes out->bytes + out->entries_bytes can be for an image value of value_bytes; a larger entry
     * is not kept. */
    uint64_t (*bound)(uint64_t value_bytes);
    /* What one worker makes values with. create NULL: nothing is needed, maker is NULL. decode stays until
     * destroy. */
    int (*create)(void **maker, const mr_decode_config *decode, uint32_t channels);
    void (*destroy)(void *maker);
    void (*drop)(void *maker); /* frees its buffers; it can be used as before. NULL: no buffers */
    uint64_t (*maker_bytes)(const mr_decode_config *decode, mri_extremes seen); /* the most it may hold; NULL:
                                                                                 nothing */
    /* out may point into in or into maker, until its next call. Anything but MR_OK: this one is not kept. */
    int (*make)(void *maker, const mr_value *in, mr_value *out);
} mri_cache_form;

extern const mri_cache_form mri_cache_coefficients; /* JPEGs with their entropy coding undone */

/* The form for pictures of this type (IMAGE: any): values that already are pixels or coefficients stay
 * unchanged; small ones of one size (height, width; 0: sizes differ) that are not resampled at once become
 * pixels; others coefficients, unless libjpeg's pixels are wanted. */
const mri_cache_form *mri_cache_form_for(const mr_augment *augment, const mr_decode_config *decode,
                                         mr_type type, uint32_t height, uint32_t width, uint32_t channels);

#endif
