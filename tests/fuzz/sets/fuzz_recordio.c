/* tests/fuzz/sets/fuzz_recordio.c: hostile RecordIO bytes and the lists next to them, and frames built from
 * hostile data.
 *
 * Input: a mode byte; with bit 0 or 1 two bytes for the length of .idx and .lst each, and these; the rest is
 * the .rec file. bit 2: packed labels, the class is the second; bit 3: the rest is data to be framed and
 * found again instead. */
#include "formats/recordio/recordio.h"
#include "tests/fuzz/fuzz_source.h"

/* A list of the length that two bytes in front of it say, as a file. */
static void take_list(const char *name, const uint8_t **data, size_t *bytes)
{
    if (*bytes < 2) return;
    size_t n = (size_t)(*data)[0] | (size_t)(*data)[1] << 8;
    if (n > *bytes - 2) n = *bytes - 2;
    mrt_fuzz_file(name, *data + 2, n);
    *data += 2 + n;
    *bytes -= 2 + n;
}

static void frame_and_find(const uint8_t *data, size_t bytes)
{
    const uint64_t size = mri_recordio_bytes(data, (uint32_t)bytes);
    uint8_t *framed = malloc((size_t)size), *back = malloc(bytes ? bytes : 1);
    mri_recordio_memory m = {framed, size};
    mri_recordio_input in = mri_recordio_in_memory(&m);
    mri_recordio_record r;
    if (!framed || !back || mri_recordio_build(data, (uint32_t)bytes, framed) != framed + size)
        __builtin_trap();
    if (mri_recordio_read_headers(&in, 0, &r, NULL) != MR_OK || r.bytes != size || r.data_bytes != bytes)
        __builtin_trap();
    if (mri_recordio_copy(&in, &r, back, bytes, NULL) != MR_OK || (bytes && memcmp(back, data, bytes) != 0))
        __builtin_trap();
    free(framed);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    const int mode = *data++;
    bytes--;
    if (mode & 8) {
        frame_and_find(data, bytes);
        return 0;
    }
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    if (mode & 1) take_list("x.idx", &data, &bytes);
    if (mode & 2) take_list("x.lst", &data, &bytes);
    fuzz_open_format(mrt_fuzz_file("x.rec", data, bytes), "recordio", mode & 4 ? "1" : NULL);
    mrt_fuzz_end();
    return 0;
}
