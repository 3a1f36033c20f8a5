/* formats/source/source.h: how a format becomes a source. Private.
 *
 * Takes a table of functions from each format (mri_source_ops) and gives the calls of an open source that are
 * the same for all of them (mr_source_extent(), mr_source_parse(), ...). Knows no format: the table of
 * formats is formats/open.c. Callers: every format, open.c, and whatever reads a data set.
 *
 * A new format is one source_NAME.c and its name in that table. */
#ifndef MRI_SOURCE_H
#define MRI_SOURCE_H

#include "formats/remote/remote_view.h"
#include "formats/source/parts.h"

enum { MRI_PROBE_BYTES = 4096 };

typedef struct mri_probe { /* the data from which a format may detect its files */
    const char *path;
    bool is_folder;
    bool is_pattern;     /* no such file or folder, but it could be a pattern (filelist.h); no bytes then */
    uint64_t bytes;      /* of the file */
    const uint8_t *head; /* its first bytes */
    size_t head_bytes;
    const uint8_t *inner; /* gzip, zlib: the first unpacked bytes; else the same as head */
    size_t inner_bytes;
    mr_error *trouble; /* MR_OK in it at first. An error of the system during a probe: opening
                          ends with it, since the unread bytes decide the kind of the data */
} mri_probe;

/* For probes: was it the system that failed (rc, what), not what lies there? Then trouble has it. trouble may
 * be NULL. */
bool mri_probe_failed(mr_error *trouble, int rc, const mr_error *what);

typedef struct mri_making { /* a sample that is made while others are */
    void *buffer;           /* its bytes, grown as needed; whoever begins it frees it */
    size_t buffer_bytes;
    uint64_t bytes; /* of them that belong to the sample */
    int rc;         /* MR_OK, or a failure: error */
    mr_error error;
    void (*done)(struct mri_making *m);
    void *owner; /* of done */
} mri_making;

typedef struct mri_source_ops {
    const char *name, *help;
    bool no_keys;     /* image_key and label_key do not apply: giving one is an error */
    bool class_rules; /* cfg->classes applies; for other formats a line says that it does not */
    bool split_keys;  /* the same for cfg->split_key */
    bool target_keys; /* the same for cfg->target_key, unless it is a field that the data have */
    /* Detect the format from the content. Formats are asked in the table's order, the surest signatures
     * first. */
    bool (*probe)(const mri_probe *p);
    /* Fill src->info but for path, and src->state. On failure close is called: leave state such that it
     * can. */
    int (*open)(mr_source *src, const mr_source_config *cfg, mr_error *err);
    void (*close)(mr_source *src);
    /* sample and file are checked before these are called; samples are numbered as open() left them, where
     * only some are taken, too */
    int (*extent)(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err);
    int (*label)(const mr_source *src, uint64_t sample, int64_t *out); /* NULL: not known without reading */
    bool (*labels_near)(const mr_source *src); /* label() reads no file; NULL: it never does */
    /* asked where open set info.length_field and its shape is not fixed; may be NULL elsewhere */
    int (*length)(const mr_source *src, uint64_t sample, uint32_t *out);
    /* NULL: each sample is a file */
    /* with fetch and without shared files: the file that the samples are unpacked from, as file 0 */
    int (*file_at)(const mr_source *src, uint32_t file, mr_source_file *out);
    /* If not all files are kept open, file_at() gives fd -1 and these a descriptor for a
     * while; must false: MR_EAGAIN when the limit of open files is reached. NULL: all are open. */
    int (*file_acquire)(const mr_source *src, uint32_t file, bool must, int *fd, mr_error *err);
    void (*file_release)(const mr_source *src, uint32_t file);
    int (*check)(const mr_source *src, mr_error *err); /* mr_source_check(); NULL: the samples' own bytes show
                                                          everything */
    /* mr_source_has_checksums(); NULL: by the format. */
    bool (*has_sums)(const mr_source *src);
    void (*sample_path)(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes);
    int (*parse)(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                 mr_error *err);
    mri_remote_file *(*remote_at)(const mr_source *src, uint32_t file); /* NULL, or gives NULL: all of it is
                                                                           here */
    /* The same for bytes that passed parse() before and stayed in memory; NULL: nothing is saved by knowing
     * that */
    int (*parse_trusted)(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                         mr_sample *out, mr_error *err);
    /* The original name of a sample (sample_name.h), from its bytes, which may be damaged: buf,
     * "" at first, stays so if the bytes have no name. An error comes from the system, never from the bytes.
     * NULL: from sample_path where each sample is a file, else none */
    int (*sample_name)(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                       size_t buf_bytes, mr_error *err);
    /* Samples do not lie in files: the bytes of one are made, into *buffer, grown as needed. extent() then
     * says the most there can be. NULL: they lie where extent() says */
    int (*fetch)(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes, uint64_t *bytes,
                 mr_error *err);
    /* The same without waiting: m->done is called once, from any thread, maybe before this returns. Only with
     * fetch. NULL: fetch waits */
    void (*begin)(const mr_source *src, uint64_t sample, mri_making *m);
} mri_source_ops;

