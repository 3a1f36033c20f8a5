/* formats/fileset/facts.h: room for what a format gathers while it scans and keeps in its note (boxes,
 * names). Private. Takes an array, what it has room for and what is needed; false: no memory, and nothing
 * changed. */
#ifndef MRI_FACTS_H
#define MRI_FACTS_H

#include "base/util.h"

bool mri_facts_grow(void **items, uint64_t *cap, uint64_t needed, size_t item_bytes);

#endif
