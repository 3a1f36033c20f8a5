/* millrace/formats.h: data sets, pictures' headers and record files on disk.
 *
 *   values and schemas     named, typed fields of a sample
 *   image headers          size and kind of a picture file without decoding it
 *   sources                any data set as (count, extents, parse): readers know no format; after open,
 *                          formats do no I/O
 *   .mrec                  millrace's record files: writer, reader, verifier
 *
 * This header uses no devices, and no threads except the one that fetches remote data. Bytes from a file are
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
                       MR_TYPE_PIXELS = 3, /* uint8 pixels; dim = {height, width, channels} for every plane
                                              order */
                       MR_TYPE_INT = 4,    /* one int64 */
                       MR_TYPE_FLOAT = 5,  /* one float64 */
                       MR_TYPE_TENSOR = 6, /* row-major elements of dtype, dim[0..ndim) */
                       MR_TYPE_BYTES = 7,  /* anything */
                       MR_TYPE_TEXT = 8,   /* UTF-8, no terminator */
                       MR_TYPE_IMAGE = 9,  /* in a schema only: each record holds JPEG, PNG, PIXELS, COEF,
                                              GIF, BMP, WEBP, TIFF, HEIC or AVIF */
                       MR_TYPE_COEF = 10,  /* a JPEG's quantised coefficients, packed: entropy decoding is
                                              done */
                       MR_TYPE_GIF = 11,   /* a GIF file's bytes; the picture is its first frame */
                       MR_TYPE_BMP = 12,   /* a BMP file's bytes */
                       MR_TYPE_WEBP = 13,  /* a WebP file's bytes; the picture is its first frame */
                       MR_TYPE_TIFF = 14,  /* a TIFF file's bytes; the picture is its first one */
                       MR_TYPE_HEIC = 15,  /* a HEIC file's bytes: HEIF, coded by HEVC; the picture is the one
                                              it shows */
                       MR_TYPE_AVIF = 16,  /* an AVIF file's bytes: HEIF, coded by AV1; the picture is the one
                                              it shows */
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

/* One value of one sample. data points into the parsed buffer and is valid as long as the buffer; for formats
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
    const void *entries; /* JPEG: entry points stored with it, or NULL */
    size_t entries_bytes;
} mr_value;

typedef struct mr_field {
    char name[MR_MAX_NAME + 1];
    mr_type type;
    mr_dtype dtype; /* TENSOR */
    uint32_t ndim;  /* dimensions of the shape that all values share; 0 when shapes differ between records */
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
    mr_type type;           /* as mr_image_sniff() returns; of values also MR_TYPE_COEF, MR_TYPE_PIXELS */
    uint32_t width, height; /* as stored, before EXIF orientation; HEIC, AVIF: as shown */
    uint32_t channels;      /* 1, 2 (gray + alpha), 3, 4 */
    uint32_t bit_depth;     /* per channel */
    uint32_t orientation;   /* EXIF 1..8; 1 when absent or broken */
    bool progressive;       /* JPEG: a progressive process (SOF2, ...); PNG, GIF: interlaced */
    bool arithmetic;        /* JPEG: SOF9, SOF10 */
    uint8_t sampling[4][2]; /* JPEG, COEF: horizontal, vertical factor of each component; else 0 */
} mr_image_header;

/* Detect the kind of a picture file by content; 32 bytes are enough. Returns MR_TYPE_JPEG, MR_TYPE_PNG,
 * MR_TYPE_GIF, MR_TYPE_BMP, MR_TYPE_WEBP, MR_TYPE_TIFF, MR_TYPE_HEIC, MR_TYPE_AVIF, or 0. */
MR_API int mr_image_sniff(const void *data, size_t bytes);

/* Read the header only. On MR_EFORMAT err names the missing piece; on MR_EUNSUPPORTED it names the coding
 * process. Any thread. */
static inline int mr_image_header_parse(const void *data, size_t bytes, mr_image_header *out, mr_error *err);

/* mr_image_header_parse() for a value of any picture type; the header of MR_TYPE_PIXELS follows from dim. Any
 * thread. */
static inline int mr_value_header(const mr_value *value, mr_image_header *out, mr_error *err);

/* ------------------------------------------------------------------------------ sources */

typedef enum mr_split { MR_SPLIT_AUTO = 0, MR_SPLIT_TRAIN = 1, MR_SPLIT_TEST = 2 } mr_split;

/* Folders of pictures. Classes are numbered from 0 in the byte order of their names, and samples follow in
 * the order of classes, within a class in the byte order of their file names. An empty folder is a class
 * without samples; a folder that holds only other files is not a class. With splits (FOLDER/train,
 * FOLDER/test or val) the classes of the train split count.
 *
 * A file is a picture if it has an extension of a kind that mr_image_sniff() detects (.jpg, .jpeg, .png,
 * ...), in upper or lower case. Other known extensions (.txt, .csv, .zip, ...) are skipped; any other file is
 * a picture if mr_image_sniff() detects a kind in its first bytes. Hidden files (.NAME) and folders that
 * operating systems create (__MACOSX, lost+found, ...) are skipped. Links are followed. */
typedef enum mr_class_rule {                       /* which folders are classes */
                             MR_CLASSES_FIRST = 0, /* the first level: FOLDER/CLASS/PICTURE */
                             MR_CLASSES_DEPTH = 1, /* every folder that holds pictures; the class name is its
                                                      path below FOLDER: "animals/cat" */
                             MR_CLASSES_NONE = 2,  /* no folder: all pictures below FOLDER, without labels */
} mr_class_rule;

