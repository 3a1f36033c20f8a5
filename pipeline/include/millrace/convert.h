/* millrace/convert.h: convert any source into record files (resumable), TFRecords, tar, MDS or RecordIO, in
 * parallel; add samples to a set of record files, and update it from its source. */
#ifndef MILLRACE_CONVERT_H
#define MILLRACE_CONVERT_H

#include "millrace/formats.h"
#include "millrace/image.h"
#include "millrace/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mr_store {
    MR_STORE_JPEG = 0, /* picture files and pixels are stored unchanged, except by `resize` and `transcode`;
                          MR_TYPE_COEF becomes JPEG, and with another format than MREC pixels become PNG */
    MR_STORE_RAW,      /* decoded pixels */
    MR_STORE_COEF,     /* JPEGs become MR_TYPE_COEF; pictures without this form (PNG, CMYK) are stored
                          unchanged */
} mr_store;

typedef enum mr_to {
    MR_TO_MREC = 0,
    /* tf.train.Example. Picture: image/encoded, image/format, image/height, image/width, image/channels.
     * Label: image/class/label from 0 (without pictures: label), image/class/text. Boxes (mr_field_role()):
     * image/object/bbox/xmin, ymin, xmax, ymax, and image/object/class/label. Mask:
     * image/segmentation/class/encoded and .../format. Name: image/filename. Other fields: under their names,
     * with NAME/shape for tensors of several or unknown dimensions; f64 is rounded to f32 */
    MR_TO_TFRECORD,
    /* WebDataset. Picture: KEY.jpg, KEY.png, ... by its kind. Label: KEY.cls, a number from 0. Other fields:
     * KEY.NAME.txt for text and numbers, KEY.NAME.npy for tensors, KEY.NAME.jpg, .png, ... for pictures. KEY
     * is the sample's name without its extension, points replaced by _, or its number. __classes__ holds the
     * names of the classes, one per line */
    MR_TO_TAR,
    /* MDS of Mosaic Streaming: a folder with shards and index.json. Picture: column image, encoding jpeg if
     * the first picture is a JPEG, else png (readers open both by their content). Label: label, int. Other
     * fields: under their names as int, float64, str, bytes, jpeg, png, ndarray. Shards have up to 64 MiB
     * unless shard_bytes is given, at most 4 GiB */
    MR_TO_MDS,
    /* RecordIO of MXNet: DST, and next to it an index and a list with the labels and the names of the
     * samples; their names end in .idx and .lst in place of .rec. The label is a float, exact up to 2^24; a
     * field labels of f32 becomes packed labels; the class is the first of them. Sets with other fields are
     * refused; names of classes are not written */
    MR_TO_RECORDIO,
} mr_to;

/* A file next to the output by which other programs find its samples. */
typedef enum mr_sample_index {
    MR_SAMPLE_INDEX_NONE = 0,
    /* TAR: DST.wids.json (DST without its ".tar"), the shard index of the Python package wids: name, size and
     * number of samples of each archive, in their order. wids knows members' names of up to 100 bytes of
     * UTF-8: with a longer one the conversion ends with MR_EUNSUPPORTED (no_names gives short ones) */
    MR_SAMPLE_INDEX_WIDS,
} mr_sample_index;

