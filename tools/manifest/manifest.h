/* tools/manifest/manifest.h: a text that names files with their sizes and SHA-256 sums.
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
 * The room: takes paths and texts. Gives manifests, made (manifest_make.c) and compared (manifest_check.c).
 * Callers: commands. */
#ifndef TOOLS_MANIFEST_H
#define TOOLS_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace/formats.h"
#include "tools/manifest/sha256.h"

enum { MANIFEST_NAME = 4096, MANIFEST_LINE = 2 * MANIFEST_NAME + 80 };
#define MANIFEST_MOST_BYTES ((uint64_t)1 << 30)

/* ---- one line (manifest_line.c) ---- */
typedef enum manifest_kind {
    MANIFEST_WRONG, /* none of these */
    MANIFEST_HEAD,
    MANIFEST_SIZE,
    MANIFEST_FILE,
    MANIFEST_END,
    MANIFEST_COMMENT,
} manifest_kind;

typedef struct manifest_line {
    manifest_kind kind;
    uint64_t bytes, files; /* SIZE: bytes; END: both */
    uint8_t sum[SHA256_BYTES];
    char name[MANIFEST_NAME];
} manifest_line;

/* A line without its end. */
manifest_kind manifest_parse_line(const char *line, size_t bytes, manifest_line *out);
/* The line of a file, with its end, into MANIFEST_LINE bytes; returns its length. */
size_t manifest_format_line(const uint8_t sum[SHA256_BYTES], const char *name, char *out);

/* ---- lists of files ---- */
typedef struct manifest_file {
    char *path; /* malloc'd */
    uint64_t bytes;
    bool sized; /* bytes is known */
    uint8_t sum[SHA256_BYTES];
    int rc; /* of reading it */
    mr_error why;
} manifest_file;

typedef struct manifest {
    manifest_file *file;
    uint64_t count, cap;
} manifest; /* {0} is empty */

int manifest_add(manifest *m, const char *path, mr_error *err);
void manifest_free(manifest *m);

/* The files of a data set: all files below a folder, except for hidden ones, part files and `without`; else
 * the files that src reads, and path itself if it is a list of files. src may be NULL for a folder.
 * (manifest_make.c) */
int manifest_find(manifest *m, const char *path, const mr_source *src, const char *without, mr_error *err);
/* Sizes and sums, on several threads (0: one per core); what cannot be read has rc. MR_ECANCELED.
 * (manifest_sum.c) */
int manifest_sum(manifest *m, uint32_t threads, bool quiet, const volatile int *stop, mr_error *err);
int manifest_write(const manifest *m, const char *path, bool force, mr_error *err);
/* Paths as they can be opened from here. MR_EFORMAT with the line. (manifest_check.c) */
int manifest_read(manifest *m, const char *path, mr_error *err);

/* Read every file that the manifest at path names and compare size and sum; then look for files of the data
 * set (path of it: data) that it does not name. wrong() is called for each difference, in order; false: stop.
 * *files, *bytes: the numbers read. The status is of the check itself. (manifest_compare.c) */
typedef bool manifest_wrong(void *context, const mr_error *what);
int manifest_compare(const char *path, const char *data, const mr_source *src, uint32_t threads, bool quiet,
                     const volatile int *stop, manifest_wrong *wrong, void *context, uint64_t *files,
                     uint64_t *bytes, mr_error *err);

#endif
