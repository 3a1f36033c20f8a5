/* base/number.h: numbers in texts. Private. */
#ifndef MRI_NUMBER_H
#define MRI_NUMBER_H

#include <locale.h>
#include <stddef.h>

/* strtod() with the decimal point of the C locale, whatever locale the program has chosen. Any thread. */
double mri_strtod(const char *text, char **end);

/* Between begin and end printf() in this thread writes the decimal point of the C locale. Calls nest. */
locale_t mri_c_numbers_begin(void);
void mri_c_numbers_end(locale_t before);

/* As few digits as distinguish this float from others. Returns buf; 32 bytes are enough. */
const char *mri_float_text(float value, char *buf, size_t buf_bytes);

#endif
