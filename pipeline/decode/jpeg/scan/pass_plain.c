/* pipeline/decode/jpeg/scan/pass_plain.c: blocks of progressive AC scans in plain C; pass_avx2.c has the same
 * for processors that find the n-th bit of a set in one instruction (BMI2). */
#include "base/simd.h"

#define PASS_TARGET
#define PASS_SELECT(set, n) select_bit(set, n)
static inline unsigned select_bit(unsigned long long set, unsigned n)
{
    for (; n > 0; n--) set &= set - 1;
    return set ? (unsigned)__builtin_ctzll(set) : 64;
}

#include "pipeline/decode/jpeg/scan/pass_run.h"

static uint32_t pass_blocks_plain(mri_pass_run *r, uint32_t count)
{
    return r->refine ? pass_blocks(r, count, true) : pass_blocks(r, count, false);
}

uint32_t mri_pass_blocks(mri_pass_run *r, uint32_t count)
{
#if defined(__x86_64__)
    const mri_simd_level level = mri_simd();
    if (level == MRI_SIMD_AVX512 || level == MRI_SIMD_AVX2) return mri_pass_blocks_avx2(r, count);
#endif
    return pass_blocks_plain(r, count);
}
