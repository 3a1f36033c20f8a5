/* formats/fileset/framed.h: data sets made of framed samples in a list of files (TFRecord, tar, RecordIO):
 * open files, unpacked where they are packed, and the index: for each sample its file, offset, bytes and
 * label. Private.
 *
 * Building the index takes one pass over all data, so it is built once and kept: NAME.mridx beside the first
 * file, or, when that folder cannot be written, in cfg->index_folder or $XDG_CACHE_HOME/millrace. It is used
 * as long as format, settings, and the name, size and modification time of every file are unchanged, and
 * rebuilt otherwise; a damaged index is not an error. It is written to a part file and renamed. A packed file
 * is unpacked once per run, into an unnamed file (gunzip.h); its index holds offsets of the unpacked bytes.
 *
 *   scan(file) ──► add(offset, bytes, label) ...     formats bring scan(); it must report the first error in
 *                                                    the framing, with file and offset, and may not guess
 *                                                    where the next sample is */
#ifndef MRI_FRAMED_H
#define MRI_FRAMED_H

#include "formats/fileset/filelist.h"
#include "formats/source/classes.h"

#define MRI_NO_LABEL INT64_MIN

typedef struct mri_framed_file {
    char *path;
    int fd; /* of the unpacked bytes */
    bool packed;
    uint64_t bytes;        /* unpacked */
    uint64_t stored_bytes; /* as on disk */
    int64_t changed_ns;    /* mtime */
    uint64_t first;        /* number of its first sample */
} mri_framed_file;

typedef struct mri_framed {
    mri_framed_file *file;
    uint32_t file_count;
    uint64_t *offset; /* count + 0: of each sample in its file */
    uint32_t *bytes;
    /* as found, offset not subtracted; MRI_NO_LABEL: not known; NULL when no sample has one */
    int64_t *label;
    uint64_t count, cap;
    uint64_t max_bytes, total_bytes, memory_bytes;
    uint64_t fingerprint; /* of format, settings, offsets, bytes, labels */
    bool from_index;      /* nothing was scanned */
    int64_t label_offset; /* cfg's, or as found */
    uint32_t class_count; /* largest possible label + 1, label_offset subtracted; 0 when no label is known */
    uint8_t *note;        /* what the format wants to find again without scanning (class names, ...) */
    size_t note_bytes;
    /* for the user: where the index was written, or why it could not be written; "" when there is nothing to
     * report */
    char report_text[320];
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
    /* Optional; called when the index is complete, scanned or loaded. May set f->label_offset when the format
     * knows it. */
    int (*known)(void *context, mri_framed *f, mr_error *err);
    void *context;
} mri_framed_format;

/* Takes ownership of the list, on failure too. */
int mri_framed_open(mri_framed *out, mri_filelist *files, const mri_framed_format *format,
                    const mr_source_config *cfg, mr_error *err);
void mri_framed_close(mri_framed *f); /* also after open() failed */

uint32_t mri_framed_file_of(const mri_framed *f, uint64_t sample);
/* What sources answer with. */
int mri_framed_extent(const mri_framed *f, uint64_t sample, mr_extent *out);
int mri_framed_file_at(const mri_framed *f, uint32_t file, mr_source_file *out);
/* MR_EUNSUPPORTED when the label is unknown or cannot be a class. */
int mri_framed_label(const mri_framed *f, uint64_t sample, int64_t *out);
/* For parse(): check a label as found in the data. *out is the label minus the offset; MR_EFORMAT with the
 * reason. */
int mri_framed_check_label(const mri_framed *f, int64_t found, int64_t *out, mr_error *err);
/* Fill count, class count, label offset, sizes, fingerprint and told of info. */
void mri_framed_info(const mri_framed *f, mr_source_info *info);

/* ---- the kept index (framed_index.c); for framed.c ---- */
/* Arrays, note and each file's `first` from an index that fits; false and nothing changed when there is none.
 * *rc is MR_ENOMEM or MR_ELIMIT when there is one, but no room for it. */
bool mri_framed_index_load(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg,
                           int *rc, mr_error *err);
/* Reports in f->report_text how it went. An index that cannot be written is not a failure. */
void mri_framed_index_keep(mri_framed *f, const mri_framed_format *format, const mr_source_config *cfg);
/* Room for count samples, with labels or without; within cfg->memory_bytes. */
int mri_framed_reserve(mri_framed *f, uint64_t count, bool labels, const mr_source_config *cfg,
                       mr_error *err);

#endif
