/* pipeline/convert/convert_pool.h: the workers of a conversion. Private to convert*.c. */
#ifndef MRI_CONVERT_POOL_H
#define MRI_CONVERT_POOL_H

#include "pipeline/convert/convert_sample.h"

typedef struct mri_convert_pool mri_convert_pool;
/* Samples first, first + 1, ... up to the source's count. */
int mri_convert_pool_start(mri_convert_pool **out, const mri_convert_plan *plan, uint64_t first,
                           mr_error *err);
/* The next item in source order, valid until the next call. MR_EEND, or MR_ECANCELED when *cfg.stop became
 * set. */
int mri_convert_pool_next(mri_convert_pool *pool, mri_convert_item **out);
/* Lets each worker end the sample it is at, joins, frees. Accepts NULL. */
void mri_convert_pool_stop(mri_convert_pool *pool);

#endif
