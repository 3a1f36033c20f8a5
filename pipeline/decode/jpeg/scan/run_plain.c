/* pipeline/decode/jpeg/scan/run_plain.c: runs of MCUs in plain C; run_avx2.c has the same for processors with
 * shifts that spare the flags (BMI2). */
#include "base/simd.h"
#include "pipeline/decode/jpeg/scan/run.h"

static uint32_t run_mcus_plain(mri_run *r, uint32_t count) { return run_mcus(r, count); }
static uint32_t skim_mcus_plain(mri_run *r, uint32_t count) { return skim_mcus(r, count); }
static uint32_t only_dc_mcus_plain(mri_run *r, uint32_t count) { return only_dc_mcus(r, count); }

uint32_t mri_run_mcus(mri_run *r, uint32_t count)
{
#if defined(__x86_64__)
    const mri_simd_level level = mri_simd();
    if (level == MRI_SIMD_AVX512) return mri_run_mcus_avx512(r, count);
    if (level == MRI_SIMD_AVX2) return mri_run_mcus_avx2(r, count);
#endif
    return run_mcus_plain(r, count);
}

uint32_t mri_skim_mcus(mri_run *r, uint32_t count)
{
#if defined(__x86_64__)
    const mri_simd_level level = mri_simd();
    if (level == MRI_SIMD_AVX512 || level == MRI_SIMD_AVX2) return mri_skim_mcus_avx2(r, count);
#endif
    return skim_mcus_plain(r, count);
}

uint32_t mri_only_dc_mcus(mri_run *r, uint32_t count)
{
#if defined(__x86_64__)
    const mri_simd_level level = mri_simd();
    if (level == MRI_SIMD_AVX512 || level == MRI_SIMD_AVX2) return mri_only_dc_mcus_avx2(r, count);
#endif
    return only_dc_mcus_plain(r, count);
}
