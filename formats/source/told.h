/* formats/source/told.h: lines for the user, joined as they come. Private. */
#ifndef MRI_TOLD_H
#define MRI_TOLD_H

#include <stdarg.h>

#include "base/util.h"

/* Add lines behind those in *told (malloc'd, NULL while there are none), as they are. Lines that find no
 * memory are lost; the next large allocation of whoever tells them says why. */
void mri_told_add(char **told, const char *lines);
/* A line, shown as mr_text_shown() has it: a name may hold the end of one. */
MR_PRINTF(2, 0) void mri_told_line(char **told, const char *format, va_list args);

#endif
