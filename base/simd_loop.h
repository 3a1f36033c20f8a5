/* base/simd_loop.h: loops compiled for several instruction sets, the widest the processor has chosen at run
 * time. Private.
 *
 * MRI_SIMD_LOOP(name, (parameters), (arguments)) defines `static void name(parameters)` from a function
 * name_body that is written once, in plain C, above it. A macro, because C has no other way to compile one
 * body three times; chosen by hand and not by the compiler's target_clones, whose resolvers run before the
 * sanitizers are ready. Floating-point contraction is off in this project, so element-wise loops give the
 * same bits in every variant. */
#ifndef MRI_BASE_SIMD_LOOP_H
#define MRI_BASE_SIMD_LOOP_H

#include "base/simd.h"

#define MRI_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)

#define MRI_SIMD_LOOP(name, params, args)                                                                    \
    static void name##_base params { name##_body args; }                                                     \
    MRI_TARGET_AVX2 static void name##_avx2 params { name##_body args; }                                     \
    MRI_TARGET_AVX512 static void name##_avx512 params { name##_body args; }                                 \
    static void name params                                                                                  \
    {                                                                                                        \
        switch (mri_simd()) {                                                                                \
        case MRI_SIMD_AVX512: name##_avx512 args; break;                                                     \
        case MRI_SIMD_AVX2: name##_avx2 args; break;                                                         \
        default: name##_base args; break;                                                                    \
        }                                                                                                    \
    }

#else

#define MRI_SIMD_LOOP(name, params, args)                                                                    \
    static void name params { name##_body args; }

#endif
#endif
