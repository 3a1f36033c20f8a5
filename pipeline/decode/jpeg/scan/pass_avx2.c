/* pipeline/decode/jpeg/scan/pass_avx2.c: pass_plain.c's loops with BMI2. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "base/simd.h"

#define PASS_TARGET         MRI_TARGET_AVX2
#define PASS_SELECT(set, n) _tzcnt_u64(_pdep_u64((uint64_t)1 << (n), set))
#include "pipeline/decode/jpeg/scan/pass_run.h"

MRI_TARGET_AVX2 uint32_t mri_pass_blocks_avx2(mri_pass_run *r, uint32_t count)
{
    return r->refine ? pass_blocks(r, count, true) : pass_blocks(r, count, false);
}
#else
typedef int mri_pass_avx2_is_empty;
#endif
