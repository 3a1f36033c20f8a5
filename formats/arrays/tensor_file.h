/* formats/arrays/tensor_file.h: a file of named arrays of numbers: safetensors, or a NumPy archive (.npz).
 * Private.
 *
 * Takes a path. Gives names, shapes, and the numbers as float32, one array at a time; and the way back, as
 * float32. Knows nothing of networks. Callers: train/. A file is hostile until it is checked: every length is
 * bounded by the file's, and nothing is made room for before it is known to be there. */
#ifndef MRI_TENSOR_FILE_H
#define MRI_TENSOR_FILE_H

#include "formats/storage/output.h"
#include "millrace/formats.h"

typedef struct mri_tensor_entry {
    const char *name; /* without control characters; of the file */
    char type[24];    /* as written, for messages: "F32", "<f4" */
    uint32_t ndim;
    uint64_t dim[MR_MAX_DIMS];
    uint64_t count;
    const char *unread; /* why it cannot be read as float32; NULL: it can */
} mri_tensor_entry;

typedef struct mri_tensor_file mri_tensor_file;

/* Is the file one of these, by its first bytes? False, too, of what cannot be opened. */
bool mri_is_tensor_file(const char *path);

/* MR_EFORMAT, MR_EUNSUPPORTED, MR_ELIMIT with file and offset. */
int mri_tensor_file_open(mri_tensor_file **out, const char *path, mr_error *err);
void mri_tensor_file_close(mri_tensor_file *f);               /* accepts NULL */
const char *mri_tensor_file_format(const mri_tensor_file *f); /* "safetensors", "npz" */
uint32_t mri_tensor_file_count(const mri_tensor_file *f);
const mri_tensor_entry *mri_tensor_file_at(const mri_tensor_file *f, uint32_t at);
/* Where it is; UINT32_MAX: it is not there. */
uint32_t mri_tensor_file_find(const mri_tensor_file *f, const char *name);
/* All of it, rounded to float32 where it has more bits. MR_EUNSUPPORTED as entry.unread says. */
int mri_tensor_file_read(const mri_tensor_file *f, uint32_t at, float *out, mr_error *err);

/* ---- writing ---- */

typedef struct mri_tensor_note { /* an entry of the file's metadata; .npz files have no metadata */
    const char *key, *text;
} mri_tensor_note;

/* "safetensors" or "npz" by the end of the name; NULL: neither. */
const char *mri_tensor_file_kind(const char *path);

typedef struct mri_tensor_writer mri_tensor_writer;
/* entries (name, ndim, dim, count) and notes must outlive it. rules: of formats/storage/output.h. MR_EINVAL:
 * a name that is neither .safetensors nor .npz. */
int mri_tensor_writer_open(mri_tensor_writer **out, const char *path, const mri_tensor_entry *entries,
                           uint32_t count, const mri_tensor_note *notes, uint32_t note_count,
                           const mri_output_rules *rules, mr_error *err);
/* The next one's numbers, in the order of entries. */
int mri_tensor_writer_put(mri_tensor_writer *w, const float *values, mr_error *err);
/* All are there: the file gets its name. *bytes: of the file. */
int mri_tensor_writer_commit(mri_tensor_writer *w, uint64_t *bytes, mr_error *err);
void mri_tensor_writer_close(mri_tensor_writer *w); /* without commit nothing is left; accepts NULL */

#endif
