/* millrace/formats.h: what bytes on disk mean.
 *
 *   values and schemas     named, typed fields of a sample
 *   image headers          size and kind of a JPEG or PNG without decoding it
 *   sources                any data set as (count, extents, parse): readers know no format, formats do no I/O
 *                          when hot
 *   .mrec                  our record files: writer, reader, verifier (specified in formats/record/FORMAT.md)
 *
 * There are no devices here, and no threads except the one that fetches remote data. Bytes from a file are
 * never trusted: sizes in a header are checked against the file's size and the caller's limits before memory
 * is allocated. */
#ifndef MILLRACE_FORMATS_H
#define MILLRACE_FORMATS_H

#include "millrace/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------ values and schemas */

typedef enum mr_type {                     /* numbers are on disk: never renumbered */
                       MR_TYPE_JPEG = 1,   /* a JPEG file's bytes */
                       MR_TYPE_PNG = 2,    /* a PNG file's bytes */
                       MR_TYPE_PIXELS = 3, /* uint8 pixels, dim = {height, width, channels} whatever the plane
                                              order */
                       MR_TYPE_INT = 4,    /* one int64 */
                       MR_TYPE_FLOAT = 5,  /* one float64 */
                       MR_TYPE_TENSOR = 6, /* row-major elements of dtype, dim[0..ndim) */
                       MR_TYPE_BYTES = 7,  /* anything */
                       MR_TYPE_TEXT = 8,   /* UTF-8, no terminator */
                       MR_TYPE_IMAGE = 9,  /* in a schema only: JPEG, PNG, PIXELS or COEF, each record says
                                              which */
                       MR_TYPE_COEF = 10, /* a JPEG's quantised coefficients, packed: no entropy decoding left
                                             to do */
} mr_type;

typedef enum mr_dtype { /* numbers are on disk */
                        MR_U8 = 1,
                        MR_I8 = 2,
                        MR_I16 = 3,
                        MR_I32 = 4,
                        MR_I64 = 5,
                        MR_F16 = 6,
                        MR_BF16 = 7,
                        MR_F32 = 8,
                        MR_F64 = 9,
} mr_dtype;

typedef enum mr_planes { MR_HWC = 0, MR_CHW = 1 } mr_planes; /* pixel order of MR_TYPE_PIXELS */

#define MR_MAX_DIMS   8
#define MR_MAX_FIELDS 32
#define MR_MAX_NAME   63 /* bytes of a field name */

MR_API size_t mr_dtype_bytes(mr_dtype dtype);  /* 0 for an unknown number */
MR_API const char *mr_type_name(mr_type type); /* "jpeg", ...; "?" for an unknown number */
MR_API const char *mr_dtype_name(mr_dtype dtype);

/* One value of one sample. data points into the buffer that was parsed and lives as long as that; for formats
 * that store values in pieces it points into memory of the source. */
typedef struct mr_value {
    mr_type type;
    mr_dtype dtype;   /* TENSOR */
    mr_planes planes; /* PIXELS */
    uint32_t ndim;    /* TENSOR, PIXELS (3) */
    uint64_t dim[MR_MAX_DIMS];
    const void *data; /* all but INT and FLOAT */
    size_t bytes;
    int64_t i;           /* INT */
    double f;            /* FLOAT */
    const void *entries; /* JPEG: entry points stored with it, NULL for none */
    size_t entries_bytes;
} mr_value;

typedef struct mr_field {
    char name[MR_MAX_NAME + 1];
    mr_type type;
    mr_dtype dtype; /* TENSOR */
    uint32_t ndim;  /* fixed shape of all values, or 0 when it differs from record to record */
    uint64_t dim[MR_MAX_DIMS];
} mr_field;

/* A sample as parsed: value[k] belongs to field k of the source's schema. */
typedef struct mr_sample {
    uint32_t value_count;
    mr_value value[MR_MAX_FIELDS];
} mr_sample;

/* ------------------------------------------------------------------------------ image headers */

typedef struct mr_image_header {
    size_t struct_size;
    mr_type type;           /* MR_TYPE_JPEG, MR_TYPE_PNG; of values also MR_TYPE_COEF, MR_TYPE_PIXELS */
    uint32_t width, height; /* as stored, before EXIF orientation */
    uint32_t channels;      /* 1, 2 (gray + alpha), 3, 4 */
    uint32_t bit_depth;     /* per channel */
    uint32_t orientation;   /* EXIF 1..8; 1 when absent or broken */
    bool progressive;       /* JPEG: SOF2 and its kin; PNG: interlaced */
    bool arithmetic;        /* JPEG: SOF9, SOF10 */
    uint8_t sampling[4][2]; /* JPEG, COEF: horizontal, vertical factor of each component; else 0 */
} mr_image_header;

