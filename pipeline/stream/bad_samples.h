/* pipeline/stream/bad_samples.h: what happens when a sample is bad (I7): stop, put another in its place, or
 * leave its place empty. Private. Any thread. */
#ifndef MRI_BAD_SAMPLES_H
#define MRI_BAD_SAMPLES_H

#include "pipeline/order/batches.h"
#include "pipeline/stream/notices.h"
#include "pipeline/stream/place.h"

typedef struct mri_bad_samples {
    const mri_batches *batches;
    mri_notices *notices;
    mr_bad policy;
    uint64_t most; /* different ones that do not stop the run */
    pthread_mutex_t lock;
    uint64_t *known; /* lock: those met, in order of number */
    uint64_t known_count;
    uint64_t bad, replaced, skipped; /* atomic */
} mri_bad_samples;

void mri_bad_samples_init(mri_bad_samples *b, const mri_batches *batches, mri_notices *notices, mr_bad policy,
                          uint64_t most);
void mri_bad_samples_fini(mri_bad_samples *b);

/* Sample k of a chunk could not be placed: err says why. MR_OK: its place is filled or blank all the same;
 * else the run ends. Lack of memory, file descriptors or devices is not a bad sample, nor is a picture that
 * the budget has no room for, or a server that does not answer. */
int mri_bad_sample(mri_bad_samples *b, mri_placer *p, const mri_chunk *c, uint32_t k, int rc, mr_error *err);

#endif
