/* kernels/ops/data/numbers.h: one number of a data set, of any type, as a double or as a whole one. */
#ifndef MRI_NUMBERS_H
#define MRI_NUMBERS_H

#include "millrace/kernels.h"

/* An IEEE 754 half. */
static inline double mri_half_number(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, size = bits & 0x7FFF;
    union {
        uint32_t bits;
        float value;
    } f;
    if (size >= 0x7C00) f.bits = sign | 0x7F800000 | (size & 0x3FF) << 13;
    else if (size >= 0x0400) f.bits = sign | ((size << 13) + (112u << 23)); /* the exponent's bias */
    else return (sign ? -1.0 : 1.0) * (double)size * 0x1p-24;
    return (double)f.value;
}

static inline double mri_bfloat_number(uint16_t bits)
{
    union {
        uint32_t bits;
        float value;
    } f = {.bits = (uint32_t)bits << 16};
    return (double)f.value;
}

/* Number i of x, which is of type dtype (MR_TENSOR_...). */
static inline double mri_real_number(const void *x, uint32_t dtype, size_t i)
{
    switch (dtype) {
    case MR_TENSOR_U8: return ((const uint8_t *)x)[i];
    case MR_TENSOR_I8: return ((const int8_t *)x)[i];
    case MR_TENSOR_I16: return ((const int16_t *)x)[i];
    case MR_TENSOR_I32: return ((const int32_t *)x)[i];
    case MR_TENSOR_I64: return (double)((const int64_t *)x)[i];
    case MR_TENSOR_F16: return mri_half_number(((const uint16_t *)x)[i]);
    case MR_TENSOR_BF16: return mri_bfloat_number(((const uint16_t *)x)[i]);
    case MR_TENSOR_F32: return (double)((const float *)x)[i];
    case MR_TENSOR_F64: return ((const double *)x)[i];
    default: return 0;
    }
}

static inline bool mri_is_whole_type(uint32_t dtype)
{
    return dtype == MR_TENSOR_U8 || dtype == MR_TENSOR_I8 || dtype == MR_TENSOR_I16 ||
           dtype == MR_TENSOR_I32 || dtype == MR_TENSOR_I64;
}

/* The same of a whole type. */
static inline int64_t mri_whole_number(const void *x, uint32_t dtype, size_t i)
{
    switch (dtype) {
    case MR_TENSOR_U8: return ((const uint8_t *)x)[i];
    case MR_TENSOR_I8: return ((const int8_t *)x)[i];
    case MR_TENSOR_I16: return ((const int16_t *)x)[i];
    case MR_TENSOR_I32: return ((const int32_t *)x)[i];
    case MR_TENSOR_I64: return ((const int64_t *)x)[i];
    default: return -1;
    }
}

#endif
