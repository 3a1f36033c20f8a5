/* tests/formats/tar/mrt_tar.h: tar archives made byte by byte, right and wrong, without the code under
 * test. */
#ifndef MRT_TAR_H
#define MRT_TAR_H

#include <stddef.h>
#include <stdint.h>

#include "millrace/base.h"

typedef struct mrt_tar { /* zero-initialised: empty */
    uint8_t *data;
    size_t bytes, cap;
    size_t header; /* where the last one begins */
} mrt_tar;

void mrt_tar_fini(mrt_tar *a);
void mrt_tar_raw(mrt_tar *a, const void *data, size_t bytes);
void mrt_tar_pad(mrt_tar *a);
/* One header: ustar, the size in octal. */
void mrt_tar_header(mrt_tar *a, char type, const char *name, uint64_t size);
/* Make the last header's checksum right again after a change. */
void mrt_tar_sum(mrt_tar *a);
/* Header, data, padding. */
void mrt_tar_file(mrt_tar *a, const char *name, const void *data, size_t bytes);
void mrt_tar_text(mrt_tar *a, const char *name, const char *text);
/* An extended header with this text as data. */
void mrt_tar_extended(mrt_tar *a, char type, const void *data, size_t bytes);
/* 'x' with one record; the length is right. */
void mrt_tar_pax(mrt_tar *a, char type, const char *key, const char *value);
void mrt_tar_end(mrt_tar *a); /* two blocks of zeros */

#endif
