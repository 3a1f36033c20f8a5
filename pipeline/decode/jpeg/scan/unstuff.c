/* pipeline/decode/jpeg/scan/unstuff.c: entropy-coded bytes without their stuffing: FF 00 becomes FF.
 * unstuff_avx512.c has a faster way. */
#include "base/simd.h"
#include "pipeline/decode/jpeg/scan/scan.h"

size_t mri_unstuff_plain(const uint8_t *src, size_t bytes, uint8_t *dst, size_t want, size_t *used)
{
    size_t in = 0, out = 0;
    while (in < bytes && out < want) {
        const size_t span = bytes - in < want - out ? bytes - in : want - out;
        const uint8_t *mark = memchr(src + in, 0xff, span);
        const size_t clear = mark ? (size_t)(mark - (src + in)) : span;
        memcpy(dst + out, src + in, clear);
        in += clear;
        out += clear;
        if (!mark) continue;
        if (bytes - in < 2 || src[in + 1] != 0) break;
        dst[out++] = 0xff;
        in += 2;
    }
    *used = in;
    return out;
}

size_t mri_unstuff(const uint8_t *src, size_t bytes, uint8_t *dst, size_t want, size_t *used)
{
#if defined(__x86_64__)
    if (mri_simd() == MRI_SIMD_AVX512) return mri_unstuff_avx512(src, bytes, dst, want, used);
#endif
    return mri_unstuff_plain(src, bytes, dst, want, used);
}

static size_t mri_count_ff_plain(const uint8_t *p, size_t bytes)
{
    size_t count = 0;
    for (size_t k = 0; k < bytes; k++) count += p[k] == 0xff;
    return count;
}

size_t mri_count_ff(const uint8_t *p, size_t bytes)
{
#if defined(__x86_64__)
    if (mri_simd() == MRI_SIMD_AVX512) return mri_count_ff_avx512(p, bytes);
#endif
    return mri_count_ff_plain(p, bytes);
}
