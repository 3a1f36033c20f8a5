/* tools/fields/fields.h: --fields SPEC, and the default for data without pictures. */
#ifndef TOOLS_FIELDS_H
#define TOOLS_FIELDS_H

#include "millrace/pipeline.h"

typedef struct field_set {
    mr_loader_field field[MR_LOADER_MAX_FIELDS];
    uint32_t count;
    char text[1024]; /* text that the names point into */
} field_set;

/* By its name, or by the name without its ending if only one field matches: boxes for boxes.npy;
 * info->field_count: not found. */
uint32_t fields_find(const mr_source_info *info, const char *name);
/* spec: NAME[:plain|boxes|values|mask][:most=N][:pad=X][:pixels], ...; without a role, the role that name and
 * type suggest. NULL: nothing, but of a source without pictures its sequences, or its only tensor. 0, or the
 * exit status after printing the error; the loader checks that the names exist. */
int fields_choose(field_set *out, const mr_source *src, const char *spec);

#endif
