/* tools/watch/watch_file.h: a file that grows under its own name while the run goes on. The first failure is
 * reported and kept, and a half-written line is cut off; nothing is written after it. */
#ifndef TOOLS_WATCH_FILE_H
#define TOOLS_WATCH_FILE_H

#include "millrace/formats.h"

typedef struct watch_file {
    mr_output *out; /* NULL: not open */
    mr_output_config cfg;
    char path[4096];
    uint64_t bytes;
    bool made, used; /* made: it was empty; used: there is more in it than what every such file begins with */
    mr_error failure;
} watch_file;

/* sources: two, or NULL; they outlive the file. resume: keep the first f->bytes of an existing file; else no
 * file may exist (MR_EEXIST). */
int watch_file_open(watch_file *f, const char *path, const mr_source *const *sources, bool resume,
                    mr_error *err);
/* All of it or nothing; MR_OK when it failed before, too. used: see above. */
int watch_file_put(watch_file *f, const void *data, size_t bytes, bool used);
/* Cut the file to `bytes`; for the rest of a killed run. */
int watch_file_cut(watch_file *f, uint64_t bytes, mr_error *err);
void watch_file_sync(watch_file *f);
/* The first failure, or MR_OK. A file that was made and not used is removed. Accepts a zeroed one. */
int watch_file_close(watch_file *f);

#endif
