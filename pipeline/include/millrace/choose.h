/* millrace/choose.h: take some samples of an open data set, and rename its classes.
 *
 * A choice changes the source itself: afterwards the chosen samples are numbered from 0 without gaps, in the
 * order of the data, and loaders, conversion and mr_source_info see only these. mr_source_number() returns a
 * sample's number in the whole data. */
#ifndef MILLRACE_CHOOSE_H
#define MILLRACE_CHOOSE_H

#include "millrace/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Samples with the picture of an earlier sample. The first of equal pictures stays. */
typedef enum mr_copies {
    MR_COPIES_TAKE = 0,   /* keep them; pictures are not compared */
    MR_COPIES_BYTES = 1,  /* leave out samples whose picture has the bytes of an earlier sample's */
    MR_COPIES_PIXELS = 2, /* leave out samples whose picture has the decoded pixels of an earlier one */
} mr_copies;

/* The steps of a choice. They run in this order, whichever are set, and each sees the samples and names that
 * the one before left: classes_from, rename_classes, only_classes, where, dedup, each_from and each_to,
 * sample. mr_choice_defaults() sets no step: NULL, 0 and false everywhere, each_to 1, and decode as
 * mr_decode_defaults(). The texts must stay valid during the call. */
typedef struct mr_choice_config {
    size_t struct_size;
    /* Texts, NULL: no such step. A line ends with \n or \r\n; a text has at most 2^24 lines. */
    const char *classes_from;   /* names for numbered classes: a line for each, from the first number on. The
                                   number of lines is the number of classes, and no name comes twice. Classes
                                   that have names already are MR_EFORMAT */
    const char *rename_classes; /* lines "OLD<tab>NEW"; classes with one name become one */
    const char *only_classes;   /* take these classes, one name per line; named classes are numbered anew */
    const char *where; /* conditions with commas between them: label, width, height, bytes with <, <=, >, >=,
                          =, !=; key (the sample's name), class with =, !=, or ~, !~ and a pattern of
                          fnmatch(). A sample must meet all, up to 32. width, height: in pixels, of the
                          upright picture (EXIF); label: the number in the data; bytes: of the encoded
                          picture, or, in data without pictures, of the stored sample */
    mr_copies dedup;   /* default TAKE */
    double each_from, each_to; /* share of each class: its samples from fraction each_from to fraction each_to
                                  of an order that depends on their numbers alone; 0 <= each_from < each_to <=
                                  1, rounded to whole samples. 0:0.9 and 0.9:1 have no common sample, and
                                  together all samples. 0 and 1 (default): all */
    uint64_t sample;           /* draw this number of the remaining samples, of all classes together; 0
                                  (default): all. If fewer remain, all are taken */
    uint64_t sample_seed;      /* of the draw, any number; default 0 */
    mr_decode_config decode;   /* for dedup by pixels */
    uint32_t workers;          /* threads that read samples, at most 256; 0 (default): one per core */
    bool lenient;              /* names of classes that the data lack are no error; default false */
    const char *const *known;  /* these names may be missing in the data; or NULL */
    uint32_t known_count;      /* of known */
    /* Called with one line for the user: renamed classes, the number of samples that each step left out; or
     * NULL. The text is valid during the call */
    void (*on_note)(void *context, const char *text);
    /* Called while samples are read: done of count samples, rising; or NULL. Not called if no step looks at
     * single samples */
    void (*on_progress)(void *context, uint64_t done, uint64_t count);
    void *context;            /* of both, which the calling thread calls */
    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; or NULL */
} mr_choice_config;

static inline void mr_choice_defaults(mr_choice_config *cfg);

typedef struct mr_choice_result {
    size_t struct_size;
    bool asked;             /* cfg has a step; else nothing was changed */
    uint64_t before, after; /* samples of the source before and after the choice */
    /* Samples that each step left out: only_classes, where, dedup, each_from and each_to, sample (samples
     * not drawn). Their sum is before - after. copies_crossing: the number of copies with another label than
     * the sample that stays, a sign of wrong labels */
    uint64_t other_classes, where, copies, copies_crossing, share, drawn;
    uint32_t classes_before, classes_after; /* number of classes */
    uint32_t renamed, merged; /* classes that got another name; classes that became part of another one */
} mr_choice_result;

/* Apply a choice to a source, as mr_source_choose() and mr_source_name_classes() do. Call it before anything
 * else uses the source. The result depends on the data and cfg, not on workers. Samples that cannot be read
 * stay. It reads all samples for width, height, bytes and dedup, and for labels that the source does not know
 * without reading; all other steps need names and labels alone. Blocks.
 *
 * out           NULL, or written on MR_OK
 * MR_EINVAL     cfg has a value that no data could fit
 * MR_EFORMAT    a list of classes is malformed, or cfg does not fit the data: a class is missing, no
 *               sample is left, the data have no classes
 * MR_ECANCELED  stopped
 * After an error the source may have other classes: close it. */
static inline int mr_choose(mr_source *src, const mr_choice_config *cfg, mr_choice_result *out,
                            mr_error *err);

/* Find the samples for which cfg->where holds; the other steps do not apply, and the source stays as it is.
 * numbers: room for all samples of the source; receives their numbers in rising order. count: their number.
 * A sample that cannot be read is left out. Errors as above. */
MR_API int mr_choose_where(const mr_source *src, const mr_choice_config *cfg, uint64_t *numbers,
                           uint64_t *count, mr_error *err);

/* A sample among which copies are looked for. Samples with the same contents have the same hash and bytes. */
typedef struct mr_copy_mark {
    uint64_t hash, bytes;
    uint64_t sample; /* its number in the source */
} mr_copy_mark;

/* Sample `sample` has the contents of `first`, which has a smaller number. */
typedef void mr_on_copy(void *context, uint64_t sample, uint64_t first);

/* Find copies among `count` samples that the caller has read and hashed. A sample with the mark of an earlier
 * one is compared with the first sample of this mark. Both are read again: their pictures, or whole samples
 * in data without pictures. cfg->dedup MR_COPIES_PIXELS compares decoded pixels, every other value bytes; of
 * the other members decode and stop apply.
 *
 * marks         sorted by this function
 * on_copy       called by the calling thread for each copy, in the order of the sorted marks
 * MR_EINVAL     a mark's number is not a sample of the source
 * MR_ECANCELED  stopped
 * other < 0     a sample cannot be read again */
MR_API int mr_choose_copies(const mr_source *src, const mr_choice_config *cfg, mr_copy_mark *marks,
                            uint64_t count, mr_on_copy *on_copy, void *context, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_choice_defaults_sized(mr_choice_config *cfg, size_t struct_size);
static inline void mr_choice_defaults(mr_choice_config *cfg) { mr_choice_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_choose_sized(mr_source *src, const mr_choice_config *cfg, mr_choice_result *out, mr_error *err);
static inline int mr_choose(mr_source *src, const mr_choice_config *cfg, mr_choice_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_choose_sized(src, cfg, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
