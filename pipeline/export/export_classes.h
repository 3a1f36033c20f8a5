/* pipeline/export/export_classes.h: folders of the classes of an exported set: their names, which are those
 * of the classes as far as a folder can have them, and folders of classes without files: without them the
 * classes behind would get other numbers when the folder is read. */
#ifndef MRI_EXPORT_CLASSES_H
#define MRI_EXPORT_CLASSES_H

#include "millrace/formats.h"
#include "pipeline/export/export_name.h"

typedef struct mri_export_classes { /* {0} is empty */
    bool *used;                     /* one for each class: a file lies in its folder */
    char **folder;                  /* the folder of each class with a name */
    uint32_t count;
    bool any, several;                /* several: class folders lie in different places */
    char place[MRI_EXPORT_NAME_ROOM]; /* of the class folders, below the folder that is exported to: "train/"
                                       */
} mri_export_classes;

/* Names the folders; no two classes get the same one. changed is called for each that is not its class's
 * name; its status, unless MR_OK, is returned. MR_ENOMEM. */
int mri_export_classes_begin(mri_export_classes *c, const mr_source_info *info,
                             int (*changed)(void *context, const char *name, const char *folder,
                                            mr_error *err),
                             void *context, mr_error *err);
/* A file of this class is there. path: below the folder that is exported to. False: no memory. */
bool mri_export_classes_note(mri_export_classes *c, const mr_source_info *info, int64_t label,
                             const char *path);
/* Makes the missing folders, where all class folders lie in one place and classes have names. */
int mri_export_classes_make(const mri_export_classes *c, const mr_source_info *info, const char *folder,
                            mr_error *err);
void mri_export_classes_fini(mri_export_classes *c);

#endif
