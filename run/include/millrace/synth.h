/* millrace/synth.h: a small labelled data set for first tries and tests: ten shapes in changing places, sizes
 * and colours, on noise. A small network learns to tell them apart in a few epochs. */
#ifndef MILLRACE_SYNTH_H
#define MILLRACE_SYNTH_H

#include "millrace/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mr_synth_image { MR_SYNTH_JPEG = 0, MR_SYNTH_PNG = 1 } mr_synth_image;

/* Settings of mr_synth_write(). */
typedef struct mr_synth_config {
    size_t struct_size;
    uint32_t classes;     /* 2 to 100, default 10; above ten the colour distinguishes them, too */
    uint32_t count;       /* pictures of each class in the train split: 1 to 99,999, default 200 */
    uint32_t test_count;  /* in the test split, to 99,999; 0 (default): a fifth of count, rounded up */
    uint32_t size;        /* side in pixels: 8 to 8192, default 32 */
    uint32_t max_size;    /* the side of each picture is drawn from size to this; 0 (default): all have one */
    uint32_t channels;    /* 3 (default): colour; 1: gray */
    mr_synth_image image; /* kind of the files; default JPEG */
    uint32_t quality;     /* of JPEGs: 1 to 100, default 90 */
    uint64_t seed;        /* the same seed makes the same files; default 0 */
    bool force;           /* write into a folder that is not empty; default false */
    /* Called after each picture, from the calling thread; no lock is held. NULL (default): not */
    void (*on_progress)(void *context, uint64_t done, uint64_t count);
    void *context;            /* passed to it */
    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; NULL (default): never */
} mr_synth_config;

static inline void mr_synth_defaults(mr_synth_config *cfg);

typedef struct mr_synth_result {
    size_t struct_size;
    uint64_t train, test; /* pictures of each split */
    uint64_t bytes;
} mr_synth_result;

/* Write FOLDER/train/CLASS/NNNNN.jpg and FOLDER/test/CLASS/NNNNN.jpg, or .png. Makes the folder and its
 * missing parents. cfg NULL: the defaults. out may be NULL. Blocks; any thread.
 *
 * MR_EINVAL     a setting is out of its range
 * MR_EEXIST     the folder is not empty, and force is not set
 * MR_ECANCELED  cfg->stop was set: the data set is not complete
 * other < 0     from writing, or no memory */
static inline int mr_synth_write(const char *folder, const mr_synth_config *cfg, mr_synth_result *out,
                                 mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_synth_defaults_sized(mr_synth_config *cfg, size_t struct_size);
static inline void mr_synth_defaults(mr_synth_config *cfg) { mr_synth_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_synth_write_sized(const char *folder, const mr_synth_config *cfg, mr_synth_result *out,
                                mr_error *err);
static inline int mr_synth_write(const char *folder, const mr_synth_config *cfg, mr_synth_result *out,
                                 mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_synth_write_sized(folder, cfg, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
