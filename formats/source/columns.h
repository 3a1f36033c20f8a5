/* formats/source/columns.h: names of the numbers of a field, which a format takes from its table or its
 * records. Private. */
#ifndef MRI_COLUMNS_H
#define MRI_COLUMNS_H

#include "formats/source/source.h"
#include "millrace/columns.h"

/* For open(): the numbers of info.fields[field] are these columns. The names are copied; line breaks and
 * other control characters in them become spaces. */
int mri_source_set_columns(mr_source *src, uint32_t field, const char *const *names, uint32_t count,
                           mr_error *err);

/* The entry of a record file's provenance, which begins with a key and ends with a comma and a space; ""
 * without names. To be freed; NULL: no memory. */
char *mri_columns_text(const mr_source *src);
/* The same back from a provenance: the columns of a field among these. A text that has no such entry, or none
 * that fits the fields, sets nothing. */
int mri_source_columns_from(mr_source *src, const char *provenance, mr_error *err);
/* mr_source_columns_check() against a record file with these fields and this provenance. */
int mri_source_columns_fit(const mr_source *src, const mr_field *fields, uint32_t count,
                           const char *provenance, const char *of, mr_error *err);
/* The bytes of the entry at the beginning of text; 0: it begins with something else. */
size_t mri_columns_text_bytes(const char *text);

#endif
