/* formats/folder/members.h: the tree that the names of an archive's members make. Private.
 *
 *   train/airplane/0001.jpg  train/ship/0001.jpg ...    a tar archive, plain or packed; a zip archive
 *   n01440764.tar  n01443537.tar ...                    a tar archive of such: each is a folder of its name
 *   7z, rar; tar packed by bzip2, xz, zstd              what libarchive makes of it: members_pack.h
 *
 * Nothing is unpacked by name. Refused, by name: what leads out of the archive (.., /), a name twice, links
 * and devices, sparse files, encrypted members and those packed by other methods than deflate. */
#ifndef MRI_MEMBERS_H
#define MRI_MEMBERS_H

#include "formats/source/source.h"

typedef struct mri_member {
    uint32_t name; /* in text */
    int32_t parent, child, next;
    bool is_folder, deflated;
    uint32_t crc;           /* of a zip's */
    uint64_t offset, bytes; /* of the data, unpacked */
    uint64_t packed;        /* deflated: as it lies there */
} mri_member;

typedef struct mri_members {
    int fd; /* of the archive, unpacked where it was packed; -1: not open */
    uint64_t file_bytes;
    bool unpacked, in_memory; /* fd is a file without a name */
    bool any_deflated, is_zip;
    bool cut;         /* a tar without end mark */
    const char *path; /* the caller's */
    mri_member *node; /* 0: the archive itself */
    uint32_t count, cap;
    char *text;
    size_t text_used, text_cap;
    int32_t *slot; /* nodes by folder and name, open addressing; -1: free */
    uint32_t slot_count;
    char inside[4096]; /* the folder that holds all pictures: "food-101/images"; "": the archive */
} mri_members;

/* Does the file hold pictures in class folders? For probes. */
bool mri_members_probe(const mri_probe *p);

int mri_members_open(mri_members *m, const char *path, const mr_source_config *cfg, mr_error *err);
void mri_members_close(mri_members *m); /* accepts a zeroed one whose fd is -1 */
uint64_t mri_members_memory(const mri_members *m);
/* The node of that path below another one ("." for itself), or -1. */
int mri_members_find(const mri_members *m, int below, const char *path);
static inline const char *mri_members_name(const mri_members *m, int at)
{
    return m->text + m->node[at].name;
}
/* The first bytes; of a deflated one its beginning, as far as that goes. */
int mri_members_head(const mri_members *m, int at, uint8_t *head, size_t *bytes, mr_error *err);
/* All of a deflated one, checked: buffer has room for m->node[at].bytes. */
int mri_members_inflate(const mri_members *m, uint64_t offset, uint64_t packed, uint64_t bytes, uint32_t crc,
                        uint8_t *buffer, mr_error *err);

/* MR_EUNSUPPORTED: there is a list of withdrawn samples, as of a folder that was packed. */
int mri_members_check_lists(const mri_members *m, mr_error *err);
/* The first 64 MiB as a file of its own; *fd -1: it is damaged, or a deflated one that is larger. */
int mri_members_file(const mri_members *m, int at, int *fd, mr_error *err);

uint32_t mri_members_crc(const void *data, size_t bytes);

/* A folder on disk or in an archive, for the functions of folder.h. */
typedef struct mri_dir {
    const mri_members *in; /* NULL: on disk */
    int at;                /* descriptor, or node */
} mri_dir;

#endif
