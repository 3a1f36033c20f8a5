/* pipeline/order/windows.h: an order of samples in which the samples of a batch have similar lengths.
 * Private. */
#ifndef MRI_WINDOWS_H
#define MRI_WINDOWS_H

#include "millrace/pipeline.h"

typedef struct mri_windows mri_windows;

typedef struct mri_windows_config {
    const mr_source *source; /* its info.length_field is set; outlives the windows */
    mr_order order;          /* the order that is cut into windows */
    uint32_t block;
    uint64_t seed;
    uint32_t batch;
    uint32_t window;    /* batches */
    uint64_t delivered; /* positions of an epoch that are: all samples, or with a tail dropped those in front
                           of it */
} mri_windows_config;

/* The memory of windows of `window` batches; UINT64_MAX: more samples in one than can be sorted. */
uint64_t mri_windows_bytes(uint32_t batch, uint32_t window, uint64_t delivered);

/* MR_EUNSUPPORTED, and what to do about it. */
int mri_windows_no_lengths(const mr_source_info *info, mr_error *err);

int mri_windows_create(mri_windows **out, const mri_windows_config *cfg, mr_error *err);
void mri_windows_destroy(mri_windows *w); /* accepts NULL; nobody is inside */

/* Samples at places [first, first + count) of a batch: step of an epoch. A pure function of the configuration
 * and these (I1). Places after the last sample of an epoch (padding) repeat that batch's own samples, so that
 * they widen no row. Any thread; the first that asks for a batch of a window sorts it, for which it asks the
 * source for the lengths, and others wait for it. MR_EIO, MR_ENOMEM, ...: a length could not be read, and
 * without it there is no order. A sample whose length is damaged (MR_ECHECKSUM, MR_EFORMAT) counts as empty
 * here, and is bad when its turn comes. */
int mri_windows_list(mri_windows *w, uint64_t epoch, uint64_t step, uint32_t first, uint32_t count,
                     uint64_t *out, mr_error *err);

#endif
