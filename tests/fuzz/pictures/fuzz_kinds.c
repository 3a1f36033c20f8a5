/* tests/fuzz/pictures/fuzz_kinds.c: any bytes offered as a picture of a kind besides JPEG and PNG. */
#include "tests/fuzz/pictures/fuzz_picture.h"

#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const int type = mr_image_sniff(data, bytes);
    if (bytes > 0 && type != MR_TYPE_JPEG && type != MR_TYPE_PNG) fuzz_picture(MR_TYPE_BYTES, data, bytes);
    return 0;
}
