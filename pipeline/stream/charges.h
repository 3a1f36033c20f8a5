/* pipeline/stream/charges.h: the causes of a waiting consumer's idle time, from the ring's times of each
 * batch (observe/causes.h). Private. Any thread. */
#ifndef MRI_CHARGES_H
#define MRI_CHARGES_H

#include "pipeline/stream/decode_stage.h"

typedef struct mri_charges mri_charges;

/* Both must outlive it. */
int mri_charges_create(mri_charges **out, mri_ring *ring, mri_decode_stage *decode, mr_error *err);
void mri_charges_destroy(mri_charges *c); /* accepts NULL */

/* An interval of times of CLOCK_MONOTONIC; batch as the stages number it, MR_NOWHERE: unknown. */
void mri_charge(mri_charges *c, uint64_t batch, uint32_t part, uint64_t from_ns, uint64_t to_ns,
                mr_causes *add);
/* The consumer waited so long, up to now, for this batch, and for late_ns of that it could have run. */
void mri_charge_consumer(mri_charges *c, uint64_t batch, uint64_t waited_ns, uint64_t late_ns);
mr_causes mri_charges_of_consumer(mri_charges *c);

#endif
