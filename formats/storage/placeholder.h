/* formats/storage/placeholder.h: detects files that a failed download leaves in place of the data.
 * Private. */
#ifndef MRI_PLACEHOLDER_H
#define MRI_PLACEHOLDER_H

#include "millrace/base.h"

/* For a git-lfs pointer or an HTML page a text that names it and says what to do; NULL for anything else.
 * head is the first bytes of the file. */
const char *mri_placeholder_describe(const uint8_t *head, size_t bytes);

#endif
