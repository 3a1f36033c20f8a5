/* tests/pipeline/decode/pixel_work.c: see pixel_work.h. */
#include "tests/pipeline/decode/pixel_work.h"

#include <string.h>

static uint64_t draw(uint64_t *state) /* xorshift64* */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(2685821657736338717)) >> 24;
}

void mrt_zigzag(uint8_t place[MRI_JPEG_BLOCK])
{
    int at = 0;
    for (int sum = 0; sum < 15; sum++)
        for (int i = 0; i <= sum; i++) {
            const int v = sum % 2 ? i : sum - i, u = sum - v; /* even diagonals go up, odd ones down */
            if (u < 8 && v < 8) place[at++] = (uint8_t)(8 * v + u);
        }
}

static int16_t value(uint32_t kind, uint32_t zigzag, uint64_t *state)
{
    const uint64_t r = draw(state);
    if (kind == 3) return (int16_t)r;
    if (kind == 4) return r & 1 ? INT16_MAX : INT16_MIN;
    if (zigzag == 0) return (int16_t)((int32_t)(r % 256) - 128);
    /* small, and rarer towards high frequencies */
    return (int16_t)(r % 64 < zigzag
                         ? 0
                         : (int32_t)((r >> 8) % (64 / (zigzag + 1) + 3)) - (int32_t)(32 / (zigzag + 1) + 1));
}

void mrt_blocks_fill(mrt_blocks *b, uint64_t seed)
{
    uint8_t place[MRI_JPEG_BLOCK];
    uint64_t state = seed * 2654435761u + 88172645463325252u;
    mrt_zigzag(place);
    memset(b, 0, sizeof *b);
    for (uint32_t i = 0; i < MRT_BLOCKS; i++) {
        static const uint8_t kinds[8] = {0, 1, 2, 3, 4, 2, 1, 0}, spans[5] = {1, 10, 64, 64, 64};
        const uint32_t kind = kinds[draw(&state) % 8], span = 1 + (uint32_t)(draw(&state) % spans[kind]);
        for (uint32_t k = 0; k < span; k++) {
            b->coef[i][place[k]] = value(kind, k, &state);
            if (b->coef[i][place[k]]) b->last[i] = (uint8_t)k;
        }
    }
    for (uint32_t k = 0; k < MRI_JPEG_BLOCK; k++) {
        const uint64_t r = draw(&state);
        b->quant[k] = (uint16_t)(seed % 3 == 0 ? 1 + r % (8 + 2 * k) : seed % 3 == 1 ? 1 : r);
    }
}

static uint64_t mixed(uint64_t hash, const uint8_t *p, size_t bytes) /* FNV-1a */
{
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    return hash;
}

uint64_t mrt_pixel_hash(void)
{
    static mrt_blocks blocks;
    static uint8_t samples[8 * 8 * MRT_BLOCKS], rgb[3 * 8 * MRT_BLOCKS];
    const size_t row = 8 * MRT_BLOCKS;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (uint64_t seed = 0; seed < 60; seed++) {
        mrt_blocks_fill(&blocks, seed);
        mri_idct_row((const int16_t(*)[MRI_JPEG_BLOCK])blocks.coef, blocks.last, blocks.quant, MRT_BLOCKS,
                     samples, row);
        hash = mixed(hash, samples, sizeof samples);
        const size_t odd = seed % 67;
        mri_ycc_to_rgb(samples, samples + row, samples + 2 * row, row - odd, rgb);
        hash = mixed(hash, rgb, 3 * (row - odd));
        mri_planes_to_rgb(samples, samples + row, samples + 2 * row, row - odd, rgb);
        hash = mixed(hash, rgb, 3 * (row - odd));
        mri_gray_to_rgb(samples + row, row - odd, rgb);
        hash = mixed(hash, rgb, 3 * (row - odd));
    }
    return hash;
}
