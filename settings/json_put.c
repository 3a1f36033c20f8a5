/* settings/json_put.c: see json_put.h. */
#include "settings/json_put.h"

#include <stddef.h>

#include "base/utf8.h"

void mri_json_put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        const size_t n = mri_utf8_bytes(s);
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
