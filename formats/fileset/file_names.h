/* formats/fileset/file_names.h: interprets names of files: pieces of numbered sets, their order, similar
 * names, and names of files that are not data. Pure; for the files of filelist.h. Private. */
#ifndef MRI_FILE_NAMES_H
#define MRI_FILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MRI_MOST_DIGITS = 9, MRI_MOST_PATH = 4096 };

typedef struct mri_piece { /* STEM 00003 -of- 00128 ENDING */
    size_t stem_bytes;
    int digits, total_digits;
    uint32_t number, total;
    const char *ending;
} mri_piece;

const char *mri_file_name(const char *path); /* after the last slash */
bool mri_is_index_name(const char *name);    /* ours, and the one being written */
/* Bytes of the one of these endings (the last is NULL) that the name has after other bytes; 0: none. */
size_t mri_ending_bytes(const char *name, const char *const *endings);
/* NAME.damaged, which repair leaves of a file, and NAME.part, which is not whole yet. */
bool mri_is_remainder(const char *name);

bool mri_piece_of(const char *name, mri_piece *p);
/* The path of another number of the set that p, the piece at path, belongs to; false: too long. */
bool mri_piece_path(char *out, size_t out_bytes, const char *path, const mri_piece *p, uint32_t number);

/* For qsort() over paths: by bytes; by names, where pieces of one set stand together, in the order of their
 * numbers. */
int mri_paths_by_bytes(const void *a, const void *b);
int mri_paths_by_number(const void *a, const void *b);

/* Names that differ only in numbers and in a .gz have the same shape. Names of the same kind may also differ
 * in split words. */
uint64_t mri_name_shape(const char *name);
uint64_t mri_name_kind(const char *name);
uint64_t mri_name_ending(const char *name); /* 0: no ending */

/* README, LICENSE, .json, .idx, checksums: files that accompany data. */
bool mri_is_beside_data(const char *name);
bool mri_is_about_data(const char *name); /* README, checksums and the like, by its beginning */

#endif
