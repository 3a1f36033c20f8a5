/* formats/fileset/facts.c: see facts.h. */
#include "formats/fileset/facts.h"

#include <stdlib.h>

bool mri_facts_grow(void **items, uint64_t *cap, uint64_t needed, size_t item_bytes)
{
    uint64_t more = *cap ? *cap : 64;
    size_t bytes;
    while (more < needed) more *= 2;
    if (more == *cap) return true;
    if (!mri_mul_size((size_t)more, item_bytes, &bytes)) return false;
    void *larger = realloc(*items, bytes);
    if (!larger) return false;
    *items = larger;
    *cap = more;
    return true;
}
