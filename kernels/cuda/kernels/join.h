/* kernels/cuda/kernels/join.h: one value of all threads of a block, by halves. The number of threads is a
 * power of two. */
#ifndef MRK_JOIN_H
#define MRK_JOIN_H

#include "kernels/cuda/kernels/port.h"

struct join_larger {
    __device__ __forceinline__ float operator()(float a, float b) const { return b > a ? b : a; }
};
struct join_sum {
    __device__ __forceinline__ double operator()(double a, double b) const { return a + b; }
};
struct join_either {
    __device__ __forceinline__ uint32_t operator()(uint32_t a, uint32_t b) const { return a | b; }
};

/* v of all threads of the block joined by halves, for all of them; share: blockDim.x values. All threads
 * call. */
template <class V, class Join> MRK_INLINE V joined(V v, V *share, Join join)
{
    __syncthreads();
    share[threadIdx.x] = v;
    for (uint32_t half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) share[threadIdx.x] = join(share[threadIdx.x], share[threadIdx.x + half]);
    }
    __syncthreads();
    return share[0];
}

#endif
