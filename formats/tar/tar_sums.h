/* formats/tar/tar_sums.h: checksums of an archive's members, stored in the archive. Private.
 *
 *   __checksums__/000000   "millrace checksums 2\n"
 *                          "e3069283 12800 9210 8a9136aa\n"   CRC32C of a member's bytes, how far before this
 *                          ...                                header they begin, their number, CRC32C of its
 *                                                             name
 *                          "end 2 9ab1f0c4\n"                 number of lines, CRC32C of the text above
 *
 * `convert --to tar` writes this member after every MRI_TAR_SUMS_MEMBERS members at the latest, between two
 * samples, and at the end. It covers all members since the previous one, in their order. Other readers skip
 * it, as they skip `__classes__`. Distances are the same when archives are joined. When another program packs
 * the same members anew, they are matched by their names. A member that is listed and not in the archive, or
 * in the archive and not listed, is damage: the simple checksum of a header does not see two changes that
 * cancel each other. Where no line matches any member the text is about another archive, and nothing is
 * compared. */
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
    uint32_t crc, name_crc;
} mri_tar_sum;

bool mri_tar_is_sums(const char *name);
/* Does a member's data begin as the text does? Its header may be damaged. */
bool mri_tar_begins_as_sums(const void *data, size_t bytes);
uint32_t mri_tar_name_crc(const char *name);

/* ---- writing ---- */
typedef struct mri_tar_sums { /* {0} is a valid empty one */
    mri_tar_sum *sum;
    uint32_t count, cap, blocks; /* members not yet in a block; blocks so far */
    char *text;
    char name[32]; /* of the block that was made last */
} mri_tar_sums;

int mri_tar_sums_add(mri_tar_sums *s, const char *name, uint64_t data, uint64_t bytes, uint32_t crc,
                     mr_error *err);
/* Is a block to be written before the next sample? */
bool mri_tar_sums_due(const mri_tar_sums *s);
/* Bytes in the archive of the block with `more` further members; never an underestimate. */
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

/* text: of a member whose header begins at head. MR_EFORMAT: it is no such text, or damaged. MR_EUNSUPPORTED:
 * of another version. */
int mri_tar_sums_begin(mri_tar_sums_walk *w, const void *text, size_t bytes, uint64_t head, mr_error *err);
/* False after the last one. */
bool mri_tar_sums_next(mri_tar_sums_walk *w, mri_tar_sum *out);

/* ---- a whole archive (tar_sums_check.c) ---- */
/* Do checksums stand near its end? One look there. */
int mri_tar_sums_at_end(bool *out, int fd, const char *path, uint64_t file_bytes, mr_error *err);
/* Does the archive have exactly the members that its checksums list? Reads all headers. */
int mri_tar_sums_fit(bool *out, int fd, const char *path, uint64_t file_bytes, mr_error *err);
/* Compare every member with its checksum and the list of members with the archive's members, if it has
 * checksums. MR_ECHECKSUM: err names the first wrong member, and their number. MR_EFORMAT: the checksums are
 * damaged. *fit false: they are about other members, and nothing was compared. */
int mri_tar_sums_check(bool *fit, int fd, const char *path, uint64_t file_bytes, mr_error *err);

/* ---- members and lines that did not meet in their order (tar_sums_match.c) ---- */
typedef struct mri_tar_listed { /* a line, or a member */
    mri_tar_sum sum;
    char *name; /* of a member; NULL: of a line */
} mri_tar_listed;

typedef struct mri_tar_unmatched { /* {0} is a valid empty one */
    mri_tar_listed *member, *line;
    uint64_t members, lines, member_room, line_room;
    uint64_t fitting, wrong; /* matching pairs so far; errors */
    mr_error first;          /* the first error in the archive */
} mri_tar_unmatched;

int mri_tar_unmatched_member(mri_tar_unmatched *u, const mri_tar_sum *sum, const char *name, mr_error *err);
int mri_tar_unmatched_line(mri_tar_unmatched *u, const mri_tar_sum *sum, mr_error *err);
/* Count a pair; with_data: their bytes' checksums are compared, too. */
void mri_tar_matched(mri_tar_unmatched *u, const mri_tar_sum *line, const mri_tar_sum *member,
                     const char *name, bool with_data);
/* Match the rest by name, then by position, and count unmatched entries as wrong. */
void mri_tar_unmatched_settle(mri_tar_unmatched *u, bool with_data);
void mri_tar_unmatched_fini(mri_tar_unmatched *u); /* counts and error stay */

#endif
