/* millrace/manifest.h: sizes and SHA-256 sums of a data set's files, as a text that `sha256sum -c` reads. */
#ifndef MILLRACE_MANIFEST_H
#define MILLRACE_MANIFEST_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_manifest_config {
    size_t struct_size;
    uint32_t threads;                                      /* that read files, up to 64; 0: one per core */
    bool force;                                            /* make: replace an existing manifest */
    bool (*on_wrong)(void *context, const mr_error *what); /* a file that cannot be read, differs from the
                                                              manifest, or is missing in it; false: stop the
                                                              comparison. In the order of the manifest; or
                                                              NULL */
    void (*on_progress)(void *context, uint64_t done, uint64_t count); /* files that were read; or NULL */
    void *context;            /* of both, which the calling thread calls */
    const volatile int *stop; /* set non-zero to stop; or NULL */
} mr_manifest_config;

static inline void mr_manifest_defaults(mr_manifest_config *cfg);

typedef struct mr_manifest_result {
    size_t struct_size;
    uint64_t files; /* that the manifest names */
    uint64_t bytes; /* of the files that were read */
    uint64_t wrong; /* calls of on_wrong, also if it is NULL */
} mr_manifest_result;

/* Write a manifest of a data set: for each file "# BYTES" and "SHA256  NAME", in the order of the paths.
 * Names are relative to the manifest's folder if the file is below it, else absolute. The file appears under
 * its name when it is complete. Blocks.
 *
 * file        path of the manifest
 * set         path of the set. Of a folder all files below it are named, except hidden files, temporary files
 *             (NAME.part) and the manifest itself
 * src         the opened set; NULL for a folder. Its files are named, and `set` if it is a list of files
 * cfg         NULL: defaults
 * out         NULL, or written on MR_OK
 *
 * MR_EEXIST     file exists, and force is false
 * MR_EINVAL     the set has no files
 * MR_ECANCELED  stopped
 * other < 0     of the first file that cannot be read, after on_wrong for each of them; nothing is written */
static inline int mr_manifest_make(const char *file, const char *set, const mr_source *src,
                                   const mr_manifest_config *cfg, mr_manifest_result *out, mr_error *err);

/* Compare a data set with a manifest, or with a list that sha256sum wrote: read all files that it names, then
 * look for files of the set that it does not name. Such a list has no sizes and no end: it does not show that
 * its last lines are missing. Arguments as above. Blocks.
 *
 * MR_OK         also if files differ; out->wrong is their number
 * MR_EFORMAT    file is no manifest; err names the line
 * MR_ELIMIT     the manifest is larger than 1 GiB
 * MR_ECANCELED  stopped */
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
