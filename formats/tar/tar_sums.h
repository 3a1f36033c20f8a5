/* formats/tar/tar_sums.h: checksums of an archive's members, stored in the archive. Private.
 *
 *   __checksums__/000000   "millrace checksums 1\n"
 *                          "e3069283 12800 9210\n"   CRC32C of a member's bytes, how far before this
 *                          ...                       header they begin, how many they are
 *                          "end 2 9ab1f0c4\n"        how many lines, CRC32C of the text above
 *
 * This is what `convert --to tar` puts behind every MRI_TAR_SUMS_MEMBERS members at the latest, between two
 * samples, and at the end: of all members since the one before, in their order. Other readers pass it over,
 * as they do with `__classes__`. Distances are the same when archives are joined; when another program packs
 * the members anew they are not, and then nothing is checked, with a word for the user. */
#ifndef MRI_TAR_SUMS_H
#define MRI_TAR_SUMS_H

#include "formats/tar/tar.h"

#define MRI_TAR_SUMS "__checksums__"
enum {
    MRI_TAR_SUMS_MEMBERS = 1024,
    MRI_TAR_MAX_SUMS = 1 << 20, /* bytes of such a member */
};

typedef struct mri_tar_sum {
    uint64_t data, bytes; /* in the archive */
    uint32_t crc;
} mri_tar_sum;

bool mri_tar_is_sums(const char *name);

/* ---- writing ---- */
typedef struct mri_tar_sums { /* {0} is a valid empty one */
    mri_tar_sum *sum;
    uint32_t count, cap, blocks; /* members not yet in a block; blocks so far */
    char *text;
    char name[32]; /* of the block that was made last */
} mri_tar_sums;

int mri_tar_sums_add(mri_tar_sums *s, uint64_t data, uint64_t bytes, uint32_t crc, mr_error *err);
/* Is a block to be written before the next sample? */
bool mri_tar_sums_due(const mri_tar_sums *s);
/* Bytes in the archive of the block with so many members more; never less than they are. */
uint64_t mri_tar_sums_bytes(const mri_tar_sums *s, uint32_t more);
/* The block of a member whose header begins at head; s begins anew. *text is valid until the next call. */
int mri_tar_sums_make(mri_tar_sums *s, uint64_t head, const char **text, size_t *bytes, mr_error *err);
/* Of another archive. */
void mri_tar_sums_restart(mri_tar_sums *s);
void mri_tar_sums_fini(mri_tar_sums *s);

/* ---- reading ---- */
typedef struct mri_tar_sums_walk {
    const char *at, *end;
    uint64_t head;
    uint32_t left;
} mri_tar_sums_walk;

/* text: of a member whose header begins at head. MR_EFORMAT: it is no such text, or damaged. */
int mri_tar_sums_begin(mri_tar_sums_walk *w, const void *text, size_t bytes, uint64_t head, mr_error *err);
/* False behind the last one. */
bool mri_tar_sums_next(mri_tar_sums_walk *w, mri_tar_sum *out);

/* ---- a whole archive (tar_sums_check.c) ---- */
/* Is its last member one of checksums? One look at its end. */
int mri_tar_sums_at_end(bool *out, int fd, const char *path, uint64_t file_bytes, mr_error *err);
/* Do its checksums speak of the members that are in it? Reads all headers. */
int mri_tar_sums_fit(bool *out, int fd, const char *path, uint64_t file_bytes, mr_error *err);
/* Compare every member with its checksum, where there are any. MR_ECHECKSUM: err names the first member that
 * is wrong, and how many are. MR_EFORMAT: the checksums are damaged. *fit false: they speak of other members,
 * the archive was packed anew, and nothing was compared. */
int mri_tar_sums_check(bool *fit, int fd, const char *path, uint64_t file_bytes, mr_error *err);

#endif
