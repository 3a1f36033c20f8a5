/* settings/csv_put.c: see csv_put.h. */
#include "settings/csv_put.h"

#include <string.h>

#include "millrace/base.h"

void mri_csv_put_text(FILE *out, const char *text)
{
    char shown[4 * 4096];
    mr_text_shown(text, shown, sizeof shown);
    if (!strpbrk(shown, ",\"")) {
        fputs(shown, out);
        return;
    }
    fputc('"', out);
    for (const char *p = shown; *p; p++) {
        if (*p == '"') fputc('"', out);
        fputc(*p, out);
    }
    fputc('"', out);
}
