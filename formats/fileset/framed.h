/* formats/fileset/framed.h: data sets made of framed samples in a list of files (TFRecord, tar, RecordIO):
 * open files, unpacked where they are packed, and the index: for each sample its file, offset, bytes and
 * label. Private.
 *
 * Building the index takes one pass over all data, so it is built once and kept: .NAME.mridx in the first
 * file's folder, or, when that folder cannot be written, in cfg->index_folder or $XDG_CACHE_HOME/millrace. It
 * is used as long as format, settings, and the name, size and both times (of modification, of change) of
 * every file are unchanged, and rebuilt otherwise; a damaged index, or one that somebody else could have
 * written, is not an error and not used. It is written to a part file and renamed. A packed file is unpacked
 * once per run, into an unnamed file (gunzip.h); its index holds offsets of the unpacked bytes.
 *
 *   scan(file) ──► add(offset, bytes, label) ...     formats bring scan(); it must report the first error in
 *                                                    the framing, with file and offset, and may not guess
 *                                                    where the next sample is
 *
 * The index is in memory as long as cfg->memory_bytes allows, else its pages are read from the kept file, or
 * from an unnamed one (entries.h): a set of any size opens, and says the same either way. Of more files than
 * a process should keep open a bounded number is (open_pool.h): their fd is -1, and whoever reads one asks
 * mri_framed_file_acquire(). */
#ifndef MRI_FRAMED_H
#define MRI_FRAMED_H

#include "formats/fileset/entries.h"
#include "formats/fileset/filelist.h"
#include "formats/source/classes.h"
#include "formats/storage/open_pool.h"

typedef struct mri_framed_file {
    char *path;
    int fd; /* of the unpacked bytes; -1: opened when it is asked for */
    bool packed;
    uint64_t bytes;        /* unpacked */
    uint64_t stored_bytes; /* as on disk */
    int64_t changed_ns;    /* mtime */
    int64_t system_ns;     /* ctime */
    uint64_t first;        /* number of its first sample */
} mri_framed_file;

typedef struct mri_framed_kept { /* a file of the index: being written, or read from */
    int fd;                      /* -1: none */
    char *part;                  /* its name until it is complete; NULL: unnamed */
    char *path;                  /* the name it gets; NULL: none, it is for this run */
} mri_framed_kept;

typedef struct mri_framed {
    mri_framed_file *file;
    uint32_t file_count;
    uint32_t allowed;    /* descriptors, of mri_open_allow(), when all files stay open */
    mri_open_pool *pool; /* NULL: all files are open */
    mri_entries entries;
    mri_framed_kept kept; /* where entries lie that are not in memory */
    uint64_t count;
    uint64_t max_bytes, total_bytes, memory_bytes;
    uint64_t print; /* of offsets, bytes and labels, begun with print_seed */
    uint64_t print_seed;
    uint64_t fingerprint; /* of format, settings, offsets, bytes, labels */
    bool has_print;       /* print and print_seed came with the index */
    bool from_index;      /* nothing was scanned */
    char *index_path;     /* of the index that was loaded or kept, or NULL */
    int64_t label_offset; /* cfg's; 0 where that is MR_LABEL_AUTO */
    uint32_t class_count; /* largest possible label + 1, label_offset subtracted; 0 when no label is known */
    uint8_t *note;        /* the format's data that make another scan unnecessary (class names, ...) */
    size_t note_bytes;
    char *image_key, *label_key; /* cfg's, for mri_framed_check() */
    mr_source_config cfg;
    /* for the user: where the index was written, or why it could not be written or used; "" when there is
     * nothing to report */
    char report_text[640];
} mri_framed;

typedef struct mri_scan mri_scan; /* one file being scanned */

/* Bytes [offset, offset + bytes) of the file being scanned, valid until the next call; MR_EFORMAT when it
 * ends before. */
int mri_scan_get(mri_scan *s, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err);
uint64_t mri_scan_file_bytes(const mri_scan *s);
/* The next sample. MR_ELIMIT over the memory allowed or 2 GiB in one sample. */
int mri_scan_add(mri_scan *s, uint64_t offset, uint64_t bytes, int64_t label, mr_error *err);
uint64_t mri_scan_added(const mri_scan *s); /* of this file */

