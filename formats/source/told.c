/* formats/source/told.c: see told.h. */
#include "formats/source/told.h"

#include <stdio.h>

void mri_told_add(char **told, const char *lines)
{
    const size_t before = *told ? strlen(*told) + 1 : 0, bytes = strlen(lines) + 1;
    char *longer = realloc(*told, before + bytes);
    if (!longer) return;
    if (before) longer[before - 1] = '\n';
    memcpy(longer + before, lines, bytes);
    *told = longer;
}

void mri_told_line(char **told, const char *format, va_list args)
{
    char raw[1024], line[2048];
    vsnprintf(raw, sizeof raw, format, args);
    mri_told_add(told, mr_text_shown(raw, line, sizeof line));
}
