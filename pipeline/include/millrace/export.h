/* millrace/export.h: the pictures of a data set as files: the way back from mr_convert().
 *
 * A file gets the name that its sample had below the folder it was converted from, DIR/cat/1.jpg; without a
 * known name DIR/CLASS/NNNNNNNN.jpg with the number of the sample, and DIR/NNNNNNNN.jpg without a label.
 * Names never lead out of DIR, and no two samples get the same file. Picture files come out byte for byte;
 * coefficients become baseline JPEGs with the same coefficients and orientation, pixels PNG. */
#ifndef MILLRACE_EXPORT_H
#define MILLRACE_EXPORT_H

#include "millrace/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings of mr_export(). mr_export_defaults() sets false and NULL everywhere. */
typedef struct mr_export_config {
    size_t struct_size;
    const mr_decode_config *decode; /* limits of pictures that are decoded; NULL: the defaults. Read during
                                       the call */
    bool force;                     /* replace files that exist. Default false: MR_EEXIST */
    bool resume;   /* continue an interrupted call: files with the right bytes stay, shorter ones with the
                      right beginning are completed, others are MR_EEXIST. Default false */
    bool numbered; /* use the numbers of samples in place of their names. Default false */
    bool no_space_check; /* write although the free space is surely too small. Default false */
    /* Called for each sample that cannot be read or decoded, in the order of the samples; or NULL. The error,
     * valid during the call, has the number of the sample. The sample is left out */
    void (*on_bad)(void *context, const mr_error *what);
    void (*on_progress)(void *context, uint64_t done, uint64_t count); /* after each sample; or NULL */
    /* Called once before the first file with the estimated size of all files and the free space of the file
     * system (UINT64_MAX: unknown), unless the call is refused; or NULL */
    void (*space)(void *context, uint64_t bytes, uint64_t free_bytes);
    void *context;            /* passed to all of them, which the calling thread calls; no lock is held */
    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; or NULL */
} mr_export_config;

static inline void mr_export_defaults(mr_export_config *cfg);

typedef struct mr_export_result {
    size_t struct_size;
    uint64_t files, bytes; /* of the folder, with the files of an earlier call */
    uint64_t resumed;      /* of these files, written by an earlier call */
    uint64_t bad;          /* samples left out */
    uint64_t renamed;      /* samples whose file got another name than the sample had */
    /* The list of these samples and classes, one JSON object a line: DIR.names.jsonl. "": none was renamed */
    char names_path[4096];
    uint32_t renamed_classes; /* classes whose folder got another name, because a folder cannot have theirs */
} mr_export_result;

/* Write the pictures of src as files below folder, which is made with its parents. If all class folders have
 * the same parent, the folders of classes without samples are made, too, so that the result has all classes
 * of src. Each file appears when it is whole; everything is on the disk when the call returns MR_OK. Blocks,
 * and works in the calling thread; other threads may use src.
 *
 * folder  where the files are written; outside of src if src is a folder of pictures
 * cfg     settings; NULL: the defaults
 * out     NULL, or written unless cfg is wrong (MR_EINVAL)
 *
 * MR_OK            also if samples are bad: out->bad
 * MR_EUNSUPPORTED  src has no pictures
 * MR_EINVAL        the folder lies inside src, or a path is too long
 * MR_EEXIST        a file exists, and neither force nor resume allows to keep or replace it
 * MR_EIO           the files cannot fit into the free space (sys_errno ENOSPC), or the system refused a call
 * MR_ECANCELED     cfg->stop was set; a later call with resume continues
 * other < 0        from reading or writing */
static inline int mr_export(const mr_source *src, const char *folder, const mr_export_config *cfg,
                            mr_export_result *out, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_export_defaults_sized(mr_export_config *cfg, size_t struct_size);
static inline void mr_export_defaults(mr_export_config *cfg) { mr_export_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_export_sized(const mr_source *src, const char *folder, const mr_export_config *cfg,
                           mr_export_result *out, mr_error *err);
static inline int mr_export(const mr_source *src, const char *folder, const mr_export_config *cfg,
                            mr_export_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_export_sized(src, folder, cfg, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
