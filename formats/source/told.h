/* formats/source/told.h: lines for the user, joined as they come. Private. */
#ifndef MRI_TOLD_H
#define MRI_TOLD_H

#include <stdarg.h>

#include "base/util.h"

/* Append lines to *told (malloc'd, NULL while empty), unchanged. If memory is short the lines are lost; the
 * caller's next large allocation reports that. */
void mri_told_add(char **reported, const char *lines);
/* A line, shown as mr_text_shown() has it: a name may hold the end of one. */
MR_PRINTF(2, 0) void mri_told_line(char **reported, const char *format, va_list args);

#endif
