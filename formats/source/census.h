/* formats/source/census.h: which classes have samples, and the report about them to the user. Private.
 *
 * Labels that are in memory are looked at once, when a data set is opened by its own name (the sets of a mix
 * are looked at together). Two cases are reported: a set whose samples all have one class, and class numbers
 * without samples: labels 100 and 200 are 201 classes, 199 of them empty. */
#ifndef MRI_CENSUS_H
#define MRI_CENSUS_H

#include "formats/source/source.h"

/* Behind open(), before classes are renumbered. */
int mri_census_tell(mr_source *src, mr_error *err);
/* MR_EFORMAT, with the first sample and its label's error: labels exist, but no label is a class (texts,
 * fractions, numbers that are too large). Found without reading more than that sample. */
int mri_census_check(const mr_source *src, const mr_source_config *cfg, mr_error *err);
/* Are the labels of all samples known without reading files? */
bool mri_source_labels_near(const mr_source *src);

#endif
