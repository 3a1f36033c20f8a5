/* formats/text/json_rows.h: objects of JSON as the rows of a table. Private to formats/text.
 *
 *   {"file_name": "a.jpg", "label": "cat"}      one object after the other (JSON Lines), or
 *   {"file_name": "b.jpg", "label": "dog"}
 *   [{"file": "a.jpg", "label": 0}, ...]        a list of objects
 *
 * The keys of the first object are the row of names; a later object with another key is refused, one that
 * lacks a key has an empty text there. Numbers and truth values are written as text; a value that is a list
 * or an object itself is noted, and refused where it is used. */
#ifndef MRI_JSON_ROWS_H
#define MRI_JSON_ROWS_H

#include "formats/text/csv.h"

/* Could it be such a text? */
bool mri_json_begins(const uint8_t *head, size_t bytes);
/* Has the first object a string under a key that is wanted, as far as these bytes go? */
bool mri_json_first_keys(const uint8_t *head, size_t bytes,
                         bool (*is_wanted)(const char *key, size_t key_bytes));
/* The next row, as mri_csv_next() gives it. */
int mri_json_next(mri_csv *c, mr_error *err);
void mri_json_fini(mri_json_rows *j); /* accepts a zeroed one */

#endif
