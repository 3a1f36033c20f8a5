/* pipeline/decode/jpeg/scan/run_avx2.c: run_plain.c's loop with BMI2 shifts and wider stores. */
#if defined(__x86_64__)
#include "base/simd.h"
#include "pipeline/decode/jpeg/scan/run.h"

MRI_TARGET_AVX2 uint32_t mri_run_mcus_avx2(mri_run *r, uint32_t count) { return run_mcus(r, count); }
MRI_TARGET_AVX2 uint32_t mri_skim_mcus_avx2(mri_run *r, uint32_t count) { return skim_mcus(r, count); }
MRI_TARGET_AVX2 uint32_t mri_only_dc_mcus_avx2(mri_run *r, uint32_t count) { return only_dc_mcus(r, count); }
#else
typedef int mri_run_avx2_is_empty;
#endif