/* JPEG or PNG by content: MR_TYPE_JPEG, MR_TYPE_PNG, or 0. */
MR_API int mr_image_sniff(const void *data, size_t bytes);

/* Read the header only. MR_EFORMAT names what is missing; MR_EUNSUPPORTED names a coding process that is not
 * supported. Any thread. */
MR_API int mr_image_header_parse_sized(const void *data, size_t bytes, mr_image_header *out, mr_error *err);
static inline int mr_image_header_parse(const void *data, size_t bytes, mr_image_header *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_image_header_parse_sized(data, bytes, out, err);
}

/* The same for a value of any picture type. For MR_TYPE_PIXELS it follows from dim. Any thread. */
MR_API int mr_value_header_sized(const mr_value *value, mr_image_header *out, mr_error *err);
static inline int mr_value_header(const mr_value *value, mr_image_header *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_value_header_sized(value, out, err);
}

/* ------------------------------------------------------------------------------ sources */

typedef enum mr_split { MR_SPLIT_AUTO = 0, MR_SPLIT_TRAIN = 1, MR_SPLIT_TEST = 2 } mr_split;

typedef enum mr_class_rule {                       /* a folder of pictures: which folders in it are classes */
                             MR_CLASSES_FIRST = 0, /* the first level: FOLDER/CLASS/PICTURE */
                             MR_CLASSES_DEPTH = 1, /* every folder that holds pictures, called by its path
                                                      below FOLDER: "animals/cat" */
                             MR_CLASSES_NONE = 2,  /* none: all pictures below FOLDER, without labels */
} mr_class_rule;

/* Files that data name outside of their own folder: ../x, /x, or below a link that leads out. */
typedef enum mr_outside {
    MR_OUTSIDE_REFUSE, /* MR_EINVAL, with the line */
    MR_OUTSIDE_TAKE,
} mr_outside;

/* How classes of this set are matched with those that class_names and class_count name. */
typedef enum mr_class_match {
    MR_MATCH_AUTO = 0,  /* by name, or by number; a name that is a whole number is that number */
    MR_MATCH_ORDER = 1, /* also where neither is possible: class k of this set is class k of the others. Both
                           sets need the same number of classes, and no name in common */
} mr_class_match;

typedef struct mr_source_config {
    size_t struct_size;
    const char *format;    /* NULL: detected from the content. Else "folder", "idx", "cifar", "mrec", ... */
    mr_split split;        /* AUTO: the train part when the data has parts, else all of it */
    uint64_t memory_bytes; /* what an open source may keep (names, labels, index); default 1 GiB. A larger
                              index is read from disk; the others over it are MR_ELIMIT */
    const char *image_key; /* the feature, member, column or array that is the picture; NULL: the usual names
                              of the format */
    const char *label_key; /* the same for the class */
    int64_t label_offset;  /* subtracted from every label; MR_LABEL_AUTO (default): nothing, labels are the
                              numbers of the data. A program that needs classes from 0 looks at
                              mr_source_labels_of() all sets that it uses together */
    const char *index_folder;  /* where the index is written when the data's folder cannot be written; NULL:
                                  $XDG_CACHE_HOME/millrace */
    bool no_index_file;        /* build the index in every run, keep none */
    const char *remote_folder; /* http(s)://: where what was fetched is kept; NULL:
                                  $XDG_CACHE_HOME/millrace/remote */
    uint64_t remote_bytes;     /* size limit of that; default 16 GiB */
    const char *const *class_names; /* number classes like these; a class that is not among them is
                                       MR_EFORMAT. An empty name is a number without samples. Copied. NULL:
                                       see classes_of */
    uint32_t class_count;           /* of class_names; 0: as the data number them */
    const volatile int *stop; /* a value other than 0 ends mr_source_open() and mr_source_check() soon, with
                                 MR_ECANCELED, and of http(s):// all waits for a server, at any time while
                                 the source is open; NULL: never */
    mr_class_rule classes; /* folders of pictures; other formats know their classes, and tell that they pass
                              over this */
    mr_outside outside;    /* of a table of paths (CSV); default REFUSE: who wrote the table does not choose
                              which files of this machine are read */
    /* Some of the samples: those of ranks round(take_from * count) to round(take_to * count) - 1 in a drawn
     * order, which follows from the number of samples alone. They stay in the order of the data, and are
     * numbered anew from 0. So 0 to 0.9 and 0.9 to 1 share no sample and are all together. Default 0 and 1:
     * all of them */
    double take_from, take_to;
    /* A further field of numbers, which keeps this name: of NumPy arrays the array of this name (in parts
     * NAME_train and NAME_test, or train_NAME), a row for each sample; of a table (CSV) the column of this
     * name or number, or all from one to another ("hat..glasses"), as f32. Kept in memory. Such data need no
     * classes. Formats whose samples bring fields of their own (record files, TFRecord, tar) pass over it.
     * NULL: none */
    const char *target_key;
    /* With class_names NULL and class_count above 0 the classes expected are the numbers class_first to
     * class_first + class_count - 1. A set whose labels or names are not among them is MR_EFORMAT */
    int64_t class_first;
    const char *classes_of; /* the set that they come from, for messages; NULL: not named */
    mr_class_match match;   /* default AUTO */
    /* Of a table (CSV) the column, by name or number, that says which part a row is of: train, val, test and
     * the like, or "NAME=VALUE": rows with that value are the part to test with, all others the train part.
     * NULL: a column called split, set, subset, is_train, ..., where its values are parts; "none": no column.
     * Other formats pass over it */
    const char *split_key;
} mr_source_config;

