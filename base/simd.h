/* base/simd.h: which instruction set is used by hand-written loops and by those compiled once per set.
 * Private.
 *
 * Chosen once at run time: the widest the processor has, or what MILLRACE_SIMD=plain|avx2|avx512|neon names
 * when the processor has that (mr_simd_complaint() in millrace/base.h says when not). Every variant gives the
 * same bits; the variable is for tests, comparisons and bug reports. */
#ifndef MRI_SIMD_LEVEL_H
#define MRI_SIMD_LEVEL_H

#include "millrace/base.h"

typedef enum mri_simd_level {
    MRI_SIMD_PLAIN = 0,
    MRI_SIMD_AVX2 = 1,   /* with FMA, BMI1, BMI2: Haswell, Zen */
    MRI_SIMD_AVX512 = 2, /* F, BW, VL, DQ, VBMI, VBMI2, VNNI: Ice Lake, Zen 4 */
    MRI_SIMD_NEON = 3,   /* every aarch64 */
} mri_simd_level;

/* The level in use. Any thread. */
mri_simd_level mri_simd(void);
bool mri_simd_available(mri_simd_level level);
const char *mri_simd_name(mri_simd_level level); /* "plain", "avx2", "avx512", "neon" */

/* For tests and benchmarks: use level from now on, in every thread. False, and nothing changed, when it is
 * not available. */
bool mri_simd_use(mri_simd_level level);

/* Function attributes of the levels. */
#if defined(__x86_64__)
#define MRI_TARGET_AVX2 __attribute__((target("avx2,fma,bmi,bmi2,popcnt,lzcnt")))
#if defined(__clang__)
#define MRI_TARGET_AVX512                                                                                    \
    __attribute__((target("avx2,fma,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,"    \
                          "avx512vbmi2,avx512vnni")))
#else
#define MRI_TARGET_AVX512                                                                                    \
    __attribute__((target("avx2,fma,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,"    \
                          "avx512vbmi2,avx512vnni,"                                                          \
                          "prefer-vector-width=512")))
#endif
#endif

#endif
