/* tools/outputs/export_classes.h: folders of the classes of an exported set, also of those without files:
 * without them the classes behind would get other numbers when the folder is read. */
#ifndef TOOLS_EXPORT_CLASSES_H
#define TOOLS_EXPORT_CLASSES_H

#include "millrace/pipeline.h"
#include "tools/outputs/export_name.h"

typedef struct export_classes {   /* {0} is empty */
    bool *used;                   /* one for each class: a file lies in its folder */
    bool any, several;            /* several: class folders lie in different places */
    char place[EXPORT_NAME_ROOM]; /* of the class folders, below the folder that is exported to: "train/" */
} export_classes;

/* A file of this class is there. path: below the folder that is exported to. False: no memory. */
bool export_classes_note(export_classes *c, const mr_source_info *info, int64_t label, const char *path);
/* Makes the missing folders, where all class folders lie in one place and classes have names. */
int export_classes_make(const export_classes *c, const mr_source_info *info, const char *folder,
                        mr_error *err);
void export_classes_fini(export_classes *c);

#endif
