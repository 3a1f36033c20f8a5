/* settings/number_put.h: numbers as a person reads them, in texts, pages and errors. Private. */
#ifndef MRI_NUMBER_PUT_H
#define MRI_NUMBER_PUT_H

#include <stddef.h>

enum { MRI_NUMBER_ROOM = 32 }; /* bytes of a text of these functions */

/* Write a number of bytes as "1.5 GiB", "12.3 KiB", "17 B". Returns buf. */
const char *mri_size_text(double bytes, char *buf, size_t buf_bytes);

/* Write 1234567.8 as "1,234,568", 12.345 as "12.3", 0.01234 as "0.0123"; "-" for NAN. room has
 * MRI_NUMBER_ROOM bytes. Returns room. */
const char *mri_number_text(double value, char *room);

#endif
