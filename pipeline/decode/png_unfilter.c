/* pipeline/decode/png_unfilter.c: the filters of PNG rows undone; see png_rows.h.
 *
 * Of pixels of 3 and 4 bytes all bytes are done at once: in SSE2, which every x86-64 has. Each pixel needs
 * the one to its left, so that a row is as long as its chain; loads, and what does not need the pixel to the
 * left, are off the chain. */
#include <string.h>

#include "pipeline/decode/png_rows.h"

enum filter { NONE, SUB, UP, AVERAGE, PAETH };

/* ---- plain C ---- */

static unsigned paeth(unsigned left, unsigned above, unsigned corner)
{
    const int p = (int)left + (int)above - (int)corner, pa = abs(p - (int)left), pb = abs(p - (int)above),
              pc = abs(p - (int)corner);
    return pa <= pb && pa <= pc ? left : pb <= pc ? above : corner;
}

static void add_rows(uint8_t *row, const uint8_t *before, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) row[k] = (uint8_t)(row[k] + before[k]);
}

bool mri_png_unfilter_plain(uint8_t *row, const uint8_t *before, size_t bytes, unsigned pixel,
                            unsigned filter)
{
    const size_t first = pixel < bytes ? pixel : bytes;
    switch (filter) {
    case NONE: return true;
    case SUB:
        for (size_t k = first; k < bytes; k++) row[k] = (uint8_t)(row[k] + row[k - pixel]);
        return true;
    case UP: add_rows(row, before, bytes); return true;
    case AVERAGE:
        for (size_t k = 0; k < first; k++) row[k] = (uint8_t)(row[k] + before[k] / 2);
        for (size_t k = first; k < bytes; k++) row[k] = (uint8_t)(row[k] + (row[k - pixel] + before[k]) / 2);
        return true;
    case PAETH:
        add_rows(row, before, first);
        for (size_t k = first; k < bytes; k++)
            row[k] = (uint8_t)(row[k] + paeth(row[k - pixel], before[k], before[k - pixel]));
        return true;
    default: return false;
    }
}

/* ---- SSE2 ---- */

#if defined(__x86_64__)
#include <emmintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* The loops read and write 4 bytes of every pixel but the last, which the caller does. */
INLINE __m128i load_pixel(const uint8_t *p)
{
    int v;
    memcpy(&v, p, 4);
    return _mm_cvtsi32_si128(v);
}

/* 3 bytes: the fourth, of the next pixel, is unchanged. */
INLINE void store_pixel(uint8_t *p, __m128i v, const unsigned pixel)
{
    const int all = _mm_cvtsi128_si32(v);
    memcpy(p, &all, pixel == 3 ? 2 : 4);
    if (pixel == 3) p[2] = (uint8_t)((unsigned)all >> 16);
}

INLINE void sub_pixels(uint8_t *row, size_t count, const unsigned pixel)
{
    __m128i left = _mm_setzero_si128();
    for (; count > 0; count--, row += pixel) {
        left = _mm_add_epi8(load_pixel(row), left);
        store_pixel(row, left, pixel);
    }
}

/* _mm_avg_epu8() rounds up: less one where the sum is odd. */
INLINE void average_pixels(uint8_t *row, const uint8_t *before, size_t count, const unsigned pixel)
{
    const __m128i one = _mm_set1_epi8(1);
    __m128i left = _mm_setzero_si128();
    for (; count > 0; count--, row += pixel, before += pixel) {
        const __m128i above = load_pixel(before);
        const __m128i up = _mm_and_si128(_mm_xor_si128(left, above), one);
        left = _mm_add_epi8(load_pixel(row), _mm_sub_epi8(_mm_avg_epu8(left, above), up));
        store_pixel(row, left, pixel);
    }
}

INLINE __m128i abs16(__m128i v) { return _mm_max_epi16(v, _mm_sub_epi16(_mm_setzero_si128(), v)); }

INLINE __m128i choose(__m128i mask, __m128i yes, __m128i no)
{
    return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

/* In words: with p = left + above - corner the distances are |above - corner|, |left - corner| and
 * |left + above - 2 corner|. */
INLINE void paeth_pixels(uint8_t *row, const uint8_t *before, size_t count, const unsigned pixel)
{
    const __m128i zero = _mm_setzero_si128(), low = _mm_set1_epi16(255);
    __m128i left = zero, corner = zero;
    for (; count > 0; count--, row += pixel, before += pixel) {
        const __m128i above = _mm_unpacklo_epi8(load_pixel(before), zero),
                      x = _mm_unpacklo_epi8(load_pixel(row), zero);
        const __m128i from_corner = _mm_sub_epi16(above, corner), pa = abs16(from_corner);
        const __m128i to_left = _mm_sub_epi16(left, corner);
        const __m128i pb = abs16(to_left), pc = abs16(_mm_add_epi16(to_left, from_corner));
        const __m128i least = _mm_min_epi16(pc, _mm_min_epi16(pa, pb));
        const __m128i best =
            choose(_mm_cmpeq_epi16(least, pa), left, choose(_mm_cmpeq_epi16(least, pb), above, corner));
        left = _mm_and_si128(_mm_add_epi16(x, best), low);
        store_pixel(row, _mm_packus_epi16(left, left), pixel);
        corner = above;
    }
}

/* False: not for these. */
INLINE bool unfilter_pixels(uint8_t *row, const uint8_t *before, size_t bytes, const unsigned pixel,
                            unsigned filter)
{
    if (bytes < 2 * pixel || filter == NONE || filter == UP || filter > PAETH) return false;
    const size_t count = bytes / pixel - 1;
    uint8_t *last = row + count * pixel;
    const uint8_t *above = before + count * pixel;
    if (filter == SUB) sub_pixels(row, count, pixel);
    else if (filter == AVERAGE) average_pixels(row, before, count, pixel);
    else paeth_pixels(row, before, count, pixel);
    for (unsigned k = 0; k < pixel; k++) {
        const unsigned left = (last - pixel)[k];
        last[k] = (uint8_t)(last[k] + (filter == SUB       ? left
                                       : filter == AVERAGE ? (left + above[k]) / 2
                                                           : paeth(left, above[k], (above - pixel)[k])));
    }
    return true;
}

bool mri_png_unfilter(uint8_t *row, const uint8_t *before, size_t bytes, unsigned pixel, unsigned filter)
{
    if (pixel == 3 && unfilter_pixels(row, before, bytes, 3, filter)) return true;
    if (pixel == 4 && unfilter_pixels(row, before, bytes, 4, filter)) return true;
    return mri_png_unfilter_plain(row, before, bytes, pixel, filter);
}
#else
bool mri_png_unfilter(uint8_t *row, const uint8_t *before, size_t bytes, unsigned pixel, unsigned filter)
{
    return mri_png_unfilter_plain(row, before, bytes, pixel, filter);
}
#endif