typedef struct mri_choice { /* choice.h; all zero: all samples, as the format numbers them */
    uint64_t *number;
    uint64_t *gone; /* number NULL: the samples that are left out, ascending */
    uint64_t gone_count;
} mri_choice;

typedef struct mri_classes { /* classes.h; all zero: classes are numbered as the format found them */
    int64_t subtract;        /* from each label, before all else */
    uint32_t *number;        /* of each class the format found; NULL: the same */
    uint32_t format_class_count;
    uint32_t limit;     /* without number: labels are below it; 0: any */
    const char **names; /* what info.class_names is then */
} mri_classes;

struct mr_source {
    const mri_source_ops *ops;
    uint32_t process; /* that opened it (base/handle.h) */
    char *path;
    mr_source_info info;
    mr_source_labels labels;
    mr_field fields[5]; /* for formats with a schema of their own; info.fields points here or elsewhere */
    mri_classes classes;
    mri_choice choice;
    struct { /* columns.h; count 0: not known */
        const char **names;
        uint32_t count, field;
    } columns;
    struct { /* files that were read besides those of the samples: labels, lists */
        char **path;
        uint32_t count;
    } beside;
    struct mri_withdrawn *withdrawn; /* withdrawn.h; NULL: no list */
    uint64_t format_count;           /* samples of the data; info.count of them are taken */
    void *state;
    char *report;               /* the lines of mri_source_tell(); info.told ends with them */
    const volatile int *stop;   /* the caller's, or NULL */
    mri_remote_view *view;      /* of a URL: what fetches, and the names its files have here. Closed after the
                                   format; else NULL */
    mr_mix_set *mix;            /* what info.mix is; freed behind close(), which frees its paths; else NULL */
    uint64_t withdrawn_count;   /* listed; of a mix: in all its sets */
    bool takes_withdrawn;       /* opened with MR_WITHDRAWN_TAKE */
    bool no_links;              /* of samples that are files of their own none is a link */
    bool some_files_of_samples; /* beside shared files: some samples are files of their own, too */
    /* mr_source_open() for a data set that this one names, set while a data set is opened that is named by
     * the caller; NULL in one that another names. open.c stands above all formats */
    int (*open_member)(mr_source **out, const char *path, const mr_source_config *cfg, mr_error *err);
    uint32_t missing_files; /* mr_source_missing_files() */
    bool holds_none; /* open() failed because the folder holds no samples by the format's rules: its content
                        may be meant */
};

/* Open src, whose ops and path are set; the format is known. On failure mr_source_close() is still to be
 * called. */
int mri_source_begin(mr_source *src, const mr_source_config *cfg, mr_error *err);
/* For a format that looks into a second data set of its kind: a local path, opened with these ops. */
int mri_source_open_as(mr_source **out, const mri_source_ops *ops, const char *path,
                       const mr_source_config *cfg, mr_error *err);

