/* pipeline/stream/place.h: one sample from its bytes to its place in a slot: parsed, decoded, augmented.
 * Private.
 *
 * Takes a chunk whose reads are over; gives pixels, label, id and fields of a place. The error of a bad
 * sample has file, offset and sample; bad_samples.h decides what follows. A placer belongs to one thread. */
#ifndef MRI_PLACE_H
#define MRI_PLACE_H

#include "pipeline/augment/augment.h"
#include "pipeline/budget/budget.h"
#include "pipeline/cache/cache.h"
#include "pipeline/cache/points.h"
#include "pipeline/read/resident.h"
#include "pipeline/stream/chunk.h"

typedef struct mri_place_config { /* fixed */
    const mr_loader_config *set;  /* the loader's settings */
    const mr_source *source;
    const mr_augment *augment;
    const mri_fields *fields;
    const mri_slot_layout *layout;
    const mr_decode_config *decode;
    uint32_t height, width, channels; /* of the picture in the batch */
    mri_cache *cache;                 /* or NULL */
    const mri_cache_form *cache_form; /* with a cache */
    bool keeps;                       /* good samples are offered to the cache */
    mri_resident *resident;           /* or NULL */
    mri_points *points;               /* or NULL */
    const bool *until;                /* atomic: a wait for a server, or for memory, ends when it is true */
    mr_budget *budget;  /* larger pictures than `share` borrow from it; NULL: every worker has room for all */
    mri_extremes share; /* of pictures that a worker always has room for */
} mri_place_config;

typedef struct mri_placer {
    const mri_place_config *cfg;
    mri_scratch *scratch;
    void *spare; /* samples that are read alone */
    size_t spare_bytes;
    void *maker; /* of the cache's form of a sample */
    mri_field_scratch fields;
    uint64_t cache_hits, offered, reads, read_bytes; /* since the owner took them */
    mri_seat seat;
    mri_extremes seen;  /* the pictures that the seat has borrowed for; empty without a loan */
    uint64_t waited_ns; /* for room in the budget, since the owner took it */
    bool refused;       /* the last sample's error is the budget's or a stop's, no fault of the sample */
} mri_placer;

/* The most memory a worker may hold for such pictures. cache_form: NULL without a cache; out_pixels: of a
 * picture in the batch. */
uint64_t mri_place_bytes(const mr_source *source, const mr_augment *augment, const mr_decode_config *decode,
                         const mri_fields *fields, const mri_cache_form *cache_form, uint64_t out_pixels,
                         mri_extremes seen);

int mri_placer_init(mri_placer *p, const mri_place_config *cfg); /* on failure fini() is still to be called */
void mri_placer_fini(mri_placer *p);                             /* accepts a zeroed one */

/* Sample k of a chunk. turn: of its place (mri_batches_turn()). */
int mri_place_from_chunk(mri_placer *p, const mri_chunk *c, uint32_t k, uint64_t turn, mr_error *err);
/* Any sample into place i of a slot, read here: substitutes, and samples whose shared read failed. */
int mri_place_alone(mri_placer *p, mri_slot *slot, uint32_t i, uint64_t turn, uint64_t sample, mr_error *err);

/* Mix places i, an even one, and i + 1 of a slot, which are filled, by the key of the first; `alone`: there
 * is no second one. If it is not mixed, or one of them does not count, both stay unchanged, and the slot
 * records that. Only where slots have room for mix data. */
void mri_place_mix(const mri_place_config *cfg, mri_slot *slot, uint32_t i, bool alone, uint64_t turn);

#endif