/* Policy for file names in data that lead out of the data's folder: ../x, /x, or below a link that leads
 * out. */
typedef enum mr_outside {
    MR_OUTSIDE_REFUSE, /* MR_EINVAL; err names the line */
    MR_OUTSIDE_TAKE,
} mr_outside;

/* How to match the classes of this set with class_names and class_count. */
typedef enum mr_class_match {
    MR_MATCH_AUTO = 0,  /* by name, or by number; a name that is a whole number is that number */
    MR_MATCH_ORDER = 1, /* as AUTO; when neither is possible, class k of this set is class k of the expected
                           classes. Both sets must have the same number of classes and no name in common */
} mr_class_match;

/* Samples that mr_source_withdraw() listed as withdrawn. */
typedef enum mr_withdrawn {
    MR_WITHDRAWN_LEAVE_OUT = 0, /* the source does not have them */
    MR_WITHDRAWN_TAKE = 1, /* the source has all samples; mr_source_withdrawn_at() names the listed ones */
} mr_withdrawn;

typedef struct mr_source_config {
    size_t struct_size;
    const char *format;    /* "folder", "idx", "cifar", "mrec", ...; NULL: detected from the content */
    mr_split split;        /* AUTO: the train split when the data have splits, else all samples */
    uint64_t memory_bytes; /* limit of memory that the open source holds (names, labels, index); default 1
                              GiB. A larger index is read from disk; larger names or labels are MR_ELIMIT */
    const char *image_key; /* name of the feature, member, column or array with the picture; NULL: the
                              format's usual names */
    const char *label_key; /* name of the feature, member, column or array with the class; NULL: the format's
                              usual names */
    int64_t label_offset;  /* subtracted from every label; MR_LABEL_AUTO (default): 0, labels are the numbers
                              in the data. The command's --label-offset auto does more: training subtracts 1
                              if the smallest label of all its data is 1. A program that needs classes from 0
                              reads mr_source_labels_of() of all sets that it uses together, and opens them
                              again with the offset */
    const char *index_folder;       /* folder for the index when the data's folder is not writable; NULL:
                                       $XDG_CACHE_HOME/millrace */
    bool no_index_file;             /* build the index in every run, write no index file */
    const char *remote_folder;      /* http(s)://: folder for fetched bytes; NULL:
                                       $XDG_CACHE_HOME/millrace/remote */
    uint64_t remote_bytes;          /* size limit of remote_folder; default 16 GiB */
    const char *const *class_names; /* numbers classes by their position here; another class is MR_EFORMAT. An
                                       empty name is a number without samples. Copied. NULL: class_first
                                       applies */
    uint32_t class_count;           /* number of class_names; 0: classes keep the numbers in the data */
    const volatile int *stop; /* a value other than 0 soon ends mr_source_open() and mr_source_check() with
                                 MR_ECANCELED and, for http(s)://, every wait for a server while the source is
                                 open; NULL: no stop */
    mr_class_rule classes; /* for folders of pictures; other formats know their classes and report that they
                              ignore this */
    mr_outside outside;    /* for a table of paths (CSV); default REFUSE, so that the author of a table cannot
                              choose which files of this machine are read */
    /* Take a drawn share, take_from to take_to (0 to 1), of the samples: ranks round(take_from * count) to
     * round(take_to * count) - 1 of a random order, which depends on the number of samples alone. Taken
     * samples keep the order of the data and are renumbered from 0. The ranges 0 to 0.9 and 0.9 to 1 share no
     * sample and together have all. Default 0 and 1: all samples */
    double take_from, take_to;
    /* Name of an additional field of numbers. NumPy arrays: the array of this name (with splits NAME_train
     * and NAME_test, or train_NAME), one row per sample. Tables (CSV): the column of this name or number, or
     * a range of columns ("hat..glasses"), as f32. Held in memory. Such data need no classes. Formats whose
     * samples have fields of their own (record files, TFRecord, tar) ignore it. NULL: no such field */
    const char *target_key;
    /* With class_names NULL and class_count above 0 the expected classes are the numbers class_first to
     * class_first + class_count - 1. A set with another label or name is MR_EFORMAT */
    int64_t class_first;
    const char *classes_of; /* name of the data set that defines the expected classes, for messages; NULL:
                               messages name no set */
    mr_class_match match;   /* default AUTO */
    /* Tables (CSV): the column, by name or number, with the split of each row: train, val, test and similar
     * words. "NAME=VALUE": rows with this value are the test split, all others the train split. NULL: a
     * column called split, set, subset, is_train, ... if its values name splits; "none": no column. Other
     * formats ignore it */
    const char *split_key;
    mr_withdrawn withdrawn; /* default LEAVE_OUT */
} mr_source_config;

#define MR_LABEL_AUTO INT64_MIN

MR_STABLE_INLINE void mr_source_defaults(mr_source_config *cfg);

enum { MR_PART_TRAIN = 1, MR_PART_VALIDATION = 2, MR_PART_TEST = 4 };

/* "train", "validation", "test"; NULL for anything else. */
MR_API const char *mr_part_name(uint32_t part);

typedef struct mr_source_parts {
    uint32_t there; /* MR_PART_... named in the data, or'ed; 0: the data name no splits */
    uint32_t taken; /* the split that was opened; 0: all samples */
} mr_source_parts;

typedef struct mr_mix_set { /* one data set of a mix */
    const char *path;       /* as opened */
    uint64_t first, count;  /* its samples are [first, first + count); count is 1 or more */
    double share;           /* its share of the drawn samples; the shares of a mix add up to 1 */
} mr_mix_set;

