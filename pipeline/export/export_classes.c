/* pipeline/export/export_classes.c: see export_classes.h. */
#include "pipeline/export/export_classes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* animals/cat is the path of a folder, "n/a" and "w/o mask" are none. */
static bool is_path(const char *name)
{
    for (const char *at = name;; at++) {
        const size_t n = strcspn(at, "/");
        if (n < 2 || at[0] == ' ' || at[n - 1] == ' ') return false;
        at += n;
        if (!*at) return true;
    }
}

/* Classes of folders at any depth. */
static bool are_paths(const mr_source_info *info)
{
    for (uint32_t k = 0; k < info->class_count; k++)
        if (strchr(info->class_names[k], '/') && !is_path(info->class_names[k])) return false;
    return true;
}

static bool is_taken(const mri_export_classes *c, const char *folder)
{
    for (uint32_t k = 0; k < c->count; k++)
        if (c->folder[k] && strcmp(c->folder[k], folder) == 0) return true;
    return false;
}

/* A class without a name has its number. */
static void folder_of(const char *name, uint32_t number, bool path, char out[MRI_EXPORT_NAME_ROOM])
{
    char text[MRI_EXPORT_NAME_ROOM];
    const bool fits = (size_t)snprintf(text, sizeof text, "%s", name) < sizeof text - 16;
    for (char *at = text; !path && *at; at++)
        if (*at == '/') *at = '_';
    if (!fits || !mri_export_name_safe(text, out, MRI_EXPORT_NAME_ROOM - 32))
        snprintf(out, MRI_EXPORT_NAME_ROOM, "%u", number);
}

/* First the classes that can have their names, then the others, with free names. */
static int name_folders(mri_export_classes *c, const mr_source_info *info, bool others, mr_error *err)
{
    const bool paths = are_paths(info);
    for (uint32_t k = 0; k < c->count; k++) {
        char folder[MRI_EXPORT_NAME_ROOM];
        folder_of(info->class_names[k], k, paths, folder);
        if (c->folder[k] || (strcmp(folder, info->class_names[k]) != 0) != others) continue;
        const size_t bytes = strlen(folder);
        for (uint32_t again = 0; others && is_taken(c, folder); again++)
            snprintf(folder + bytes, 32, again ? "-%u-%u" : "-%u", k, again);
        c->folder[k] = strdup(folder);
        if (!c->folder[k]) return mr_error_set(err, MR_ENOMEM, "no memory for the folders of classes");
    }
    return MR_OK;
}

int mri_export_classes_begin(mri_export_classes *c, const mr_source_info *info,
                             int (*changed)(void *context, const char *name, const char *folder,
                                            mr_error *err),
                             void *context, mr_error *err)
{
    if (!info->class_names || info->label_field < 0) return MR_OK;
    c->folder = calloc(info->class_count ? info->class_count : 1, sizeof *c->folder);
    if (!c->folder) return mr_error_set(err, MR_ENOMEM, "no memory for the folders of classes");
    c->count = info->class_count;
    int rc = name_folders(c, info, false, err);
    if (!rc) rc = name_folders(c, info, true, err);
    for (uint32_t k = 0; !rc && k < c->count; k++)
        if (info->class_names[k][0] && strcmp(info->class_names[k], c->folder[k]) != 0)
            rc = changed(context, info->class_names[k], c->folder[k], err);
    return rc;
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
    size_t bytes = 0;
    if (label < 0 || label >= (int64_t)c->count) return true;
    if (!c->used) c->used = calloc(info->class_count, sizeof *c->used);
    if (!c->used) return false;
    c->used[label] = true;
    if (!info->class_names[label][0]) return true;
    c->several |= !find_place(path, c->folder[label], &bytes) ||
                  (c->any && (strncmp(c->place, path, bytes) != 0 || c->place[bytes]));
    c->any = true;
    snprintf(c->place, sizeof c->place, "%.*s", (int)bytes, path);
    return true;
}

int mri_export_classes_make(const mri_export_classes *c, const mr_source_info *info, const char *folder,
                            mr_error *err)
{
    if (!c->any || c->several) return MR_OK;
    for (uint32_t k = 0; k < c->count; k++) {
        char path[4096];
        if (c->used[k] || !info->class_names[k][0]) continue;
        if (snprintf(path, sizeof path, "%s/%s%s", folder, c->place, c->folder[k]) >= (int)sizeof path)
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
    for (uint32_t k = 0; k < c->count; k++) free(c->folder[k]);
    free(c->folder);
    free(c->used);
    *c = (mri_export_classes){0};
}
