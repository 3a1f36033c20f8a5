/* formats/fileset/filelist.h: the files of a data set that consists of several files. Private.
 *
 * PATH may be
 *   a file                     that file; of a numbered set (NAME-00003-of-00128, with or without an ending)
 *                              all of the set, and a piece that is missing is an error that names it. Pieces
 *                              are numbered from 0, or from 1
 *   a folder                   every file in it that `accept` takes, by content; of parts named train-...,
 *                              validation-..., val-..., test-... (or NAME-train.ENDING) the part asked for.
 *                              Of NAME and NAME.gz the plain one is taken. The parts may be folders in it
 *                              instead, with these words for names
 *   a pattern                  NAME-{000000..000146}.tar, and *, ? as a shell has them
 * Order: the numbers of a set, else the bytes of the names. Of a validation and a test part, the validation
 * part is what MR_SPLIT_TEST means: the labels of a test part are often kept from the public. */
#ifndef MRI_FILELIST_H
#define MRI_FILELIST_H

#include "formats/source/source.h"

/* Is this the beginning of a file of the format? head is unpacked when the file is a gzip or zlib stream. */
typedef bool mri_accept(const uint8_t *head, size_t bytes);

typedef struct mri_filelist {
    char **path;
    uint32_t count, cap;
    bool in_folders;    /* while looking: the part is the name of a file's folder */
    bool has_test;      /* a test or validation part is there as well */
    mri_accept *accept; /* as given: decides between packed and plain where a file's first bytes could be
                           either */
} mri_filelist;

int mri_filelist_find(mri_filelist *out, const char *path, mr_split split, mri_accept *accept, mr_error *err);
void mri_filelist_fini(mri_filelist *l);
/* Does PATH, which is not a regular file, name such files? For probes: reads only a few of them. */
bool mri_filelist_probe(const char *path, mri_accept *accept);
/* Could this path, which does not exist, be a pattern? */
bool mri_filelist_pattern(const char *path);

/* The first bytes of a file as `accept` is to see them: MR_OK, or what reading said. packed: a gzip or zlib
 * stream, and the plain bytes do not pass `accept`. */
int mri_filelist_head(int fd, const char *path, uint64_t file_bytes, mri_accept *accept, bool *accepted,
                      bool *packed, mr_error *err);

#endif
