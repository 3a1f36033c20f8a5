/* pipeline/fields/peek.h: a look at the first samples of a source, before a run. Private. */
#ifndef MRI_PEEK_H
#define MRI_PEEK_H

#include "millrace/pipeline.h"

typedef int mri_look(void *context, const mr_sample *sample, mr_error *err);

/* The first sample; where up to may_be_bad damaged ones need not stop the run, the first of them that look()
 * can use. Each bad one is told when its turn comes. */
int mri_peek(const mr_source *src, uint64_t may_be_bad, mri_look *look, void *context, mr_error *err);

/* Size of the first picture, for data whose format does not say that all pictures have one size. The source
 * has pictures. */
int mri_peek_size(const mr_source *src, const mr_decode_config *decode, uint64_t may_be_bad, uint32_t *h,
                  uint32_t *w, mr_error *err);

#endif
