/* kernels/cuda/kernels/number.h: one number of a data set, of any type. */
#ifndef MRK_NUMBER_H
#define MRK_NUMBER_H

#include "kernels/cuda/kernels/values.h"

/* Number i of x, of type `from`. */
MRK_INLINE int64_t mrk_whole_number(const void *x, uint32_t from, uint64_t i)
{
    switch (from) {
    case MR_TENSOR_U8: return ((const uint8_t *)x)[i];
    case MR_TENSOR_I8: return ((const int8_t *)x)[i];
    case MR_TENSOR_I16: return ((const int16_t *)x)[i];
    case MR_TENSOR_I32: return ((const int32_t *)x)[i];
    default: return ((const int64_t *)x)[i];
    }
}

MRK_INLINE double mrk_real_number(const void *x, uint32_t from, uint64_t i)
{
    switch (from) {
    case MR_TENSOR_F16: return (double)mrk_float(((const mrk_f16 *)x)[i]);
    case MR_TENSOR_BF16: return (double)mrk_float(((const mrk_bf16 *)x)[i]);
    case MR_TENSOR_F32: return (double)((const float *)x)[i];
    case MR_TENSOR_F64: return ((const double *)x)[i];
    default: return (double)mrk_whole_number(x, from, i);
    }
}

#endif
