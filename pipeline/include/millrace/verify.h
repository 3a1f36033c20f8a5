/* millrace/verify.h: check every sample of a data set, pictures included, on several threads.
 *
 * A whole check of a set has three parts:
 *
 *   mr_source_verify_files()  numbers of files, every byte of record files (formats.h)
 *   mr_verify_samples()       every sample: read, parsed, label, picture decoded
 *   mr_source_check()         defects that no single sample shows (formats.h)
 *
 * mr_source_verify() of formats.h does all of it but decoding, in one thread.
 *
 * mr_verify_same() compares two sets. mr_bad_list keeps the bad samples that a check, a conversion or a
 * loader reports in a file. */
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

/* ---- pictures that two sets have in common ---- */

typedef struct mr_same_pictures {
    size_t struct_size;
    uint64_t count;         /* pictures of the second set that the first one has, too */
    uint64_t first, second; /* the first such pair: sample of the first and of the second set */
} mr_same_pictures;

/* Count the pictures of `second` whose stored bytes a picture of `first` has as well; a network that is
 * trained on one set is not validated by these. Reads every sample of both in the calling thread, and keeps
 * 16 bytes for each picture of the first. Samples that cannot be read are left out: mr_verify_samples()
 * reports them. Blocks; other threads may use both.
 *
 * MR_ECANCELED  *stop was set; stop may be NULL
 * MR_ENOMEM     no memory */
static inline int mr_verify_same(const mr_source *first, const mr_source *second, const volatile int *stop,
                                 mr_same_pictures *out, mr_error *err);

/* ---- a list of bad samples ----
 *
 * A file with one JSON object a line: {"event": "bad", "sample": 7, "file": "...", "offset": 4096, "code":
 * "...", "reason": "...", "name": "..."}, without offset and name where these are unknown. `convert` and
 * `train` write such lists, `report` reads them. One thread at a time uses a list. */
typedef struct mr_bad_list mr_bad_list;

/* Open the list at path for bad samples of src, which must outlive it. The file is made with the first line.
 *
 * resume  keep the whole lines of an earlier list: a sample that the list has is not added again, and lines
 * are in the order of samples, not of calls
 * force   replace any file. Else only an empty file or an earlier list is replaced
 *
 * MR_EEXIST  path is a file that is not such a list
 * MR_EFORMAT with resume: a line of the file does not belong to such a list
 * other < 0  the file cannot be looked at, read or written
 *
 * *out is NULL unless the result is MR_OK. */
MR_API int mr_bad_list_open(mr_bad_list **out, const char *path, const mr_source *src, bool resume,
                            bool force, mr_error *err);
/* Remove the list of an earlier call now; without this call the first line replaces it. With resume it does
 * nothing. */
MR_API void mr_bad_list_begin(mr_bad_list *b);
/* Add a line. Each line is written at once, and whole or not at all. An error of writing is kept for
 * mr_bad_list_close(), and later lines are only counted. */
MR_API void mr_bad_list_add(mr_bad_list *b, const mr_error *what);
/* Return true if the list was opened with resume and has a line of this sample. */
MR_API bool mr_bad_list_has(const mr_bad_list *b, uint64_t sample);
/* The number of lines. */
MR_API uint64_t mr_bad_list_count(const mr_bad_list *b);
/* Sync the file and close the list. Returns the first error of writing. b may be NULL. */
MR_API int mr_bad_list_close(mr_bad_list *b, mr_error *err);

/* One line of such a list, to be freed with free(); NULL: no memory. src may be NULL. Any thread. */
MR_API char *mr_bad_list_line(const mr_source *src, const mr_error *what);

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

MR_API int mr_verify_same_sized(const mr_source *first, const mr_source *second, const volatile int *stop,
                                mr_same_pictures *out, mr_error *err);
static inline int mr_verify_same(const mr_source *first, const mr_source *second, const volatile int *stop,
                                 mr_same_pictures *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_verify_same_sized(first, second, stop, out, err);
}

#ifdef __cplusplus
}
#endif

#endif
