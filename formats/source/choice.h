/* formats/source/choice.h: some of a data set's samples, numbered anew. Private.
 *
 * The choice follows from the number of samples and two parts of 1: samples have a rank in an order that a
 * fixed function draws, and samples of neighbouring ranks are taken. Data that are split so share no sample
 * and lack none. */
#ifndef MRI_CHOICE_H
#define MRI_CHOICE_H

#include "formats/source/source.h"

/* After the format's open(): the samples from cfg->take_from to take_to. MR_EINVAL: invalid limits, or limits
 * that leave nothing. */
int mri_choice_make(mr_source *src, const mr_source_config *cfg, mr_error *err);
void mri_choice_fini(mri_choice *c);

/* Sizes in src->info, of the taken samples. A failing extent is reported when its sample is read.
 */
void mri_choice_measure(mr_source *src);

/* The number that the format knows a sample by. */
uint64_t mri_choice_past_gone(const mri_choice *c, uint64_t sample);
static inline uint64_t mri_choice_number(const mri_choice *c, uint64_t sample)
{
    return c->number ? c->number[sample] : c->gone_count ? mri_choice_past_gone(c, sample) : sample;
}

/* Change the format's error about a sample to the number that the caller knows; returns rc. */
int mri_choice_place(const mri_choice *c, uint64_t sample, int rc, mr_error *err);

#endif
