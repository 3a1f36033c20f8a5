/* tests/formats/tar/mrt_tar_source.h: archives of pictures saved and opened as sources, for tests of what is
 * read from them. */
#ifndef MRT_TAR_SOURCE_H
#define MRT_TAR_SOURCE_H

#include "millrace/formats.h"
#include "tests/formats/tar/mrt_tar.h"

/* Set-up and tear-down of a test: the settings below are the usual ones without an index that is kept; the
 * buffer is freed. */
int mrt_tar_fresh(void **state);
int mrt_tar_done(void **state);

extern mr_source_config mrt_tar_cfg;
extern void *mrt_tar_buf;
extern size_t mrt_tar_buf_bytes;

extern const char mrt_tar_jpeg[15]; /* the beginning of one */
/* A member that holds it. */
void mrt_tar_picture(mrt_tar *a, const char *name);

/* Write the archive below the temporary folder, as it is or with gzip, and empty it. */
void mrt_tar_save(mrt_tar *a, const char *name);
void mrt_tar_save_packed(mrt_tar *a, const char *name);

/* Open it with these settings. */
int mrt_tar_try(mr_source **src, const char *name, mr_error *err);
mr_source *mrt_tar_open_one(const char *name);
/* Read a sample into the buffer. */
mr_sample mrt_tar_get(const mr_source *src, uint64_t sample);

#endif
