/* pipeline/stream/staging.h: from a host slot to every replica's device memory. Private.
 *
 *   per replica: device_slots sets of (pixels, labels, affine, second labels, fields), one copy stream
 *
 *     copy stream:   wait consumed[d] ─ start[d] ─ copies ─ ready[d]
 *     consumer's:    wait ready[d] ─ uses set d ─ consumed[d]
 *
 * All order between copying and computing is kept by events on the devices; the host waits only to know when
 * its own slot may be written again. Only a replica's own part crosses to it, and every byte is counted. A
 * device that fails ends the run (halt). Knows no loader, and not who filled the slots. */
#ifndef MRI_STAGING_H
#define MRI_STAGING_H

#include "millrace/kernels.h"
#include "pipeline/stream/ring.h"

typedef struct mri_staging mri_staging;

typedef struct mri_staging_config {
    const mr_loader_config *set; /* the loader's settings, with batches->parts devices */
    mri_ring *ring;
    mri_halt *halt;
    const mri_batches *batches;
    const mri_slot_layout *layout;
    uint32_t device_slots; /* as the ring has it */
} mri_staging_config;

int mri_staging_create(mri_staging **out, const mri_staging_config *cfg, mr_error *err);
int mri_staging_start(mri_staging *s, mr_error *err); /* one thread, in the order of batches */
void mri_staging_join(mri_staging *s);                /* accepts NULL */
/* Waits for device work that still uses its memory. The ring is not touched any more. Accepts NULL. */
void mri_staging_destroy(mri_staging *s);

mri_stage_counter *mri_staging_counter(mri_staging *s);
uint64_t mri_staging_bytes(const mri_staging *s, uint32_t r); /* copied to replica r */

/* Without a thread, in the caller's: a full slot to the devices; its copies are over on return. */
int mri_stage_inline(mri_staging *s, uint64_t batch, mr_error *err);

/* So late it was seen, with `wait` below, that the devices had done with the batch before. The consumer's. */
uint64_t mri_staging_seen_late(const mri_staging *s);

/* The parts of a staged batch; valid until it is released. */
const mr_part *mri_staging_parts(const mri_staging *s, uint64_t batch);
/* The consumer is done with a batch on these streams; wait: and its work there is over on return. */
int mri_staging_mark_consumed(mri_staging *s, uint64_t batch, mr_stream *const *streams, bool wait,
                              mr_error *err);

#endif
