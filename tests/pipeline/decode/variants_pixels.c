/* tests/pipeline/decode/variants_pixels.c: every variant of pipeline/decode/jpeg/idct.h that this processor
 * has, against the recorded bits. Needs nothing but the C library, so that it can be linked statically and
 * run under an emulator:
 *
 *   aarch64-linux-gnu-gcc -std=gnu11 -O2 -static -I. -Ibase/include -Iformats/include -Itests/pipeline \
 *       -o variants_pixels tests/pipeline/decode/variants_pixels.c tests/pipeline/decode/pixel_work.c \
 *       base/simd.c pipeline/decode/jpeg/idct*.c pipeline/decode/jpeg/colour_out*.c
 *   qemu-aarch64-static ./variants_pixels */
#include <stdio.h>

#include "base/simd.h"
#include "tests/pipeline/decode/pixel_work.h"

int main(void)
{
    int wrong = 0;
    for (int level = MRI_SIMD_PLAIN; level <= MRI_SIMD_NEON; level++) {
        if (!mri_simd_use((mri_simd_level)level)) continue;
        const uint64_t hash = mrt_pixel_hash();
        printf("%-6s %016llx %s\n", mri_simd_name((mri_simd_level)level), (unsigned long long)hash,
               hash == MRT_PIXEL_HASH ? "as recorded" : "DIFFERS");
        wrong += hash != MRT_PIXEL_HASH;
    }
    return wrong ? 1 : 0;
}