#define MR_LABEL_AUTO INT64_MIN

MR_API void mr_source_defaults_sized(mr_source_config *cfg, size_t struct_size);
static inline void mr_source_defaults(mr_source_config *cfg) { mr_source_defaults_sized(cfg, sizeof *cfg); }

enum { MR_PART_TRAIN = 1, MR_PART_VALIDATION = 2, MR_PART_TEST = 4 };

/* "train", "validation", "test"; NULL for anything else. */
MR_API const char *mr_part_name(uint32_t part);

typedef struct mr_source_parts {
    uint32_t there; /* MR_PART_... that the names of the data speak of, or'ed; 0: of none */
    uint32_t taken; /* the one of them that was taken; 0: all samples there are */
} mr_source_parts;

typedef struct mr_mix_set { /* one of the data sets that a mix consists of */
    const char *path;       /* as opened */
    uint64_t first, count;  /* samples [first, first + count) are its; at least one */
    double share;           /* that it is to have of what is drawn; those of a mix add up to 1 */
} mr_mix_set;

typedef struct mr_source_info {
    const char *format;             /* "folder", "idx", "cifar10", "cifar100", "mrec", "shards", "mix", ... */
    const char *path;               /* as opened; for a folder of tables, the table */
    uint64_t count;                 /* samples */
    uint32_t class_count;           /* 0: no classes known */
    const char *const *class_names; /* class_count strings, or NULL */
    uint32_t field_count;
    const mr_field *fields;
    int image_field;                  /* index into fields, -1 when none */
    int label_field;                  /* index into fields, -1 when none */
    uint32_t height, width, channels; /* when every image has this size; else 0 */
    uint32_t file_count;              /* files shared by many samples; 0 when each sample is a file */
    uint64_t max_extent_bytes;        /* largest extent, exact */
    uint64_t total_bytes;             /* sum of all extents */
    bool has_test;                    /* the data also have a test part (MR_SPLIT_TEST) */
    uint64_t fingerprint;             /* of format, count, sizes, labels and names: which data set this is */
    uint64_t memory_bytes;            /* what this source holds in memory */
    uint64_t skipped_files; /* folder: entries that are in no sample: hidden, no pictures, links to nothing,
                               folders where none are looked for */
    int64_t label_offset;   /* subtracted from the labels found */
    const char *told;       /* lines for the user, '\n' between them (index built, labels shifted, files left
                               out and why, ...), or NULL. Those that begin with "index" or "the index" are
                               of this run: where an index is kept or why not; the others are of the data */
    uint32_t length_field;  /* the field of mr_source_length(): the one whose length differs, or when no
                               tensor's length differs, the first of one dimension; MR_NO_FIELD: none */
    uint32_t length_most;   /* the largest it gives */
    bool only_test; /* no part was asked for (MR_SPLIT_AUTO), and this is a test or validation part: there is
                       no train part. Nothing to train on unless somebody says so */
    mr_source_parts parts;
    uint32_t mix_count;    /* data sets that this one is mixed of; 0: it is one */
    const mr_mix_set *mix; /* of each; owned by the source */
} mr_source_info;

#define MR_NO_FIELD UINT32_MAX

#define MR_FILE_OF_SAMPLE UINT32_MAX