/* Add a line for the user about this data set (info.told): data that were not taken, or were taken otherwise
 * than its name suggests, and why. For open(): any text, shown as mr_text_shown() has it. */
MR_PRINTF(2, 3) void mri_source_tell(mr_source *src, const char *format, ...);
/* After open(): the lines become the end of info.told. Once. */
void mri_source_tell_all(mr_source *src);

/* For open(): a file that holds labels, targets or names of the samples, and none of them. Once each. */
int mri_source_add_beside(mr_source *src, const char *path, mr_error *err);

/* info.parts. taken: MRI_NO_PART where all are taken together. */
void mri_source_set_parts(mr_source *src, const bool there[MRI_PART_COUNT], mri_part taken);

/* MR_ENOENT: the data at src->path has no such part. */
int mri_source_no_part(const mr_source *src, mri_part part, mr_error *err);

/* For mri_output_rules.input, with the source (or NULL) as context: the name of the input of the source that
 * the file is, or NULL. A source whose samples are files of their own looks at all of them. */
struct stat;
const char *mri_source_input(const void *src, const struct stat *st);

/* Time of change, size and inode of the file that holds the sample, as one number; 0: not known (a server's
 * file, one that is missing). A file that is rewritten with other bytes has another one. Any thread. */
uint64_t mri_source_stamp(const mr_source *src, uint64_t sample);

/* "image" and "label" as fields 0 and 1 of a source. */
void mri_source_set_image_label(mr_source *src, mr_field image);

/* MR_EINVAL: a setting is out of its range (settings/data.rows). */
int mri_source_settings_check(const mr_source_config *cfg, mr_error *err);
/* MR_ELIMIT when the data that a source must keep exceed cfg->memory_bytes. */
int mri_source_budget(const mr_source_config *cfg, uint64_t bytes, const char *path, mr_error *err);

/* mr_source_file_acquire(); must false: MR_EAGAIN when as many files as may be are in use. */
int mri_source_file_acquire(const mr_source *src, uint32_t file, bool must, int *fd, mr_error *err);

/* The shared file when its blocks are fetched on demand; NULL when it is local. */
mri_remote_file *mri_source_remote_at(const mr_source *src, uint32_t file);
/* Is any of them? */
bool mri_source_is_remote(const mr_source *src);

/* Are its samples made when they are read? Then there is nothing to read in front of that. */
static inline bool mri_source_is_made(const mr_source *src) { return src->ops->fetch != NULL; }

/* Of samples that are made, the file that they are unpacked from (a zip archive of deflated members). false:
 * they come from no file. */
bool mri_source_made_from(const mr_source *src, mr_source_file *out);

/* Can one thread begin several of them at a time? Then mri_source_begin_sample() begins one. */
static inline bool mri_source_is_begun(const mr_source *src) { return src->ops->begin != NULL; }
void mri_source_begin_sample(const mr_source *src, uint64_t sample, mri_making *m);

/* mr_source_read() that stops waiting for a server once *until is true (read atomically). */
int mri_source_read_until(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes,
                          mr_sample *out, const bool *until, mr_error *err);

/* Are some of its samples files of their own? Where info.file_count is 0, all are. */
static inline bool mri_source_has_sample_files(const mr_source *src)
{
    return src->info.file_count == 0 || src->some_files_of_samples;
}

/* Its bytes alone: *out says how many of *buffer they are. */
int mri_source_read_bytes(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes,
                          mr_extent *out, const bool *until, mr_error *err);

/* mr_source_parse() without computing checksums: for bytes that passed it before and have stayed in memory
 * since. Sizes and offsets are checked nevertheless. */
int mri_source_parse_trusted(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                             mr_sample *out, mr_error *err);

/* Add the place of a bad sample to err unless it has one: file, sample number, and in a shared file the
 * offset and the sample's name. */
void mri_source_place(const mr_source *src, uint64_t sample, mr_error *err);

#endif
