/* tests/fuzz/sets/fuzz_salvage.c: pieces taken out of damaged files (formats/storage/salvage.h), and
 * checksums in archives, over hostile bytes. Every whole piece goes into a new file.
 *
 * Input: one byte that chooses the format, then the file. */
#include "formats/record/mrec_salvage.h"
#include "formats/tar/tar_salvage.h"
#include "formats/tar/tar_sums.h"
#include "formats/tfrecord/tfrecord_salvage.h"
#include "tests/fuzz/fuzz_source.h"

static void sums(const uint8_t *data, size_t bytes)
{
    mri_tar_sums_walk w;
    mri_tar_sum one;
    if (mri_tar_sums_begin(&w, data, bytes, (uint64_t)1 << 40, NULL) != MR_OK) return;
    while (mri_tar_sums_next(&w, &one))
        if (one.data > (uint64_t)1 << 40 || one.bytes > ((uint64_t)1 << 40) - one.data) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const mri_salvage_ops *const all[] = {&mri_salvage_mrec, &mri_salvage_tar, &mri_salvage_tfrecord};
    if (bytes < 1) return 0;
    if (data[0] % 4 == 3) {
        sums(data + 1, bytes - 1);
        return 0;
    }
    const mri_salvage_ops *ops = all[data[0] % 4];
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    const char *path = mrt_fuzz_file("damaged", data + 1, bytes - 1);
    void *walk;
    if (ops->open(&walk, path, NULL, NULL) == MR_OK) {
        mri_salvage_item item = {0};
        uint64_t at = 0, items = 0;
        while (ops->next(walk, &item, NULL) == MR_OK) {
            if (++items > 4 * bytes + 64) abort(); /* it comes to its end */
            if (item.what != MRI_SALVAGE_WHOLE) continue;
            if (item.offset < at || item.bytes > bytes || item.offset > bytes - item.bytes) abort();
            at = item.offset + item.bytes;
        }
        ops->close(walk);
    }
    mrt_fuzz_end();
    return 0;
}
