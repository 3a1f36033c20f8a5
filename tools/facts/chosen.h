/* tools/facts/chosen.h: which samples of its source a set of record files was made of. `convert` keeps the
 * options that chose them in the set; without them an update would append the samples that they left out.
 * Callers: convert, append. */
#ifndef TOOLS_CHOSEN_H
#define TOOLS_CHOSEN_H

#include "tools/facts/choose.h"

/* The options that choose samples, as JSON for mr_convert_config.provenance; to be freed. choose may be NULL.
 * *out NULL: none was given. 0, or an exit status. */
int chosen_note(char **out, const choose_args *choose, const data_args *data);
/* May SET be updated from a source that is chosen so? 0, or an exit status. */
int chosen_check(const char *set, const choose_args *choose, const data_args *data);

#endif
