/* kernels/host/compute_library.h: the libraries that operations on the processor are computed with, oneDNN
 * and OpenMP's run time, where the build does not link them (MILLRACE_DNNL=LOAD). Private.
 *
 * Takes nothing; makes their functions callable, once in a process, or says what is missing and what to
 * install. Caller: whoever makes devices on the processor, before the first operation. The sources of
 * operations know nothing of it: their calls go to stubs that jump to what was found. */
#ifndef MRI_COMPUTE_LIBRARY_H
#define MRI_COMPUTE_LIBRARY_H

#include "millrace/base.h"

/* MR_OK, at once where they are linked. MR_EUNSUPPORTED: there is none, or one of another version; err says
 * which file is looked for. Environment: MILLRACE_DNNL_PATH, a file or a folder, is tried first. Any thread.
 */
int mri_compute_library_load(mr_error *err);

#endif
