/* millrace/report.h: runs, data sets and networks as pages: one HTML or SVG file each, which fetches nothing.
 *
 *   mr_run_page          the log of a run (train --json, profile --json), or of two runs, with curves, causes
 *                        of waits, steps, a timeline, pictures
 *   mr_stats_page_write  the counts of a data set (stats.h), with pictures of each class and outliers
 *   mr_net_graph_write   the layers of a network, as SVG
 *
 * A page appears under its name when it is complete. The rules of mr_output_open() hold: no link is followed,
 * only regular files are replaced. An existing page is replaced, another existing file only with force. */
#ifndef MILLRACE_REPORT_H
#define MILLRACE_REPORT_H

#include "millrace/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return whether a page replaces this file without force: path does not exist, is empty, or is a page. */
MR_API bool mr_page_may_replace(const char *path);

/* ---- pages of runs ---- */

typedef struct mr_run_page mr_run_page;

enum { MR_RUN_PAGE_RUNS = 2, MR_RUN_PAGE_PICTURES = 64 };

/* Settings of mr_run_page_open(). mr_run_page_defaults() sets NULL everywhere. */
typedef struct mr_run_page_config {
    size_t struct_size;
    /* Called when a log or a trace is incomplete, as with a line that was cut off; or NULL. text is valid
     * during the call. The calling thread calls it; no lock is held */
    void (*on_note)(void *context, const char *text);
    void *context; /* passed to it */
} mr_run_page_config;

static inline void mr_run_page_defaults(mr_run_page_config *cfg);

/* Begin a page. cfg NULL: the defaults. One thread at a time. MR_ENOMEM */
MR_API int mr_run_page_open(mr_run_page **out, const mr_run_page_config *cfg, mr_error *err);
/* Accepts NULL. */
MR_API void mr_run_page_close(mr_run_page *p);

/* Read the log of a run: a file with the output of train --json or profile --json. The run may still be in
 * progress. Of a file with several runs the last one counts. A second run is compared with the first one.
 *
 * MR_EFORMAT  the file has no line of a run
 * MR_ELIMIT   the file is larger than 1 GiB
 * MR_EINVAL   a third run, or one of train and one of profile
 * other < 0   the file cannot be read
 * After an error the page can only be closed. */
MR_API int mr_run_page_add(mr_run_page *p, const char *path, mr_error *err);
/* The same for text in memory, which is copied. name stands for its path. */
MR_API int mr_run_page_add_text(mr_run_page *p, const char *name, const char *text, size_t bytes,
                                mr_error *err);
/* Return the data set of the first run, as its log names it, owned by p. NULL: the log lacks the data set or
 * the augmentation, and mr_run_page_pictures() returns MR_EINVAL. */
MR_API const char *mr_run_page_data(const mr_run_page *p);

/* Add a timeline: a file that train --trace wrote, or a trace of this process, with a name for it. At most
 * one of them; MR_EINVAL: it has one. MR_EFORMAT: the file is no JSON. */
MR_API int mr_run_page_trace_file(mr_run_page *p, const char *path, mr_error *err);
MR_API int mr_run_page_trace(mr_run_page *p, const mr_trace *trace, const char *name, mr_error *err);
/* Add a list of bad samples, which train --bad-list wrote. At most one; MR_EINVAL: it has one.
 * MR_EFORMAT: it names no bad sample. */
MR_API int mr_run_page_bad_list(mr_run_page *p, const char *path, mr_error *err);
/* Add the first pictures of the first run as its network received them: in its order, after its augmentation.
 * src: its data. count: 1 to MR_RUN_PAGE_PICTURES. Blocks while they are decoded.
 *
 * MR_EINVAL        no run was added, or mr_run_page_data() is NULL
 * MR_EUNSUPPORTED  src has no pictures
 * other < 0        from the loader */
MR_API int mr_run_page_pictures(mr_run_page *p, const mr_source *src, uint32_t count, mr_error *err);

/* Write the page. p stays as it is.
 *
 * MR_EINVAL  no run was added
 * MR_EEXIST  path is another file, and force is false
 * other < 0  from writing */
MR_API int mr_run_page_write(const mr_run_page *p, const char *path, bool force, mr_error *err);

/* ---- pages of data sets ---- */

/* The bound of a training on a data set, as the program estimates it. Has no struct_size: it never changes.
 */
typedef struct mr_stats_bound {
    const char *by;    /* "step", "decode", "read", "storage"; NULL: there is no estimate */
    char augment[512]; /* of the measured loader */
    const char *model; /* of the measured step, on this device; NULL: none */
    char device[128];
    uint32_t workers, batch;
    double decode_ms, read_core_ms; /* of a sample, on a core */
    double loader_per_s;            /* samples, from memory; without training */
    double storage_bytes_per_s;     /* NAN: the set fits into memory, or unknown */
    double supply_per_s;            /* samples that a training gets: the loader's, or storage's */
    bool fits_memory;
    double step_ms, trainer_per_s; /* NAN: no step is known */
} mr_stats_bound;

/* Return bound->by in words, as "decoding"; "" for another value. A static text. */
MR_API const char *mr_stats_bound_name(const mr_stats_bound *bound);

/* Settings of mr_stats_page_write(). mr_stats_page_defaults() sets NULL and false everywhere. */
typedef struct mr_stats_page_config {
    size_t struct_size;
    const mr_stats_bound *bound;    /* NULL: no estimate */
    const mr_decode_config *decode; /* limits of the pictures; NULL: the defaults */
    bool force;                     /* replace a file that is no page */
    const volatile int *stop;       /* set non-zero, also in a signal handler, to stop; or NULL */
} mr_stats_page_config;

static inline void mr_stats_page_defaults(mr_stats_page_config *cfg);

/* Write a page about a counted data set: numbers, histograms; up to six pictures of each of the first 40
 * classes, and of each kind of outlier. Reads and decodes these pictures. cfg NULL: the defaults. Blocks.
 *
 * MR_ECANCELED  cfg->stop was set
 * MR_EEXIST     path is another file, and cfg->force is false
 * other < 0     the medium cannot be read, no memory, or from writing */
MR_API int mr_stats_page_write(const mr_stats *s, const mr_stats_page_config *cfg, const char *path,
                               mr_error *err);

/* ---- networks ---- */

/* Write a network as an SVG: a row for each layer, and a line from every output to its consumers. Light or
 * dark follows the reader's settings. MR_EEXIST: path exists, and force is false. Other < 0: from writing. */
MR_API int mr_net_graph_write(const mr_net *net, const char *path, bool force, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_run_page_defaults_sized(mr_run_page_config *cfg, size_t struct_size);
static inline void mr_run_page_defaults(mr_run_page_config *cfg)
{
    mr_run_page_defaults_sized(cfg, sizeof *cfg);
}

MR_API void mr_stats_page_defaults_sized(mr_stats_page_config *cfg, size_t struct_size);
static inline void mr_stats_page_defaults(mr_stats_page_config *cfg)
{
    mr_stats_page_defaults_sized(cfg, sizeof *cfg);
}

#ifdef __cplusplus
}
#endif

#endif