typedef struct mr_source_info {
    const char *format;             /* "folder", "idx", "cifar10", "cifar100", "mrec", "shards", "mix", ... */
    const char *path;               /* as opened; for a folder of tables, the table */
    uint64_t count;                 /* samples */
    uint32_t class_count;           /* 0: classes are unknown */
    const char *const *class_names; /* class_count strings, or NULL */
    uint32_t field_count;
    const mr_field *fields;
    int image_field;                  /* index into fields, -1 when none */
    int label_field;                  /* index into fields, -1 when none */
    uint32_t height, width, channels; /* when every image has this size; else 0 */
    uint32_t file_count;              /* files shared by many samples; 0 when each sample is a file */
    uint64_t max_extent_bytes;        /* largest extent, exact */
    uint64_t total_bytes;             /* sum of all extents */
    bool has_test;                    /* the data also have a test split (MR_SPLIT_TEST) */
    uint64_t fingerprint;   /* hash of format, count, sizes, labels and names: identifies the data set */
    uint64_t memory_bytes;  /* memory that this source holds */
    uint64_t skipped_files; /* folder: ignored entries: hidden files, files that are not pictures, dangling
                               links, folders at a level that is not searched */
    int64_t label_offset;   /* subtracted from the labels found */
    const char *told; /* lines for the user, '\n' between them (index built, labels shifted, files left out
                         and why, ...), or NULL. Lines that begin with "index" or "the index" concern this run
                         (where an index is stored, or why it is not); the others concern the data */
    uint32_t length_field; /* the field of mr_source_length(): the field whose length differs or, when no
                              length differs, the first tensor of one dimension; MR_NO_FIELD: no such field */
    uint32_t length_most;  /* the largest length that mr_source_length() returns */
    bool only_test; /* no split was requested (MR_SPLIT_AUTO), and the data have a test or validation split
                       but no train split. Train on it only when the user asks for it */
    mr_source_parts parts;
    uint32_t mix_count;    /* data sets in this mix; 0: not a mix */
    const mr_mix_set *mix; /* mix_count elements, owned by the source */
} mr_source_info;

#define MR_NO_FIELD UINT32_MAX

#define MR_FILE_OF_SAMPLE UINT32_MAX

/* The position of a sample's bytes. */
typedef struct mr_extent {
    uint32_t file; /* shared file number, or MR_FILE_OF_SAMPLE: the file of mr_source_sample_path() */
    uint64_t offset;
    uint64_t bytes;
} mr_extent;

typedef struct mr_source_file {
    size_t struct_size;
    const char *path; /* for messages */
    int fd; /* open for reading, owned by the source; -1 when the source keeps only some files open: use
               mr_source_file_acquire(). A remote record file has holes for bytes that were not yet fetched:
               read its samples with mr_source_read() or a loader */
    uint64_t bytes;
    bool direct_ok; /* opening path again with O_DIRECT reaches the same bytes (false for unpacked .gz) */
} mr_source_file;

typedef struct mr_source mr_source;

/* Open any data set. Reads headers, indexes, folder listings and labels, never all samples.
 *
 * path  a file or a folder; its type is detected from the content, not from the name. Or the http:// or
 *       https:// address of a file, of one file of a numbered set, or of several files
 *       (NAME-{0000..0146}.tar). Record files are fetched while they are read, all other formats as a whole
 *       when they are opened. Fetched bytes are stored in cfg->remote_folder
 * MR_OK           *out is open; close with mr_source_close()
 * MR_ENOENT       path does not exist
 * MR_EFORMAT      path exists but is damaged; err names file, offset, expected, found
 * MR_EUNSUPPORTED no known format; err lists the known ones
 * other < 0       see base.h. *out is NULL on every error.
 * After open a source never changes: several threads may call the functions below at once. */
MR_STABLE int mr_source_open(mr_source **out, const char *path, const mr_source_config *cfg, mr_error *err);
/* Close a source after everything opened on it. Accepts NULL. */
MR_STABLE void mr_source_close(mr_source *src);

/* Facts about the source, owned by it. */
MR_STABLE const mr_source_info *mr_source_info_of(const mr_source *src);

typedef struct mr_source_labels { /* the numbers of the classes in the data */
    int64_t min, max; /* smallest and largest class, before label_offset is subtracted; for NumPy arrays and
                         IDX files over all splits. min > max: not known */
    int64_t start;    /* the number of the first class if the data declare it: a record file stores the
                         --label-offset with which it was written. MR_LABEL_AUTO: not declared */
    bool unsure;      /* a record file before version 1.3, without class names: 1 may have been subtracted */
} mr_source_labels;
/* The range of labels, owned by the source. */
MR_STABLE const mr_source_labels *mr_source_labels_of(const mr_source *src);

/* sample < count. Does no I/O for formats whose index is in memory; a huge .mrec may read one index page. */
MR_API int mr_source_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err);

/* Return the class or number of a sample without reading the sample. MR_EUNSUPPORTED when the source does not
 * know it. */
MR_API int mr_source_label(const mr_source *src, uint64_t sample, int64_t *out);

/* Return the number of elements in info.length_field of a sample without reading the sample. A set of
 * sequences and the record file that mr_convert() makes of it return the same lengths. A record file knows
 * lengths when a tensor of one dimension is the only value whose size differs between records, and is the
 * last field (or has elements of 8 bytes). Files converted before mr_convert() put tensors last do not know
 * lengths; convert them again. I/O as in mr_source_extent().
 * MR_EUNSUPPORTED  the source does not know: info.length_field is MR_NO_FIELD
 * MR_ECHECKSUM, MR_EFORMAT, MR_EIO  the page of the index could not be read */
