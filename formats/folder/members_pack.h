/* formats/folder/members_pack.h: archives that libarchive unpacks: tar packed by bzip2, xz or zstd; 7z; rar.
 * What comes out is a plain tar, which members.c reads with all its rules. Private. */
#ifndef MRI_MEMBERS_PACK_H
#define MRI_MEMBERS_PACK_H

#include "millrace/base.h"

typedef enum mri_pack {
    MRI_PACK_NONE,
    MRI_PACK_BZIP2,
    MRI_PACK_XZ,
    MRI_PACK_ZSTD,
    MRI_PACK_7Z,
    MRI_PACK_RAR
} mri_pack;

mri_pack mri_pack_of(const void *head, size_t bytes);
/* bzip2, xz, zstd: the bytes inside are a tar's or any other file's. */
static inline bool mri_pack_is_filter(mri_pack pack)
{
    return pack >= MRI_PACK_BZIP2 && pack <= MRI_PACK_ZSTD;
}

/* For probes. Of a filter: the first bytes that come out, 0 where nothing can be read. */
size_t mri_pack_head(int fd, mri_pack pack, void *out, size_t out_bytes);
/* For probes. Of 7z and rar: calls see for the first files, until it returns false. Were these all? */
bool mri_pack_names(int fd, mri_pack pack, bool (*see)(void *context, const char *name), void *context);

/* The archive as a plain tar in a file without a name, with gzip's limits (gunzip.h). */
int mri_pack_unpack(int fd, mri_pack pack, uint64_t packed_bytes, const char *path, uint64_t memory_bytes,
                    int *out_fd, uint64_t *out_bytes, bool *in_memory, mr_error *err);
/* Of a rar archive: has it an end mark? Is it one volume of several? */
int mri_rar_look(int fd, uint64_t bytes, const char *path, bool *ended, bool *volume, mr_error *err);

#endif
