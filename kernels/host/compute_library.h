/* kernels/host/compute_library.h: the libraries that operations on the processor are computed with, oneDNN
 * and OpenMP's run time, where the build does not link them (MILLRACE_DNNL=LOAD). Private.
 *
 * Takes nothing; makes their functions callable, once in a process, or reports the missing library and the
 * package to install. Caller: whoever makes devices on the processor, before the first operation. The sources
 * of operations do not depend on it: their calls reach stubs that jump to the loaded functions. */
#ifndef MRI_COMPUTE_LIBRARY_H
#define MRI_COMPUTE_LIBRARY_H

#include "millrace/base.h"

/* MR_OK, at once where they are linked. MR_EUNSUPPORTED: the library is missing or has another version; err
 * names the expected file. Environment: MILLRACE_DNNL_PATH, a file or a folder, is tried first. Any thread.
 */
int mri_compute_library_load(mr_error *err);

#endif
