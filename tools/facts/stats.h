/* tools/facts/stats.h: counts of a data set (millrace/stats.h) with an estimate of what limits a training on
 * it:
 *
 *   print     as text or as one JSON object (stats_print.c)
 *   page      the same with pictures, as HTML (stats_page.h) */
#ifndef TOOLS_STATS_H
#define TOOLS_STATS_H

#include "millrace/pipeline.h"

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

/* The name of class c, or its number. */
const char *stats_class_name(const mr_stats *s, uint32_t c, char *buf, size_t room);
const char *stats_sample_name(const mr_stats *s, uint64_t k, char *buf, size_t room);
/* bound.by in words, as "decoding". */
const char *stats_bound_name(const stats_bound *b);
void stats_print_text(const mr_stats *s, const stats_bound *bound);
void stats_print_json(const mr_stats *s, const stats_bound *bound);

#endif