typedef struct mr_convert_config {
    size_t struct_size;
    mr_store store;
    uint32_t resize;    /* shrink pictures whose shorter side has more pixels than this, up to 65,535, to this
                           number; a JPEG is encoded again as JPEG, any other picture file as PNG. 0: no
                           resizing */
    uint32_t quality;   /* JPEG quality of re-encoded pictures, 1 to 100; default 90 */
    bool center_square; /* RAW with resize: scale the shorter side to exactly `resize`, also up, and cut out
                           the central resize x resize pixels. With another store, or resize 0: MR_EINVAL */
    uint32_t workers;   /* up to 4,096; 0: one per core */
    /* 0 (default): one file, to which mr_append() cannot add. Above 0: start a new file before the sample
     * with which the file would exceed this size; a larger sample gets a file of its own. MREC: the size
     * covers header and records. The index follows them, so the file may be larger, by 4 KiB per 127 records
     * and less than 8 KiB of padding. In the other formats the size covers the whole file. With shards, MREC:
     * DST is a shard list, and the files are DST-00000.mrec ...; TFRECORD: DST is not written, and the files
     * are DST-00000-of-00128 ...; TAR: DST-000000.tar ... (DST without its ".tar"); RECORDIO: DST-00000.rec
     * ... (DST without its ".rec"), each with .idx and .lst; MDS: more shards in the folder DST */
    uint64_t shard_bytes;
    /* resume: MREC: continue an interrupted call with the same source and settings. force: replace existing
     * files, and discard the remains of an interrupted call unless resume is set */
    bool resume, force;
    bool check;  /* decode every picture that is stored unchanged (default true): damaged pictures are bad
                    samples */
    bool verify; /* read the whole output back at the end (default true) */
    uint64_t max_bad; /* return MR_EBADSAMPLE when more samples than this are bad; default unlimited */
    mr_decode_config decode;
    const char *provenance; /* JSON text */
    /* Called from the calling thread, once after each sample, good or bad. done: samples so far, with the
     * samples of earlier calls (resume); count: samples of the source; bytes: bytes of samples that this call
     * has read */
    void (*progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    /* Called from the calling thread, once for each bad sample, in source order, also for the sample with
     * which the run exceeds max_bad. substitute is always MR_NOWHERE */
    mr_bad_report *on_bad;
    void *context;
    const volatile int *stop; /* set non-zero to stop cleanly; or NULL */
    bool entries; /* JPEG: store entry points of JPEGs that can have them, in a field "image.entries" (default
                     true) */
    bool transcode; /* progressive and arithmetic JPEGs become sequential Huffman-coded ones with the same
                       coefficients and all APPn and COM segments (default false) */
    mr_to to; /* format of DST; default MREC. All others exclude resume and store COEF; only TFRECORD takes
                 RAW */
    bool no_names; /* leave out the samples' names (mr_source_sample_name()); else MREC stores them in a field
                      "sample.name", TFRECORD in "image/filename", TAR as the members' keys, MDS in column
                      "sample.name", RECORDIO in the list, which is not written without names */
    uint64_t memory_bytes; /* memory for the large pictures in conversion, which wait for each other; a
                              picture that alone needs more is a bad sample (MR_ELIMIT). 0: half of the memory
                              that the process may use */
    /* resume: return true if an earlier run called on_bad for this sample. on_bad is first called for each
     * sample that the earlier run skipped and for which this returns false; the sample is read again to find
     * the reason. NULL: on_bad is not called again for skipped samples. Called from the calling thread, with
     * rising sample numbers */
    bool (*bad_told)(void *context, uint64_t sample);
    /* Called once before the first byte, from the calling thread, with the estimated size of the output and
     * the free space of its file system (UINT64_MAX: unknown), unless the conversion is refused; or NULL */
    void (*space)(void *context, uint64_t bytes, uint64_t free_bytes);
    bool no_space_check;          /* write although the free space is surely too small */
    mr_sample_index sample_index; /* default NONE; WIDS with another format than TAR: MR_EINVAL */
} mr_convert_config;

MR_STABLE_INLINE void mr_convert_defaults(mr_convert_config *cfg);

enum { MR_CONVERT_RENAMED = 3 };

typedef struct mr_convert_result {
    size_t struct_size;
    uint64_t records, bad, resumed; /* resumed: complete records of an earlier run */
    uint64_t bytes_in, bytes_out;
    uint32_t shards;
    /* Records of this call, without resumed ones: transcoded JPEGs, JPEGs with entry points */
    uint64_t transcoded, with_entries;
    /* COEF, records of this call: pictures stored as coefficients, and pictures stored unchanged */
    uint64_t coefficients, kept;
    /* Number of class names that the output lacks. RECORDIO, and TFRECORD without pictures, have no names of
     * classes; other TFRECORD files lack the names of classes without samples. The numbers of the classes
     * stay the same. */
    uint64_t class_names_lost;
    /* TAR: number of samples that got another key than their name without its extension; a key contains no
     * dots, names no other folder, and occurs once. 0 with no_names. renamed_sample: numbers in the source of
     * the first MR_CONVERT_RENAMED of these samples */
    uint64_t renamed;
    uint64_t renamed_sample[MR_CONVERT_RENAMED];
} mr_convert_result;

/* Convert a source. out may be NULL. The same source and settings give the same bytes, for any number of
 * workers and of interruptions with resume. Output goes to temporary files named .part until it is complete.
 * MREC: shards are renamed one by one. A call that fails or is stopped after its first record leaves the
 * .part files and DST.taken.part, which notes the state of the source's files; resume continues from them,
 * force discards them. Other formats: all files are written and read back before the first is renamed; a run
 * that fails or is stopped leaves no files; a run that is killed leaves .part files, which the next run to
 * the same DST reuses or removes.
 *
 * MR_EEXIST      DST or one of its files exists and force is false; an interrupted call left files, and
 *                neither resume nor force is set; on resume, source or settings differ; another program
 *                writes DST
 * MR_ENOENT      the folder of DST does not exist
 * MR_EINVAL      a setting is invalid; DST is a folder or a link, is the source, or lies inside its folder
 * MR_EBADSAMPLE  more than max_bad samples are bad, or no sample could be converted
 * MR_ECANCELED   stop was set
 * MR_EIO         with sys_errno ENOSPC and nothing written: the free space is too small even for a lower
 *                bound of the output: the size of pictures that stay unchanged, or the mean size of up to 24
 *                converted samples minus three standard errors, times the number of samples
 * other < 0      the source could not be read or the output not written; err names the file */
MR_STABLE_INLINE int mr_convert(const mr_source *src, const char *dst, const mr_convert_config *cfg,
                                mr_convert_result *out, mr_error *err);

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
    bool again; /* append also samples that the set has already; they are then in the set twice */
    /* As in mr_convert_config, of the new samples */
    void (*space)(void *context, uint64_t bytes, uint64_t free_bytes);
    bool no_space_check;
} mr_append_config;

