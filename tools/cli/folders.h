/* tools/cli/folders.h: folders that a file or another folder is made in. */
#ifndef TOOLS_FOLDERS_H
#define TOOLS_FOLDERS_H

#include <stdbool.h>

/* Makes the missing parent folders of path. False, with errno. */
bool make_folders_of(const char *path, unsigned mode);
/* Makes the folder at path and its missing parents. False, with errno: EEXIST where it exists. */
bool make_folder_deep(const char *path, unsigned mode);

#endif