MR_API int mr_source_length(const mr_source *src, uint64_t sample, uint32_t *out);

/* file < info.file_count. */
static inline int mr_source_file_at(const mr_source *src, uint32_t file, mr_source_file *out);

/* Borrow a descriptor that is open for reading until mr_source_file_release(). The source owns it: do not
 * close it. A source of very many files keeps a bounded number open (a share of RLIMIT_NOFILE, 4096 at most)
 * and opens others on demand. file < info.file_count. Any thread; may wait for the file system. MR_EIO with
 * ESTALE in err->sys_errno: the file is missing, damaged, not the file that the list names, or another file
 * than at open. This is an error of the set: mr_error_of_sample() returns false */
MR_API int mr_source_file_acquire(const mr_source *src, uint32_t file, int *fd, mr_error *err);
/* Return a descriptor of mr_source_file_acquire(). Any thread. */
MR_API void mr_source_file_release(const mr_source *src, uint32_t file);

/* Write the name of the file that holds the sample; buf is always terminated. Returns buf. */
MR_API char *mr_source_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes);

/* Write the sample's original name: its path below the data set's folder ("cat/1.jpg"), the picture's member
 * in a tar archive, "image/filename" in a TFRecord; record files store it. "" when it has no name. The name
 * is untrusted: check it before you build a path from it.
 *
 * data  the extent's bytes, damaged or not, as mr_source_read() left them; NULL: the function reads them when
 *       they contain the name
 * buf   always terminated; "" on failure
 *
 * MR_OK, also when the sample has no name; MR_ENOMEM; with data NULL also every error of reading. Any
 * thread. */
MR_API int mr_source_sample_name_get(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                                     char *buf, size_t buf_bytes, mr_error *err);
/* mr_source_sample_name_get() for messages: writes "" on failure. Returns buf. */
MR_API char *mr_source_sample_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                                   char *buf, size_t buf_bytes);

/* Parse a sample. data holds exactly the extent's bytes. Checks everything that the format can check
 * (checksums included) and fills out with pointers into data. A damaged sample gives MR_EFORMAT or
 * MR_ECHECKSUM with file, offset and sample set. */
MR_API int mr_source_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                           mr_sample *out, mr_error *err);

/* Read and parse one sample, in the caller's thread: for tools, not for pipelines. *buffer (malloc'd,
 * *buffer_bytes its size; NULL and 0 at first) grows as needed and holds the memory that *out points to; the
 * caller frees it. */
MR_STABLE int mr_source_read(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes,
                             mr_sample *out, mr_error *err);

/* Run the checks that concern no single sample and take too long at open, such as a checksum over all samples
 * of a large file. It does not compare a checksum of one sample that mr_source_parse() compares, as in record
 * files and TFRecords; mr_mrec_verify() does. Reads the file. MR_OK, also when the format has no such checks;
 * MR_ECHECKSUM or MR_EFORMAT with the file when it is damaged. Any thread. */
MR_API int mr_source_check(const mr_source *src, mr_error *err);

/* Return true when every sample has a checksum that mr_source_parse() or mr_source_check() compares (in a
 * mix: in all its sets). Without a checksum, a changed byte that still decodes is not detected. May read
 * headers and ends of the files. Any thread. */
MR_API bool mr_source_has_checksums(const mr_source *src);

/* Missing numbers between the numbers of the set's files (part-000.tar, part-002.tar: 1). 0 if the files have
 * no numbers, no number is missing, or src is NULL. Any thread. */
MR_API uint32_t mr_source_missing_files(const mr_source *src);

/* Keep only `count` samples of an open source. samples holds their numbers in rising order and is copied.
 * Sample k of the changed source is sample samples[k] of the original; the fingerprint changes. Call it
 * before anything else uses the source. MR_EINVAL: count is 0, a number is not below the source's count, the
 * numbers do not rise, or a set of a mix would keep no sample. MR_ENOMEM. After an error the source is
 * unchanged. */
MR_API int mr_source_choose(mr_source *src, const uint64_t *samples, uint64_t count, mr_error *err);

/* Return the number of a sample in the data, counted over all samples: also over withdrawn samples, and over
 * samples that take_from, take_to or mr_source_choose() left out. In a mix: over the samples that its sets
 * deliver. It stays the same when other samples are withdrawn. UINT64_MAX: there is no such sample. Any
 * thread. */
MR_API uint64_t mr_source_number(const mr_source *src, uint64_t sample);

/* Withdraw samples of an open source: list them, with a reason, in the file ".millrace.withdrawn" of the
 * folder in which their file lies. Sources that are opened later do not have them, and their other samples
 * are numbered from 0 without gaps. The data files stay unchanged. The list identifies a sample by file,
 * offset, size and a hash of its bytes; opening fails (MR_EFORMAT) when the file of a listed sample was
 * changed so that the sample is another one, until mr_source_restore() takes the entry back.
 *
 * src      opened with MR_WITHDRAWN_TAKE; not a mix, not remote, not a source of the program's own
 *          (MR_EUNSUPPORTED). It stays as it is
 * samples  numbers of samples in rising order; samples that are listed already keep their reason
 * reason   text, or NULL
 * changed  written on MR_OK only: samples that were not listed before
 *
 * Reads the samples. Each list is written to a temporary file, synced and renamed; the lists of several
 * folders one after the other, so an interrupted call is to be repeated. Blocks. MR_EEXIST: another process
 * writes the list. MR_EINVAL: a number is wrong, no sample would be left, or two samples have the same bytes
 * in the same file. Any thread. */
