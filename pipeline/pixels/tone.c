/* pipeline/pixels/tone.c: see tone.h. Counts are exact, so are the tables. */
#include "pipeline/pixels/tone.h"

void mri_invert(uint8_t *p, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) p[k] = (uint8_t)(255 - p[k]);
}

void mri_solarize(uint8_t *p, size_t bytes, uint32_t threshold)
{
    for (size_t k = 0; k < bytes; k++) p[k] = p[k] >= threshold ? (uint8_t)(255 - p[k]) : p[k];
}

void mri_posterize(uint8_t *p, size_t bytes, uint32_t bits)
{
    const uint8_t kept = (uint8_t)(0xff00u >> bits);
    for (size_t k = 0; k < bytes; k++) p[k] &= kept;
}

/* How often each value is there, by channel. */
static void count_values(const uint8_t *p, size_t pixels, uint32_t channels, uint64_t count[3][256])
{
    memset(count, 0, 3 * sizeof *count);
    for (size_t k = 0; k < pixels; k++)
        for (uint32_t c = 0; c < channels; c++) count[c][p[k * channels + c]]++;
}

static void look_up(uint8_t *p, size_t pixels, uint32_t channels, uint8_t table[3][256])
{
    for (size_t k = 0; k < pixels; k++)
        for (uint32_t c = 0; c < channels; c++) p[k * channels + c] = table[c][p[k * channels + c]];
}

static uint32_t smallest(const uint64_t count[256])
{
    uint32_t v = 0;
    while (v < 255 && count[v] == 0) v++;
    return v;
}

static uint32_t largest(const uint64_t count[256])
{
    uint32_t v = 255;
    while (v > 0 && count[v] == 0) v--;
    return v;
}

static void stretching(const uint64_t count[256], uint8_t table[256])
{
    const uint32_t lo = smallest(count), hi = largest(count), span = hi - lo;
    for (uint32_t v = 0; v < 256; v++)
        table[v] = span == 0 || v < lo || v > hi ? (uint8_t)v : (uint8_t)(((v - lo) * 255 + span / 2) / span);
}

static void equalizing(const uint64_t count[256], size_t pixels, uint8_t table[256])
{
    const uint64_t step = (pixels - count[largest(count)]) / 255;
    uint64_t before = step / 2;
    for (uint32_t v = 0; v < 256; v++) {
        table[v] = step ? (uint8_t)mri_min_u64(before / step, 255) : (uint8_t)v;
        before += count[v];
    }
}

void mri_autocontrast(uint8_t *p, size_t pixels, uint32_t channels)
{
    uint64_t count[3][256];
    uint8_t table[3][256];
    count_values(p, pixels, channels, count);
    for (uint32_t c = 0; c < channels; c++) stretching(count[c], table[c]);
    look_up(p, pixels, channels, table);
}

void mri_equalize(uint8_t *p, size_t pixels, uint32_t channels)
{
    uint64_t count[3][256];
    uint8_t table[3][256];
    count_values(p, pixels, channels, count);
    for (uint32_t c = 0; c < channels; c++) equalizing(count[c], pixels, table[c]);
    look_up(p, pixels, channels, table);
}
