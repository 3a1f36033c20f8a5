/* formats/storage/impostor.h: what stands in a data file's place when a download went wrong. Private. */
#ifndef MRI_IMPOSTOR_H
#define MRI_IMPOSTOR_H

#include "millrace/base.h"

/* A git-lfs pointer, a page of HTML: a text that says so, with what to do about it; NULL for anything else.
 * head is the first bytes of the file. */
const char *mri_impostor(const uint8_t *head, size_t bytes);

#endif