MR_API int mr_source_withdraw(const mr_source *src, const uint64_t *samples, uint64_t count,
                              const char *reason, uint64_t *changed, mr_error *err);
/* The reverse, by the same rules. samples NULL: all samples of src, entries whose file changed or is missing
 * included; count is then ignored. */
MR_API int mr_source_restore(const mr_source *src, const uint64_t *samples, uint64_t count, uint64_t *changed,
                             mr_error *err);

/* Samples of the data that are listed as withdrawn; of a mix: in all its sets. 0 if src is NULL. Any thread.
 */
MR_API uint64_t mr_source_withdrawn_count(const mr_source *src);

typedef struct mr_withdrawn_sample {
    size_t struct_size;
    uint64_t number;                  /* of mr_source_number() */
    const char *name, *reason, *list; /* of the sample when it was withdrawn, or ""; path of the list. Owned
                                         by the source */
} mr_withdrawn_sample;

/* Entry `at` of mr_source_withdrawn_count(), in the order of their numbers. MR_EINVAL: there is no such
 * entry, or src is a mix. Any thread. */
static inline int mr_source_withdrawn_at(const mr_source *src, uint64_t at, mr_withdrawn_sample *out);

/* Renumber and rename the classes of an open source. to holds the new number, below count, for each of its
 * class_count classes; UINT32_MAX makes every sample of the class a damaged one. Several classes may share a
 * new number. names holds count names and is copied. The fingerprint changes with numbers and names. Call it
 * before anything else uses the source. MR_EINVAL: the source has no classes or labels, or a number or name
 * is invalid. MR_ENOMEM. After an error the source is unchanged. */
MR_API int mr_source_name_classes(mr_source *src, const uint32_t *to, const char *const *names,
                                  uint32_t count, mr_error *err);

/* A source of the program's own: a function of the program makes samples on demand, in place of a data set on
 * disk. The threads that read call it each time they need a sample. In a loader the decode threads do,
 * several at a time, in the order of the run. */
typedef struct mr_own_sample mr_own_sample;

/* Make a sample: call mr_own_sample_give() once, in this call, and return its status; or fail with a negative
 * code and fill err. MR_EFORMAT and every other error for which mr_error_of_sample() returns true mark this
 * sample as damaged; all other errors end the run.
 *
 * sample  its number, below count
 *
 * Each call for the same number must make the same sample: otherwise batches depend on threads, and a resumed
 * run has other data.
 *
 * Threads: a loader's workers, several at a time and in any order; with prefetch 0 the caller of
 * mr_loader_next(); workers of mr_convert(), in order of the samples; the caller of mr_loader_open(), which
 * may read the first samples; the caller of mr_source_read(). No lock is held.
 *
 * It may take long; the reading thread waits. In a loader with prefetch and without free_order it may wait
 * until the batches before the sample's batch are delivered. mr_loader_stop() never waits for it;
 * mr_loader_close() and mr_convert() return after it has returned. */
typedef int mr_own_fetch(void *context, uint64_t sample, mr_own_sample *to, mr_error *err);

/* Deliver the values of a sample: one per field, as for mr_writer_append(); copied before this returns.
 * MR_EFORMAT: the values do not fit the schema. MR_ELIMIT: more than sample_bytes_most. MR_EINVAL: a second
 * call. For a sample that was begun (mr_own_begin) an error becomes the sample's error, and `to` is invalid
 * afterwards in any case. */
MR_STABLE int mr_own_sample_give(mr_own_sample *to, const mr_value *values, mr_error *err);

/* Begin to make a sample and return at once, for sources that wait for a network or a data base. The program
 * delivers the sample later with exactly one call of mr_own_sample_give() or mr_own_sample_fail(), from any
 * thread, also before this returns. A loader begins up to `depth` samples per reader and decodes each one as
 * it arrives, so one slow sample does not delay the others; mr_convert() and mr_source_read() wait for one
 * sample at a time in each thread.
 *
 * Returns MR_OK, or a status as mr_own_fetch does: then the sample has failed, and the program must not use
 * `to`.
 *
 * Threads: a loader's reader (its other samples wait during the call); else as mr_own_fetch.
 * mr_loader_close() waits for the samples that were begun; mr_loader_stop() does not. */
typedef int mr_own_begin(void *context, uint64_t sample, mr_own_sample *to, mr_error *err);

/* Fail a sample that was begun: status and why as mr_own_fetch returns them; why may be NULL. `to` is invalid
 * afterwards. */
MR_STABLE void mr_own_sample_fail(mr_own_sample *to, int status, const mr_error *why);

typedef struct mr_own_config {
    size_t struct_size;
    const char *name; /* for messages, in place of a path; copied; default "samples of the program" */
    uint64_t count;   /* samples */
    uint32_t field_count;
    const mr_field *fields;         /* copied; a loader takes "image" and "label" */
    uint32_t class_count;           /* 0: classes are unknown; else labels are below class_count */
    const char *const *class_names; /* copied; NULL: names are the numbers 0, 1, ... */
    /* Identity of the data: other data must have another number. A resumed run and a cache on disk compare
     * it, with count, fields and classes */
    uint64_t fingerprint;
    /* A sample whose values and about 100 bytes more exceed this is MR_ELIMIT. Each worker of a loader may
     * hold this much memory. Default 16 MiB */
    uint64_t sample_bytes_most;
    mr_own_fetch *fetch;
    void *context;
    mr_own_begin *begin; /* in place of fetch; used when both are set. Default NULL */
} mr_own_config;

