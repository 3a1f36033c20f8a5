/* tests/fuzz/fuzz_npz.c: zip archives of arrays over hostile bytes. Input: the archive. */
#include "formats/spill.h"
#include "formats/zip.h"
#include "fuzz_source.h"

/* Every member that can be unpacked comes to what the directory says. */
static void unpack_all(int fd, size_t bytes, const char *path)
{
    mri_zip  z;
    mr_error err = MR_ERROR_INIT;
    if (mri_zip_open(&z, fd, bytes, path, &err) != MR_OK) return;
    for (uint32_t k = 0; k < z.count && k < 16; k++) {
        mri_zip_member *m = &z.member[k];
        mri_spill       out;
        if (mri_zip_locate(&z, m, &err) != MR_OK || mri_spill_open(&out, 1 << 20, &err) != MR_OK) continue;
        if (m->offset + m->packed > bytes) abort();
        if (mri_zip_unpack(&z, m, &out, &err) == MR_OK && (mri_spill_finish(&out, &err) != MR_OK || out.bytes != m->bytes)) abort();
        mri_spill_close(&out);
    }
    mri_zip_close(&z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char      path[64];
    const int fd = mrt_fuzz_file(data, bytes, path);
    unpack_all(fd, bytes, path);
    fuzz_open_format(path, "npy", NULL);
    fuzz_open_format(path, "npy", "none");
    close(fd);
    return 0;
}
