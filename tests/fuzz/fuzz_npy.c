/* tests/fuzz/fuzz_npy.c: NumPy arrays over hostile bytes. Input: u16 length of y.npy, its bytes, then x.npy. */
#include "formats/npy.h"
#include "fuzz_source.h"

/* What the parser accepts must be a shape that fills the file exactly. */
static void parse(const uint8_t *data, size_t bytes)
{
    mri_npy  a;
    mr_error err = MR_ERROR_INIT;
    if (mri_npy_parse(data, bytes, bytes, &a, &err) != MR_OK) return;
    if (a.header_bytes + a.count * a.element_bytes != bytes || a.ndim > MR_MAX_DIMS) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) return 0;
    size_t labels = data[0] | (size_t)data[1] << 8;
    if (labels > bytes - 2) labels = bytes - 2;
    parse(data + 2, labels);
    parse(data + 2 + labels, bytes - 2 - labels);
    fuzz_put("y.npy", data + 2, labels);
    fuzz_put("x.npy", data + 2 + labels, bytes - 2 - labels);
    char path[128];
    snprintf(path, sizeof path, "%s/x.npy", fuzz_folder);
    fuzz_open_format(fuzz_folder, "npy", NULL);
    fuzz_open_format(path, "npy", "none");
    return 0;
}
