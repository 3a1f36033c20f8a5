/* base/number.c: see number.h. */
#include "base/number.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* fixed after once; 0: there was no memory for it */

static void make(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double mri_strtod(const char *text, char **end)
{
    pthread_once(&once, make);
    return c_locale ? strtod_l(text, end, c_locale) : strtod(text, end);
}

locale_t mri_c_numbers_begin(void)
{
    pthread_once(&once, make);
    return uselocale(c_locale); /* 0 changes nothing */
}

void mri_c_numbers_end(locale_t before) { uselocale(before); }

const char *mri_float_text(float value, char *buf, size_t buf_bytes)
{
    const locale_t before = mri_c_numbers_begin();
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(buf, buf_bytes, "%.*g", digits, (double)value);
        if (strtof(buf, NULL) == value) break;
    }
    mri_c_numbers_end(before);
    return buf;
}
