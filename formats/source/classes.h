/* formats/source/classes.h: classes by name: a copy of a list of names, and one data set numbered like
 * another. Private.
 *
 * Two folders, or two tables, each number the classes that they have. Where the second lacks one, or has them
 * in another order, the same number would mean two things. The training data define the numbers, and the
 * other set is renumbered:
 *
 *   trained on   cat 0, dog 1, horse 2          its own number ──► number[] ──► theirs
 *   this one     dog 0, horse 1                       0        ──►          ──► 1 */
#ifndef MRI_CLASSES_H
#define MRI_CLASSES_H

#include "formats/source/source.h"

/* Class numbers are below this. A larger label cannot be a class, and its sample is bad. */
#define MRI_MAX_CLASSES ((int64_t)1 << 24)

/* The names in one block, text behind the pointers; NULL when there is no memory. free() it. */
const char **mri_class_names_copy(const char *const *names, uint32_t count);

/* For a source that is open: number its classes like cfg->class_names, where both have names. MR_EFORMAT
 * names a class that is none of them. Nothing changes where names and order are the same. */
int mri_classes_follow(mr_source *src, const mr_source_config *cfg, mr_error *err);
void mri_classes_fini(mri_classes *c);

/* Map a label of the source to its new number; MR_EFORMAT when the source has no such class. */
int mri_classes_renumber(const mri_classes *c, int64_t *label, mr_error *err);

#endif
