/* millrace/outputs.h: outputs of a network for samples: likely classes, a confusion matrix, and means over
 * several views of each sample. mr_evaluate_outputs() of trainer.h gives the outputs. */
#ifndef MILLRACE_OUTPUTS_H
#define MILLRACE_OUTPUTS_H

#include "millrace/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- classes ---- */

/* Return the class with the largest logit, the first of equals. 0 for 0 classes. */
MR_API uint32_t mr_outputs_best(const float *logits, uint32_t classes);

typedef struct mr_guess {
    uint32_t class_number;
    double probability;
} mr_guess;

/* Write the `top` classes with the largest probabilities to out, the largest first, of equals the lower class
 * first. Returns their number: top, or classes if that is smaller. */
MR_API uint32_t mr_outputs_top(const float *logits, uint32_t classes, uint32_t top, mr_guess *out);

/* ---- a confusion matrix ---- */

enum { MR_CONFUSION_MOST = 8192 }; /* classes: 512 MiB */

typedef struct mr_confusion mr_confusion;

/* Make an empty matrix for 1 to MR_CONFUSION_MOST classes. One thread at a time uses it. */
MR_API int mr_confusion_create(mr_confusion **out, uint32_t classes, mr_error *err);
MR_API void mr_confusion_destroy(mr_confusion *c); /* accepts NULL */
/* Count the samples of a batch that have a label below the number of classes, by label and best class.
 * MR_EINVAL: the outputs have another number of classes. */
MR_API int mr_confusion_add(mr_confusion *c, const mr_outputs *o, mr_error *err);
/* The counts, owned by c: [label * classes + predicted class]. They may be written, for example with sums
 * over processes. NULL for NULL. */
MR_API uint64_t *mr_confusion_counts(mr_confusion *c);

/* A class in a confusion matrix. */
typedef struct mr_class_row {
    size_t struct_size;
    uint32_t class_number;
    uint32_t taken_for;      /* the other class that is predicted most often, the first of equals */
    uint64_t taken;          /* how often; 0: never */
    uint64_t samples, right; /* with this label; predicted correctly */
    double accuracy;         /* NaN without samples */
} mr_class_row;
/* MR_EINVAL: there is no such class. */
static inline int mr_confusion_row(const mr_confusion *c, uint32_t class_number, mr_class_row *out,
                                   mr_error *err);
/* Write the numbers of the `most` classes with the lowest accuracies to out, lowest first; of equals the
 * class with more samples, then the lower class. Classes without samples are left out. *count: how many
 * numbers were written. */
MR_API int mr_confusion_worst(const mr_confusion *c, uint32_t most, uint32_t *out, uint32_t *count,
                              mr_error *err);
/* The matrix as CSV, to be freed with free(): a row for each label, a column for each predicted class, then
 * samples and accuracy. names: of the classes; NULL: numbers from `first` on. NULL: no memory. */
MR_API char *mr_confusion_csv(const mr_confusion *c, const char *const *names, int64_t first);

/* ---- several views of each sample ---- */

typedef struct mr_views mr_views;

/* Make the mean over views. name: "flip", "five" or "ten" (mr_augment_views()). augment: the other operations
 * on each view; NULL: no operations. MR_EINVAL: the name or the augmentation is invalid, or five or ten lack
 * a crop, whose corners they take. */
MR_API int mr_views_create(mr_views **out, const char *name, const char *augment, mr_error *err);
MR_API void mr_views_destroy(mr_views *v); /* accepts NULL */
/* Settings of the loader that gives the views: mr_loader_config.augment, owned by v, and epochs. NULL and 0
 * for NULL. */
MR_API const char *mr_views_augment(const mr_views *v);
MR_API uint32_t mr_views_count(const mr_views *v);

/* Sums over the samples of this process that have a label. */
typedef struct mr_views_sums {
    size_t struct_size;
    double loss;              /* sum of the cross entropies */
    uint64_t right, labelled; /* samples */
} mr_views_sums;

/* Take all epochs of the loader, which is at its beginning, sequential and has keep_host set, and keep the
 * sum of each sample's probabilities: 4 bytes for each sample and class. The last epoch calls cfg->on_outputs
 * as mr_evaluate_outputs() does, once for each sample, with the logarithms of the mean probabilities as
 * logits. cfg NULL, or on_outputs NULL: no calls. Blocks. Returns as mr_evaluate_outputs(). */
static inline int mr_views_run(mr_views *v, mr_trainer *t, mr_loader *loader, const mr_outputs_config *cfg,
                               mr_views_sums *out, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API int mr_confusion_row_sized(const mr_confusion *c, uint32_t class_number, mr_class_row *out,
                                  mr_error *err);
static inline int mr_confusion_row(const mr_confusion *c, uint32_t class_number, mr_class_row *out,
                                   mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_confusion_row_sized(c, class_number, out, err);
}

MR_API int mr_views_run_sized(mr_views *v, mr_trainer *t, mr_loader *loader, const mr_outputs_config *cfg,
                              mr_views_sums *out, mr_error *err);
static inline int mr_views_run(mr_views *v, mr_trainer *t, mr_loader *loader, const mr_outputs_config *cfg,
                               mr_views_sums *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_views_run_sized(v, t, loader, cfg, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