MR_STABLE_INLINE void mr_own_defaults(mr_own_config *cfg);

/* Create a source of the program's own. Close it with mr_source_close(); no callback runs afterwards.
 * Loaders, mr_source_read() and mr_convert() accept it like any other source. It has no files, each extent
 * has sample_bytes_most bytes, and labels are known only after reading. MR_EINVAL: fetch and begin are both
 * NULL, or the fields or classes are invalid. MR_ENOMEM. *out is NULL on every error. */
MR_STABLE int mr_source_create(mr_source **out, const mr_own_config *cfg, mr_error *err);

/* Names and one-line descriptions of the formats that mr_source_open() reads, for --help. at < count. */
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
    const char *provenance; /* text, by convention JSON; copied; NULL: "". Put no times into it, so that the
                               same input makes the same file */
    uint32_t record_align; /* power of two 8..4096; 0: 4096 when the first record is 32 KiB or more, else 8 */
    bool force;            /* replace an existing output */
    bool resume;           /* continue after the last whole record of an interrupted run, if there is one */
    const mr_source *input; /* refuse to write over a file of this source; NULL: no check */
    bool verify;            /* read the whole file back before it gets its name (mr_mrec_verify()) */
    int64_t label_start;    /* declared number of the first class, stored for readers; labels are written
                               unchanged. Default 0: not declared */
} mr_writer_config;

MR_STABLE_INLINE void mr_writer_defaults(mr_writer_config *cfg);

typedef struct mr_writer mr_writer;

/* Start a record file. Bytes go to a temporary file (PATH.part), which mr_writer_finish() renames. The rules
 * of mr_output_open() hold for both: no link is followed, only regular files are replaced. With resume,
 * *resume_source (may be NULL) is the source index of the next record: one past the last complete record in
 * the temporary file, or 0. MR_EEXIST when path exists and force is not set. */
MR_STABLE int mr_writer_open(mr_writer **out, const char *path, const mr_writer_config *cfg,
                             uint64_t *resume_source, mr_error *err);

/* Append one record. source_index is its number in the converted source, strictly rising (bad samples leave
 * gaps). MR_EINVAL when values[field_count] do not fit the schema. One thread at a time. */
MR_STABLE int mr_writer_append(mr_writer *w, uint64_t source_index, const mr_value *values, mr_error *err);

/* Records so far, including the records found on resume, and bytes written. */
MR_API uint64_t mr_writer_count(const mr_writer *w);
MR_API uint64_t mr_writer_bytes(const mr_writer *w);

/* Write index and header, sync, read back when `verify` is set, rename, sync the folder. The writer is freed
 * in every case; on failure the temporary file stays for resume. */
MR_STABLE int mr_writer_finish(mr_writer *w, mr_error *err);

/* Give up. keep true leaves the temporary file, false removes it. Accepts NULL. */
MR_STABLE void mr_writer_abort(mr_writer *w, bool keep);

/* Return the bytes on disk of a record with these values at the writer's alignment, for sharding by size. */
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
    int64_t label_start; /* declared number of the first class, or 0 */
} mr_mrec_info;

/* Open one .mrec file and check header, schema and index. index_memory_bytes: a larger index is read page by
 * page instead of being held in memory. */
MR_API int mr_mrec_open(mr_mrec **out, const char *path, uint64_t index_memory_bytes, mr_error *err);
/* Accepts NULL. */
MR_API void mr_mrec_close(mr_mrec *m);
/* Facts about the file, owned by m. */
MR_API const mr_mrec_info *mr_mrec_info_of(const mr_mrec *m);
/* Descriptor for reading, owned by m: do not close it. */
MR_API int mr_mrec_fd(const mr_mrec *m);
/* Any thread. */
MR_API int mr_mrec_extent(const mr_mrec *m, uint64_t record, uint64_t *offset, uint64_t *bytes,
                          mr_error *err);
/* Check header and CRC of a record's bytes and split it into values. source_index may be NULL. Any thread. */
MR_API int mr_mrec_parse(const mr_mrec *m, uint64_t record, const void *data, size_t bytes, mr_sample *out,
                         uint64_t *source_index, mr_error *err);

/* Called for each defect by the thread that called the check; return false to stop. */
typedef bool mr_verify_report(void *context, const mr_error *what);

typedef struct mr_verify_result {
    size_t struct_size;
    uint64_t records; /* checked */
    uint64_t bytes;   /* read: the whole file */
    uint64_t wrong;   /* defects reported */
} mr_verify_result;

/* Read every byte of a record file and check it. path is one .mrec file, not a shard list (MR_EFORMAT):
 * mr_source_verify() checks all files of a set. Checked are header, schema, index, every record, every
 * padding byte, nothing after the end. MR_OK when the file is correct, MR_ECHECKSUM or MR_EFORMAT when it is
 * not (report has received the defects), other < 0 when the check itself failed. report may be NULL. Does not
 * decode images; use mr_image_decode() of image.h. */
static inline int mr_mrec_verify(const char *path, mr_verify_report *report, void *context,
                                 mr_verify_result *out, mr_error *err);

/* mr_mrec_verify() that returns MR_ECANCELED soon after *stop becomes nonzero. stop may be NULL. */
static inline int mr_mrec_verify_until(const char *path, const volatile int *stop, mr_verify_report *report,
                                       void *context, mr_verify_result *out, mr_error *err);

