/* base/library.h: libraries that are opened when something needs them. Private.
 *
 * Takes names of files and functions. Gives a table of the functions; the library stays open as long as the
 * process. What is missing is the caller's to report, who knows what for and what to install. Callers:
 * formats/ (libcurl, libarchive), ranks/ (libcrypto). */
#ifndef MRI_LIBRARY_H
#define MRI_LIBRARY_H

#include <stddef.h>

typedef struct mri_symbol {
    const char *name;
    size_t place; /* of the pointer in the table */
} mri_symbol;

/* The first of files (NULL ends them) that can be opened. MR_OK: table is filled. MR_ENOENT: there is none,
 * and *what says why the last one was not opened. MR_EUNSUPPORTED: it has no function *what; table is not
 * filled whole. *what lasts until the thread's next call. */
int mri_library_open(void *table, const char *const *files, const mri_symbol *symbols, size_t count,
                     const char **what);

#endif
