/* millrace/stats.h: counts of a data set: classes, pictures, bytes, mean and deviation of the channels,
 * samples with the same bytes. */
#ifndef MILLRACE_STATS_H
#define MILLRACE_STATS_H

#include "millrace/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings of mr_stats_make(). mr_stats_defaults() sets 0, false and NULL everywhere. */
typedef struct mr_stats_config {
    size_t struct_size;
    uint32_t workers;     /* threads. More than 256 count as 256; 0 (default): one per core */
    uint64_t decode_most; /* number of pictures to decode for the channels, evenly spaced; 0 (default): none
                           */
    const mr_decode_config *decode; /* limits of these pictures; NULL: the defaults. Read during the call */
    /* Called for each sample that cannot be read, in the order of the samples, after all of them; or NULL.
     * The error is valid during the call */
    void (*on_wrong)(void *context, const mr_error *what);
    /* Called about every 20 ms: done of count samples; or NULL */
    void (*on_progress)(void *context, uint64_t done, uint64_t count);
    void *context;            /* passed to both, which the calling thread calls; no lock is held */
    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; or NULL */
    /* Another source, such as the test split, whose samples are looked for in the counted one; or NULL. It
     * must outlive the result. Its bad samples are counted only (mr_stats_shared) */
    const mr_source *test;
} mr_stats_config;

static inline void mr_stats_defaults(mr_stats_config *cfg);

/* Facts of a sample. Width and height of the picture are as it is shown (EXIF); 0 without pictures. */
typedef struct mr_sample_facts {
    uint64_t hash, bytes; /* of the encoded picture; without pictures of the whole sample */
    uint32_t width, height;
    int32_t label;       /* -1: none */
    uint8_t kind;        /* of the picture: mr_stats_kind_name() */
    uint8_t channels;    /* 1 to 4 */
    uint8_t sampling;    /* of a JPEG's chroma: mr_stats_sampling_name() */
    uint8_t orientation; /* EXIF, 1 to 8 */
    bool good;           /* false: the sample cannot be read, and the other members mean nothing */
    bool progressive;    /* JPEG */
} mr_sample_facts;

typedef struct mr_stats_range {
    uint64_t least, median, most, total;
} mr_stats_range;

enum { MR_STATS_KINDS = 16, MR_STATS_SAMPLINGS = 8, MR_STATS_PAIRS = 10 };

/* Samples of mr_stats_config.test that have the bytes of a counted sample: the same picture file or, in data
 * without pictures, the same sample. */
typedef struct mr_stats_shared {
    const mr_source *src;             /* mr_stats_config.test; NULL: none was given */
    uint64_t of, bad, count;          /* its samples; samples that cannot be read; samples with such bytes */
    uint64_t pair[MR_STATS_PAIRS][2]; /* the first of these: the counted sample, and the sample of src */
} mr_stats_shared;

/* The counts of a data set, owned by the library until mr_stats_free(). The numbers are the same for any
 * number of threads. */
typedef struct mr_stats {
    const mr_source *src;
    uint64_t count, bad; /* samples; samples that cannot be read. The other members count good samples only */
    const mr_sample_facts *sample; /* count */
    const uint64_t *of_class;      /* classes: number of samples of each class */
    uint32_t classes, empty_classes;
    uint32_t least_class, most_class; /* classes with the fewest and the most samples */
    uint64_t unlabelled;              /* samples without a class */
    uint64_t kinds[MR_STATS_KINDS];   /* pictures of each kind; beyond the last kind 0 */
    uint64_t samplings[MR_STATS_SAMPLINGS];
    uint64_t gray, alpha, turned, progressive, jpegs; /* pictures; turned: by EXIF */
    mr_stats_range width, height, bytes;
    uint64_t smallest, largest;       /* samples with the fewest and the most pixels */
    uint64_t decoded;                 /* pictures whose channels are in mean and deviation */
    uint64_t decode_asked;            /* pictures that were to be decoded: entries of sums */
    double mean[3], deviation[3];     /* of the channels, 0 to 255; each picture counts the same */
    const double *sums;               /* 6 for each: 3 means, 3 means of squares; all 0 for a bad picture */
    uint64_t duplicates;              /* samples with the bytes of an earlier sample */
    uint64_t pair[MR_STATS_PAIRS][2]; /* the first of them: the earlier sample, and the sample */
    uint64_t crossing;                /* duplicates with another label than the earlier sample */
    mr_stats_shared shared;
} mr_stats;

/* Read every sample of src once and count. Blocks; other threads may use src, which must outlive the result.
 * Needs about 40 bytes of memory per sample, also of cfg->test.
 *
 * MR_OK         also if samples are bad
 * MR_ECANCELED  cfg->stop was set
 * other < 0     the medium cannot be read, or no memory */
MR_API int mr_stats_make(mr_stats **out, const mr_source *src, const mr_stats_config *cfg, mr_error *err);
MR_API void mr_stats_free(mr_stats *s); /* accepts NULL */

/* Return the sample whose channels are entry k of s->sums; 0 if there is no such entry. */
MR_API uint64_t mr_stats_decoded_sample(const mr_stats *s, uint64_t k);

/* Write the name of a class to buf, or its number in the data; the name of a sample, or "sample 17". Both
 * return buf. */
MR_API const char *mr_stats_class_name(const mr_stats *s, uint32_t label, char *buf, size_t buf_bytes);
MR_API const char *mr_stats_sample_name(const mr_stats *s, uint64_t sample, char *buf, size_t buf_bytes);

/* The name of a kind of pictures ("jpeg") or of chroma ("4:2:0"); NULL: there are fewer. Static texts. */
MR_API const char *mr_stats_kind_name(uint32_t kind);
MR_API const char *mr_stats_sampling_name(uint32_t sampling);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the function below in place of the
 * inline one above, which passes the size of its struct in the caller's header (base.h). A program in another
 * language sets struct_size and calls ..._sized. */

MR_API void mr_stats_defaults_sized(mr_stats_config *cfg, size_t struct_size);
static inline void mr_stats_defaults(mr_stats_config *cfg) { mr_stats_defaults_sized(cfg, sizeof *cfg); }

#ifdef __cplusplus
}
#endif

#endif
