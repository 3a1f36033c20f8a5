/* tools/cli/folders.c: see folders.h. */
#include "tools/cli/folders.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool make_folders_of(const char *path, unsigned mode)
{
    char folder[4096];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (char *at = folder[0] ? strchr(folder + 1, '/') : NULL; at; at = strchr(at + 1, '/')) {
        if (!at[strspn(at, "/")]) break; /* slashes at the end */
        *at = '\0';
        if (mkdir(folder, mode) != 0 && errno != EEXIST) return false;
        *at = '/';
    }
    return true;
}

bool make_folder_deep(const char *path, unsigned mode)
{
    if (mkdir(path, mode) == 0) return true;
    return errno == ENOENT && make_folders_of(path, mode) && mkdir(path, mode) == 0;
}
