/* formats/arrays/npy_names.h: finds arrays by name: which array of an archive or folder holds the pictures of
 * each split, and which holds their classes. Private to source_npy.c. */
#ifndef MRI_NPY_NAMES_H
#define MRI_NPY_NAMES_H

#include "formats/arrays/zip.h"
#include "formats/source/parts.h"

enum { MRI_NPY_NAME_BYTES = 256 };

typedef struct mri_npy_store { /* where arrays are looked for by name */
    char path[4096];           /* a folder, or the archive */
    bool is_zip;
    int fd; /* archive */
    mri_zip zip;
} mri_npy_store;

typedef struct mri_npy_parts {
    char name[MRI_PART_COUNT][MRI_NPY_NAME_BYTES]; /* of the pictures of each split; "": no such array */
} mri_npy_parts;

/* False: none has a usual name. */
bool mri_npy_find_parts(const mri_npy_store *s, mri_npy_parts *out);
bool mri_npy_has(const mri_npy_store *s, const char *name);
/* The array of classes that belongs to this one; false: none is there. */
bool mri_npy_find_labels(const mri_npy_store *s, const char *image, char out[MRI_NPY_NAME_BYTES]);
/* The array `key` of the part that the array of samples is of, else of this very name. */
bool mri_npy_find_targets(const mri_npy_store *s, const char *image, const char *key,
                          char out[MRI_NPY_NAME_BYTES]);
/* MR_ENOENT with the names that there are. name may be NULL: a usual one was looked for. */
int mri_npy_no_array(const mri_npy_store *s, const char *name, const char *what, mr_error *err);

#endif
