/* formats/storage/file_scan.h: a file read front to back through one buffer that slides over it. Private.
 *
 * For callers that read every byte (verify, resume), or only headers and skip the bytes between them
 * (tar). */
#ifndef MRI_FILE_SCAN_H
#define MRI_FILE_SCAN_H

#include "millrace/base.h"

typedef struct mri_file_scan {
    int fd;
    const char *path;
    uint64_t file_bytes;
    uint8_t *buf;
    size_t cap, filled;
    uint64_t at;  /* file offset of buf[0] */
    uint64_t end; /* of the last requested bytes */
    size_t ahead; /* read at the next miss */
} mri_file_scan;

void mri_file_scan_init(mri_file_scan *w, int fd, const char *path, uint64_t file_bytes);
void mri_file_scan_fini(mri_file_scan *w);
/* Bytes at offset, valid until the next call. Reads ahead in pieces of up to 4 MiB, and in small ones after a
 * skip. */
int mri_file_scan_get(mri_file_scan *w, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err);

#endif
