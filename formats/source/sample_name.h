/* formats/source/sample_name.h: what a sample was called where it came from. Private.
 *
 * Its path below the data set's folder where each sample is a file, the picture's member in a tar archive,
 * "image/filename" in an Example, what the field "sample.name" says in a record. Formats whose samples share
 * files bring mri_source_ops.sample_name; for the others it follows from the path. Names come from files that
 * anybody could write: whoever makes a path of one looks at it first. */
#ifndef MRI_SAMPLE_NAME_H
#define MRI_SAMPLE_NAME_H

#include "formats/source/source.h"

enum { MRI_NAME_ROOM = 4096 };

/* Names in records (formats/record/FORMAT.md): BYTES, empty where there is none. */
#define MRI_NAME_FIELD "sample.name"
/* Index of that field; -1 when absent. */
int mri_field_name(const mr_field *fields, uint32_t field_count);

/* Do samples of this source have names? The first ones tell: reads a few samples at most. One that cannot be
 * read through a fault of its own has none; an error is the system's. */
int mri_source_has_names(const mr_source *src, bool *has, mr_error *err);

#endif