/* The position of a sample's bytes. */
typedef struct mr_extent {
    uint32_t file; /* shared file number, or MR_FILE_OF_SAMPLE: the file mr_source_sample_path() names */
    uint64_t offset;
    uint64_t bytes;
} mr_extent;

typedef struct mr_source_file {
    size_t struct_size;
    const char *path; /* for messages */
    int fd; /* open for reading, owned by the source; -1 where it keeps fewer files open than it has:
               mr_source_file_acquire(). A remote record file has holes where nothing was fetched yet: read
               its samples with mr_source_read() or a loader */
    uint64_t bytes;
    bool direct_ok; /* opening path again with O_DIRECT reaches the same bytes (false for unpacked .gz) */
} mr_source_file;

typedef struct mr_source mr_source;

/* Open any data set. Reads headers, indexes, folder listings and labels, never all the samples.
 *
 * path  a file or a folder; its type is detected from the content, not from the name. Or the http:// or
 *       https:// address of a file, of one of a numbered set, or of several (NAME-{0000..0146}.tar). Record
 *       files are fetched as they are read; all other formats as a whole when they are opened. What is
 *       fetched is kept in cfg->remote_folder
 * MR_OK           *out is open; close with mr_source_close()
 * MR_ENOENT       nothing there
 * MR_EFORMAT      it is there but wrong; err names file, offset, expected, found
 * MR_EUNSUPPORTED no known format; err lists the known ones
 * other < 0       see base.h. *out is NULL on every error.
 * After open a source never changes: the functions below may be called from any thread, at once. */
MR_API int mr_source_open(mr_source **out, const char *path, const mr_source_config *cfg, mr_error *err);
MR_API void mr_source_close(mr_source *src);

MR_API const mr_source_info *mr_source_info_of(const mr_source *src);

typedef struct mr_source_labels { /* what the data say of their classes' numbers */
    int64_t min, max; /* smallest and largest class, before label_offset is subtracted; of NumPy arrays and
                         IDX files over all their splits. min > max: not known */
    int64_t start;    /* the first class, where the data declare it: a record file keeps what --label-offset
                         was when it was written. MR_LABEL_AUTO: not declared */
    bool unsure;      /* a record file before version 1.3, without class names: 1 may have been subtracted */
} mr_source_labels;
MR_API const mr_source_labels *mr_source_labels_of(const mr_source *src);

/* sample < count. Does no I/O for formats whose index is in memory; a huge .mrec may read one index page. */
MR_API int mr_source_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err);

/* Class or number of a sample without reading it, where the source knows it; MR_EUNSUPPORTED when it does
 * not. */
MR_API int mr_source_label(const mr_source *src, uint64_t sample, int64_t *out);

/* Number of elements in info.length_field of a sample without reading it. The same for a set of sequences and
 * for the record file that mr_convert() makes of it. A record file knows lengths when one tensor, of one
 * dimension, is all that differs in size between its records, and stands last among the fields (or has
 * elements of 8 bytes); one converted before tensors were put last does not, and converting it again gives
 * one that does. No I/O but what mr_source_extent() does.
 * MR_EUNSUPPORTED  the source does not know: info.length_field is MR_NO_FIELD
 * MR_ECHECKSUM, MR_EFORMAT, MR_EIO  the page of the index could not be had */
MR_API int mr_source_length(const mr_source *src, uint64_t sample, uint32_t *out);

/* file < info.file_count. */
MR_API int mr_source_file_at_sized(const mr_source *src, uint32_t file, mr_source_file *out);
static inline int mr_source_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_source_file_at_sized(src, file, out);
}

/* *fd is open for reading until mr_source_file_release(), and the source's: do not close it. A source of very
 * many files keeps a bounded number open (a part of RLIMIT_NOFILE, 4096 at most) and opens others when they
 * are asked for. file < info.file_count. Any thread; may wait for the file system. MR_EIO with ESTALE in
 * err->sys_errno: the file is not the one that the list names, or no longer the one that was there when the
 * source was opened; missing and damaged ones included. An error of the set: mr_error_of_sample() is false */
MR_API int mr_source_file_acquire(const mr_source *src, uint32_t file, int *fd, mr_error *err);
MR_API void mr_source_file_release(const mr_source *src, uint32_t file);

/* Name of the file that holds the sample; buf is always terminated. Returns buf. */
MR_API char *mr_source_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes);

