/* tests/formats/mrt_turns.h: opening a source while each of its allocations fails in turn. */
#ifndef MRT_TURNS_H
#define MRT_TURNS_H

#include "millrace/formats.h"

/* What an opening gave in which the n-th allocation was to fail; called after mrt_fail_alloc_at(-1). It
 * either failed for want of memory and gave no source, or opened one, which is closed here: what only helps
 * may fail without harm. True: no allocation was left to fail. */
bool mrt_last_turn(int rc, mr_source *src);

#endif
