/* formats/source/choice.h: some of a data set's samples, numbered anew. Private.
 *
 * Which ones follows from the number of samples and two parts of 1: samples have a rank in an order that a
 * fixed function draws, and those of neighbouring ranks are taken. Data that are split so share no sample and
 * lack none. */
#ifndef MRI_CHOICE_H
#define MRI_CHOICE_H

#include "formats/source/source.h"

/* Behind the format's open(): what cfg->take_from and take_to leave of it. MR_EINVAL: they are none, or leave
 * nothing. */
int mri_choice_make(mr_source *src, const mr_source_config *cfg, mr_error *err);
void mri_choice_fini(mri_choice *c);

/* Sizes in src->info, of what is taken. An extent that cannot be had is found again where its sample is read.
 */
void mri_choice_measure(mr_source *src);

/* The number that the format knows a sample by. */
uint64_t mri_choice_past_gone(const mri_choice *c, uint64_t sample);
static inline uint64_t mri_choice_number(const mri_choice *c, uint64_t sample)
{
    return c->number ? c->number[sample] : c->gone_count ? mri_choice_past_gone(c, sample) : sample;
}

/* What the format said about a sample, about the one the caller knows; gives rc. */
int mri_choice_place(const mri_choice *c, uint64_t sample, int rc, mr_error *err);

#endif
