/* kernels/cuda/kernels/softmax.h: exponentials of a row of values, which the threads of a block join. */
#ifndef MRK_SOFTMAX_H
#define MRK_SOFTMAX_H

#include "kernels/cuda/kernels/join.h"
#include "kernels/cuda/kernels/values.h"

/* Room of a block, one use after another. */
union softmax_share {
    double sums[MRK_THREADS];
    float tops[MRK_THREADS];
};

struct softmax {
    float top;
    double sum; /* of exp(factor (x - top)) */
};

/* All threads call; their number is a power of two. */
template <class T>
MRK_INLINE softmax softmax_of(const T *x, uint32_t count, float factor, softmax_share *share)
{
    softmax s;
    float top = mrk_float(x[0]);
    for (uint32_t c = threadIdx.x; c < count; c += blockDim.x) top = join_larger()(top, mrk_float(x[c]));
    s.top = joined(top, share->tops, join_larger());
    double sum = 0;
    for (uint32_t c = threadIdx.x; c < count; c += blockDim.x)
        sum += (double)expf(factor * (mrk_float(x[c]) - s.top));
    s.sum = joined(sum, share->sums, join_sum());
    return s;
}

#endif
