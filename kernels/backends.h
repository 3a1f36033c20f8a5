/* kernels/backends.h: every kind of device in this build. Only the public calls (device.c) use it: nothing
 * below knows which kinds there are. */
#ifndef MRI_BACKENDS_H
#define MRI_BACKENDS_H

#include "kernels/backend/backend.h"

/* By number from 0; NULL past the end. */
const struct mri_backend *mri_backend_at(uint32_t at);

#endif
