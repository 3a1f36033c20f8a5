/* pipeline/decode/jpeg/whole.h: whole pictures, for tools: is it sound, its coefficients as a payload, its
 * entry points, and the ways back. Private. What a batch needs of a picture is not here. */
#ifndef MRI_WHOLE_H
#define MRI_WHOLE_H

#include "formats/image/jpeg_frame.h"
#include "millrace/pipeline.h"

typedef struct mri_whole mri_whole; /* decoders and buffers of one thread; large buffers are given back after
                                       each picture */

int mri_whole_create(mri_whole **out);
void mri_whole_destroy(mri_whole *w); /* accepts NULL */

/* Decode all coefficients of a JPEG or a payload and keep nothing: MR_OK, or what is wrong. Entry points that
 * come with a JPEG must be those that would be made now. MR_EUNSUPPORTED: a JPEG that our decoder does not
 * take; only its pixels can tell. */
int mri_whole_check(mri_whole *w, const mr_value *value, const mr_decode_config *cfg, mr_error *err);

/* A JPEG's coefficients as a payload (formats/image/coef.h); malloc'd.
 * MR_EUNSUPPORTED  no gray, YCbCr or RGB picture, or coefficients that could not be written as a JPEG
 * again */
int mri_whole_pack(mri_whole *w, const void *jpeg, size_t bytes, const mr_decode_config *cfg, void **out,
                   size_t *out_bytes, mr_error *err);

/* A payload's coefficients as a baseline JPEG file; malloc'd. */
int mri_whole_unpack(mri_whole *w, const void *payload, size_t bytes, const mr_decode_config *cfg, void **out,
                     size_t *out_bytes, mr_error *err);

/* Entry points; malloc'd. All of the picture was decoded for it. MR_EUNSUPPORTED: it can have none. */
int mri_whole_entries(mri_whole *w, const void *jpeg, size_t bytes, const mr_decode_config *cfg, void **out,
                      size_t *out_bytes, mr_error *err);

/* The same coefficients, Huffman-coded sequentially; malloc'd. MR_EUNSUPPORTED: it cannot be. */
int mri_whole_transcode(mri_whole *w, const void *jpeg, size_t bytes, const mr_decode_config *cfg, void **out,
                        size_t *out_bytes, mr_error *err);

#endif
