/* tests/pipeline/loader/random_reference.h: the expected batches of a trial: the batches of the same settings
 * in series, kept, checked against a model of the order, and compared with the trial's. */
#ifndef MRT_RANDOM_REFERENCE_H
#define MRT_RANDOM_REFERENCE_H

#include "tests/pipeline/loader/random_trial.h"

enum { MOST_PIECES = 5 + 2 * MR_LOADER_MAX_FIELDS };

typedef struct kept_batch {
    mr_batch b; /* its pointers are our copies; parts NULL */
} kept_batch;

typedef struct reference {
    mr_loader_info info;
    size_t sample_bytes;
    uint64_t count; /* batches of the trial's epochs */
    uint64_t kept;  /* these, and the spare ones */
    kept_batch *batch;
} reference;

/* Run it, and keep its batches. */
void run_reference(const trial *t, reference *ref);
/* Numbers, labels and pixels equal the model's. */
void check_reference(const trial *t, const reference *ref);
void free_reference(reference *ref);

/* The damage that the trial meets from its start on, and the first batch that it cannot deliver (the
 * reference's count: every batch can be delivered). */
typedef struct damage {
    uint64_t places, distinct, first;
} damage;

/* count: batches of the reference. */
damage foresee(const trial *t, uint64_t count);

/* ---- comparing ---- */

/* Memory of a batch or share, and the reference's copy of it. */
typedef struct piece {
    const void *found, *expected;
    size_t bytes;
    const char *what;
} piece;

/* The pieces of share p of a batch, k in the reference; returns their number. */
uint32_t pieces_of(const reference *ref, const mr_batch *k, const mr_part *p, piece *out);
void compare_piece(const piece *p, uint64_t batch, uint32_t part, const char *when);

/* The whole host copy as if it were one part, its numbers, and the parts where they lie in host memory. */
void compare_host(const trial *t, const reference *ref, const mr_batch *k, const mr_batch *b, uint64_t batch,
                  const char *when);
/* Counts, place, parts and widths of fields. */
void compare_shape(const trial *t, const reference *ref, const mr_batch *k, const mr_batch *b);

#endif
