/* tools/facts/stats.h: counts of a data set: classes, pictures, bytes, channels, duplicates.
 *
 *   collect   every sample is read once, on several threads: its label, its picture's header, a hash of its
 *             bytes; of some the pixels are decoded (stats_collect.c)
 *   sum up    one pass over these facts in the order of the samples: the same numbers for any number of
 *             threads (stats.c)
 *   print     as text or as one JSON object (stats_print.c)
 *   page      the same with pictures, as HTML (stats_page.h) */
#ifndef TOOLS_STATS_H
#define TOOLS_STATS_H

#include "millrace/pipeline.h"

enum { STATS_PAIRS = 10, STATS_KINDS = 8, STATS_SAMPLINGS = 5 };

typedef struct stats_config {
    mr_decode_config decode;
    uint32_t workers;     /* 0: one per core */
    uint64_t decode_most; /* pictures to decode, evenly spaced */
    bool quiet;
    bool (*wrong)(void *context, const mr_error *what); /* a bad sample, in order */
    void *context;
} stats_config;

typedef struct stats_sample {
    uint64_t hash, bytes; /* of the picture; without pictures of the whole sample */
    uint32_t width, height;
    int32_t label;
    uint8_t kind, channels, sampling, orientation;
    bool good, progressive;
} stats_sample;

typedef struct stats_range {
    uint64_t least, median, most, total;
} stats_range;

/* An estimate, from short measurements on this machine: what limits a training on the data. */
typedef struct stats_bound {
    const char *by;    /* "step", "decode", "read", "storage"; NULL: not measured */
    char augment[512]; /* of the measured loader */
    const char *model; /* of the measured step, on this device; NULL: none */
    char device[128];
    uint32_t workers, batch;
    double decode_ms, read_core_ms; /* of a sample, on a core */
    double loader_per_s;            /* samples, from memory; without training */
    double storage_bytes_per_s;     /* NAN: the set fits into memory, or unknown */
    double supply_per_s;            /* samples that a training gets: the loader's, or what storage gives */
    bool fits_memory;
    double step_ms, trainer_per_s; /* NAN: no step is known */
} stats_bound;

typedef struct stats {
    const mr_source *src;
    uint64_t count, bad;
    stats_sample *sample;
    uint64_t *of_class; /* samples of each class */
    uint32_t classes, empty_classes;
    uint32_t least_class, most_class;
    uint64_t unlabelled;
    uint64_t kinds[STATS_KINDS], samplings[STATS_SAMPLINGS], gray, alpha, turned, progressive, jpegs;
    stats_range width, height, bytes;
    uint64_t smallest, largest; /* samples: the fewest and the most pixels */
    uint64_t decoded;           /* pictures whose channels were taken */
    uint64_t decode_asked;      /* pictures to decode: entries of sums, of the unreadable ones 0 */
    double mean[3], deviation[3];
    double *sums;        /* of each decoded picture: means, means of squares */
    uint64_t duplicates; /* samples whose picture an earlier sample has */
    uint64_t pair[STATS_PAIRS][2];
    uint64_t crossing; /* of these with another label */
    stats_bound bound;
} stats;

extern const char *const stats_kind_names[STATS_KINDS], *const stats_sampling_names[STATS_SAMPLINGS];

/* 0, or an exit status. s is to be freed in any case. */
int stats_collect(stats *s, const mr_source *src, const stats_config *cfg);
int stats_sum_up(stats *s);
/* The sample whose channels are entry k of s->sums. */
uint64_t stats_decoded_sample(const stats *s, uint64_t k);
/* The name of class c, or its number. */
const char *stats_class_name(const stats *s, uint32_t c, char *buf, size_t room);
const char *stats_sample_name(const stats *s, uint64_t k, char *buf, size_t room);
/* bound.by in words, as "decoding". */
const char *stats_bound_name(const stats_bound *b);
void stats_free(stats *s);
void stats_print_text(const stats *s);
void stats_print_json(const stats *s);

#endif
