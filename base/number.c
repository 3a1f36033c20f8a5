/* base/number.c: see number.h. */
#include "base/number.h"

#include <locale.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* fixed after once; 0: there was no memory for it */

static void make(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double mri_strtod(const char *text, char **end)
{
    pthread_once(&once, make);
    return c_locale ? strtod_l(text, end, c_locale) : strtod(text, end);
}
