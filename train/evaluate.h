/* train/evaluate.h: batches from a loader as the training loop takes them, one pass of evaluation, and when
 * one is due. Private to train/. */
#ifndef MRI_EVALUATE_H
#define MRI_EVALUATE_H

#include "train/trainer.h"

/* The next batch, however long it takes. MR_ECANCELED: somebody wants to stop. Several processes stop
 * together, at the first batch that all begin knowing that one wants to. */
int mri_next_batch(mr_trainer *t, mr_loader *loader, const volatile int *stop, mr_batch *out, mr_error *err);
/* Give the batch back after a step that ended with rc; the first error counts. */
int mri_give_back(const mr_trainer *t, mr_loader *loader, mr_batch *b, int rc, mr_error *err);

/* One pass, from the first batch of an epoch; *out: its exact sums. */
int mri_evaluate(mr_trainer *t, mr_loader *loader, const volatile int *stop, mr_metrics *out, mr_error *err);

/* MR_EINVAL: this is no loader for validation during training on `train`: other samples or pixels than those
 * of the data, or other classes. */
int mri_check_validation(const mr_trainer *t, const mr_loader *val, const mr_loader *train, mr_error *err);

/* The input operation subtracts and divides by the loader's mean and deviation, else MR_EINVAL. A network of
 * numbers gets them as field 0, and each network the fields that it takes; else MR_EINVAL. */
int mri_check_fields(const mr_trainer *t, const mr_loader_info *info, mr_error *err);

/* MR_EINVAL: the network predicts classes, and these samples have no labels; or no sample would count. */
int mri_check_labels(const mr_trainer *t, const mr_loader *loader, mr_error *err);

/* MR_EINVAL: eval_steps, eval_at or the settings that they need are inconsistent. */
int mri_check_evaluations(const mr_fit_config *cfg, mr_error *err);
/* Is an evaluation due after `updates` updates of the run, at this position inside an epoch? */
bool mri_evaluation_is_due(const mr_fit_config *cfg, mri_position at, uint64_t steps_per_epoch,
                           uint64_t updates);

#endif
