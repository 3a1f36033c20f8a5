/* base/dir.h: reads the entries of a folder, and distinguishes the end from an error. Private. */
#ifndef MRI_DIR_H
#define MRI_DIR_H

#include <dirent.h>
#include <errno.h>

/* The next entry; NULL: errno is 0 at the end, and the reason if the folder cannot be read on. */
static inline struct dirent *mri_dir_next(DIR *d)
{
    errno = 0;
    return readdir(d);
}

#endif
