/* formats/tar/tar.h: the headers of a tar archive, one after the other: bytes in, members out. Private.
 *
 *   | header 512 | data, padded to 512 | header | data | ... | 512 zeros | 512 zeros | more zeros |
 *
 * A member is one header, before which may stand headers that only speak of it: GNU 'L' (long name) and 'K'
 * (long link), PAX 'x'; and PAX 'g', which speaks of all that follow. Read are ustar with its prefix field,
 * GNU and PAX names and sizes, sizes in base 256, checksums summed over signed or unsigned bytes, and the
 * headers from before ustar.
 *
 * Archives in which readers may disagree about the position of the next header are refused: links, devices,
 * pipes and folders with data, two different sizes, a size or name for all members ('g'), two extended
 * headers of one kind, data after the end. A name is only text: no file is ever opened by it.
 *
 * The room: takes archives and gives one format for the table in formats/open.c. Headers, groups of members
 * (tar_sample.h) and names of classes (tar_classes.h) are also for pipeline/convert, which writes such
 * archives. */
#ifndef MRI_TAR_H
#define MRI_TAR_H

#include "millrace/base.h"

enum {
    MRI_TAR_BLOCK = 512,
    MRI_TAR_MAX_NAME = 4096,         /* bytes; a longer one is MR_ELIMIT */
    MRI_TAR_MAX_EXTENDED = 1 << 20,  /* bytes of one PAX header; more is MR_ELIMIT */
    MRI_TAR_END = 2 * MRI_TAR_BLOCK, /* zeros that end an archive */
};

/* ---- reading ---- */

/* Bytes [offset, offset + bytes) of the archive, valid until the next call. Never asked for what lies outside
 * of [at, end). */
typedef int mri_tar_get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err);

typedef enum mri_tar_kind {
    MRI_TAR_FILE,
    MRI_TAR_FOLDER,
    MRI_TAR_HARD_LINK,
    MRI_TAR_SYMBOLIC_LINK,
    MRI_TAR_DEVICE,
    MRI_TAR_PIPE,
    MRI_TAR_SPARSE, /* a file stored without its holes: its data differ from the file's */
    MRI_TAR_OTHER,  /* a type of some program's own */
} mri_tar_kind;

typedef struct mri_tar_member {
    mri_tar_kind kind;
    const char *name; /* NUL-terminated, in the walker: valid until the next call. Any bytes */
    size_t name_bytes;
    uint64_t head; /* offset of the first header that speaks of it */
    uint64_t data, bytes;
} mri_tar_member;

typedef struct mri_tar { /* one walk; caller's storage */
    mri_tar_get *get;
    void *context;
    uint64_t at, end;    /* next header; end of what may be read */
    uint32_t end_blocks; /* once MR_EEND came: blocks of zeros found, 0 or 1; mri_tar_finish() finds the
                            second */
    /* what extended headers said about the member to come */
    uint64_t head, size;
    bool has_size, sparse, seen[3];
    int name_rank;
    size_t name_bytes;
    char name[MRI_TAR_MAX_NAME + 1];
} mri_tar;

/* Walk [at, end) of something that get() reads. */
void mri_tar_init(mri_tar *t, mri_tar_get *get, void *context, uint64_t at, uint64_t end);

/* The next member. MR_EEND after the last one. MR_EFORMAT, MR_EUNSUPPORTED, MR_ELIMIT with the offset; no
 * walking on after these. */
int mri_tar_next(mri_tar *t, mri_tar_member *out, mr_error *err);

/* After MR_EEND: nothing but zeros up to the end, or MR_EFORMAT. Reads it all. */
int mri_tar_finish(mri_tar *t, mr_error *err);

/* Is this a header (512 bytes) with a correct checksum? For probes. */
bool mri_tar_is_header(const uint8_t *block, size_t bytes);

const char *mri_tar_kind_name(mri_tar_kind kind); /* "a symbolic link" */

/* ---- writing ---- */

/* Bytes of the headers in front of a file of this name and size: one block, or three and more when PAX has to
 * help. */
size_t mri_tar_head_bytes(const char *name, uint64_t bytes);

/* Write them: owner 0, mode 0644, time 0, so that the same data gives the same archive. `room` is at least
 * what head_bytes() says. MR_EINVAL for a name no file can have (empty, ending in '/', longer than
 * MRI_TAR_MAX_NAME) and sizes from 2^63. The data follows, then zeros up to a multiple of MRI_TAR_BLOCK;
 * after the last member MRI_TAR_END zeros. */
int mri_tar_head_write(const char *name, uint64_t bytes, uint8_t *out, size_t room, size_t *used,
                       mr_error *err);

#endif
