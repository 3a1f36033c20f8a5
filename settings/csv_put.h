/* settings/csv_put.h: text as a field of CSV, as every table of the command and of the library writes it.
 * Private. */
#ifndef MRI_CSV_PUT_H
#define MRI_CSV_PUT_H

#include <stdio.h>

/* Write text as a field: quoted where it must be; control characters as \xNN, which no terminal obeys. Errors
 * of writing are out's: ferror(). */
void mri_csv_put_text(FILE *out, const char *text);

#endif
