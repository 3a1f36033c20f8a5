/* pipeline/decode/jpeg/transcoder.h: whole pictures, for conversion and checks: is a picture sound, its
 * coefficients as a payload, its entry points, and back to JPEG. Private. Loading a batch does not need any
 * of this. */
#ifndef MRI_TRANSCODER_H
#define MRI_TRANSCODER_H

#include "formats/image/jpeg_frame.h"
#include "millrace/pipeline.h"

typedef struct mri_transcoder mri_transcoder; /* decoders and buffers of one thread; large buffers are given
                                       back after each picture */

int mri_transcoder_create(mri_transcoder **out);
void mri_transcoder_destroy(mri_transcoder *w); /* accepts NULL */

/* Decode all coefficients of a JPEG or a payload and keep nothing: MR_OK, or the error. Entry points of a
 * JPEG must equal newly built ones. MR_EUNSUPPORTED: a JPEG that our decoder does not take; only decoding its
 * pixels can check it. */
int mri_transcoder_check(mri_transcoder *w, const mr_value *value, const mr_decode_config *cfg,
                         mr_error *err);

/* A JPEG's coefficients as a payload (formats/image/coef.h); malloc'd.
 * MR_EUNSUPPORTED  no gray, YCbCr or RGB picture, or coefficients that could not be written as a JPEG
 * again */
int mri_transcoder_pack(mri_transcoder *w, const void *jpeg, size_t bytes, const mr_decode_config *cfg,
                        void **out, size_t *out_bytes, mr_error *err);

/* A payload's coefficients as a baseline JPEG file; malloc'd. */
int mri_transcoder_unpack(mri_transcoder *w, const void *payload, size_t bytes, const mr_decode_config *cfg,
                          void **out, size_t *out_bytes, mr_error *err);

/* Entry points; malloc'd. Decodes the whole picture. MR_EUNSUPPORTED: entry points are impossible for it. */
int mri_transcoder_entries(mri_transcoder *w, const void *jpeg, size_t bytes, const mr_decode_config *cfg,
                           void **out, size_t *out_bytes, mr_error *err);

/* The same coefficients, Huffman-coded sequentially; malloc'd. MR_EUNSUPPORTED: it cannot be. */
int mri_transcoder_make_sequential(mri_transcoder *w, const void *jpeg, size_t bytes,
                                   const mr_decode_config *cfg, void **out, size_t *out_bytes, mr_error *err);

#endif
