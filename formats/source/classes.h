/* formats/source/classes.h: defines classes, and matches the classes of two data sets. Private.
 *
 * A class has a name (info.class_names) or, without names, a declared number: the number that the data give
 * it, info.label_offset plus its index here. Which of the two a set has is part of its schema, and record
 * files keep it. An empty name is a number that no sample has.
 *
 * Two sets (trained on and validated with, a checkpoint and data, the sets of a mix) are matched here and
 * nowhere else, never by position:
 *
 *   expected   here      matched by
 *   names      names     name; where all names of both are whole numbers ("7", "07"), by these
 *   numbers    numbers   number
 *   numbers    names     number: all names here are whole numbers
 *   names      numbers   number: all names expected are whole numbers
 *
 * Everything else is MR_EFORMAT with both lists. The set that is opened is renumbered:
 *
 *   expected     cat 0, dog 1, horse 2          its own index ──► number[] ──► theirs
 *   here         dog 0, horse 1                       0        ──►          ──► 1
 *
 * With MR_MATCH_ORDER the caller says that class k is class k. */
#ifndef MRI_CLASSES_H
#define MRI_CLASSES_H

#include "formats/source/source.h"

/* Class numbers are below this. A larger label cannot be a class, and its sample is bad. */
#define MRI_MAX_CLASSES ((int64_t)1 << 24)

/* The names in one block, pointers first, then the text; NULL when there is no memory. free() it. */
const char **mri_class_names_copy(const char *const *names, uint32_t count);

/* Is the name a whole number, digits alone ("7", "07")? */
bool mri_class_name_number(const char *name, int64_t *out);
/* Are all that are not empty, and at least one? */
bool mri_class_names_are_numbers(const char *const *names, uint32_t count);
/* A name as it is compared: of numbers the digits without zeros in front. */
const char *mri_class_name_key(const char *name, bool are_numbers);
enum { MRI_NO_CLASS = UINT32_MAX }; /* in mri_classes.number: nothing here is this class */
/* "cat, dog, horse and 7 more" */
const char *mri_class_names_text(const char *const *names, uint32_t count, char *buf, size_t buf_bytes);

/* For a source that is open: what cfg->label_offset says and the format did not do. MR_EINVAL: classes have
 * names that would be cut off. */
int mri_classes_offset(mr_source *src, const mr_source_config *cfg, mr_error *err);
/* Then: number its classes like the classes of cfg. MR_EFORMAT names a class missing from them, or both
 * lists. Nothing changes where both sets have the same classes. */
int mri_classes_follow(mr_source *src, const mr_source_config *cfg, mr_error *err);
void mri_classes_fini(mri_classes *c);

/* Does mri_classes_renumber() change or refuse anything? */
static inline bool mri_classes_change(const mri_classes *c) { return c->number || c->subtract || c->limit; }
/* Map a label of the format to its new number; MR_EFORMAT when there is no such class. */
int mri_classes_renumber(const mri_classes *c, int64_t *label, mr_error *err);

#endif
