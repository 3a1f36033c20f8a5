/* settings/json_put.c: see json_put.h. */
#include "settings/json_put.h"

#include <stddef.h>

/* Bytes of the UTF-8 character at s, 0 when it is invalid: overlong forms, surrogates and cut ends are
 * invalid. */
static size_t utf8_bytes(const unsigned char *s)
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

void mri_json_put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t n = utf8_bytes(s);
        if (*s == '"' || *s == '\\') fprintf(out, "\\%c", *s);
        else if (*s == '\n') fputs("\\n", out);
        else if (*s < 0x20 || *s == 0x7f || n == 0) fprintf(out, "\\u%04x", *s);
        else if (*s == 0xc2 && s[1] < 0xa0)
            fprintf(out, "\\u%04x", s[1]); /* what some terminals take for an escape */
        else fwrite(s, 1, n, out);
        s += n ? n : 1;
    }
    fputc('"', out);
}
