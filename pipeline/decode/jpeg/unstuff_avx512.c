/* pipeline/decode/jpeg/unstuff_avx512.c: unstuff.c with 64 bytes at a time, whatever is in them: no branch to
 * mispredict at an FF.
 *
 * A zero behind an FF is dropped, something else there is a marker: then, and at the end of src, the plain
 * variant finishes. An FF that ends a step is left to the next one, so that nothing is ever taken back. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "base/simd.h"
#include "pipeline/decode/jpeg/scan.h"

MRI_TARGET_AVX512 size_t mri_unstuff_avx512(const uint8_t *src, size_t bytes, uint8_t *dst, size_t want,
                                            size_t *used)
{
    size_t in = 0, out = 0;
    while (bytes - in >= 64 && out < want) {
        const __m512i v = _mm512_loadu_si512(src + in);
        const uint64_t ff = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(-1)),
                       zero = _mm512_testn_epi8_mask(v, v);
        const uint64_t behind = ff << 1, stuffed = behind & zero;
        if (behind & ~zero) break;
        const unsigned taken = 64 - (unsigned)(ff >> 63);
        _mm512_storeu_si512(dst + out, _mm512_maskz_compress_epi8(~stuffed, v));
        in += taken;
        out += taken - (unsigned)_mm_popcnt_u64(stuffed);
    }
    size_t rest_used = 0;
    if (out < want) out += mri_unstuff_plain(src + in, bytes - in, dst + out, want - out, &rest_used);
    *used = in + rest_used;
    return out;
}
#else
typedef int mri_unstuff_avx512_is_empty;
#endif
