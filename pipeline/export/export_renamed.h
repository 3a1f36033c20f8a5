/* pipeline/export/export_renamed.h: the list of samples whose files, and classes whose folders, got another
 * name: a JSON line each, in a file that is made with the first of them and appears when it is whole. */
#ifndef MRI_EXPORT_RENAMED_H
#define MRI_EXPORT_RENAMED_H

#include <stdio.h>

#include "millrace/formats.h"

typedef struct mri_export_renamed { /* {0} is empty */
    char path[4096];
    const mr_source *src; /* the data, which the output may not replace: looked at until it is closed */
    mr_output *out;
    FILE *lines;
    uint64_t count; /* of samples */
    uint32_t classes;
} mri_export_renamed;

/* path: of the list; src: the data, which the list may not replace. */
int mri_export_renamed_add(mri_export_renamed *r, const char *path, const mr_source *src, bool force,
                           uint64_t sample, const char *name, const char *file, mr_error *err);
int mri_export_renamed_class(mri_export_renamed *r, const char *path, const mr_source *src, bool force,
                             const char *name, const char *folder, mr_error *err);
/* keep false: nothing stays of it. */
int mri_export_renamed_close(mri_export_renamed *r, bool keep, mr_error *err);

/* Removes a list that an earlier export wrote, and no other file. */
void mri_export_renamed_drop(const char *path);

#endif
