/* formats/storage/outside.c: see outside.h. */
#include "formats/storage/outside.h"

#include <stdlib.h>
#include <string.h>

bool mri_is_below(const char *real_folder, const char *real_path)
{
    const size_t bytes = strcmp(real_folder, "/") == 0 ? 0 : strlen(real_folder);
    return strncmp(real_path, real_folder, bytes) == 0 && (!real_path[bytes] || real_path[bytes] == '/');
}

bool mri_leads_outside(const char *folder, const char *path)
{
    char *real_folder = realpath(folder, NULL), *real_path = realpath(path, NULL);
    const bool inside = real_folder && real_path && mri_is_below(real_folder, real_path);
    free(real_folder);
    free(real_path);
    return !inside;
}

bool mri_leads_elsewhere(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const bool outside = !folder || mri_leads_outside(folder, path);
    free(folder);
    return outside;
}
