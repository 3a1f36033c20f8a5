/* pipeline/order/mixture.h: an order in which each data set of a mix has its share (MR_ORDER_SHUFFLE).
 * Private.
 *
 * Takes the sets of a source and their shares; gives the sample at any position of any epoch, by numbers
 * alone. An epoch has as many positions as the data have samples. Positions are dealt in rounds: each has a
 * fixed number of every set, in a drawn order. The samples of a set come in a drawn order, too: after each
 * round none has come more than once oftener than another. Rounds go on from epoch to epoch, and so do sets
 * that have more samples than an epoch takes of them. */
#ifndef MRI_MIXTURE_H
#define MRI_MIXTURE_H

#include "millrace/pipeline.h"

#define MRI_MIXTURE_PARTS 10000u /* shares are rounded to this fraction of a round, 1 part at least */

typedef struct mri_mixture mri_mixture;

/* info: of a mix. */
int mri_mixture_create(mri_mixture **out, const mr_source_info *info, uint64_t seed, mr_error *err);
void mri_mixture_destroy(mri_mixture *m); /* accepts NULL */

/* position < samples. Any thread. */
uint64_t mri_mixture_sample(const mri_mixture *m, uint64_t epoch, uint64_t position);

#endif
