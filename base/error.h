/* base/error.h: private functions on the error record of millrace/base.h. Private. */
#ifndef MRI_ERROR_H
#define MRI_ERROR_H

#include "millrace/base.h"

/* For data that this user may not read (EACCES, EPERM): append advice to the text. Returns code. */
int mri_error_denied(mr_error *err, int code);
/* mr_error_at() for `return`: adds the place to err (which may be NULL) and returns code. */
int mri_error_place(mr_error *err, int code, const char *path, uint64_t offset, uint64_t sample);

/* Convert the status of a function of the program. A positive number, MR_EEND and MR_EAGAIN are not error
 * codes: they would end the data or repeat the call, so they become MR_EINVAL with a text. who: "the
 * sampler". A code without a text in why gets one. Returns the status to go on with. */
int mri_error_of_program(mr_error *why, int status, const char *who);

#endif
