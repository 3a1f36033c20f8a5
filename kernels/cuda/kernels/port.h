/* kernels/cuda/kernels/port.h: one source for two machines. nvcc compiles a kernel for the GPU; with
 * MRK_EMULATED a C++ compiler makes of the same text a function that the emulation (tests/cuda_emu/blocks.cc)
 * calls once for every thread of a block, in turns that change at barriers and shuffles.
 *
 * Device code uses only these declarations and C maths: no atomics, no warp tricks but shuffles over whole
 * warps, memory order only through __syncthreads(). Blocks of the emulation run one after another on one
 * thread, so a __shared__ array is a static one. */
#ifndef MRK_PORT_H
#define MRK_PORT_H

#include "kernels/cuda/kernels/args.h"

#ifdef MRK_EMULATED

#include <math.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__      static
#define __launch_bounds__(...)
#define MRK_UNROLL
#define MRK_UNROLL_SOME
#define MRK_ALIGNED(bytes) __attribute__((may_alias, aligned(bytes)))

struct mrk_uint3 {
    unsigned x, y, z;
};

extern "C" {
extern struct mrk_uint3 threadIdx, blockIdx, blockDim, gridDim; /* set before each thread's turn */
extern unsigned char *mrk_dynamic_shared;
void mrk_barrier(void);
float mrk_shuffle(float value, unsigned source_lane); /* all lanes of a warp call; the value of that lane of
                                                         the same warp */
uint64_t mrk_shuffle_u64(uint64_t value, unsigned source_lane);
}

static inline void __syncthreads(void) { mrk_barrier(); }
static inline float mrk_multiply(float a, float b) { return a * b; }
static inline float mrk_add(float a, float b) { return a + b; }
static inline uint32_t mrk_bits(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
static inline float mrk_of_bits(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define MRK_UNROLL         _Pragma("unroll")
#define MRK_UNROLL_SOME    _Pragma("unroll 4")
#define MRK_ALIGNED(bytes) __align__(bytes)

/* Rounded one by one, never fused: the same bits as the processor's. */
static __device__ __forceinline__ float mrk_multiply(float a, float b) { return __fmul_rn(a, b); }
static __device__ __forceinline__ float mrk_add(float a, float b) { return __fadd_rn(a, b); }
static __device__ __forceinline__ uint32_t mrk_bits(float v) { return __float_as_uint(v); }
static __device__ __forceinline__ float mrk_of_bits(uint32_t bits) { return __uint_as_float(bits); }

#endif

#define MRK_INLINE static __device__ __forceinline__

MRK_INLINE uint64_t mrk_thread(void) { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }
MRK_INLINE uint64_t mrk_threads(void) { return (uint64_t)gridDim.x * blockDim.x; }

#endif
