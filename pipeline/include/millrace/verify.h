/* millrace/verify.h: check every sample of a data set, pictures included, on several threads.
 *
 * A whole check of a set has three parts:
 *
 *   mr_source_verify_files()  numbers of files, every byte of record files (formats.h)
 *   mr_verify_samples()       every sample: read, parsed, label, picture decoded
 *   mr_source_check()         defects that no single sample shows (formats.h)
 *
 * mr_source_verify() of formats.h does all of it but decoding, in one thread. */
#ifndef MILLRACE_VERIFY_H
#define MILLRACE_VERIFY_H

#include "millrace/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings of mr_verify_samples(). mr_verify_defaults() sets 0, false and NULL everywhere. */
typedef struct mr_verify_config {
    size_t struct_size;
    uint32_t workers;      /* threads. More than 256 count as 256; 0 (default): one per core */
    uint64_t memory_bytes; /* memory that large pictures share; 0 (default): half of the memory that the
                              process may use. A picture that can never fit is reported (MR_ELIMIT) */
    const mr_decode_config *decode; /* limits of pictures; NULL: the defaults. Read during the call */
    bool no_decode;                 /* read and parse samples, decode no picture. Default false */
    bool decode_only; /* report pictures that cannot be decoded, and not samples that cannot be read, after
                         mr_source_verify_files() has reported these. Default false */
    /* Called for each bad sample, in the order of the samples for any number of workers; or NULL. The error,
     * valid during the call, has file, sample and, in files of several samples, offset and name. Return false
     * to stop */
    bool (*on_wrong)(void *context, const mr_error *what);
    /* Called about every 20 ms, and once at the end: done of count samples, bytes read from them; or NULL */
    void (*on_progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    void *context;            /* passed to both, which the calling thread calls; no lock is held */
    const volatile int *stop; /* set non-zero, also in a signal handler, to stop; or NULL */
} mr_verify_config;

static inline void mr_verify_defaults(mr_verify_config *cfg);

/* Check every sample of src that is not left out. Blocks; other threads may use src.
 *
 * cfg  settings; NULL: the defaults
 * out  NULL, or written unless the result is MR_EINVAL. records: samples checked; bytes: read from them;
 *      wrong: bad samples
 *
 * MR_OK         all samples were checked, or on_wrong returned false; also if samples are bad
 * MR_ECANCELED  cfg->stop was set
 * other < 0     the check itself failed, such as MR_EIO for an unreadable medium or MR_ENOMEM */
static inline int mr_verify_samples(const mr_source *src, const mr_verify_config *cfg, mr_verify_result *out,
                                    mr_error *err);

/* Complete an error that names a sample of src by number only, such as one that on_bad of a loader gets: add
 * the file, in files of several samples the offset, and to the text the name of the sample. Members that are
 * set stay. Any thread. src may be NULL. */
MR_API void mr_verify_place(const mr_source *src, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API void mr_verify_defaults_sized(mr_verify_config *cfg, size_t struct_size);
static inline void mr_verify_defaults(mr_verify_config *cfg) { mr_verify_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_verify_samples_sized(const mr_source *src, const mr_verify_config *cfg, mr_verify_result *out,
                                   mr_error *err);
static inline int mr_verify_samples(const mr_source *src, const mr_verify_config *cfg, mr_verify_result *out,
                                    mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_verify_samples_sized(src, cfg, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
