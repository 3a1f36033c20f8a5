/* pipeline/export/export_classes.c: see export_classes.h. */
#include "pipeline/export/export_classes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* The folder's name; false: the class has no name. */
static bool folder_of(const mr_source_info *info, uint32_t label, char out[MRI_EXPORT_NAME_ROOM])
{
    const char *name = info->class_names[label];
    return name[0] && name[0] != '.' && mri_export_name_safe(name, out, MRI_EXPORT_NAME_ROOM);
}

/* The bytes of the path in front of the class's folder, in which the file lies. */
static bool find_place(const char *path, const char *class_path, size_t *bytes)
{
    const size_t n = strlen(class_path);
    const char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) < n || memcmp(slash - n, class_path, n) != 0) return false;
    *bytes = (size_t)(slash - path) - n;
    return *bytes == 0 || path[*bytes - 1] == '/';
}

bool mri_export_classes_note(mri_export_classes *c, const mr_source_info *info, int64_t label,
                             const char *path)
{
    char class_path[MRI_EXPORT_NAME_ROOM];
    size_t bytes = 0;
    if (!info->class_names || label < 0 || label >= (int64_t)info->class_count) return true;
    if (!c->used) c->used = calloc(info->class_count, sizeof *c->used);
    if (!c->used) return false;
    c->used[label] = true;
    if (!folder_of(info, (uint32_t)label, class_path)) return true;
    c->several |= !find_place(path, class_path, &bytes) ||
                  (c->any && (strncmp(c->place, path, bytes) != 0 || c->place[bytes]));
    c->any = true;
    snprintf(c->place, sizeof c->place, "%.*s", (int)bytes, path);
    return true;
}

int mri_export_classes_make(const mri_export_classes *c, const mr_source_info *info, const char *folder,
                            mr_error *err)
{
    if (!c->any || c->several) return MR_OK;
    for (uint32_t k = 0; k < info->class_count; k++) {
        char class_path[MRI_EXPORT_NAME_ROOM], path[4096];
        if (c->used[k] || !folder_of(info, k, class_path)) continue;
        if (snprintf(path, sizeof path, "%s/%s%s", folder, c->place, class_path) >= (int)sizeof path)
            return mr_error_set(err, MR_EINVAL, "the folder's name is too long");
        if (!mri_make_folder_deep(path, 0777) && errno != EEXIST) {
            mr_error_sys(err, errno, "cannot make the folder");
            return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
        }
    }
    return MR_OK;
}

void mri_export_classes_fini(mri_export_classes *c)
{
    free(c->used);
    *c = (mri_export_classes){0};
}
