/* tools/facts/match_set.h: samples that are to be added to a set get the set's classes, by their names.
 * Callers: commands that append. */
#ifndef TOOLS_MATCH_SET_H
#define TOOLS_MATCH_SET_H

#include "tools/session/groups.h"

/* Open SET itself, with its withdrawn samples; options of data that choose and rename samples concern the
 * source alone. 0, or an exit status. */
int match_open_set(mr_source **out, const char *set, const data_args *data);
/* Each class of src by its name in the set. 0, or an exit status: a class is missing in the set; remedy ends
 * the message. */
int match_classes(mr_source *src, const char *set, const mr_source_info *of_set, const char *remedy);

#endif
