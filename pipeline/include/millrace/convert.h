/* millrace/convert.h: convert any source into record files (resumable), TFRecords or tar, in parallel; add
 * samples to a set of record files. */
#ifndef MILLRACE_CONVERT_H
#define MILLRACE_CONVERT_H

#include "millrace/formats.h"
#include "millrace/image.h"
#include "millrace/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mr_store {
    MR_STORE_JPEG = 0, /* pictures are stored unchanged */
    MR_STORE_RAW,      /* decoded pixels */
    MR_STORE_COEF,     /* JPEGs become MR_TYPE_COEF; pictures without this form (PNG, CMYK) are stored
                          unchanged */
} mr_store;

typedef enum mr_to {
    MR_TO_MREC = 0,
    MR_TO_TFRECORD, /* tf.train.Example: image/encoded, image/format, image/class/label, image/height, ...;
                       other fields under their names */
    MR_TO_TAR,      /* WebDataset: KEY.jpg, .png, ..., KEY.cls, other fields as KEY.NAME */
} mr_to; /* pipeline/convert/convert_tfrecord.c and convert_tar.c list the feature or member of each field */

typedef struct mr_convert_config {
    size_t struct_size;
    mr_store store;
    uint32_t resize;      /* shorter side is at most this many pixels; 0: no resizing */
    uint32_t quality;     /* JPEG quality of re-encoded pictures; default 90 */
    bool center_square;   /* RAW with resize: cut to resize x resize */
    uint32_t workers;     /* 0: one per core */
    uint64_t shard_bytes; /* start a new file when one exceeds this size; 0: one file. With shards, MREC: DST
                             is a shard list, and the files are DST-00000.mrec ...; TFRECORD: DST is not
                             written, and the files are DST-00000-of-00128 ...; TAR: DST-000000.tar ... (DST
                             without its ".tar") */
    bool resume, force;
    bool check;  /* decode every picture that is stored unchanged (default true): damaged pictures are bad
                    samples */
    bool verify; /* read the whole output back at the end (default true) */
    uint64_t max_bad; /* stop when more samples than this are bad; default unlimited */
    mr_decode_config decode;
    const char *provenance; /* JSON text */
    /* from the calling thread */
    void (*progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    mr_bad_report *on_bad; /* from the calling thread, in source order */
    void *context;
    const volatile int *stop; /* set non-zero to stop cleanly; or NULL */
    bool entries; /* JPEG: store entry points of JPEGs that can have them, in a field "image.entries" (default
                     true) */
    bool transcode; /* progressive and arithmetic JPEGs become sequential Huffman-coded ones with the same
                       coefficients and all APPn and COM segments (default false) */
    mr_to to; /* format of DST; default MREC. TFRECORD and TAR exclude resume and store COEF; TAR excludes
                 RAW */
    bool no_names; /* leave out the samples' names (mr_source_sample_name()); else MREC stores them in a field
                      "sample.name", TFRECORD in "image/filename", TAR as the members' keys */
    uint64_t memory_bytes; /* memory for the large pictures in conversion, which wait for each other; a
                              picture that alone needs more ends the run with MR_ELIMIT. 0: half of the memory
                              that the process may use */
    /* resume: return true if an earlier run called on_bad for this sample. on_bad is first called for each
     * sample that the earlier run skipped and for which this returns false; the sample is read again to find
     * the reason. NULL: on_bad is not called again for skipped samples. Called from the calling thread, with
     * rising sample numbers */
    bool (*bad_told)(void *context, uint64_t sample);
} mr_convert_config;

MR_API void mr_convert_defaults_sized(mr_convert_config *cfg, size_t struct_size);
static inline void mr_convert_defaults(mr_convert_config *cfg)
{
    mr_convert_defaults_sized(cfg, sizeof *cfg);
}

typedef struct mr_convert_result {
    size_t struct_size;
    uint64_t records, bad, resumed; /* resumed: complete records of an earlier run */
    uint64_t bytes_in, bytes_out;
    uint32_t shards;
    uint64_t transcoded, with_entries; /* of the records made by this call, like coefficients and kept */
    uint64_t coefficients, kept; /* COEF: pictures stored as coefficients, and pictures stored unchanged */
} mr_convert_result;

/* Convert a source. The same source and settings give the same bytes, for any number of workers and of
 * interruptions with resume. Output goes to temporary files named .part until it is complete. MREC: shards
 * are renamed one by one, and an interrupted run can be resumed. TFRECORD, TAR: all files are written and
 * read back before the first is renamed; a run that fails or is stopped leaves no files; a run that is killed
 * leaves .part files, which the next run to the same DST reuses or removes. */
MR_API int mr_convert_sized(const mr_source *src, const char *dst, const mr_convert_config *cfg,
                            mr_convert_result *out, mr_error *err);
static inline int mr_convert(const mr_source *src, const char *dst, const mr_convert_config *cfg,
                             mr_convert_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_convert_sized(src, dst, cfg, out, err);
}

/* ---- adding to a set ---- */

typedef struct mr_append_config {
    size_t struct_size;
    uint32_t workers;      /* 0: one per core */
    uint64_t memory_bytes; /* as in mr_convert_config */
    bool force;            /* discard the remains of an interrupted call with other samples */
    void (*progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    mr_bad_report *on_bad; /* for each omitted sample of src, in the order of src */
    void *context;
    const volatile int *stop;
    bool again; /* append samples from which a file of the set was made already; they are then in the set
                   twice */
} mr_append_config;

MR_API void mr_append_defaults_sized(mr_append_config *cfg, size_t struct_size);
static inline void mr_append_defaults(mr_append_config *cfg) { mr_append_defaults_sized(cfg, sizeof *cfg); }

typedef struct mr_append_result {
    size_t struct_size;
    uint64_t before, after; /* number of samples in the set */
    uint64_t bad;           /* omitted samples of src */
    uint32_t files;         /* new ones */
    bool resumed; /* this call finished an interrupted call with the same samples, which are in the set
                     once */
    bool known;   /* a file of the set was made from the same source, and again is false: nothing was appended
                   */
} mr_append_result;

/* Append the samples of src to a set of record files, in new files: numbers and bytes of existing samples are
 * unchanged. The new samples are converted with the settings stored in the set; they must have its fields and
 * classes (mr_source_config.class_names). list_path: the set's shard list. The set is unchanged until the new
 * list replaces the old. After a call was killed, repeat it to finish it; two calls for one set cannot run at
 * the same time.
 *
 * MR_EEXIST    another program writes the list, or an existing file has the name of a new one; or an
 *              interrupted call with other samples is unfinished and force is false, or was finished now
 * MR_EINVAL, MR_EFORMAT  the samples do not fit the set, or list_path is not a set of record files; err names
 *                        the difference
 * MR_ECANCELED  stopped; repeat the call to continue */
MR_API int mr_append_sized(const char *list_path, const mr_source *src, const mr_append_config *cfg,
                           mr_append_result *out, mr_error *err);
static inline int mr_append(const char *list_path, const mr_source *src, const mr_append_config *cfg,
                            mr_append_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_append_sized(list_path, src, cfg, out, err);
}

#ifdef __cplusplus
}
#endif
#endif
