/* formats/arrays/npy.h: the header of a NumPy array file (versions 1, 2 and 3). Private.
 *
 *   | 93 "NUMPY" | major minor | length u16 (1) or u32 (2, 3) | {'descr': '<f4', 'fortran_order': False,
 *   'shape': (3, 4), } \n | elements
 *
 * The text is a Python literal. Only one dictionary is allowed: these three keys, each once, in any order,
 * with a string, True or False, and a tuple of whole numbers. Nothing is evaluated. Structured types are
 * refused, and so are objects, which would have to be unpickled. */
#ifndef MRI_NPY_H
#define MRI_NPY_H

#include "millrace/formats.h"

enum { MRI_NPY_HEAD_BYTES = 65536 }; /* largest header, preamble included */

typedef struct mri_npy {
    char kind; /* i, u, f, b (bool), c, S, U, ... as NumPy calls it */
    uint32_t element_bytes;
    bool swapped; /* big-endian and wider than a byte */
    bool fortran; /* column-major, where that makes a difference */
    uint32_t ndim;
    uint64_t dim[MR_MAX_DIMS];
    uint64_t count;        /* elements; their bytes fit 63 bits */
    uint32_t header_bytes; /* elements begin here */
    char descr[24];        /* as written, for messages */
} mri_npy;

bool mri_is_npy(const void *head, size_t bytes);

/* head: the first bytes of the file, MRI_NPY_HEAD_BYTES or, if shorter, the whole file. file_bytes: the size
 * of the file, which must be exactly header and elements. MR_EFORMAT with err->offset set, MR_EUNSUPPORTED
 * for types that are not read. */
int mri_npy_parse(const void *head, size_t bytes, uint64_t file_bytes, mri_npy *out, mr_error *err);

/* The element type of a tensor of these elements; 0 for types that tensors do not have (unsigned of more than
 * a byte, complex, text). bool is u8. */
mr_dtype mri_npy_dtype(const mri_npy *a);
bool mri_npy_is_integer(const mri_npy *a); /* or bool */
/* Element of an integer array as int64; false when it does not fit. p is at the element. */
bool mri_npy_integer(const mri_npy *a, const void *p, int64_t *out);
/* "3 x 4 of <f4", for messages. */
const char *mri_npy_text(const mri_npy *a, char *buf, size_t buf_bytes);

/* ---- writing ---- */
enum { MRI_NPY_OWN_HEAD = 320 }; /* room for a header of MR_MAX_DIMS dimensions */
/* Write the header in front of row-major elements, the same bytes that NumPy writes. Returns its length.
 * NumPy has no MR_BF16. */
size_t mri_npy_head_write(mr_dtype dtype, uint32_t ndim, const uint64_t *dim, uint8_t out[MRI_NPY_OWN_HEAD]);

#endif
