/* settings/json_put.h: text as JSON, as every command and every list of the library writes it. Private. */
#ifndef MRI_JSON_PUT_H
#define MRI_JSON_PUT_H

#include <stdio.h>

/* Write text as a JSON string, quotes included. Bytes that are not UTF-8 and control characters, which a
 * terminal could obey, become \u00NN. Errors of writing are out's: ferror(). */
void mri_json_put_text(FILE *out, const char *text);

#endif
