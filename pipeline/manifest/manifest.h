/* pipeline/manifest/manifest.h: a text that names files with their sizes and SHA-256 sums.
 *
 *   # millrace manifest 1
 *   # 104857600
 *   ba7816bf...  train-00000.mrec
 *   # end 1 files 104857600 bytes
 *
 * `sha256sum -c` reads it: lines that begin with # are comments to it. Names are relative to the manifest's
 * folder, or absolute; with a line end or a backslash in them they are written as sha256sum does, with \ in
 * front of the line. Without the comments (a list that sha256sum wrote) sizes are not known, and a truncated
 * list looks complete.
 *
 * The room
 *   takes     paths, an open source
 *   gives     mr_manifest_make(), mr_manifest_compare() (manifest.c)
 *   callers   programs */
#ifndef MRI_MANIFEST_H
#define MRI_MANIFEST_H

#include "millrace/manifest.h"
#include "pipeline/manifest/sha256.h"

enum { MRI_MANIFEST_NAME = 4096, MRI_MANIFEST_LINE = 2 * MRI_MANIFEST_NAME + 80 };
#define MRI_MANIFEST_MOST_BYTES ((uint64_t)1 << 30)

/* ---- one line (manifest_line.c) ---- */
typedef enum mri_manifest_kind {
    MRI_MANIFEST_WRONG, /* none of these */
    MRI_MANIFEST_HEAD,
    MRI_MANIFEST_SIZE,
    MRI_MANIFEST_FILE,
    MRI_MANIFEST_END,
    MRI_MANIFEST_COMMENT,
} mri_manifest_kind;

typedef struct mri_manifest_line {
    mri_manifest_kind kind;
    uint64_t bytes, files; /* SIZE: bytes; END: both */
    uint8_t sum[MRI_SHA256_BYTES];
    char name[MRI_MANIFEST_NAME];
} mri_manifest_line;

/* A line without its end. */
mri_manifest_kind mri_manifest_parse_line(const char *line, size_t bytes, mri_manifest_line *out);
/* The line of a file, with its end, into MRI_MANIFEST_LINE bytes; returns its length. */
size_t mri_manifest_format_line(const uint8_t sum[MRI_SHA256_BYTES], const char *name, char *out);

/* ---- lists of files ---- */
typedef struct mri_manifest_file {
    char *path; /* malloc'd */
    uint64_t bytes;
    bool sized; /* bytes is known */
    uint8_t sum[MRI_SHA256_BYTES];
    int rc; /* of reading it */
    mr_error why;
} mri_manifest_file;

typedef struct mri_manifest {
    mri_manifest_file *file;
    uint64_t count, cap;
    bool without; /* the file that is left out lies among them */
} mri_manifest;   /* {0} is empty */

int mri_manifest_add(mri_manifest *m, const char *path, mr_error *err);
void mri_manifest_free(mri_manifest *m);

/* The files of a data set: all files below a folder, except for hidden ones, part files and `without`; else
 * the files that src reads, and path itself if it is a list of files. src may be NULL for a folder.
 * (manifest_make.c) */
int mri_manifest_find(mri_manifest *m, const char *path, const mr_source *src, const char *without,
                      mr_error *err);
/* Sizes and sums, on several threads; what cannot be read has rc. MR_ECANCELED. (manifest_sum.c) */
int mri_manifest_sum(mri_manifest *m, const mr_manifest_config *cfg, mr_error *err);
int mri_manifest_write(const mri_manifest *m, const char *path, const mr_source *src, bool force,
                       mr_error *err);
/* Paths as they can be opened from here. MR_EFORMAT with the line. (manifest_read.c) */
int mri_manifest_read(mri_manifest *m, const char *path, mr_error *err);

/* See mr_manifest_compare(). result: zeroed. (manifest_compare.c) */
int mri_manifest_compare(const char *path, const char *data, const mr_source *src,
                         const mr_manifest_config *cfg, mr_manifest_result *result, mr_error *err);

#endif
