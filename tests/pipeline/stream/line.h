/* tests/pipeline/stream/line.h: the surroundings of a stage: a data set with known pixels, its batches, a
 * ring with slots and chunks. The test itself plays the missing stages. */
#ifndef MRT_LINE_H
#define MRT_LINE_H

#include "pipeline/stream/ring.h"
#include "tests/pipeline/sets.h"

enum { LINE_HIGH = 4, LINE_WIDE = 5, LINE_PIXELS = LINE_HIGH * LINE_WIDE };

typedef struct line_config {
    uint32_t samples, batch, slots, chunks, chunk_samples, epochs;
    uint32_t device_slots, parts;
    uint32_t workers; /* that decode */
    bool free_order, lists, calls;
} line_config;

typedef struct line {
    mr_loader_config set; /* of every stage */
    mr_source *source;
    mri_batches batches;
    mri_fields fields;
    mri_halt halt;
    mri_slots slots;
    mri_chunks chunks;
    mri_ring *ring;
    mri_stage_counter waits; /* of whatever stage the test plays */
} line;

/* In order, with a kept tail. A 0 in cfg means 1. */
void line_open(line *l, const line_config *cfg);
void line_close(line *l);

/* Play the decoder: put the samples of a chunk in place, and close its slot when it was the last. */
void line_fill(line *l, mri_chunk *c);
/* Play reader and decoder for the next batch; its chunks are claimed without waiting. */
void line_make_batch(line *l);
/* Check that this slot holds batch b. */
void line_check(const line *l, uint64_t b, const mri_slot *slot);
/* The same of pixels and labels anywhere, from sample `first` of the batch on. */
void line_check_pixels(const line *l, uint64_t b, uint32_t first, uint32_t count, const uint8_t *pixels,
                       const int32_t *labels);

/* Wait until a counter has grown beyond `than`; fails the test after some seconds. */
void line_await(const uint64_t *counter, uint64_t than);

#endif