static inline void mr_append_defaults(mr_append_config *cfg);

typedef struct mr_append_result {
    size_t struct_size;
    uint64_t before, after; /* number of samples in the set */
    uint64_t bad;           /* omitted samples of src */
    uint32_t files;         /* new ones */
    bool resumed; /* this call finished an interrupted call with the same samples, which are in the set
                     once */
    bool known;   /* a file of the set was made from the same source, and again is false: nothing was appended
                   */
    /* written also with MR_EEXIST: `already` of the `looked` samples are in the set, with the same name,
     * label and contents */
    uint64_t looked, already;
} mr_append_result;

/* Append the samples of src to a set of record files, in new files: numbers and bytes of existing samples are
 * unchanged. The new samples are converted with the settings stored in the set; they must have its fields and
 * the same list of classes. When src has only some of them, open it with mr_source_config.class_names and
 * class_count of the set. list_path: the set's shard list, as mr_convert() writes it with shard_bytes; a
 * single record file is MR_EINVAL. out may be NULL. The set is unchanged until the new list replaces the old.
 * After a call was killed, repeat it to finish it; two calls for one set cannot run at the same time.
 *
 * Without `again`, no sample is appended that a record of the set has with the same name, label and contents:
 * up to 64 samples are compared before the conversion, all of them after it, and times, folders and formats
 * of src do not matter. The same source once more appends nothing (known); if only some samples are there,
 * nothing is appended either (MR_EEXIST): choose the new ones with mr_source_choose(), or set `again`.
 *
 * MR_EEXIST      samples are in the set already; another program writes the list; an existing file has the
 *                name of a new one; an interrupted call with other samples is unfinished, and force is
 *                false; or this call has only finished or undone such a call: repeat it
 * MR_EINVAL, MR_EFORMAT  the samples do not fit the set, or list_path is not a set of record files; err names
 *                        the first class or field that differs
 * MR_ENOENT      list_path does not exist
 * MR_EBADSAMPLE  no sample of src could be converted
 * MR_ECANCELED   stopped; repeat the call to continue */
static inline int mr_append(const char *list_path, const mr_source *src, const mr_append_config *cfg,
                            mr_append_result *out, mr_error *err);

/* ---- a set that follows its source ---- */

typedef enum mr_set_update_rule {
    MR_SET_UPDATE_REFUSE = 0, /* such samples are an error, and nothing is written */
    MR_SET_UPDATE_KEEP,       /* their records stay as they are */
    MR_SET_UPDATE_WITHDRAW,   /* their records are withdrawn (mr_source_withdraw()); a changed sample is
                             appended in its present form */
} mr_set_update_rule;

typedef enum mr_set_update_kind {
    MR_SET_UPDATE_NEW = 0,  /* the set has no sample of this name */
    MR_SET_UPDATE_CHANGED,  /* label or contents differ */
    MR_SET_UPDATE_GONE,     /* the source has no sample of this name */
    MR_SET_UPDATE_BACK,     /* an earlier update withdrew it, and the source has it again, unchanged */
    MR_SET_UPDATE_REPEATED, /* one more record with name and values of a sample of the source; it stays */
} mr_set_update_kind;

typedef struct mr_set_update_finding {
    size_t struct_size;
    mr_set_update_kind kind;
    uint64_t sample;  /* new: number in the source as it was before the call; else MR_NOWHERE */
    uint64_t number;  /* number in the set, withdrawn samples counted; MR_NOWHERE: new */
    const char *name; /* until the callback returns */
} mr_set_update_finding;

