/* formats/arrays/npy_build.c: the header of a NumPy array file, version 1, as NumPy writes it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/arrays/npy.h"

enum { PREAMBLE = 10, ALIGN = 64 /* where elements begin */ };

static const char *const descrs[] = {[MR_U8] = "|u1",  [MR_I8] = "|i1",  [MR_I16] = "<i2", [MR_I32] = "<i4",
                                     [MR_I64] = "<i8", [MR_F16] = "<f2", [MR_F32] = "<f4", [MR_F64] = "<f8"};

size_t mri_npy_head_write(mr_dtype dtype, uint32_t ndim, const uint64_t *dim, uint8_t out[MRI_NPY_OWN_HEAD])
{
    char *text = (char *)out + PREAMBLE;
    size_t at = (size_t)sprintf(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descrs[dtype]);
    for (uint32_t k = 0; k < ndim; k++)
        at += (size_t)sprintf(text + at, k ? " %" PRIu64 "," : "%" PRIu64 ",", dim[k]);
    if (ndim > 1) at--; /* only a shape of one dimension ends with a comma */
    at += (size_t)sprintf(text + at, "), }");
    const size_t bytes = (size_t)mri_align_up(PREAMBLE + at + 1, ALIGN);
    memset(text + at, ' ', bytes - PREAMBLE - at);
    out[bytes - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01", 8);
    mri_put_le16(out + 8, (uint16_t)(bytes - PREAMBLE));
    return bytes;
}