typedef struct mri_framed_format {
    const char *name;  /* "tfrecord" */
    uint32_t version;  /* version of what scan() finds; a higher number makes older indexes invalid */
    uint64_t settings; /* hash of what else the index depends on (keys, offsets) */
    int (*scan)(void *context, mri_scan *s, uint32_t file, mr_error *err);
    /* After the last file, optional: *out (malloc'd) is kept with the index and comes back as `note`. */
    int (*note)(void *context, uint8_t **out, size_t *bytes, mr_error *err);
    /* Optional; called when the index is complete, scanned or loaded. */
    int (*known)(void *context, mri_framed *f, mr_error *err);
    /* The seed of the fingerprint; called once label_offset is known. NULL: name and settings.
     */
    uint64_t (*print_seed)(const mri_framed *f, void *context);
    void *context;
} mri_framed_format;

/* Takes ownership of the list, on failure too. */
int mri_framed_open(mri_framed *out, mri_filelist *files, const mri_framed_format *format,
                    const mr_source_config *cfg, mr_error *err);
void mri_framed_close(mri_framed *f); /* also after open() failed */

uint32_t mri_framed_file_of(const mri_framed *f, uint64_t sample);
/* A descriptor of file's bytes until release. must false: MR_EAGAIN when the permitted number is in use. */
int mri_framed_file_acquire(const mri_framed *f, uint32_t file, bool must, int *fd, mr_error *err);
void mri_framed_file_release(const mri_framed *f, uint32_t file);
/* As the index has it, place and size checked; a page of a large one is read for it. */
int mri_framed_entry(const mri_framed *f, uint64_t sample, mri_entry *out, mr_error *err);
/* What sources answer with. */
int mri_framed_extent(const mri_framed *f, uint64_t sample, mr_extent *out, mr_error *err);
int mri_framed_file_at(const mri_framed *f, uint32_t file, mr_source_file *out);
/* Are all labels in memory? */
static inline bool mri_framed_labels_near(const mri_framed *f) { return f->entries.fd < 0; }
/* MR_EUNSUPPORTED when the label is unknown or cannot be a class. */
int mri_framed_label(const mri_framed *f, uint64_t sample, int64_t *out);
/* For parse(): check a label as found in the data. *out is the label minus the offset; MR_EFORMAT with the
 * reason. */
int mri_framed_check_label(const mri_framed *f, int64_t found, int64_t *out, mr_error *err);
/* Fill count, class count, label offset, sizes, fingerprint and the report lines of info. */
void mri_framed_info(const mri_framed *f, mr_source_info *info);
/* Smallest and largest class; left as they are where no label is known. */
void mri_framed_labels(const mri_framed *f, mr_source_labels *out);
/* A sample's bytes contradict the loaded index: the index is removed, and the next run builds it anew.
 */
void mri_framed_index_drop(const mri_framed *f);
/* For mr_source_check(): scan the data again and compare with the index that was used. */
int mri_framed_check(const mr_source *src, const mri_framed *f, mr_error *err);

/* ---- the kept index (framed_index.c); for framed.c ---- */
/* Entries, note and each file's `first` from an index that fits and is ours; without such an index false, and
 * nothing is changed. *rc is MR_ENOMEM or MR_ELIMIT when an index exists but does not fit into memory. */
bool mri_framed_index_load(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg,
                           int *rc, mr_error *err);
/* The entries become too many for memory: f->kept is where they go. */
int mri_framed_index_spill(mri_framed *f, const mr_source_config *cfg, mr_error *err);
uint64_t mri_framed_index_pages_at(const mri_framed *f);
void mri_framed_kept_fini(mri_framed_kept *k); /* what has no name yet is gone */
/* Reports in f->report_text how it went. An index that cannot be written is not a failure. */
void mri_framed_index_keep(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg);
/* Add to f->report_text. */
MR_PRINTF(2, 3) void mri_framed_tell(mri_framed *f, const char *text, ...);
/* The memory limit of the entries. */
uint64_t mri_framed_room(const mri_framed *f, const mr_source_config *cfg);

#endif
