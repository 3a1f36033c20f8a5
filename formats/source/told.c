/* formats/source/told.c: see told.h. */
#include "formats/source/told.h"

#include <stdio.h>

void mri_told_add(char **reported, const char *lines)
{
    const size_t before = *reported ? strlen(*reported) + 1 : 0, bytes = strlen(lines) + 1;
    char *longer = realloc(*reported, before + bytes);
    if (!longer) return;
    if (before) longer[before - 1] = '\n';
    memcpy(longer + before, lines, bytes);
    *reported = longer;
}

void mri_told_line(char **reported, const char *format, va_list args)
{
    char raw[1024], line[2048];
    vsnprintf(raw, sizeof raw, format, args);
    mri_told_add(reported, mr_text_shown(raw, line, sizeof line));
}
