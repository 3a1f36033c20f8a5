/* formats/source/sample_name.h: a sample's original name. Private.
 *
 * Its path below the data set's folder where each sample is a file, the picture's member in a tar archive,
 * "image/filename" in an Example, the field "sample.name" in a record. Formats whose samples share files
 * bring mri_source_ops.sample_name; for the others it follows from the path. Names come from files that
 * anybody could write: whoever makes a path of one looks at it first. */
#ifndef MRI_SAMPLE_NAME_H
#define MRI_SAMPLE_NAME_H

#include "formats/source/source.h"

enum { MRI_NAME_ROOM = 4096 };

/* Names in records (formats/record/FORMAT.md): BYTES, empty for a sample without a name. */
#define MRI_NAME_FIELD "sample.name"
/* Index of that field; -1 when absent. */
int mri_field_name(const mr_field *fields, uint32_t field_count);

/* Do samples of this source have names? The first few samples that can be read decide; the answer is yes
 * if all are damaged. A returned error is the system's. */
int mri_source_has_names(const mr_source *src, bool *has, mr_error *err);

#endif
