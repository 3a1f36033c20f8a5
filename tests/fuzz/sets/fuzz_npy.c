/* tests/fuzz/sets/fuzz_npy.c: NumPy arrays over hostile bytes. Input: u16 length of y.npy, its bytes, then
 * x.npy. */
#include "formats/arrays/npy.h"
#include "tests/fuzz/fuzz_source.h"

/* An accepted shape must fill the file exactly. */
static bool parse(const uint8_t *data, size_t bytes)
{
    mri_npy a;
    mr_error err = MR_ERROR_INIT;
    if (mri_npy_parse(data, bytes, bytes, &a, &err) != MR_OK) return false;
    if (a.header_bytes + a.count * a.element_bytes != bytes || a.ndim > MR_MAX_DIMS) abort();
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) return 0;
    size_t labels = data[0] | (size_t)data[1] << 8;
    if (labels > bytes - 2) labels = bytes - 2;
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    const bool fits = parse(data + 2, labels);
    const char *path = mrt_fuzz_file("x.npy", data + 2 + labels, bytes - 2 - labels);
    mrt_fuzz_file("y.npy", data + 2, labels);
    if (parse(data + 2 + labels, bytes - 2 - labels) || bytes % 8 == 0) {
        if (fits) fuzz_open_format(MRT_FUZZ_FOLDER, "npy", NULL);
        fuzz_open_format(path, "npy", "none");
    }
    mrt_fuzz_end();
    return 0;
}
