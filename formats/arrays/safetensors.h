/* formats/arrays/safetensors.h: the header of a safetensors file: tensors by name, and where each lies.
 * Private.
 *
 *   | length u64 | {"NAME": {"dtype": "F32", "shape": [64, 3], "data_offsets": [0, 768]}, ...} | tensors |
 *
 * The text is JSON. Only this one object is allowed: a name once, three keys each once, in any order, whole
 * numbers, and an object of texts under "__metadata__", which is skipped. Nothing nests deeper, so this
 * parser is shorter than the checks of a general JSON tree, keeps all 64 bits of an offset, and needs memory
 * only for the list. Offsets count from the end of the header; together the tensors must fill the rest of the
 * file without gap or overlap, as the format asks. */
#ifndef MRI_SAFETENSORS_H
#define MRI_SAFETENSORS_H

#include "millrace/formats.h"

enum {
    MRI_SAFETENSORS_LENGTH_BYTES = 8,
    MRI_SAFETENSORS_MOST_HEADER = 100000000, /* as the format's own library has it */
    MRI_SAFETENSORS_MOST_TENSORS = 65536,
};

typedef struct mri_safetensor {
    char *name;             /* without control characters */
    char dtype[8];          /* as written: "F32", "BF16", ... */
    uint32_t element_bytes; /* 0: a type that is not known; its bytes are not checked against the shape */
    uint32_t ndim;
    uint64_t dim[MR_MAX_DIMS];
    uint64_t begin, end; /* bytes after the header */
} mri_safetensor;

typedef struct mri_safetensors {
    mri_safetensor *tensor; /* in the order of the file's bytes */
    uint32_t count;
} mri_safetensors;

/* Does a file of file_bytes bytes begin like a safetensors file? head: its first 9 bytes. */
bool mri_is_safetensors(const uint8_t *head, size_t bytes, uint64_t file_bytes);

/* text: the header without its length. data_bytes: size of the file after the header. MR_EFORMAT with
 * err->offset in the file, MR_ELIMIT, MR_ENOMEM; *out is zeroed then. */
int mri_safetensors_parse(const char *text, size_t bytes, uint64_t data_bytes, mri_safetensors *out,
                          mr_error *err);
void mri_safetensors_free(mri_safetensors *s); /* accepts a zeroed one */

#endif
