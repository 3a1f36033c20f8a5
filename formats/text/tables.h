/* formats/text/tables.h: data sets written as text: lists of pictures, pixels, sequences of numbers. Private.
 *
 * Takes a text, plain or packed, or a folder with one for each part. Gives three formats for the table in
 * formats/open.c, which is the only one to use them.
 * Numbers are parsed once, when the set is opened, into a file without a name; nothing is parsed when hot. */
#ifndef MRI_TABLES_H
#define MRI_TABLES_H

#include "formats/source/source.h"

/* Does a name end as tables do, and is it not hidden? */
bool mri_is_table_name(const char *name);

#endif