/* Check a whole data set, in the caller's thread, without decoding pictures. Of record files every file that
 * the source's list names is compared with its line, and then checked byte by byte, as by mr_mrec_verify().
 * Of other formats, and of record files on a server, every sample is read and parsed, and mr_source_check()
 * runs. Missing numbers between the files are a defect (mr_source_missing_files()), and so is a label that is
 * no number of a class. To decode pictures, too, call mr_checker_run() (image.h) for each sample.
 *
 * src     any source; samples that it leaves out are not parsed, the bytes of record files all checked
 * stop    NULL, or: MR_ECANCELED soon after *stop becomes nonzero
 * report  gets every defect, with file, offset and sample where they are known; NULL: none
 * out     may be NULL. records: samples checked; bytes: read from samples and record files
 *
 * MR_OK                     no defect
 * MR_ECHECKSUM, MR_EFORMAT  defects; err has the first one
 * other < 0                 the check itself failed; defects before that were reported */
static inline int mr_source_verify(const mr_source *src, const volatile int *stop, mr_verify_report *report,
                                   void *context, mr_verify_result *out, mr_error *err);
/* The part of mr_source_verify() that reads no single sample: numbers of files, and record files byte by
 * byte. For programs that read and decode every sample themselves. */
static inline int mr_source_verify_files(const mr_source *src, const volatile int *stop,
                                         mr_verify_report *report, void *context, mr_verify_result *out,
                                         mr_error *err);

/* Write a shard list: a text file that names .mrec files in order, with the facts that opening needs, so that
 * a set of any number of files opens without reading each one. This function reads every file's header: the
 * files must be complete and have the same fields and classes, and file k must have counts[k] records. The
 * list is written to a temporary file, synced and renamed. Paths are stored relative to the list's folder
 * when they lie below it. A file that is rewritten later is refused on reading until the list is written
 * again.
 *
 * MR_EFORMAT  a file has another number of records, other fields or other classes; err names it
 * MR_EEXIST   list_path exists, and force is false
 * MR_EINVAL   path_count is 0, or a path contains a line end
 * other < 0   a file could not be opened (mr_mrec_open()), or the list could not be written */
MR_API int mr_shards_write(const char *list_path, const char *const *paths, const uint64_t *counts,
                           uint32_t path_count, bool force, mr_error *err);

/* ------------------------------------------------------------------------------ files to write */

/* Write files as this library writes its own: to a temporary file (PATH.part) until it is complete, then sync
 * and rename. No link is followed, only regular files are replaced, inputs are never replaced, and the
 * temporary file is locked, so two programs never write one path. The temporary file has the sticky bit until
 * it is renamed. A nonempty PATH.part without this bit belongs to no earlier run and is overwritten only with
 * force. With resume the caller checks its content. */
typedef struct mr_output_config {
    size_t struct_size;
    const mr_source *const *inputs; /* refuse to write over a file of these sources; elements may be NULL.
                                       They must outlive the output */
    uint32_t input_count;
    bool force;    /* replace an existing file */
    bool resume;   /* keep the content of the temporary file (of a log: the file) of an earlier run */
    bool unsynced; /* do not sync: mr_output_sync_all() syncs many small files together at the end */
    bool log; /* write PATH itself, line by line; it is never removed, and without resume it must not exist */
} mr_output_config;

static inline void mr_output_defaults(mr_output_config *cfg);

typedef struct mr_output mr_output;

/* Check whether mr_output_open() and mr_output_commit() would succeed now. Creates nothing.
 * MR_EINVAL  path is a folder, link, device, pipe, socket, an input, or a file with several hard links
 * MR_EEXIST  force is not set and path exists or PATH.part has another origin; or another program writes it,
 *            or it belongs to another user */
MR_API int mr_output_check(const char *path, const mr_output_config *cfg, mr_error *err);
/* Create the temporary file (or the log) and lock it. Errors as for mr_output_check(); MR_EIO. */
MR_API int mr_output_open(mr_output **out, const char *path, const mr_output_config *cfg, mr_error *err);
MR_API int mr_output_fd(const mr_output *o); /* for reading and writing; owned by the output */
/* Append all bytes, or fail. */
MR_API int mr_output_write(mr_output *o, const void *data, size_t bytes, mr_error *err);
/* Sync, rename, sync the folder. The output is freed in every case; on failure the temporary file is
 * removed. */
MR_API int mr_output_commit(mr_output *o, mr_error *err);
/* Give up. keep true leaves the temporary file, false removes it. Accepts NULL. */
MR_API void mr_output_abandon(mr_output *o, bool keep);
/* Write a whole file: open, write, commit. Errors as for these; nothing of the file is left then. cfg NULL:
 * the defaults; its log and resume are not used. data may be NULL for 0 bytes. */
MR_API int mr_output_whole(const char *path, const void *data, size_t bytes, const mr_output_config *cfg,
                           mr_error *err);
/* Write everything on this folder's file system to disk. */
MR_API int mr_output_sync_all(const char *folder, mr_error *err);
/* Check before the first byte that the file system of path, which need not exist, has room for `bytes`.
 * MR_EIO with sys_errno ENOSPC: it has less, and err has both numbers. MR_OK also when the system does not
 * know. free_bytes: NULL, or written; UINT64_MAX: unknown. */
MR_API int mr_output_check_space(const char *path, uint64_t bytes, uint64_t *free_bytes, mr_error *err);
/* The same for an estimate: MR_EIO only if the file system has less than least_bytes, which are surely
 * needed; err then names likely_bytes. Compare *free_bytes with likely_bytes to warn. */
