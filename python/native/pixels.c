/* python/native/pixels.c: see native.h. */
#include "python/native/native.h"

#include <string.h>

#define CHANNELS_MOST 4

/* value[c][v] of a pixel v: 256 floats a channel stay in the first cache. */
static void make_table(float table[CHANNELS_MOST][256], uint32_t channels, const float *mean,
                       const float *std)
{
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t v = 0; v < 256; v++) table[c][v] = ((float)v - mean[c]) / std[c];
}

static void one_planar(const uint8_t *in, size_t pixels, uint32_t channels, float table[CHANNELS_MOST][256],
                       float *out)
{
    for (uint32_t c = 0; c < channels; c++)
        for (size_t i = 0; i < pixels; i++) out[c * pixels + i] = table[c][in[i * channels + c]];
}

static void one_interleaved(const uint8_t *in, size_t pixels, uint32_t channels,
                            float table[CHANNELS_MOST][256], float *out)
{
    if (channels == 3) {
        for (size_t i = 0; i < 3 * pixels; i += 3) {
            out[i] = table[0][in[i]];
            out[i + 1] = table[1][in[i + 1]];
            out[i + 2] = table[2][in[i + 2]];
        }
        return;
    }
    for (size_t i = 0; i < pixels; i++)
        for (uint32_t c = 0; c < channels; c++) out[i * channels + c] = table[c][in[i * channels + c]];
}

uint32_t mrp_soft_targets(const int32_t *labels, const int32_t *labels2, const float *share2, uint32_t count,
                          uint32_t classes, float *out)
{
    memset(out, 0, (size_t)count * classes * sizeof *out);
    for (uint32_t i = 0; i < count; i++) {
        float *row = out + (size_t)i * classes;
        if (labels[i] < 0) continue;
        const float share = share2 ? share2[i] : 0;
        const int32_t second = share > 0 ? labels2[i] : labels[i];
        if ((uint32_t)labels[i] >= classes || (uint32_t)second >= classes) return i;
        row[labels[i]] += 1 - share;
        row[second] += share;
    }
    return count;
}

void mrp_normalise(const uint8_t *pixels, uint32_t count, uint32_t height, uint32_t width, uint32_t channels,
                   const float *mean, const float *std, int planar, float *out)
{
    float table[CHANNELS_MOST][256];
    const size_t each = (size_t)height * width, bytes = each * channels;
    if (channels > CHANNELS_MOST) return;
    make_table(table, channels, mean, std);
    for (uint32_t i = 0; i < count; i++)
        if (planar) one_planar(pixels + i * bytes, each, channels, table, out + i * bytes);
        else one_interleaved(pixels + i * bytes, each, channels, table, out + i * bytes);
}
