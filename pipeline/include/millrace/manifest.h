/* millrace/manifest.h: sizes and SHA-256 sums of a data set's files, as a text that `sha256sum -c` reads.
 *
 * A manifest shows that a copied or stored set still has the bytes it had. It covers whole files, of every
 * format; checksums inside record files (mr_mrec_verify()) name the damaged sample and need no manifest. */
#ifndef MILLRACE_MANIFEST_H
#define MILLRACE_MANIFEST_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file of a set. */
typedef struct mr_manifest_file {
    size_t struct_size;
    const char *path; /* as the set names it; can be opened from the working folder */
    uint64_t bytes;
    uint8_t sha256[32];
} mr_manifest_file;

/* Settings of mr_manifest_make() and mr_manifest_compare(). mr_manifest_defaults() sets 0, false and NULL
 * everywhere. */
typedef struct mr_manifest_config {
    size_t struct_size;
    uint32_t threads; /* threads that read files, each with 1 MiB of memory. More than 64 count as 64; 0
                         (default): one per core */
    bool force;       /* make: replace an existing manifest. Default false: MR_EEXIST. compare: no effect */
    /* Called for each file that cannot be read, that differs from the manifest, or (compare) that is missing
     * in it; or NULL. Return false to stop the comparison. The files of the manifest come first, in its
     * order. The error, valid during the call, has the file and the reason: MR_ECHECKSUM for another size or
     * sum, with the expected and the found value; MR_EFORMAT for a file that the manifest does not name; else
     * the error of reading the file */
    bool (*on_wrong)(void *context, const mr_error *what);
    /* Called about every 10 ms while files are read: done of count files; or NULL */
    void (*on_progress)(void *context, uint64_t done, uint64_t count);
    void *context;            /* passed to all of them, which the calling thread calls; no lock is held */
    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; or NULL */
    /* make: called for each file in the order of the manifest, after all files were read and before the
     * manifest is written; or NULL. Valid during the call. compare: no effect */
    void (*on_file)(void *context, const mr_manifest_file *file);
} mr_manifest_config;

static inline void mr_manifest_defaults(mr_manifest_config *cfg);

/* Counts of a call, written on MR_OK. */
typedef struct mr_manifest_result {
    size_t struct_size;
    uint64_t files; /* number of files that the manifest names */
    uint64_t bytes; /* bytes of the files that were read, together */
    uint64_t wrong; /* number of files for which on_wrong was called, counted also if it is NULL. compare: 0
                       means that the set has the bytes of the manifest and no other file */
} mr_manifest_result;

/* Write a manifest of a data set: for each file "# BYTES" and "SHA256  NAME", in the order of the paths.
 * Names are relative to the manifest's folder if the file is below it, else absolute. The file appears under
 * its name when it is complete. Blocks.
 *
 * file        path of the manifest; NULL: nothing is written, and cfg->on_file gets the files
 * set         path of the set. Of a folder all files below it are named, except hidden files, temporary files
 *             (NAME.part) and the manifest itself
 * src         the opened set; NULL for a folder. Its files are named, and `set` if it is a list of files
 * cfg         settings; NULL: the defaults
 * out         NULL, or written on MR_OK
 *
 * MR_EEXIST     file exists, and force is false
 * MR_EINVAL     the set has no files; file and cfg->on_file are NULL
 * MR_ECANCELED  cfg->stop was set; nothing is written
 * other < 0     of the first file that cannot be read, after on_wrong for each of them; nothing is written */
static inline int mr_manifest_make(const char *file, const char *set, const mr_source *src,
                                   const mr_manifest_config *cfg, mr_manifest_result *out, mr_error *err);

/* Compare a data set with a manifest, or with a list that sha256sum wrote: read all files that it names, then
 * look for files of the set that it does not name. A list of sha256sum has no sizes and no end mark: if its
 * last lines are missing, this is not detected. Arguments as above; cfg->force has no effect, and nothing is
 * written. Blocks.
 *
 * MR_OK         also if files differ; out->wrong is their number
 * MR_EFORMAT    file is no manifest; err names the line
 * MR_ELIMIT     the manifest is larger than 1 GiB
 * MR_ECANCELED  cfg->stop was set; the comparison is not complete */
static inline int mr_manifest_compare(const char *file, const char *set, const mr_source *src,
                                      const mr_manifest_config *cfg, mr_manifest_result *out, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_manifest_defaults_sized(mr_manifest_config *cfg, size_t struct_size);
static inline void mr_manifest_defaults(mr_manifest_config *cfg)
{
    mr_manifest_defaults_sized(cfg, sizeof *cfg);
}

MR_API int mr_manifest_make_sized(const char *file, const char *set, const mr_source *src,
                                  const mr_manifest_config *cfg, mr_manifest_result *out, mr_error *err);
static inline int mr_manifest_make(const char *file, const char *set, const mr_source *src,
                                   const mr_manifest_config *cfg, mr_manifest_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_manifest_make_sized(file, set, src, cfg, out, err);
}

MR_API int mr_manifest_compare_sized(const char *file, const char *set, const mr_source *src,
                                     const mr_manifest_config *cfg, mr_manifest_result *out, mr_error *err);
static inline int mr_manifest_compare(const char *file, const char *set, const mr_source *src,
                                      const mr_manifest_config *cfg, mr_manifest_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_manifest_compare_sized(file, set, src, cfg, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
