/* tools/facts/class_names.h: classes named by a file, renamed by a file, and some of them chosen. Part of
 * choose.h. */
#ifndef TOOLS_CLASS_NAMES_H
#define TOOLS_CLASS_NAMES_H

#include "tools/facts/choose.h"

typedef struct class_plan { /* {0} changes nothing */
    uint32_t count;         /* of the source's classes */
    uint32_t *to;           /* of each its new number; UINT32_MAX: left out */
    char **names;           /* of the new classes; NULL: they stay as they are */
    uint32_t names_count;
    bool only; /* some are left out */
} class_plan;

/* 0, or an exit status. */
int class_plan_make(class_plan *p, const mr_source *src, const choose_args *a);
int class_plan_apply(const class_plan *p, mr_source *src, bool silent, choose_result *out);
void class_plan_free(class_plan *p);

#endif