/* What the sample was called where it came from: its path below the data set's folder ("cat/1.jpg"), the
 * picture's member in a tar archive, "image/filename" in a TFRecord; record files keep it. "" where it has
 * none. Anything can be in it: look at it before you make a path of it.
 *
 * data  the extent's bytes, damaged or not, as mr_source_read() left them; NULL: they are read where names
 * stand in them
 * buf   always terminated; "" on failure
 *
 * MR_OK, also where there is no name; MR_ENOMEM; without data whatever reading can return. Any thread. */
MR_API int mr_source_sample_name_get(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                                     char *buf, size_t buf_bytes, mr_error *err);
/* The same for messages, which can do without: "" on failure, too. Returns buf. */
MR_API char *mr_source_sample_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                                   char *buf, size_t buf_bytes);

/* data holds exactly the extent's bytes. Checks everything that the format allows to check (checksums
 * included) and fills out with pointers into data. A damaged sample gives MR_EFORMAT or MR_ECHECKSUM with
 * file, offset and sample set. */
MR_API int mr_source_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                           mr_sample *out, mr_error *err);

/* Read and parse one sample, in the caller's thread: for tools, not for pipelines. *buffer (malloc'd,
 * *buffer_bytes its size; NULL and 0 at first) is grown as needed and holds what *out points to; the caller
 * frees it. */
MR_API int mr_source_read(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes,
                          mr_sample *out, mr_error *err);

/* Check what no single sample can show and what takes too long when opening: a checksum over all samples of a
 * large file. Reads the file. MR_OK, also when the format has none; MR_ECHECKSUM or MR_EFORMAT with the file
 * when it is damaged. Any thread. */
MR_API int mr_source_check(const mr_source *src, mr_error *err);

/* Has each sample's bytes a checksum, which mr_source_parse() or mr_source_check() compare? Without one a
 * changed byte that can still be decoded is not found. Of a mix: have all of its members? May look at the
 * files' ends and headers. Any thread. */
MR_API bool mr_source_has_checksums(const mr_source *src);

/* Keep some samples of an open source, and forget the others. samples: count of its numbers, rising; they are
 * copied. From here on sample k is what samples[k] was; the fingerprint is another one. Call it before
 * anybody else uses the source. MR_EINVAL: none, a number that is not there, or they do not rise; of a mix a
 * set would keep none. MR_ENOMEM. After an error the source is as it was. */
MR_API int mr_source_choose(mr_source *src, const uint64_t *samples, uint64_t count, mr_error *err);

/* Number and name the classes of an open source anew. to: for each of its class_count classes the new number,
 * below count; UINT32_MAX: a sample of this class is damaged from here on. Several may become one. names:
 * count of them, copied. Call it before anybody else uses the source. MR_EINVAL: the source has no classes or
 * labels, or a number or name cannot be. MR_ENOMEM. After an error the source is as it was. */
MR_API int mr_source_name_classes(mr_source *src, const uint32_t *to, const char *const *names,
                                  uint32_t count, mr_error *err);

/* A source of the program's own: samples that it makes when they are wanted, in place of a data set on disk.
 * What makes one is called for each sample each time it is wanted, by the threads that read: those that
 * decode in a loader, several at a time, each for the next sample of the run that nobody has yet. */
typedef struct mr_own_sample mr_own_sample;

/* Make a sample: call mr_own_sample_give() once, in this call, and return what it returned; or fail with a
 * negative code, err filled. MR_EFORMAT says that this sample is damaged, and the rest of those for which
 * mr_error_of_sample() is true are taken so, too; others end the run.
 *
 * sample  its number, below count
 *
 * The same sample must be the same each time (I1).
 *
 * Threads: a loader's workers, several at a time and in any order; with prefetch 0 the caller of
 * mr_loader_next(); workers of mr_convert(), in order of the samples; the caller of mr_loader_open(), which
 * may look at first samples, and of mr_source_read(). No lock is held.
 *
 * It may take long: whoever reads waits. In a loader with prefetch, and without free_order, it may wait until
 * the batches before the sample's were delivered. mr_loader_stop() never waits for it; mr_loader_close() and
 * mr_convert() return when it has returned. */
typedef int mr_own_fetch(void *context, uint64_t sample, mr_own_sample *to, mr_error *err);

/* values: one for each field, as for mr_writer_append(); copied before this returns.
 * MR_EFORMAT: they do not fit the schema. MR_ELIMIT: more than sample_bytes_most. MR_EINVAL: a second call.
 * For a sample that was begun (mr_own_begin) an error is the sample's, and `to` is gone in any case. */
MR_API int mr_own_sample_give(mr_own_sample *to, const mr_value *values, mr_error *err);

