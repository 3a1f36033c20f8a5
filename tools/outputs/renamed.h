/* tools/outputs/renamed.h: the list of samples whose files got another name than the sample had: a JSON line
 * each, in a file that is made with the first of them and appears when it is whole. */
#ifndef TOOLS_RENAMED_H
#define TOOLS_RENAMED_H

#include <stdio.h>

#include "millrace/formats.h"

typedef struct renamed_list { /* {0} is empty */
    char path[4096];
    mr_output *out;
    FILE *lines;
    uint64_t count;
} renamed_list;

/* path: of the list; src: the data, which the list may not replace. */
int renamed_add(renamed_list *r, const char *path, const mr_source *src, bool force, uint64_t sample,
                const char *name, const char *file, mr_error *err);
/* keep false: nothing stays of it. */
int renamed_close(renamed_list *r, bool keep, mr_error *err);

#endif
