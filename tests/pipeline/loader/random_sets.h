/* tests/pipeline/loader/random_sets.h: the data sets that random loaders draw from: pixels, JPEG files,
 * damaged ones, fields, sequences, in every format that holds them. */
#ifndef MRT_RANDOM_SETS_H
#define MRT_RANDOM_SETS_H

#include "millrace/pipeline.h"
#include "mrt.h"

enum { MOST_BAD = 4 };

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

typedef struct data_set {
    const char *name;
    mr_source *src;
    const char *augment[6]; /* one is drawn; the rest NULL */
    uint64_t bad[MOST_BAD]; /* numbers of damaged samples */
    uint32_t bad_count;
    const mr_loader_field *fields[3]; /* likewise; NULL at first: the set goes without fields, too */
    uint32_t field_count[3];
    bool cached; /* a cache goes with it */
    bool jpegs;
    bool known_pixels; /* the pixels are mrt_idx_pixel()'s when nothing is augmented */
} data_set;

extern data_set mrt_sets[24];
extern uint32_t mrt_set_count;

/* Makes them all under the folder of the test. */
void add_sets(void);
void close_sets(void);

/* Is this sample a damaged one? */
bool is_bad(const data_set *s, uint64_t sample);

#endif
