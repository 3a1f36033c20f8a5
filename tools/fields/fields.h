/* tools/fields/fields.h: --fields SPEC, and what is delivered of data without pictures when it is not
 * given. */
#ifndef TOOLS_FIELDS_H
#define TOOLS_FIELDS_H

#include "millrace/pipeline.h"

typedef struct field_set {
    mr_loader_field field[MR_LOADER_MAX_FIELDS];
    uint32_t count;
    char text[1024]; /* what the names point into */
} field_set;

/* By its name, or by what stands in front of its ending where that is one field: boxes for boxes.npy;
 * info->field_count: there is none. */
uint32_t fields_find(const mr_source_info *info, const char *name);
/* spec: NAME[:plain|boxes|values|mask][:most=N][:pad=X][:pixels], ...; without a role the one that name and
 * type suggest. NULL: nothing, but of a source without pictures its sequences, or its only tensor. 0, or the
 * exit status after saying what is wrong; whether the names are there is left to the loader. */
int fields_choose(field_set *out, const mr_source *src, const char *spec);

#endif
