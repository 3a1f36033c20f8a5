/* pipeline/augment.h: one sample from encoded bytes to its final pixels, inside the pipeline. Private.
 *
 * A worker owns one scratch and runs samples through it; in the steady state nothing is allocated. */
#ifndef MRI_AUGMENT_H
#define MRI_AUGMENT_H

#include "millrace/pipeline.h"

/* Buffers of one worker: decoder, intermediate pictures. They grow to the largest sample seen and stay. */
typedef struct mri_scratch mri_scratch;
int  mri_scratch_create(mri_scratch **out);
void mri_scratch_destroy(mri_scratch *s); /* accepts NULL */
/* The most one scratch may come to hold under these limits when no picture is larger than max_pixels_seen, and the pipeline takes
 * out_pixels. */
uint64_t mri_scratch_bound_bytes(const mr_decode_config *decode, uint64_t max_pixels_seen, uint64_t out_pixels);

/* Does the picture go straight into a resize, before anything looks at its pixels? */
bool mri_augment_resamples_first(const mr_augment *a);

/* What the draws of a sample depend on, besides the operation's place in the specification. */
typedef struct mri_sample_key {
    uint64_t seed, epoch, sample;
} mri_sample_key;

/* Decode value (JPEG, PNG or PIXELS), augment, and write out_h * out_w * channels uint8 NHWC at dst, straight and nothing
 * after it. affine: two floats (factor, offset) written when the specification standardises, else untouched; may be NULL then.
 * channels 1 or 3. Same arguments, same bytes: on any thread, at any time, with any scratch.
 * MR_EFORMAT, MR_EUNSUPPORTED, MR_ELIMIT: the sample is bad, err says why; dst is then undefined. */
int mri_augment_run(const mr_augment *a, mri_scratch *s, const mr_value *value, const mr_decode_config *decode,
                    uint32_t channels, mri_sample_key key, uint32_t out_h, uint32_t out_w, uint8_t *dst, float *affine,
                    mr_error *err);

#endif
