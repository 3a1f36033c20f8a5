/* formats/storage/outside.h: where a path leads, links followed. Private. What lies outside of a data set may
 * be anybody's: it is read where somebody put a link to it, but its contents are in no message. */
#ifndef MRI_OUTSIDE_H
#define MRI_OUTSIDE_H

#include <stdbool.h>

/* Does the path lead out of the folder? True, too, where that cannot be found out. */
bool mri_leads_outside(const char *folder, const char *path);
/* The same for the folder that the path names its file in. */
bool mri_leads_elsewhere(const char *path);
/* Is it the folder, or below it? Both without links, as realpath() gives them. */
bool mri_is_below(const char *real_folder, const char *real_path);

#endif
