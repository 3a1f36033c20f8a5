/* formats/storage/gunzip.h: unpack a gzip or zlib file once, into an unnamed file. Private. */
#ifndef MRI_GUNZIP_H
#define MRI_GUNZIP_H

#include "millrace/base.h"

bool mri_is_gzip(const void *head, size_t bytes);
/* gzip, or a zlib stream with the usual window; zlib is guessed from two bytes. */
bool mri_is_packed(const void *head, size_t bytes);

/* A small file may be packed such that it fills a disk: beyond 256 MiB no more than 256 bytes from each
 * packed one are unpacked. Pictures, tables and arrays that hold something stay far below. The error:
 * MR_ELIMIT. */
bool mri_unpack_is_too_much(uint64_t packed_bytes, uint64_t unpacked_bytes);
int mri_unpack_too_much(uint64_t packed_bytes, uint64_t unpacked_bytes, mr_error *err);

/* Unpack the first bytes, as far as `head` reaches. Returns how many were written to out. */
size_t mri_gunzip_head(const void *head, size_t head_bytes, void *out, size_t out_bytes);

/* Unpack all members of fd; checksums are checked. It must come to exactly `expected` bytes. *out_fd is a
 * file without a name: in memory up to memory_bytes, else on disk (spill.h). */
int mri_gunzip_file(int fd, uint64_t packed_bytes, const char *path, uint64_t expected, uint64_t memory_bytes,
                    int *out_fd, bool *in_memory, mr_error *err);

/* The same when the unpacked size is unknown: *out_bytes. */
int mri_unpack_file(int fd, uint64_t packed_bytes, const char *path, uint64_t memory_bytes, int *out_fd,
                    uint64_t *out_bytes, bool *in_memory, mr_error *err);

#endif
