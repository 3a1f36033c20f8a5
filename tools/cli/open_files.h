/* tools/cli/open_files.h: how many files this process may have open. */
#ifndef TOOLS_OPEN_FILES_H
#define TOOLS_OPEN_FILES_H

/* The files of a data set are open together, and there may be thousands. The soft limit is low for the sake
 * of select(), which the program never calls; the library reports sets that exceed even the hard limit. */
void open_files_raise(void);
/* In a child, before it becomes another program, which may call select(): the limit as it was. */
void open_files_restore(void);

#endif
