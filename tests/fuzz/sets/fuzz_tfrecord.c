/* tests/fuzz/sets/fuzz_tfrecord.c: the TFRecord source over hostile bytes: framing, packed streams, Examples.
 *
 * First byte of the input: 0, the rest is a file as it is; 1, the rest is the data of one record, framed here
 * with right checksums (a fuzzer does not find those); anything else, records of up to this size are made
 * of the rest, framed as well. */
#include "formats/tfrecord/tfrecord.h"
#include "tests/fuzz/fuzz_source.h"

static uint8_t *frame(const uint8_t *data, size_t bytes, size_t one, size_t *framed_bytes)
{
    const size_t count = one ? (bytes + one - 1) / one : 1;
    uint8_t *out = malloc(bytes + 16 * count + 1);
    size_t at = 0, used = 0;
    if (!out) abort();
    for (size_t k = 0; k < count; k++) {
        const size_t n = bytes - at < one ? bytes - at : one;
        mri_tfrecord_put_head(out + used, n);
        if (n) memcpy(out + used + 12, data + at, n);
        mri_tfrecord_put_tail(out + used + 12 + n, data + at, n);
        at += n;
        used += 16 + n;
    }
    *framed_bytes = used;
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    uint8_t *framed = NULL;
    size_t n = bytes - 1;
    if (data[0] != 0) framed = frame(data + 1, bytes - 1, data[0] == 1 ? bytes : data[0], &n);
    mrt_fuzz_begin(n, FUZZ_DECLARED);
    fuzz_open_format(mrt_fuzz_file("x.tfrecord", framed ? framed : data + 1, n), "tfrecord", NULL);
    mrt_fuzz_end();
    free(framed);
    return 0;
}
