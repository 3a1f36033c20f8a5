/* tools/fields/same_pictures.h: pictures that two data sets have in common, by their bytes. */
#ifndef TOOLS_SAME_PICTURES_H
#define TOOLS_SAME_PICTURES_H

#include <stdint.h>

#include "millrace/formats.h"

typedef struct same_pictures {
    uint64_t count;         /* pictures of the second set that the first one has, too */
    uint64_t first, second; /* the first such pair: sample of the first and of the second set */
} same_pictures;

/* Reads every sample of both in the caller's thread; 16 bytes of memory a picture of the first. Samples that
 * cannot be read are left out: verify lists them. Pairs have the same bytes, not only the same hash. An exit
 * status; stops when interrupted. */
int find_same_pictures(const mr_source *first, const mr_source *second, same_pictures *out);

#endif
