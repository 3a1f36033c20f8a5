/* python/native/pixels.c: see native.h and batch.h. */
#include "python/native/batch.h"

#include <string.h>

#define CHANNELS_MOST 4

/* The value of a pixel: value[c][v], 256 of a channel, which stay in the first cache. */
typedef union table {
    float f32[CHANNELS_MOST][256];
    uint16_t f16[CHANNELS_MOST][256]; /* or bfloat16 */
} table;

/* The nearest, ties to even. */
static uint16_t to_bfloat16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The nearest, ties to even; too large a number is infinite, too small a one a subnormal or 0. */
static uint16_t to_float16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits >= 0x47800000) return sign | (bits > 0x7f800000 ? 0x7e00 : 0x7c00); /* 65536 and more */
    if (bits < 0x38800000) { /* below 2^-14: steps of 2^-24 */
        float magnitude;
        memcpy(&magnitude, &bits, sizeof magnitude);
        const float rounded = magnitude + 0.5f; /* one step of a float from 0.5 on is 2^-24 */
        memcpy(&bits, &rounded, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | ((bits - 0x38000000) >> 13));
}

static void make_table(table *t, const mrp_finish *how, const float *affine)
{
    for (uint32_t c = 0; c < how->channels; c++)
        for (uint32_t v = 0; v < 256; v++) {
            const float x =
                affine ? (float)v * affine[0] + affine[1] : ((float)v - how->mean[c]) / how->std[c];
            if (how->dtype == MR_F32) t->f32[c][v] = x;
            else t->f16[c][v] = how->dtype == MR_BF16 ? to_bfloat16(x) : to_float16(x);
        }
}

/* Pixels [from, pixels) of a picture: VALUE(c, v) of each. */
#define FORM(VALUE)                                                                                          \
    for (uint32_t c = 0; c < channels; c++)                                                                  \
        for (size_t i = from; i < pixels; i++)                                                               \
    out[how->planar ? c * pixels + i : i * channels + c] = VALUE(c, in[i * channels + c])

static void form_one(const mrp_finish *how, const uint8_t *in, size_t from, size_t pixels, const table *t,
                     void *to)
{
    const uint32_t channels = how->channels;
#define AS_F32(c, v) t->f32[c][v]
#define AS_F16(c, v) t->f16[c][v]
#define AS_U8(c, v)  (v)
    if (how->dtype == MR_F32) {
        float *out = to;
        FORM(AS_F32);
    } else if (how->dtype == MR_U8) {
        uint8_t *out = to;
        FORM(AS_U8);
    } else {
        uint16_t *out = to;
        FORM(AS_F16);
    }
}

void mrp_form_pixels(const mrp_finish *how, const uint8_t *pixels, uint32_t count, const float *affine,
                     void *out)
{
    table t;
    const size_t each = (size_t)how->height * how->width, values = each * how->channels;
    const size_t bytes = values * (how->dtype == MR_U8 ? 1 : how->dtype == MR_F32 ? 4 : 2);
    if (how->channels > CHANNELS_MOST) return;
    if (how->dtype == MR_U8 && !how->planar) {
        memcpy(out, pixels, count * values);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *in = pixels + i * values;
        const float *pair = affine ? affine + 2 * (size_t)i : NULL;
        void *to = (uint8_t *)out + i * bytes;
        const size_t done = mrp_form_avx2(how, in, each, pair, to);
        if (done == each) continue;
        if (how->dtype != MR_U8) make_table(&t, how, pair);
        form_one(how, in, done, each, &t, to);
    }
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
