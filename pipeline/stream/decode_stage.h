/* pipeline/stream/decode_stage.h: worker threads: chunks with their bytes into their places in slots.
 * Private.
 *
 *   ring: take ──► (locate, when nothing is left to read) ──► place every sample ──► ring: return
 *                                                                the last of a slot closes it ──► ring: full
 *
 * The first bad sample that the policy does not allow ends the run (halt). Knows neither the loader nor the
 * read stage.
 */
#ifndef MRI_DECODE_STAGE_H
#define MRI_DECODE_STAGE_H

#include "pipeline/account/workers_account.h"
#include "pipeline/stream/bad_samples.h"
#include "pipeline/stream/locate.h"
#include "pipeline/stream/ring.h"

typedef struct mri_decode_stage mri_decode_stage;

typedef struct mri_decode_config {
    const mr_loader_config *set; /* the loader's settings; at least one worker also where none is started */
    mri_ring *ring;
    mri_halt *halt;
    const mri_locator *locator;
    const mri_place_config *place;
    mri_bad_samples *bad;
    uint32_t chunk_samples; /* of a chunk at most */
} mri_decode_config;

int mri_decode_stage_create(mri_decode_stage **out, const mri_decode_config *cfg, mr_error *err);
int mri_decode_stage_start(mri_decode_stage *s, mr_error *err); /* as mri_read_stage_start() */
void mri_decode_stage_join(mri_decode_stage *s);                /* accepts NULL */
void mri_decode_stage_destroy(mri_decode_stage *s);             /* accepts NULL */

/* mr_loader_slowest(); any thread. */
uint32_t mri_decode_stage_slowest(mri_decode_stage *s, mr_slow_sample *out, uint32_t room);
/* Workers that take far longer than others, for mr_loader_odd(); any thread. */
uint32_t mri_decode_stage_odd(mri_decode_stage *s, mr_odd *out, uint32_t room);
mri_decode_counters *mri_decode_stage_counters(mri_decode_stage *s);

/* Without threads, in the caller's: a chunk that was read, to its slot, and back to the ring; *work: what
 * that took. */
int mri_decode_chunk_inline(mri_decode_stage *s, mri_chunk *c, mri_work *work, mr_error *err);

#endif
