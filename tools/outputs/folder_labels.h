/* tools/outputs/folder_labels.h: the class that a folder of pictures gives a sample when its pictures were
 * taken without classes: the folder that it lies in. */
#ifndef TOOLS_FOLDER_LABELS_H
#define TOOLS_FOLDER_LABELS_H

#include <stdbool.h>

#include "millrace/train.h"

typedef struct folder_labels {
    mr_source *classed;       /* the same folder with its classes; NULL: no classes, or irrelevant ones */
    const char *const *names; /* of the network's classes; NULL: numbers from `first` on */
    uint32_t classes;
    int64_t first;
} folder_labels;

/* Takes the source, which may be NULL. Folders without a single class of the network are not taken for
 * classes; false then. */
bool folder_labels_open(folder_labels *f, mr_source *classed, const char *const *names, int64_t first,
                        uint32_t classes);
void folder_labels_close(folder_labels *f); /* accepts a zeroed one */

/* name: of the sample, a path below the data set's folder. As the network's class is called where it is one
 * of those, else as the folder is called; "": it lies in none. buf has room for the name. */
const char *folder_labels_of(const folder_labels *f, const char *name, char *buf, size_t buf_bytes);

#endif
