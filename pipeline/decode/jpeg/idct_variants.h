/* pipeline/decode/jpeg/idct_variants.h: code shared by the variants of the inverse cosine transform. Private
 * to idct*.c.
 *
 * A variant transforms the blocks of one sort; idct.c has the sorting and the meaning of the numbers
 * below. */
#ifndef MRI_IDCT_VARIANTS_H
#define MRI_IDCT_VARIANTS_H

#include "base/simd.h"
#include "pipeline/decode/jpeg/idct.h"

/* cos(k pi / 16) * 2^13.5. A pass multiplies by 2^14.5 in all: MRI_IDCT_C4 is exact, so is a block that has
 * DC only. */
#define MRI_IDCT_C1 11363
#define MRI_IDCT_C2 10703
#define MRI_IDCT_C3 9633
#define MRI_IDCT_C4 8192
#define MRI_IDCT_C5 6436
#define MRI_IDCT_C6 4433
#define MRI_IDCT_C7 2260

/* Samples 0..3 of a pass: the weights of two of its eight inputs, next to each other as multiply-add
 * instructions want them. Inputs 0, 2, 4, 6 give the even part, 1, 3, 5, 7 the odd part; sample 7 - i is even
 * part i minus odd part i. */
#define MRI_IDCT_EVEN_04                                                                                     \
    {                                                                                                        \
        MRI_IDCT_C4, MRI_IDCT_C4, MRI_IDCT_C4, -MRI_IDCT_C4, MRI_IDCT_C4, -MRI_IDCT_C4, MRI_IDCT_C4,         \
            MRI_IDCT_C4                                                                                      \
    }
#define MRI_IDCT_EVEN_26                                                                                     \
    {                                                                                                        \
        MRI_IDCT_C2, MRI_IDCT_C6, MRI_IDCT_C6, -MRI_IDCT_C2, -MRI_IDCT_C6, MRI_IDCT_C2, -MRI_IDCT_C2,        \
            -MRI_IDCT_C6                                                                                     \
    }
#define MRI_IDCT_ODD_15                                                                                      \
    {                                                                                                        \
        MRI_IDCT_C1, MRI_IDCT_C5, MRI_IDCT_C3, -MRI_IDCT_C1, MRI_IDCT_C5, MRI_IDCT_C7, MRI_IDCT_C7,          \
            MRI_IDCT_C3                                                                                      \
    }
#define MRI_IDCT_ODD_37                                                                                      \
    {                                                                                                        \
        MRI_IDCT_C3, MRI_IDCT_C7, -MRI_IDCT_C7, -MRI_IDCT_C5, -MRI_IDCT_C1, MRI_IDCT_C3, -MRI_IDCT_C5,       \
            -MRI_IDCT_C1                                                                                     \
    }
/* The same where inputs 4..7 are zero. */
#define MRI_IDCT_EVEN_02                                                                                     \
    {                                                                                                        \
        MRI_IDCT_C4, MRI_IDCT_C2, MRI_IDCT_C4, MRI_IDCT_C6, MRI_IDCT_C4, -MRI_IDCT_C6, MRI_IDCT_C4,          \
            -MRI_IDCT_C2                                                                                     \
    }
#define MRI_IDCT_ODD_13                                                                                      \
    {                                                                                                        \
        MRI_IDCT_C1, MRI_IDCT_C3, MRI_IDCT_C3, -MRI_IDCT_C7, MRI_IDCT_C5, -MRI_IDCT_C1, MRI_IDCT_C7,         \
            -MRI_IDCT_C5                                                                                     \
    }

#define MRI_IDCT_SHIFT_1 10
#define MRI_IDCT_SHIFT_2 19
#define MRI_IDCT_ROUND_1 (1 << (MRI_IDCT_SHIFT_1 - 1))
#define MRI_IDCT_ROUND_2                                                                                     \
    ((128 << MRI_IDCT_SHIFT_2) + (1 << (MRI_IDCT_SHIFT_2 - 1))) /* and the shift from -128.. to 0.. */

#define MRI_IDCT_CHUNK     64 /* blocks sorted at once: a bit for each */
#define MRI_IDCT_LOW_COUNT 10 /* zigzag positions 0..9 are the frequencies u + v <= 3 */

/* Up to MRI_IDCT_CHUNK blocks by how much there may be in them: DC only, low frequencies only, more. */
typedef struct mri_idct_sorts {
    uint64_t flat, low, full;
} mri_idct_sorts;

typedef mri_idct_sorts mri_idct_sort(const uint8_t *last, uint32_t count);

/* The blocks of coef whose bits are set in which, at least one, each to the 8 x 8 samples at dst + 8 * its
 * number. */
typedef void mri_idct_blocks(const int16_t (*coef)[MRI_JPEG_BLOCK], const uint16_t quant[MRI_JPEG_BLOCK],
                             uint64_t which, uint8_t *dst, size_t stride);

/* The lowest bit set, which is cleared. */
static inline uint32_t mri_idct_next(uint64_t *which)
{
    const uint32_t first = (uint32_t)__builtin_ctzll(*which);
    *which &= *which - 1;
    return first;
}

/* _low: only vertical and horizontal frequencies 0..3 may be other than zero; nothing else is looked at. */
mri_idct_sort mri_idct_plain_sort;
#if defined(__x86_64__)
mri_idct_blocks mri_idct_avx2, mri_idct_avx2_low;
mri_idct_sort mri_idct_avx2_sort;
mri_idct_blocks mri_idct_avx512, mri_idct_avx512_low;
mri_idct_sort mri_idct_avx512_sort;
#elif defined(__aarch64__)
mri_idct_blocks mri_idct_neon, mri_idct_neon_low;
#endif

#endif
