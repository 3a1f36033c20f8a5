/* tools/cli/folders.h: folders that a file or another folder is made in. */
#ifndef TOOLS_FOLDERS_H
#define TOOLS_FOLDERS_H

#include <stdbool.h>

/* Makes the folders that path lies in, those that exist excepted. False, with errno. */
bool make_folders_of(const char *path, unsigned mode);
/* The folder at path and those that it lies in. False, with errno: EEXIST where it exists. */
bool make_folder_deep(const char *path, unsigned mode);

#endif
