/* formats/tar/tar_more.h: members that the sample of the schema lacks and others have. Private.
 *
 *   add     each sample of the scan: names that the schema does not know are counted
 *   text    names that become fields, kept with the index: for each the first sample that has it
 *   next    read from that text, whether it was just made or kept
 *
 * The type of such a field comes from its first sample, which is read again then. */
#ifndef MRI_TAR_MORE_H
#define MRI_TAR_MORE_H

#include "formats/tar/tar_sample.h"

typedef struct mri_tar_more mri_tar_more;

/* NULL: no memory. */
mri_tar_more *mri_tar_more_create(void);
void mri_tar_more_free(mri_tar_more *m); /* NULL is allowed */

/* The members of a sample. Members that cannot be fields are noted. Fails as get() does. */
int mri_tar_more_add(mri_tar_more *m, const mri_tar_schema *s, const mri_tar_group *g, uint64_t sample,
                     mri_tar_notes *notes, mri_tar_get *get, void *context, mr_error *err);
/* After the last sample: lines "SAMPLE NAME" of the fields to come, NUL-terminated, free(). NULL: no
 * memory. */
char *mri_tar_more_text(const mri_tar_more *m, const mri_tar_schema *s, mri_tar_notes *notes);

/* The next of at most MR_MAX_FIELDS lines in [*at, *at + *bytes); false at the end, and where something else
 * stands. */
bool mri_tar_more_next(const char **at, size_t *bytes, uint64_t *sample, char name[MR_MAX_NAME + 1]);

#endif
