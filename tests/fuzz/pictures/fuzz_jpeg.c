/* tests/fuzz/pictures/fuzz_jpeg.c: any bytes offered as a JPEG. */
#include "tests/fuzz/pictures/fuzz_picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes > 0) fuzz_picture(MR_TYPE_JPEG, data, bytes);
    return 0;
}
