/* pipeline/order/balance.h: an order in which every class comes as often as every other (MR_ORDER_BALANCED).
 * Private.
 *
 * Takes the labels of a source, as far as they are known without reading samples; gives the sample at any
 * position of any epoch, by numbers alone. An epoch has as many positions as the data have samples, dealt to
 * the classes in rounds: each round has every class once, in a drawn order. The samples of a class come in a
 * drawn order, too, all of them before one comes again. Rounds go on from epoch to epoch, and so do classes
 * that have more samples than an epoch takes of them. */
#ifndef MRI_BALANCE_H
#define MRI_BALANCE_H

#include "millrace/pipeline.h"

typedef struct mri_balance mri_balance;

/* The memory of a balance of `samples` samples and `classes` classes. */
uint64_t mri_balance_bytes(uint64_t samples, uint32_t classes);

/* MR_EUNSUPPORTED: the source has no classes, or does not know them without reading. Classes without samples
 * have no turn. A sample with an invalid label is in no class, and is never drawn. */
int mri_balance_create(mri_balance **out, const mr_source *source, uint64_t seed, mr_error *err);
void mri_balance_destroy(mri_balance *b); /* accepts NULL */

/* position < samples. Any thread. */
uint64_t mri_balance_sample(const mri_balance *b, uint64_t epoch, uint64_t position);

#endif
