/* pipeline/decode/jpeg/scan/unstuff_avx512.c: unstuff.c with 64 bytes at a time, whatever is in them: no
 * branch to mispredict at an FF, and no load whose address waits for the load before it.
 *
 * A zero after an FF is dropped. Anything else after an FF is a marker: the plain variant finishes there and
 * at the end of src. An FF at the end of a step is carried to the next step in a bit; when there is no next
 * step, the plain variant takes it again. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "base/simd.h"
#include "pipeline/decode/jpeg/scan/scan.h"

MRI_TARGET_AVX512 size_t mri_unstuff_avx512(const uint8_t *src, size_t bytes, uint8_t *dst, size_t want,
                                            size_t *used)
{
    size_t in = 0, out = 0;
    uint64_t carry = 0; /* 1: the byte before src[in] is an FF, and it is in dst */
    while (bytes - in >= 64 && out < want) {
        const __m512i v = _mm512_loadu_si512(src + in);
        const uint64_t ff = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(-1)),
                       zero = _mm512_testn_epi8_mask(v, v);
        const uint64_t after = ff << 1 | carry, stuffed = after & zero;
        if (after & ~zero) break;
        carry = ff >> 63;
        _mm512_storeu_si512(dst + out, _mm512_maskz_compress_epi8(~stuffed, v));
        in += 64;
        out += 64 - (unsigned)_mm_popcnt_u64(stuffed);
    }
    in -= carry;
    out -= carry;
    size_t rest_used = 0;
    if (out < want) out += mri_unstuff_plain(src + in, bytes - in, dst + out, want - out, &rest_used);
    *used = in + rest_used;
    return out;
}

MRI_TARGET_AVX512 size_t mri_count_ff_avx512(const uint8_t *p, size_t bytes)
{
    const __m512i ff = _mm512_set1_epi8(-1);
    size_t count = 0;
    for (; bytes >= 64; p += 64, bytes -= 64)
        count += (unsigned)_mm_popcnt_u64(_mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), ff));
    const __mmask64 rest = (UINT64_C(1) << bytes) - 1;
    return count +
           (unsigned)_mm_popcnt_u64(_mm512_mask_cmpeq_epi8_mask(rest, _mm512_maskz_loadu_epi8(rest, p), ff));
}
#else
typedef int mri_unstuff_avx512_is_empty;
#endif
