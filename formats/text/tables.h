/* formats/text/tables.h: data sets written as text: lists of pictures, pixels, sequences of numbers. Private.
 *
 * Takes a text, plain or packed, or a folder with one for each part. Gives three formats for the table in
 * formats/open.c, which is the only one to use them, and the rows of a table that lies next to class folders.
 * Numbers are parsed once, when the set is opened, into a file without a name; nothing is parsed when hot. */
#ifndef MRI_TABLES_H
#define MRI_TABLES_H

#include "formats/source/source.h"

/* The picture and the class of a row, without blanks around them and not ended by a NUL. False: no more. */
typedef bool mri_table_row(void *context, const char *picture, size_t picture_bytes, const char *class_name,
                           size_t class_bytes);
/* The first 2^18 rows of a text, where it is a table whose first row has usual names for the picture and the
 * class; any other text has no rows. fd: the text, which is closed; -1: the file at path. MR_OK or
 * MR_ENOMEM. For formats/folder. */
int mri_csv_each_row(const char *path, int fd, mri_table_row *see, void *context, mr_error *err);

/* Does a name end as tables do, and is it not hidden? */
bool mri_is_table_name(const char *name);

#endif
