/* pipeline/stream/ring.h: the slots and chunks of a run, who owns them at the moment, and the one lock under
 * which ownership changes. Private.
 *
 *   slot    free ──► filling ──► full ──► staged ──► free      staged: copied to the devices. Without devices
 *                                  └────► taken  ──► free      a full slot is taken by the consumer as it is
 *   chunk   free ──► claimed ──► ready ──► taken ──► free      claimed by whoever reads; ready: its bytes are
 *                                                              in memory; taken by whoever decodes
 *
 * Batches are numbered as in batches.h; batch b lies in slot[b % slot_count] (in free order: where it came).
 * A slot that its consumer keeps leaves the ring for a spare one (shelf.h).
 *
 *   listed                   batches < listed may be claimed; all, when nobody lists their samples before
 *   next_batch, next_first   the next position to claim
 *   staged                   batches < staged are in device memory, or on their way there, with an event
 *                            after them
 *   copied                   the copies of batches < copied are over
 *   taken, released          the consumer's: handed out, given back
 *   freed                    slots of batches < freed are free again: copied, or released without devices, or
 *                            the smaller of both with keep_host
 *
 * Bounds: chunks between reading and decoding, slots between decoding and staging, device sets between
 * staging and the consumer. The lock is taken a few times per chunk and per batch, never per sample, and
 * never held across I/O, decoding, a device call or a callback. Every wait ends when the halt is over, and is
 * counted in the counter that the caller gives, by its reason.
 *
 * A function of the program may wait until earlier batches were delivered. With `calls` workers therefore
 * take the earliest chunk first, and one of them is left for the first batch that is not full: all others may
 * wait in functions for later batches, and this one is decoded as soon as its bytes are there.
 *
 * Callers: the other stages, the loader, tests. It knows no stage. */
#ifndef MRI_RING_H
#define MRI_RING_H

#include "base/cpu_time.h"
#include "pipeline/observe/counter.h"
#include "pipeline/order/batches.h"
#include "pipeline/stream/chunk.h"
#include "pipeline/stream/halt.h"

typedef struct mri_ring_config {
    const mr_loader_config *set; /* the loader's settings; at least one worker */
    const mri_batches *batches;
    mri_halt *halt; /* the ring adds itself */
    mri_slots *slots;
    mri_chunks *chunks;
    uint32_t device_slots; /* sets of device memory; 0: batches are handed out in host memory */
    bool free_order;       /* without devices: whichever batch is full first is handed out next */
    bool calls;            /* whoever decodes calls functions of the program, which may wait: below */
    bool lists;            /* somebody lists the samples of each batch before it is claimed (order_stage.h) */
} mri_ring_config;

/* How many of the created threads and slots are in use. Threads are numbered from 0; those beyond rest. */
typedef struct mri_ring_limits {
    uint32_t workers, readers, slots;
} mri_ring_limits;

typedef struct mri_ring mri_ring;

int mri_ring_create(mri_ring **out, const mri_ring_config *cfg, mr_error *err);
void mri_ring_destroy(mri_ring *r); /* accepts NULL; nobody is inside */
/* From now on; at first all are in use. None of them 0, none more than were made (readers: any number). What
 * lies in slots beyond is still delivered. Any thread. */
void mri_ring_limit(mri_ring *r, const mri_ring_limits *limits);

/* ---- what became of a batch (observe/causes.h): any thread ---- */
/* batch: as it was given to the stages; its copy times belong to `part`. batch MR_NOWHERE in *out: its times
 * are no longer known. */
void mri_ring_times(mri_ring *r, uint64_t batch, uint32_t part, mri_batch_times *out);

/* ---- listing, with `lists`: one thread ---- */
/* Wait until the slot of the next batch is free, so that its samples can be listed in slot->ids, from the
 * first that is delivered here on. NULL: all are listed, or it is over. */
mri_slot *mri_ring_wait_unlisted(mri_ring *r, uint64_t *batch);
/* They are listed: the batch may be claimed. */
void mri_ring_mark_listed(mri_ring *r);

