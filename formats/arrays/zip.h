/* formats/arrays/zip.h: the members of a zip archive, as NumPy writes them (.npz): stored or deflated, zip64
 * included. Private.
 *
 *   | local header, data | ... | central directory | zip64 end, its locator | end |
 *
 * The central directory must reach exactly to the end record, and each local header must agree with it (name,
 * method, flags, sizes where it has them), or two readers could see two archives. Refused by name:
 * encryption, other methods, several disks, a name twice, bytes before the first member or after the end's
 * comment. Stored sizes must fit into the file; the unpacked size is checked while unpacking. */
#ifndef MRI_ZIP_H
#define MRI_ZIP_H

#include "formats/storage/storage.h"

enum { MRI_ZIP_MEMBERS = 4096, MRI_ZIP_MANY = 1 << 24 };

typedef struct mri_zip_member {
    char *name;
    uint64_t header; /* its local header */
    uint64_t offset; /* of the data; 0 until located */
    uint64_t packed, bytes;
    uint32_t crc;
    uint16_t method, flags;
} mri_zip_member;

typedef struct mri_zip {
    const char *path; /* the caller's */
    int fd;           /* the caller's */
    uint64_t file_bytes, directory;
    mri_zip_member *member;
    uint32_t count;
    uint64_t memory_bytes;
    bool many; /* mri_zip_open_many() */
    uint64_t directory_most;
} mri_zip;

bool mri_is_zip(const void *head, size_t bytes);

/* Read the central directory: at most 16 MiB and MRI_ZIP_MEMBERS members. */
int mri_zip_open(mri_zip *z, int fd, uint64_t file_bytes, const char *path, mr_error *err);
/* The same for archives of pictures: up to 2^24 members, which the caller looks for names that come twice; at
 * most memory_bytes are taken. */
int mri_zip_open_many(mri_zip *z, int fd, uint64_t file_bytes, const char *path, uint64_t memory_bytes,
                      mr_error *err);
void mri_zip_close(mri_zip *z); /* accepts a zeroed one */

/* By name, "x_train.npy"; NULL when it is not there. */
mri_zip_member *mri_zip_find(const mri_zip *z, const char *name);

/* Check the local header; m->offset is where the data begins. */
int mri_zip_locate(const mri_zip *z, mri_zip_member *m, mr_error *err);

/* Append the unpacked bytes of a located member and check their CRC. A size that no deflate stream can reach
 * is refused first. */
int mri_zip_unpack(const mri_zip *z, const mri_zip_member *m, mri_spill *out, mr_error *err);

/* Check the CRC of a located, stored member by reading all of it. */
int mri_zip_check_stored(const mri_zip *z, const mri_zip_member *m, mr_error *err);

/* ---- writing: archives of stored members ---- */
enum { MRI_ZIP_OWN_HEAD = 46 + 28, MRI_ZIP_OWN_END = 98 }; /* room for a record, names not counted */
/* In front of a member's bytes, and its line of the directory: name, bytes, packed, crc, header. Returns the
 * length written to out, which must have room for MRI_ZIP_OWN_HEAD and the name (at most 65,535 bytes). */
size_t mri_zip_local_write(const mri_zip_member *m, uint8_t *out);
size_t mri_zip_central_write(const mri_zip_member *m, uint8_t *out);
/* The end record for a directory that lies from begin to end. */
size_t mri_zip_end_write(uint64_t count, uint64_t begin, uint64_t end, uint8_t out[MRI_ZIP_OWN_END]);

#endif