/* Begin to make a sample and return at once: for sources that wait for a network or a data base. The sample
 * is given later, by mr_own_sample_give() or mr_own_sample_fail(), exactly once, from any thread, also before
 * this returns. A loader begins up to `depth` samples for each reader and decodes those that have come, so a
 * wait of one does not delay the others; mr_convert() and mr_source_read() wait for one at a time in each
 * thread.
 *
 * Returns MR_OK, or a status as mr_own_fetch does: then the sample has failed, and `to` is not used again.
 *
 * Threads: a loader's reader (which makes the others wait meanwhile); else as mr_own_fetch. Closing a loader
 * waits for what was begun; mr_loader_stop() does not. */
typedef int mr_own_begin(void *context, uint64_t sample, mr_own_sample *to, mr_error *err);

/* A sample that was begun cannot be made: status and why as mr_own_fetch returns them; why may be NULL. `to`
 * is gone. */
MR_API void mr_own_sample_fail(mr_own_sample *to, int status, const mr_error *why);

typedef struct mr_own_config {
    size_t struct_size;
    const char *name; /* for messages, in place of a path; copied; default "samples of the program" */
    uint64_t count;   /* samples */
    uint32_t field_count;
    const mr_field *fields;         /* copied; a loader takes "image" and "label" */
    uint32_t class_count;           /* 0: no classes known; else labels are below it */
    const char *const *class_names; /* copied; NULL: they are called by their numbers, 0, 1, ... */
    /* Which data these are: other data, another number. With count, fields and classes it is what a run that
     * is resumed, and a cache on disk, go by */
    uint64_t fingerprint;
    /* A sample with more bytes, values and about 100 besides, is MR_ELIMIT; each worker of a loader may come
     * to hold so much. Default 16 MiB */
    uint64_t sample_bytes_most;
    mr_own_fetch *fetch;
    void *context;
    mr_own_begin *begin; /* in place of fetch; with both, begin is used. Default NULL */
} mr_own_config;

MR_API void mr_own_defaults_sized(mr_own_config *cfg, size_t struct_size);
static inline void mr_own_defaults(mr_own_config *cfg) { mr_own_defaults_sized(cfg, sizeof *cfg); }

/* Close with mr_source_close(), after which nothing is called. Loaders, mr_source_read() and mr_convert()
 * take it like any other; it has no files, extents say sample_bytes_most, and labels are known after reading
 * only. MR_EINVAL: neither function, or fields or classes that cannot be. MR_ENOMEM. *out is NULL on every
 * error.
 */
MR_API int mr_source_create(mr_source **out, const mr_own_config *cfg, mr_error *err);

/* Names and one-line descriptions of the formats that can be opened, for --help: count, then each by
 * number. */
MR_API uint32_t mr_source_format_count(void);
MR_API const char *mr_source_format_name(uint32_t at);
MR_API const char *mr_source_format_help(uint32_t at);

/* ------------------------------------------------------------------------------ .mrec files */

typedef struct mr_writer_config {
    size_t struct_size;
    uint32_t field_count;
    const mr_field *fields; /* copied */
    uint32_t class_count;
    const char *const *class_names; /* copied */
    const char *provenance; /* text, by convention JSON; copied; NULL for none. It should contain no times:
                               the same input gives the same file */
    uint32_t record_align; /* power of two 8..4096; 0: 4096 when the first record is 32 KiB or more, else 8 */
    bool force;            /* an existing output may be replaced */
    bool resume;           /* go on after the last whole record of an interrupted run, if one is there */
    const mr_source *input; /* the file to make may be none of this source's; NULL: not asked */
    bool verify;            /* read the whole file back before it gets its name (mr_mrec_verify()) */
    int64_t label_start; /* the number of the first class, where it is declared: kept for readers, labels are
                            written as they are given. Default 0: not declared */
} mr_writer_config;

MR_API void mr_writer_defaults_sized(mr_writer_config *cfg, size_t struct_size);
static inline void mr_writer_defaults(mr_writer_config *cfg) { mr_writer_defaults_sized(cfg, sizeof *cfg); }

typedef struct mr_writer mr_writer;

/* Start PATH. Bytes are written to a part file (PATH.part), which is renamed only in mr_writer_finish(). Both
 * are as mr_output_open() has it: no link is followed, nothing but a file is replaced. With
 * resume, *resume_source (may be NULL) is the source index of the next record: one past the last complete
 * record in the part file, 0 when there is none. MR_EEXIST without force when path exists. */
MR_API int mr_writer_open(mr_writer **out, const char *path, const mr_writer_config *cfg,
                          uint64_t *resume_source, mr_error *err);

