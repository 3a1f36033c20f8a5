/* pipeline/stream/read_stage.h: reader threads: chunks from the ring, their bytes into memory, back to the
 * ring. Private.
 *
 *   ring: claim ──► locate ──► reads in flight (reader.h), up to `depth` a thread ──► ring: hand on
 *
 * A resident set is read first and as a whole, by all threads together; then nothing is left to read. The
 * first error of the ring or of a reader ends the run (halt); a read that fails is not one: its samples'
 * worker decides. Knows no loader; whoever gives it a ring, a locator and a source may run it. */
#ifndef MRI_READ_STAGE_H
#define MRI_READ_STAGE_H

#include "pipeline/account/readers_account.h"
#include "pipeline/stream/locate.h"
#include "pipeline/stream/ring.h"

typedef struct mri_read_stage mri_read_stage;

typedef struct mri_read_config {
    const mr_loader_config *set; /* the loader's settings; at least one reader also where none is started */
    mri_ring *ring;
    mri_halt *halt; /* the stage adds itself: readers that wait for a server come back */
    const mri_locator *locator;
    mri_resident *resident; /* or NULL */
    mr_io io;
    mri_reader_config reader; /* of each */
} mri_read_config;

int mri_read_stage_create(mri_read_stage **out, const mri_read_config *cfg, mr_error *err);
int mri_read_stage_start(mri_read_stage *s, mr_error *err); /* threads; on failure some run: stop and join */
void mri_read_stage_join(mri_read_stage *s);                /* joins the started threads. Accepts NULL */
/* False: the kernel may still write to the buffers that were given to it. Accepts NULL. */
bool mri_read_stage_destroy(mri_read_stage *s);

/* Reads in flight of each reader, from now on: 1 to the depth it was made for. Any thread. */
void mri_read_stage_set_depth(mri_read_stage *s, uint32_t depth);
/* Files whose reads take far longer than other files', for mr_loader_odd(); any thread. */
uint32_t mri_read_stage_odd(mri_read_stage *s, mr_odd *out, uint32_t room);
mri_read_counters *mri_read_stage_counters(mri_read_stage *s);

/* Without threads, in the caller's: the resident set, if it is not there yet; and one claimed chunk. */
int mri_read_resident_inline(mri_read_stage *s, mr_error *err);
int mri_read_chunk_inline(mri_read_stage *s, mri_chunk *c, mr_error *err);

#endif
