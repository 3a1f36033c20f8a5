/* formats/recordio/recordio_joined.h: records that are stored in parts, in one piece. Private.
 *
 * Data that holds the magic number is stored in parts (some ten records of a whole ImageNet) and cannot be
 * shown in one piece where it lies: the joined bytes of such a record are kept from the first time it is
 * parsed, until close. What those may take together is bounded. Any thread. */
#ifndef MRI_RECORDIO_JOINED_H
#define MRI_RECORDIO_JOINED_H

#include <pthread.h>

#include "formats/recordio/recordio.h"

enum { MRI_JOINED_BUCKETS = 1024 };

typedef struct mri_joined mri_joined;

typedef struct mri_joined_table {
    uint64_t most; /* bytes that joined records may take; fixed after open */
    bool has_lock;
    pthread_mutex_t lock;
    uint64_t bytes;                        /* lock */
    mri_joined *table[MRI_JOINED_BUCKETS]; /* lock; entries stay until close */
} mri_joined_table;

int mri_joined_init(mri_joined_table *t, mr_error *err); /* t is all zeros */
void mri_joined_fini(mri_joined_table *t);               /* also when init() failed, or was not called */
/* The data of record r of in, which is this sample, in one piece. */
int mri_joined_data(mri_joined_table *t, const mri_recordio_input *in, const mri_recordio_record *r,
                    uint64_t sample, const uint8_t **out, mr_error *err);

#endif