/* Append one record. source_index: its number in the converted source; strictly rising (bad samples leave
 * gaps). values[field_count] fit the schema or MR_EINVAL. One thread at a time. */
MR_API int mr_writer_append(mr_writer *w, uint64_t source_index, const mr_value *values, mr_error *err);

/* Records so far, those found on resume included, and bytes written. */
MR_API uint64_t mr_writer_count(const mr_writer *w);
MR_API uint64_t mr_writer_bytes(const mr_writer *w);

/* Write index and header, sync, read back when asked to, rename, sync the folder. The writer is freed in
 * every case; on failure the part file stays for resume. */
MR_API int mr_writer_finish(mr_writer *w, mr_error *err);

/* Give up: the part file stays when keep is set, else it is removed. Accepts NULL. */
MR_API void mr_writer_abort(mr_writer *w, bool keep);

/* Bytes on disk of a record with these values at this alignment, for sharding by size. */
MR_API uint64_t mr_writer_record_bytes(const mr_writer *w, const mr_value *values);

typedef struct mr_mrec mr_mrec;

typedef struct mr_mrec_info {
    uint32_t version_major, version_minor;
    uint64_t count;
    uint64_t file_bytes;
    uint64_t data_offset, index_offset;
    uint32_t record_align;
    uint32_t field_count;
    const mr_field *fields;
    uint32_t class_count;
    const char *const *class_names;
    const char *provenance; /* "" when none */
    uint64_t fingerprint;
    int64_t label_start; /* the number of the first class, where it was declared; else 0 */
} mr_mrec_info;

/* Header, schema and index of one .mrec file, checked. index_memory_bytes: an index up to this size is kept
 * in memory, a larger one is read page by page. */
MR_API int mr_mrec_open(mr_mrec **out, const char *path, uint64_t index_memory_bytes, mr_error *err);
MR_API void mr_mrec_close(mr_mrec *m);
MR_API const mr_mrec_info *mr_mrec_info_of(const mr_mrec *m);
MR_API int mr_mrec_fd(const mr_mrec *m);
/* Any thread. */
MR_API int mr_mrec_extent(const mr_mrec *m, uint64_t record, uint64_t *offset, uint64_t *bytes,
                          mr_error *err);
/* Check header and CRC of a record's bytes and split it into values. source_index may be NULL. Any thread. */
MR_API int mr_mrec_parse(const mr_mrec *m, uint64_t record, const void *data, size_t bytes, mr_sample *out,
                         uint64_t *source_index, mr_error *err);

/* Called for each finding, by the thread that called the check; return false to stop. */
typedef bool mr_verify_report(void *context, const mr_error *what);

typedef struct mr_verify_result {
    size_t struct_size;
    uint64_t records; /* checked */
    uint64_t bytes;   /* read: the whole file */
    uint64_t wrong;   /* things reported */
} mr_verify_result;

/* Read every byte of the file and check it: header, schema, index, every record, every padding byte, nothing
 * after the end. MR_OK when the file is correct, MR_ECHECKSUM or MR_EFORMAT when it is not (report got the
 * findings), other < 0 when the check itself failed. report may be NULL. Does not decode images:
 * mr_image_decode() in image.h does. */
MR_API int mr_mrec_verify_sized(const char *path, mr_verify_report *report, void *context,
                                mr_verify_result *out, mr_error *err);
static inline int mr_mrec_verify(const char *path, mr_verify_report *report, void *context,
                                 mr_verify_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_mrec_verify_sized(path, report, context, out, err);
}

/* The same, until *stop is not 0: MR_ECANCELED. stop may be NULL. */
MR_API int mr_mrec_verify_until_sized(const char *path, const volatile int *stop, mr_verify_report *report,
                                      void *context, mr_verify_result *out, mr_error *err);
static inline int mr_mrec_verify_until(const char *path, const volatile int *stop, mr_verify_report *report,
                                       void *context, mr_verify_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_mrec_verify_until_sized(path, stop, report, context, out, err);
}

/* A shard list: a text file that names .mrec files in order, with what opening needs to know of them, so that
 * a set of any number of files is opened without reading them all. Every file's header is read for that: the
 * files must be complete, have the same fields and classes, and counts[k] records. Written to a part file,
 * synced, renamed. paths are stored relative to the list's folder when they lie below it. A file that is
 * written anew afterwards is refused when it is read: then write the list again.
 *
 * MR_EFORMAT  a file has another number of records, other fields or other classes; err names it
 * MR_EEXIST   list_path is there, and force is false
 * MR_EINVAL   no paths, or one with a line end in it
 * other < 0   a file could not be opened (mr_mrec_open()), or the list not be written */
