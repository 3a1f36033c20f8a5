/* formats/fileset/facts.h: grows arrays that a format fills during a scan and keeps in its note (boxes,
 * names). Private. Takes an array, its capacity and the needed capacity; false: no memory, and nothing
 * changed. */
#ifndef MRI_FACTS_H
#define MRI_FACTS_H

#include "base/util.h"

bool mri_facts_grow(void **items, uint64_t *cap, uint64_t needed, size_t item_bytes);

#endif
