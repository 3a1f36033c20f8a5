/* formats/source/elements.c: see elements.h. */
#include "formats/source/elements.h"

#include "base/util.h"

bool mri_dtype_is_integer(mr_dtype dtype)
{
    return dtype == MR_U8 || dtype == MR_I8 || dtype == MR_I16 || dtype == MR_I32 || dtype == MR_I64;
}

void mri_elements_to_ints(mr_dtype dtype, const void *data, size_t count, int64_t *out)
{
    const uint8_t *p = data;
    if (dtype == MR_I64 && count > 0) memcpy(out, data, count * sizeof *out);
    for (size_t k = 0; dtype != MR_I64 && k < count; k++) {
        if (dtype == MR_U8) out[k] = p[k];
        else if (dtype == MR_I8) out[k] = (int8_t)p[k];
        else if (dtype == MR_I16) out[k] = (int16_t)mri_le16(p + 2 * k);
        else out[k] = (int32_t)mri_le32(p + 4 * k);
    }
}

static float float_of_bits(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Sign, 5 bits of exponent (bias 15), 10 of mantissa; exponent 0 has no leading one and counts in 2^-24. */
static float float_of_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)mantissa * 0x1p-24f;
    return float_of_bits(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | mantissa << 13);
}

void mri_elements_to_floats(mr_dtype dtype, const void *data, size_t count, float *out)
{
    const uint8_t *p = data;
    if (dtype == MR_F32 && count > 0) memcpy(out, data, count * sizeof *out);
    for (size_t k = 0; dtype != MR_F32 && k < count; k++) {
        double v;
        if (dtype == MR_F16) out[k] = float_of_half(mri_le16(p + 2 * k));
        else if (dtype == MR_BF16) out[k] = float_of_bits((uint32_t)mri_le16(p + 2 * k) << 16);
        else memcpy(&v, p + 8 * k, sizeof v), out[k] = (float)v;
    }
}
