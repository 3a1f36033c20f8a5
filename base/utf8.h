/* base/utf8.h: one character of UTF-8. Private. */
#ifndef MRI_UTF8_H
#define MRI_UTF8_H

#include <stddef.h>

/* Bytes of the character at s, a text that a NUL ends; 0: an overlong form, a surrogate or a cut end. */
static inline size_t mri_utf8_bytes(const unsigned char *s)
{
    const unsigned char c = s[0];
    const size_t n = c < 0x80                ? 1
                     : c >= 0xc2 && c < 0xe0 ? 2
                     : c >= 0xe0 && c < 0xf0 ? 3
                     : c >= 0xf0 && c < 0xf5 ? 4
                                             : 0;
    for (size_t k = 1; k < n; k++)
        if ((s[k] & 0xc0) != 0x80) return 0;
    if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f)) return 0;
    if ((c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f)) return 0;
    return n;
}

/* Behind the mark of UTF-8 with which some editors begin a text. */
static inline const char *mri_skip_mark(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    return s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf ? text + 3 : text;
}

#endif
