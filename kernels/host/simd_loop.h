/* kernels/host/simd_loop.h: loops over elements of operations: compiled for several instruction sets
 * (base/simd_loop.h), and divided among threads. */
#ifndef MRI_SIMD_LOOP_H
#define MRI_SIMD_LOOP_H

#include "base/simd_loop.h"

/* Below this many elements a parallel region costs more than it saves (bench_step: about 5 us against 0.1 ns
 * an element). */
#define MRI_PARALLEL_ELEMENTS 32768u

#endif
