/* base/utf8.c: see utf8.h. */
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

char *mri_utf8_of(const char *text)
{
    char *out = malloc(2 * strlen(text) + 1), *at = out;
    for (const unsigned char *s = (const unsigned char *)text; out && *s;) {
        const size_t n = mri_utf8_bytes(s);
        if (n == 0) {
            *at++ = (char)(0xc0 | *s >> 6);
            *at++ = (char)(0x80 | (*s & 0x3f));
        }
        for (size_t k = 0; k < n; k++) *at++ = (char)s[k];
        s += n ? n : 1;
    }
    if (out) *at = '\0';
    return out;
}
