/* base/error.h: what the library adds to the error record of millrace/base.h. Private. */
#ifndef MRI_ERROR_H
#define MRI_ERROR_H

#include "millrace/base.h"

/* Of data that this user may not read (EACCES, EPERM): what to try, behind the text. Returns code. */
int mri_error_denied(mr_error *err, int code);
/* mr_error_at() for `return`: adds the place to err (which may be NULL) and returns code. */
int mri_error_place(mr_error *err, int code, const char *path, uint64_t offset, uint64_t sample);

#endif
