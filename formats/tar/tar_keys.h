/* formats/tar/tar_keys.h: keys seen in one file of a set. Private. Only there: every shard may begin its
 * numbers anew. Two keys with the same hash would be reported as a repeated key. */
#ifndef MRI_TAR_KEYS_H
#define MRI_TAR_KEYS_H

#include "formats/source/source.h"

typedef struct mri_tar_keys { /* all zero: none */
    uint64_t *hash;           /* open addressing; 0 is free */
    uint64_t count, cap;
} mri_tar_keys;

/* *again: it was there. */
int mri_tar_keys_put(mri_tar_keys *k, const char *key, size_t bytes, const mr_source_config *cfg, bool *again,
                     mr_error *err);
void mri_tar_keys_fini(mri_tar_keys *k);

#endif
