/* base/error.h: what the library adds to the error record of millrace/base.h. Private. */
#ifndef MRI_ERROR_H
#define MRI_ERROR_H

#include "millrace/base.h"

/* Of data that this user may not read (EACCES, EPERM): what to try, behind the text. Returns code. */
int mri_error_denied(mr_error *err, int code);
/* mr_error_at() for `return`: adds the place to err (which may be NULL) and returns code. */
int mri_error_place(mr_error *err, int code, const char *path, uint64_t offset, uint64_t sample);

/* What a function of the program returned. A positive number, MR_EEND and MR_EAGAIN are no codes of errors:
 * passed on they would end the data or repeat the call, so they become MR_EINVAL with a text. who: "the
 * sampler". A code without a text in why gets one. Returns the status to go on with. */
int mri_error_of_program(mr_error *why, int status, const char *who);

#endif
