/* millrace/convert.h: any source into record files (resumable), TFRecords or tar, in parallel; samples added
 * to a set of record files. */
#ifndef MILLRACE_CONVERT_H
#define MILLRACE_CONVERT_H

#include "millrace/formats.h"
#include "millrace/image.h"
#include "millrace/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mr_store {
    MR_STORE_JPEG = 0, /* pictures keep their bytes */
    MR_STORE_RAW,      /* decoded pixels */
    MR_STORE_COEF,     /* JPEGs become MR_TYPE_COEF; pictures that cannot (PNG, CMYK) keep their bytes */
} mr_store;

typedef enum mr_to {
    MR_TO_MREC = 0,
    MR_TO_TFRECORD, /* tf.train.Example: image/encoded, image/format, image/class/label, image/height, ...;
                       other fields under their names */
    MR_TO_TAR,      /* WebDataset: KEY.jpg or .png, KEY.cls, other fields as KEY.NAME */
} mr_to;            /* which feature or member each field becomes: pipeline/convert/convert_tfrecord.c,
                       pipeline/convert/convert_tar.c */

typedef struct mr_convert_config {
    size_t struct_size;
    mr_store store;
    uint32_t resize;      /* shorter side at most this many pixels; 0: as it is */
    uint32_t quality;     /* JPEG quality where re-encoding is needed; default 90 */
    bool center_square;   /* RAW with resize: cut to resize x resize */
    uint32_t workers;     /* 0: one per core */
    uint64_t shard_bytes; /* start another file when one grows past this; 0: one file. With shards DST becomes
                             a shard list and the files are named DST-00000.mrec ...; TFRECORD: there is no
                             DST, the files are DST-00000-of-00128
                             ...; TAR: DST-000000.tar ... (DST without its ".tar") */
    bool resume, force;
    bool check;  /* decode every picture that is kept as it is (default true): damaged ones are bad samples */
    bool verify; /* read everything back at the end (default true) */
    uint64_t max_bad; /* stop when more samples are bad; default unlimited */
    mr_decode_config decode;
    const char *provenance; /* JSON text */
    /* from the calling thread */
    void (*progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    mr_bad_report *on_bad; /* from the calling thread, in source order */
    void *context;
    const volatile int *stop; /* set non-zero to stop cleanly; or NULL */
    bool entries;   /* JPEG: entry points beside JPEGs that can have them, in a field "image.entries" (default
                       true) */
    bool transcode; /* progressive and arithmetic JPEGs become sequential Huffman-coded ones with the same
                       coefficients and all APPn and COM segments (default false) */
    mr_to to;       /* what DST is; default MREC. The others have no resume and no store COEF, TAR no RAW */
    bool no_names;  /* leave out what samples were called (mr_source_sample_name()); else MREC keeps it in a
                       field  "sample.name", TFRECORD in "image/filename", TAR as the members' keys */
    uint64_t memory_bytes; /* what large pictures being converted at a time may take: they wait for each
                              other; one that alone takes more ends the run with MR_ELIMIT. 0: half of what
                              the process may use */
    /* resume: was on_bad told of this sample by an earlier run? Of those that run passed over and for which
     * this says no, on_bad is told first of all; their reasons are found by reading them again. NULL: they
     * are not told again. From the calling thread, with rising samples */
    bool (*bad_told)(void *context, uint64_t sample);
} mr_convert_config;

MR_API void mr_convert_defaults_sized(mr_convert_config *cfg, size_t struct_size);
static inline void mr_convert_defaults(mr_convert_config *cfg)
{
    mr_convert_defaults_sized(cfg, sizeof *cfg);
}

typedef struct mr_convert_result {
    size_t struct_size;
    uint64_t records, bad, resumed; /* resumed: records found whole from an earlier run */
    uint64_t bytes_in, bytes_out;
    uint32_t shards;
    uint64_t transcoded, with_entries; /* of the records made now, as those below */
    uint64_t coefficients, kept; /* COEF: pictures stored as coefficients, and those that cannot be and stay
                                    as they are */
} mr_convert_result;

/* Same source and settings give the same bytes, for any number of workers and however often interrupted and
 * resumed. What is written lies in files named .part until it is whole. MREC: shards get their names one by
 * one, and an interrupted run can be resumed. TFRECORD, TAR: everything is written and read back before the
 * first file gets its name; a run that fails or is stopped leaves nothing, one that is killed leaves .part
 * files, which the next run to the same DST takes over or removes. */
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
    bool force;            /* what an interrupted call with other samples left is thrown away */
    void (*progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    mr_bad_report *on_bad; /* samples of src that are left out, in its order */
    void *context;
    const volatile int *stop;
} mr_append_config;

MR_API void mr_append_defaults_sized(mr_append_config *cfg, size_t struct_size);
static inline void mr_append_defaults(mr_append_config *cfg) { mr_append_defaults_sized(cfg, sizeof *cfg); }

typedef struct mr_append_result {
    size_t struct_size;
    uint64_t before, after; /* samples of the set */
    uint64_t bad;           /* of src, left out */
    uint32_t files;         /* new ones */
    bool resumed; /* an interrupted call with the same samples was finished: they are in the set once */
} mr_append_result;

/* Add the samples of src to a set of record files, behind those that it has, in new files: numbers and bytes
 * of the old ones stay. They are converted by the settings that the set keeps; fields and classes must be
 * those of the set (mr_source_config.class_names). list_path: the set's shard list. Until the new list is in
 * place the set is what it was. A call that was killed is finished by the same call; two calls for one set do
 * not run together.
 *
 * MR_EEXIST    another program writes the list, or a file has a name that a new one needs; or an interrupted
 *              call with other samples is not finished, and force is false, or was finished now
 * MR_EINVAL, MR_EFORMAT  the samples do not fit the set, or it is no set of record files; err says what
 * differs MR_ECANCELED stopped; the same call goes on */
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
