/* formats/text/table_place.h: where the pictures lie of a table that names them without folder and ending, as
 * Kaggle's do (id 0a1b beside train/0a1b.jpg). Takes the table's open folder, its path and the first id;
 * gives the text to put before and after every id. For source_csv.c. */
#ifndef MRI_TABLE_PLACE_H
#define MRI_TABLE_PLACE_H

#include <limits.h>

#include "base/error.h"

typedef struct mri_table_place {
    char before[NAME_MAX + 2]; /* "train/", "" */
    char behind[12];           /* ".jpg", "" */
} mri_table_place;

/* Looked for: ID, and ID with any ending of a picture (picture_files.h), small or capital, next to the table
 * and in the folders images, NAME and NAME_images, NAME being the table's without ending and the word labels,
 * or train. MR_ENOENT: none is there (the caller knows more to say). MR_EINVAL: several are, and which is
 * meant is not guessed. */
int mri_table_place_find(int folder, const char *table, const char *id, mri_table_place *out, mr_error *err);

#endif
