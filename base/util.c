/* base/util.c: the one helper of util.h that is more than a line. */
#include "base/util.h"

void *mri_alloc_aligned(size_t align, size_t bytes)
{
    void *p = NULL;
    if (bytes == 0) bytes = 1;
    return posix_memalign(&p, align, bytes) == 0 ? p : NULL;
}
