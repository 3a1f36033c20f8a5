/* base/simd.c: see simd.h. */
#include "base/simd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"plain", "avx2", "avx512", "neon"};
enum { LEVELS = sizeof names / sizeof names[0], UNKNOWN = -1 };

static int chosen = UNKNOWN; /* atomic */
static char complaint[160];  /* filled by mr_simd_complaint(), which one thread asks for */

const char *mri_simd_name(mri_simd_level level) { return names[level]; }

bool mri_simd_available(mri_simd_level level)
{
    switch (level) {
    case MRI_SIMD_PLAIN: return true;
#if defined(__x86_64__)
    case MRI_SIMD_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    case MRI_SIMD_AVX512:
        return mri_simd_available(MRI_SIMD_AVX2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi") &&
               __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vnni");
#elif defined(__aarch64__)
    case MRI_SIMD_NEON: return true;
#endif
    default: return false;
    }
}

static mri_simd_level widest(void)
{
    for (int level = LEVELS - 1; level > 0; level--)
        if (mri_simd_available((mri_simd_level)level)) return (mri_simd_level)level;
    return MRI_SIMD_PLAIN;
}

/* Two threads may come here at once; both find the same. */
static mri_simd_level choose(void)
{
    const char *wish = getenv("MILLRACE_SIMD");
    if (!wish || !*wish) return widest();
    for (int level = 0; level < LEVELS; level++)
        if (strcmp(wish, names[level]) == 0 && mri_simd_available((mri_simd_level)level))
            return (mri_simd_level)level;
    return widest();
}

mri_simd_level mri_simd(void)
{
    int level = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (level == UNKNOWN) {
        level = (int)choose();
        __atomic_store_n(&chosen, level, __ATOMIC_RELAXED);
    }
    return (mri_simd_level)level;
}

bool mri_simd_use(mri_simd_level level)
{
    if (!mri_simd_available(level)) return false;
    __atomic_store_n(&chosen, (int)level, __ATOMIC_RELAXED);
    return true;
}

const char *mr_simd_in_use(void) { return names[mri_simd()]; }

const char *mr_simd_complaint(void)
{
    const char *wish = getenv("MILLRACE_SIMD");
    if (!wish || !*wish || strcmp(wish, names[choose()]) == 0) return NULL;
    snprintf(complaint, sizeof complaint,
             "MILLRACE_SIMD=%.40s is not available here (plain, avx2, avx512, neon); using %s", wish,
             names[widest()]);
    return complaint;
}
