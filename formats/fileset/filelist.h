/* formats/fileset/filelist.h: the files of a data set that consists of several files. Private.
 *
 * PATH may be
 *   a file                     that file; of a numbered set (NAME-00003-of-00128, with or without an ending)
 *                              all of the set, and a piece that is missing is an error that names it. Pieces
 *                              are numbered from 0, or from 1
 *   a folder                   every file in it that `accept` takes, by content; where names contain split
 *                              words (parts.h: imagenet-val-000000.tar), only files of the requested split.
 *                              Of NAME and NAME.gz the plain one is taken. The parts may be folders in it
 *                              instead, with these words in their names (train2017)
 *   a pattern                  NAME-{000000..000146}.tar, {a,b}.tar, and *, ? as a shell has them: all that
 *                              it names
 * Order: the numbers of a set, else the bytes of the names. Of a validation and a test part, the validation
 * part is what MR_SPLIT_TEST means: the labels of a test part are often kept from the public.
 *
 * Missing numbers are reported where names do not state their total (filelist_gaps.c); a range {a..b} of a
 * pattern names all of its files, and one that is missing is an error.
 *
 * Files of one set with the same bytes, such as a second download, are reported (filelist_copies.c).
 *
 * Nothing is left out silently. In a folder these are errors: a file with a name like the taken files' that
 * was not accepted (unreadable, empty, damaged at its head), a name with two split words, a name without one
 * where others have one, and anything that the system refuses. Other files are left out and reported. */
#ifndef MRI_FILELIST_H
#define MRI_FILELIST_H

#include "formats/source/source.h"

/* Is this the beginning of a file of the format? head is unpacked when the file is a gzip or zlib stream. */
typedef bool mri_accept(const uint8_t *head, size_t bytes);

typedef struct mri_filelist {
    char **path;
    uint32_t count, cap;
    bool has_test;  /* a test or validation part is there as well */
    bool only_test; /* no part was asked for, and there is no train part: these are the test part */
    bool there[MRI_PART_COUNT]; /* the parts that names speak of */
    mri_part part;              /* the one that is taken; MRI_NO_PART: what there is */
    mri_accept *accept; /* as given: decides between packed and plain where a file's first bytes could be
                           either */
    const char *const *companions; /* endings of files that are read beside these; NULL: none */
    uint32_t missing;              /* numbers without a file between the files' numbers */
    char *reported;                /* files left out and the reasons, as lines for the user; NULL: none */
} mri_filelist;

int mri_filelist_find(mri_filelist *out, const char *path, mr_split split, mri_accept *accept, mr_error *err);
/* The same for a format that also reads companion files: NAME.lst of NAME.rec. Companions are not reported as
 * left out. companions: their endings, then NULL. */
int mri_filelist_find_with(mri_filelist *out, const char *path, mr_split split, mri_accept *accept,
                           const char *const *companions, mr_error *err);
/* The same for a file that names others in its folder, such as a table of pictures: the named files are not
 * reported. */
int mri_filelist_find_among(mri_filelist *out, const char *path, mr_split split, mri_accept *accept,
                            mr_error *err);
void mri_filelist_fini(mri_filelist *l);
/* Copy the list's splits and report lines to the source. */
void mri_filelist_tell(mri_filelist *l, mr_source *src);
/* Does PATH, which is not a regular file, name such files? For probes: reads only a few of them. Also true
 * where an entry itself is wrong: opening says why. trouble: mri_probe.trouble, or NULL. */
bool mri_filelist_probe(const char *path, mri_accept *accept, mr_error *trouble);
/* Could this path, which does not exist, be a pattern? */
bool mri_filelist_pattern(const char *path);

/* The first bytes of a file as `accept` is to see them: MR_OK, or what reading said. packed: a gzip or zlib
 * stream, and the plain bytes do not pass `accept`. */
int mri_filelist_head(int fd, const char *path, uint64_t file_bytes, mri_accept *accept, bool *accepted,
                      bool *packed, mr_error *err);

/* ---- for filelist.c and filelist_*.c ---- */
int mri_filelist_add(mri_filelist *l, const char *path, mr_error *err);
/* All pieces of the numbered set that the file at path is one of; MR_EEND: it is no piece. */
int mri_filelist_add_set(mri_filelist *l, const char *path, mr_error *err);
/* A line for the user; if memory is short the line is lost; a later, larger allocation reports that. */
MR_PRINTF(2, 3) void mri_filelist_note(mri_filelist *l, const char *format, ...);

typedef struct mri_remainders { /* files that repair or an interrupted run left (mri_is_remainder()) */
    uint32_t count;
    char first[256]; /* by name */
} mri_remainders;
void mri_remainder_note(mri_remainders *r, const char *name);
void mri_filelist_note_remainders(mri_filelist *l, const mri_remainders *r);
int mri_filelist_note_gaps(mri_filelist *l, mr_error *err);   /* filelist_gaps.c */
int mri_filelist_note_copies(mri_filelist *l, mr_error *err); /* filelist_copies.c */

typedef struct mri_folder_entry { /* the result of looking at a folder entry */
    bool accepted, is_folder, is_empty;
    int denied;      /* errno of what only this entry is to blame for */
    const char *why; /* not accepted; a static text */
} mri_folder_entry;
/* MR_OK, or an error of the system that does not depend on the entry (too many open files, a read error). */
int mri_filelist_look(int folder, const char *name, mri_accept *accept, mri_folder_entry *out, mr_error *err);

int mri_filelist_find_in_folder(mri_filelist *out, const char *folder, mr_split split, bool among_others,
                                mr_error *err);
bool mri_filelist_probe_folder(const char *path, mri_accept *accept, mr_error *trouble);

#endif