MR_API int mr_output_check_estimate(const char *path, uint64_t likely_bytes, uint64_t least_bytes,
                                    uint64_t *free_bytes, mr_error *err);
/* The bytes that will be written of a sample; 0: none. */
typedef uint64_t mr_sample_bytes(void *context, uint64_t sample);
/* Estimate the bytes of `count` samples from up to 24 of them, evenly spaced: their mean, and for
 * *least_bytes the mean less three standard errors (the mean if all were asked). bytes_of is called in the
 * calling thread. MR_EINVAL  bytes_of, likely_bytes or least_bytes is NULL */
MR_API int mr_output_estimate(uint64_t count, mr_sample_bytes *bytes_of, void *context,
                              uint64_t *likely_bytes, uint64_t *least_bytes, mr_error *err);
/* Remove a file that force could replace. MR_OK when path does not exist. */
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
    bool first;   /* the file's first event, which identifies its format; no scalars */
    bool restart; /* a run resumes here: entries of earlier files at this step and later are obsolete; no
                     scalars */
    const mr_scalar *scalars;
    uint32_t count; /* up to MR_SCALARS_MOST */
} mr_scalar_event;

/* Write the record to out[room]. Returns its size in bytes; when this exceeds room, nothing was written. 0:
 * the event is invalid (a longer tag, too many scalars). */
static inline size_t mr_scalar_event_record(const mr_scalar_event *event, void *out, size_t room);

/* CRC32C (Castagnoli), chained: start with 0. */
MR_API uint32_t mr_crc32c(uint32_t crc, const void *data, size_t bytes);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API int mr_image_header_parse_sized(const void *data, size_t bytes, mr_image_header *out, mr_error *err);
static inline int mr_image_header_parse(const void *data, size_t bytes, mr_image_header *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_image_header_parse_sized(data, bytes, out, err);
}

MR_API int mr_value_header_sized(const mr_value *value, mr_image_header *out, mr_error *err);
static inline int mr_value_header(const mr_value *value, mr_image_header *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_value_header_sized(value, out, err);
}

MR_STABLE void mr_source_defaults_sized(mr_source_config *cfg, size_t struct_size);
static inline void mr_source_defaults(mr_source_config *cfg) { mr_source_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_source_file_at_sized(const mr_source *src, uint32_t file, mr_source_file *out);
static inline int mr_source_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_source_file_at_sized(src, file, out);
}

MR_API int mr_source_withdrawn_at_sized(const mr_source *src, uint64_t at, mr_withdrawn_sample *out);
static inline int mr_source_withdrawn_at(const mr_source *src, uint64_t at, mr_withdrawn_sample *out)
{
    if (out) out->struct_size = sizeof *out;
    return mr_source_withdrawn_at_sized(src, at, out);
}

MR_STABLE void mr_own_defaults_sized(mr_own_config *cfg, size_t struct_size);
static inline void mr_own_defaults(mr_own_config *cfg) { mr_own_defaults_sized(cfg, sizeof *cfg); }

MR_STABLE void mr_writer_defaults_sized(mr_writer_config *cfg, size_t struct_size);
static inline void mr_writer_defaults(mr_writer_config *cfg) { mr_writer_defaults_sized(cfg, sizeof *cfg); }

MR_API int mr_mrec_verify_sized(const char *path, mr_verify_report *report, void *context,
                                mr_verify_result *out, mr_error *err);
static inline int mr_mrec_verify(const char *path, mr_verify_report *report, void *context,
                                 mr_verify_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_mrec_verify_sized(path, report, context, out, err);
}

MR_API int mr_mrec_verify_until_sized(const char *path, const volatile int *stop, mr_verify_report *report,
                                      void *context, mr_verify_result *out, mr_error *err);
static inline int mr_mrec_verify_until(const char *path, const volatile int *stop, mr_verify_report *report,
                                       void *context, mr_verify_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_mrec_verify_until_sized(path, stop, report, context, out, err);
}

MR_API int mr_source_verify_sized(const mr_source *src, const volatile int *stop, mr_verify_report *report,
                                  void *context, mr_verify_result *out, mr_error *err);
static inline int mr_source_verify(const mr_source *src, const volatile int *stop, mr_verify_report *report,
                                   void *context, mr_verify_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_source_verify_sized(src, stop, report, context, out, err);
}

MR_API int mr_source_verify_files_sized(const mr_source *src, const volatile int *stop,
                                        mr_verify_report *report, void *context, mr_verify_result *out,
                                        mr_error *err);
static inline int mr_source_verify_files(const mr_source *src, const volatile int *stop,
                                         mr_verify_report *report, void *context, mr_verify_result *out,
                                         mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_source_verify_files_sized(src, stop, report, context, out, err);
}

MR_API void mr_output_defaults_sized(mr_output_config *cfg, size_t struct_size);
static inline void mr_output_defaults(mr_output_config *cfg) { mr_output_defaults_sized(cfg, sizeof *cfg); }

MR_API size_t mr_scalar_event_record_sized(const mr_scalar_event *event, void *out, size_t room);
static inline size_t mr_scalar_event_record(const mr_scalar_event *event, void *out, size_t room)
{
    mr_scalar_event sized;
    if (!event) return 0;
    sized = *event;
    sized.struct_size = sizeof sized;
    return mr_scalar_event_record_sized(&sized, out, room);
}

#ifdef __cplusplus
}
#endif
#endif
