/* tests/fuzz/sets/fuzz_safetensors.c: a file of weights over hostile bytes. Input: the file as it is; or,
 * where its first byte is '{', a header alone: its length is put in front of it, and zeros for the data that
 * it names after it. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "formats/arrays/safetensors.h"
#include "formats/arrays/tensor_file.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 1 << 16, DECLARED = 1 << 20 /* numbers are read in pieces */ };

/* The largest data offset in the header, where a parser that only looks for numbers finds it. */
static size_t data_bytes(const uint8_t *text, size_t bytes)
{
    size_t most = 0;
    for (size_t i = 0; i < bytes; i++) {
        size_t value = 0;
        for (; i < bytes && text[i] >= '0' && text[i] <= '9' && value < MOST; i++)
            value = value * 10 + text[i] - '0';
        if (value > most && i < bytes && text[i] == ']') most = value;
    }
    return most < MOST / 4 ? most : 0;
}

static size_t build(uint8_t *file, const uint8_t *data, size_t bytes)
{
    const size_t behind = data_bytes(data, bytes);
    mri_put_le64(file, bytes);
    memcpy(file + 8, data, bytes);
    memset(file + 8 + bytes, 0, behind);
    return 8 + bytes + behind;
}

static void read_all(const mri_tensor_file *f, size_t bytes)
{
    mr_error err = MR_ERROR_INIT;
    for (uint32_t i = 0; i < mri_tensor_file_count(f); i++) {
        const mri_tensor_entry *e = mri_tensor_file_at(f, i);
        if (mri_tensor_file_find(f, e->name) != i || e->ndim > MR_MAX_DIMS || e->count > bytes) abort();
        float *out = malloc(e->count ? e->count * sizeof *out : 1);
        if (!out) abort();
        const bool read = mri_tensor_file_read(f, i, out, &err) == MR_OK;
        if (e->unread ? read : !read && mri_tensor_file_format(f)[0] == 's')
            abort(); /* an archive has its CRCs */
        free(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t file[MOST + 8];
    mri_tensor_file *f;
    mr_error err = MR_ERROR_INIT;
    if (bytes > MOST / 2) return 0;
    const bool header = bytes > 0 && data[0] == '{';
    const size_t size = header ? build(file, data, bytes) : bytes;
    mrt_fuzz_begin(size, DECLARED);
    const char *path = mrt_fuzz_file("x.safetensors", header ? file : data, size);
    const bool is = mri_is_tensor_file(path);
    const int rc = mri_tensor_file_open(&f, path, &err);
    if ((rc == MR_OK) != (f != NULL) || (rc && !err.text[0]) || (rc == MR_OK && !is)) abort();
    if (f) read_all(f, size);
    mri_tensor_file_close(f);
    mrt_fuzz_end();
    return 0;
}