typedef struct mr_set_update_config {
    size_t struct_size;
    mr_set_update_rule changed, gone; /* default REFUSE */
    uint32_t workers;                 /* 0: one per core */
    uint64_t memory_bytes;            /* as in mr_convert_config */
    bool force;                       /* discard the remains of an interrupted call with other samples */
    /* Called from the calling thread, as in mr_convert_config. compared: samples of the source that were
     * compared with the set; progress: samples that were converted */
    void (*compared)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    void (*progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    /* Called from the calling thread, once for each sample that is new, changed, gone or back, before
     * anything is written */
    void (*found)(void *context, const mr_set_update_finding *finding);
    mr_bad_report *on_bad; /* for each omitted sample, by its number in src, which mr_set_update() has changed
                            */
    void *context;
    const volatile int *stop;
    /* As in mr_convert_config, of the samples to append */
    void (*space)(void *context, uint64_t bytes, uint64_t free_bytes);
    bool no_space_check;
} mr_set_update_config;

static inline void mr_set_update_defaults(mr_set_update_config *cfg);

typedef struct mr_set_update_result {
    size_t struct_size;
    uint64_t before, after;              /* number of samples in the set, without withdrawn ones */
    uint64_t fresh, changed, gone, back; /* findings of each kind; written also with MR_EEXIST */
    uint64_t same;                       /* samples of the source that the set has */
    uint64_t left_out; /* samples of the source that were withdrawn from the set, and not by an
                          update: they stay withdrawn */
    uint64_t appended, withdrawn, restored; /* by this call */
    uint64_t bad;      /* omitted samples; all old records with the name of a bad sample stay */
    uint32_t files;    /* new ones */
    bool resumed;      /* an interrupted call was finished first */
    uint64_t repeated; /* records of the set that repeat another one, as mr_append() with `again` makes them:
                          neither changed nor gone */
} mr_set_update_result;

/* Bring a set of record files up to date with its source: compare all samples by name, label and contents,
 * and append the new ones as mr_append() does. Existing samples keep their numbers and bytes. Samples are
 * compared in the form that the set stores, so that formats, folders and times do not matter. By default a
 * sample that was changed in the source, or is gone from it, is an error, and nothing is written.
 *
 * list_path  as in mr_append(); the set stores names (no_names false)
 * src        has the classes of the set, and names (mr_source_sample_name()). The call chooses samples of it
 *            (mr_source_choose()): afterwards only mr_source_close() and calls about bad samples are of use
 * out        NULL, or written
 *
 * First the remains of an interrupted call are finished. Then samples are appended, and only after their list
 * is in place old records are restored or withdrawn: if a call was killed in between, repeat it: it withdraws
 * the rest. Memory: the names of the set. Blocks.
 *
 * MR_EEXIST      samples are changed or gone, and the rule is REFUSE; or as in mr_append()
 * MR_EINVAL      as in mr_append(), or the samples have no names; or no sample would be left
 * other < 0      as in mr_append() and mr_source_withdraw() */
static inline int mr_set_update(const char *list_path, mr_source *src, const mr_set_update_config *cfg,
                                mr_set_update_result *out, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_STABLE void mr_convert_defaults_sized(mr_convert_config *cfg, size_t struct_size);
static inline void mr_convert_defaults(mr_convert_config *cfg)
{
    mr_convert_defaults_sized(cfg, sizeof *cfg);
}

MR_STABLE int mr_convert_sized(const mr_source *src, const char *dst, const mr_convert_config *cfg,
                               mr_convert_result *out, mr_error *err);
static inline int mr_convert(const mr_source *src, const char *dst, const mr_convert_config *cfg,
                             mr_convert_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_convert_sized(src, dst, cfg, out, err);
}

MR_API void mr_append_defaults_sized(mr_append_config *cfg, size_t struct_size);
static inline void mr_append_defaults(mr_append_config *cfg) { mr_append_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_append_sized(const char *list_path, const mr_source *src, const mr_append_config *cfg,
                           mr_append_result *out, mr_error *err);
static inline int mr_append(const char *list_path, const mr_source *src, const mr_append_config *cfg,
                            mr_append_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_append_sized(list_path, src, cfg, out, err);
}

MR_API void mr_set_update_defaults_sized(mr_set_update_config *cfg, size_t struct_size);
static inline void mr_set_update_defaults(mr_set_update_config *cfg)
{
    mr_set_update_defaults_sized(cfg, sizeof *cfg);
}

MR_API int mr_set_update_sized(const char *list_path, mr_source *src, const mr_set_update_config *cfg,
                               mr_set_update_result *out, mr_error *err);
static inline int mr_set_update(const char *list_path, mr_source *src, const mr_set_update_config *cfg,
                                mr_set_update_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_set_update_sized(list_path, src, cfg, out, err);
}

#ifdef __cplusplus
}
#endif
#endif
