/* base/library.h: libraries that are opened when something needs them. Private.
 *
 * Takes names of files and functions. Gives a table of the functions; the library stays open as long as the
 * process. The caller reports a missing library, since it knows the purpose and the package to install.
 * Callers: formats/ (libcurl, libarchive), ranks/ (libcrypto). */
#ifndef MRI_LIBRARY_H
#define MRI_LIBRARY_H

#include <stddef.h>

typedef struct mri_symbol {
    const char *name;
    size_t place; /* of the pointer in the table */
} mri_symbol;

/* The first of files (NULL ends them) that can be opened. MR_OK: table is filled. MR_ENOENT: none can be
 * opened; *returns the loader's reason for the last one. MR_EUNSUPPORTED: the library lacks the function
 * *what; table is incomplete. *what lasts until the thread's next call. */
int mri_library_open(void *table, const char *const *files, const mri_symbol *symbols, size_t count,
                     const char **what);

#endif