MR_API int mr_shards_write(const char *list_path, const char *const *paths, const uint64_t *counts,
                           uint32_t path_count, bool force, mr_error *err);

/* ------------------------------------------------------------------------------ files to write */

/* How this library writes every file, for programs that write some of their own: under another name
 * (PATH.part) until it is whole, then synced and renamed. No link is followed, nothing but a regular file is
 * replaced, no input is, and the part file is locked: two programs never write one path. It carries the
 * sticky bit until it has its name: a PATH.part without it, and not empty, is no earlier run's and is
 * overwritten only with force; with resume the caller looks at what it holds. */
typedef struct mr_output_config {
    size_t struct_size;
    const mr_source *const *inputs; /* the output may be none of their files; elements may be NULL. They live
                                       until the output is closed */
    uint32_t input_count;
    bool force;    /* an existing file may be replaced */
    bool resume;   /* what the part file (of a log: the file) of an earlier run holds stays */
    bool unsynced; /* one of many small files: mr_output_sync_all() syncs them together at the end */
    bool log;      /* PATH itself, which grows line by line and is never removed; without resume it must not
                      exist */
} mr_output_config;

MR_API void mr_output_defaults_sized(mr_output_config *cfg, size_t struct_size);
static inline void mr_output_defaults(mr_output_config *cfg) { mr_output_defaults_sized(cfg, sizeof *cfg); }

typedef struct mr_output mr_output;

/* Would mr_output_open() and mr_output_commit() refuse it as it is now? Nothing is made.
 * MR_EINVAL  a folder, link, device, pipe or socket is there, or an input, or a file with other names
 * MR_EEXIST  a file is there, or one of other origin where the part file goes, and force is not set; or
 * another program writes it, or another user has it */
MR_API int mr_output_check(const char *path, const mr_output_config *cfg, mr_error *err);
MR_API int mr_output_open(mr_output **out, const char *path, const mr_output_config *cfg, mr_error *err);
MR_API int mr_output_fd(const mr_output *o); /* for reading and writing; owned by the output */
/* Append; all of it, or an error. */
MR_API int mr_output_write(mr_output *o, const void *data, size_t bytes, mr_error *err);
/* Sync, rename, sync the folder. The output is freed in every case; on failure nothing is left of it. */
MR_API int mr_output_commit(mr_output *o, mr_error *err);
/* Give up: the part file is removed unless keep is set. Accepts NULL. */
MR_API void mr_output_abandon(mr_output *o, bool keep);
/* Everything on the file system of this folder is on disk. */
MR_API int mr_output_sync_all(const char *folder, mr_error *err);
/* Remove a file that could be replaced with force; MR_OK when nothing is there. */
MR_API int mr_output_remove(const char *path, const mr_output_config *cfg, mr_error *err);

/* ------------------------------------------------------------------------------ scalars for TensorBoard */

typedef struct mr_scalar {
    const char *tag; /* "epoch/loss": up to 64 bytes */
    float value;
} mr_scalar;

#define MR_SCALARS_MOST 32

/* One event of a TensorBoard event file: a TFRecord (length, masked CRC32C, data, masked CRC32C) of the
 * protobuf message Event. A file begins with an event that has `first` set, and its name contains "tfevents".
 * TensorBoard reads the files of a folder in the order of their names. */
typedef struct mr_scalar_event {
    size_t struct_size;
    double wall_s; /* seconds since 1970 */
    int64_t step;
    bool first;   /* says what the file is; no scalars */
    bool restart; /* a run goes on here: what an earlier file has of this step and later ones no longer
                     counts; no scalars */
    const mr_scalar *scalars;
    uint32_t count; /* up to MR_SCALARS_MOST */
} mr_scalar_event;

/* Write the record to out[room]. Returns its bytes; more than room: nothing was written. 0: an event that
 * cannot be (a longer tag, too many scalars). */
MR_API size_t mr_scalar_event_record_sized(const mr_scalar_event *event, void *out, size_t room);
static inline size_t mr_scalar_event_record(const mr_scalar_event *event, void *out, size_t room)
{
    mr_scalar_event sized;
    if (!event) return 0;
    sized = *event;
    sized.struct_size = sizeof sized;
    return mr_scalar_event_record_sized(&sized, out, room);
}

/* CRC32C (Castagnoli), chained: start with 0. */
MR_API uint32_t mr_crc32c(uint32_t crc, const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
