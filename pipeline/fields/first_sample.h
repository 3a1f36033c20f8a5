/* pipeline/fields/first_sample.h: a look at the first samples of a source, before a run. Private. */
#ifndef MRI_FIRST_SAMPLE_H
#define MRI_FIRST_SAMPLE_H

#include "millrace/pipeline.h"

typedef int mri_sample_visitor(void *context, uint64_t at, const mr_sample *sample, mr_error *err);

/* Pass the first sample to look(), or the first that look() can use when up to may_be_bad damaged ones need
 * not stop the run. Each bad one is reported later, in its turn. */
int mri_first_sample(const mr_source *src, uint64_t may_be_bad, mri_sample_visitor *look, void *context,
                     mr_error *err);

/* Size of a picture as it is delivered without an augmentation. */
typedef struct mri_picture_size {
    uint64_t sample;
    uint32_t h, w;
} mri_picture_size;

/* Size of the first picture, for data whose format does not say that all pictures have one size. The source
 * has pictures. */
int mri_first_picture_size(const mr_source *src, const mr_decode_config *decode, uint64_t may_be_bad,
                           mri_picture_size *out, mr_error *err);
/* Size of the picture of out->sample. An error names the sample. */
int mri_picture_size_of(const mr_source *src, const mr_decode_config *decode, mri_picture_size *out,
                        mr_error *err);

#endif