/* ---- reading: any thread ---- */
/* Take the next chunk of work for this reader. NULL: none can be had now (block false), none is left at all
 * (*ended), or it is over. */
mri_chunk *mri_ring_claim(mri_ring *r, uint32_t reader, bool block, mri_stage_counter *waits, bool *ended);
/* woken(context): somebody whose claim without block found none can have one now. From any thread, without a
 * lock. Before the threads begin. */
void mri_ring_on_room(mri_ring *r, void (*woken)(void *context), void *context);
/* Its reads have completed or failed: hand it to the decode stage. */
void mri_ring_read_done(mri_ring *r, mri_chunk *c);
/* From now on every sample comes from memory: claim() ends, and whoever decodes claims chunks itself. */
void mri_ring_serve_from_memory(mri_ring *r);

/* ---- decoding: any thread ---- */
/* A chunk for this worker to decode; *located false: nobody has looked up its samples yet. NULL: it is over.
 */
mri_chunk *mri_ring_take_chunk(mri_ring *r, uint32_t worker, mri_stage_counter *waits, bool *located);
/* Its samples are in place. The slot, when it was the slot's last chunk: whoever gets it closes it and then
 * calls mri_ring_mark_full(). */
mri_slot *mri_ring_return_chunk(mri_ring *r, mri_chunk *c);
/* last: how the chunk came there that was the last. */
void mri_ring_mark_full(mri_ring *r, mri_slot *slot, const mri_chunk_times *last);
bool mri_ring_is_full(mri_ring *r, uint64_t batch);

/* ---- staging: one thread ---- */
/* Wait until a batch is full and a device set is free for it. NULL: it is over. cpu: the thread's own, or
 * NULL. */
const mri_slot *mri_ring_wait_full(mri_ring *r, uint64_t batch, mri_stage_counter *waits, mri_cpu_time *cpu);
const mri_slot *mri_ring_slot(const mri_ring *r, uint64_t batch);
void mri_ring_mark_staged(mri_ring *r, uint64_t batch);
/* times: of every part, as far as events tell them. */
void mri_ring_mark_copied(mri_ring *r, uint64_t batch, const mri_copy_times *times);
/* Prefetch off: the consumer made it itself. */
void mri_ring_mark_serial(mri_ring *r, uint64_t batch, const mri_chunk_times *all, uint64_t read_ns,
                          uint64_t before_late_ns);

/* ---- consuming: one thread ---- */
typedef struct mri_ring_batch {
    uint64_t place; /* in the order of delivery */
    uint64_t batch; /* its number; another one in free order only */
    uint32_t counted;
    mri_slot *slot; /* in the consumer's hands without devices, or with keep_host */
} mri_ring_batch;

/* MR_OK; MR_EEND: all batches are taken; MR_EBUSY: all of *room are held. */
int mri_ring_may_take(mri_ring *r, uint32_t *room);
/* The next batch can be taken, or it is over. */
bool mri_ring_is_ready(mri_ring *r);
/* MR_OK when it can be taken, MR_EAGAIN after timeout_ns, MR_ECANCELED when it is over. */
int mri_ring_wait(mri_ring *r, uint64_t timeout_ns);
uint64_t mri_ring_next(const mri_ring *r); /* the place of the batch that is taken next */
void mri_ring_take(mri_ring *r, mri_ring_batch *out);
/* Another full batch follows the taken ones, staged or not. */
bool mri_ring_is_ahead(mri_ring *r);
/* May this one be given back? In the order of delivery, each once. Any thread, like release(); one at a time.
 */
bool mri_ring_may_release(mri_ring *r, uint64_t place);
void mri_ring_release(mri_ring *r);
/* Nobody but the consumer is here (prefetch off), and no device: the batch that is taken next is this one.
 * MR_EBUSY: a batch is taken and not released, or not finished. */
int mri_ring_seek(mri_ring *r, uint64_t batch);
/* The same as release, but its slot leaves the ring, and `instead`, which is free, takes its place. */
mri_slot *mri_ring_release_kept(mri_ring *r, mri_slot *instead);

#endif
