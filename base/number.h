/* base/number.h: numbers in texts. Private. */
#ifndef MRI_NUMBER_H
#define MRI_NUMBER_H

/* strtod() with the decimal point of the C locale, whatever locale the program has chosen. Any thread. */
double mri_strtod(const char *text, char **end);

#endif
