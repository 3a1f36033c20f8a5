/* formats/arrays/npy_array.h: one array of NumPy: a file .npy, or a member of an archive .npz. Private.
 *
 * Takes the place of an array and its name. Gives its header, and a descriptor from which elements are read.
 * What has to be changed first (a deflated member, elements in the other byte order) goes once through a file
 * without a name. */
#ifndef MRI_NPY_ARRAY_H
#define MRI_NPY_ARRAY_H

#include "formats/arrays/npy.h"
#include "formats/arrays/npy_names.h"
#include "formats/arrays/zip.h"

typedef struct mri_npy_array {
    mri_npy a;
    char *path;                      /* of its file */
    int fd;                          /* with the elements in it: of the file, or of the spill */
    uint64_t first;                  /* offset of the first element */
    uint64_t file_bytes;             /* of fd */
    mri_spill spill;                 /* fd -1: not needed */
    const mri_zip_member *unchecked; /* whose CRC the check of the source compares; NULL: no CRC, or opening
                                      * compared it
                                      */
} mri_npy_array;

/* Open the array `name` of s. check: compare its CRC in any case. memory_bytes: limit of what unpacking
 * holds. After an error *x is closed. */
int mri_npy_array_open(mri_npy_store *s, const char *name, mri_npy_array *x, bool check,
                       uint64_t memory_bytes, mr_error *err);
/* The same for a file; *x was closed. The caller closes it after an error. */
int mri_npy_array_file(mri_npy_array *x, const char *path, mr_error *err);
/* Accepts a closed one. */
void mri_npy_array_close(mri_npy_array *x);
/* All elements in the other byte order, into a spill, from which they are read from here on. */
int mri_npy_array_swap(mri_npy_array *x, uint64_t memory_bytes, mr_error *err);
/* Open a regular file to read. */
int mri_npy_open_file(const char *path, int *fd, uint64_t *bytes, mr_error *err);
/* MR_ENOMEM, of the file at path. */
int mri_npy_no_memory(mr_error *err, const char *path);

#endif
