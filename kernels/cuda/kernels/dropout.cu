/* kernels/cuda/kernels/dropout.cu: drops elements by 16-bit draws that depend on (key, step, place of the
 * sample, element) alone, the same on every device: element e of a sample takes draw e, in the order of
 * ops/draws.h:
 *
 *     group of 128 draws = 16 Philox blocks j = 0..15;   draw k * 16 + j = half word k of block j
 *
 * So a thread works out one block and serves elements j, 16 + j, ..., 112 + j of its group; 16 threads
 * together pass whole sectors of memory at every k. A thread writes its 8 keep bits as one byte, which
 * backward reads: that is cheaper than drawing again. */
#include "kernels/cuda/kernels/philox.h"
#include "kernels/cuda/kernels/values.h"

/* Calls body(sample, block): blocks of 8 draws, 16 a group. */
template <class Body>
MRK_INLINE void each_draw(uint32_t n, uint32_t groups, uint32_t blocks_per_sample, Body body)
{
    for (uint64_t b = blockIdx.x; b < (uint64_t)n * blocks_per_sample; b += gridDim.x) {
        const uint32_t sample = (uint32_t)(b / blocks_per_sample);
        const uint64_t block = (b - (uint64_t)sample * blocks_per_sample) * blockDim.x + threadIdx.x;
        if (block < (uint64_t)groups * 16) body(sample, (uint32_t)block);
    }
}

/* First of the 8 elements of a block; the others follow 16 apart. */
MRK_INLINE uint64_t element_of(uint32_t block) { return (uint64_t)(block / 16) * 128 + block % 16; }

template <class T> struct drop_step {
    const mrk_dropout_args &a;
    __device__ __forceinline__ void operator()(uint32_t sample, uint32_t block) const
    {
        const mrk_words d = mrk_philox(a.key, block, a.first + sample, a.values->step);
        const uint64_t e = element_of(block), start = sample * a.elements;
        float v[8];
        uint32_t kept = 0;
        MRK_UNROLL for (int k = 0; k < 8; k++) v[k] =
            e + 16 * k < a.elements ? mrk_float(((const T *)a.x)[start + e + 16 * k]) : 0;
        MRK_UNROLL for (int k = 0; k < 8; k++)
        {
            const bool keep = (d.v[k / 2] >> k % 2 * 16 & 0xFFFF) >= a.threshold;
            kept |= (uint32_t)keep << k;
            if (e + 16 * k < a.elements) mrk_round(keep ? v[k] * a.scale : 0, (T *)a.y + start + e + 16 * k);
        }
        a.kept[(uint64_t)sample * a.groups * 16 + block] = (uint8_t)kept;
    }
};

/* y = kept ? x * scale : 0 and the keep bits; x, y [n][elements], y may be x. Any grid of whole half warps.
 * Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_dropout(const struct mrk_dropout_args a)
{
    if (a.dtype == MR_TENSOR_BF16) each_draw(a.n, a.groups, a.blocks_per_sample, drop_step<mrk_bf16>{a});
    else if (a.dtype == MR_TENSOR_F16) each_draw(a.n, a.groups, a.blocks_per_sample, drop_step<mrk_f16>{a});
    else each_draw(a.n, a.groups, a.blocks_per_sample, drop_step<float>{a});
}

template <class T> struct drop_backward_step {
    const mrk_dropout_backward_args &a;
    __device__ __forceinline__ void operator()(uint32_t sample, uint32_t block) const
    {
        const uint64_t e = element_of(block), start = sample * a.elements;
        const uint32_t kept = a.kept[(uint64_t)sample * a.groups * 16 + block];
        float g[8];
        MRK_UNROLL for (int k = 0; k < 8; k++)
        {
            g[k] = e + 16 * k < a.elements ? mrk_float(((const T *)a.dy)[start + e + 16 * k]) : 0;
            if (a.dy2 && e + 16 * k < a.elements) g[k] += mrk_float(((const T *)a.dy2)[start + e + 16 * k]);
        }
        MRK_UNROLL for (int k = 0; k < 8; k++) if (e + 16 * k < a.elements)
            mrk_round(kept >> k & 1 ? g[k] * a.scale : 0, (T *)a.dx + start + e + 16 * k);
    }
};

/* dx = kept ? (dy + dy2) * scale : 0; [n][elements], dx may be dy. Any grid of whole half warps. Same bits in
 * every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_dropout_backward(const struct mrk_dropout_backward_args a)
{
    if (a.dtype == MR_TENSOR_BF16)
        each_draw(a.n, a.groups, a.blocks_per_sample, drop_backward_step<mrk_bf16>{a});
    else if (a.dtype == MR_TENSOR_F16)
        each_draw(a.n, a.groups, a.blocks_per_sample, drop_backward_step<mrk_f16>{a});
    else each_draw(a.n, a.groups, a.blocks_per_sample, drop_backward_step<float>{a});
}

/* ---- whole samples: draw 0 of a sample ---- */

/* to = from * scale, (from + from2) * scale, or 0: this block's part of its sample. */
template <class T, int N>
MRK_INLINE void keep_part(uint64_t elements, uint32_t sample, uint32_t part, uint32_t parts, bool keep,
                          float scale, const void *from, const void *from2, void *to)
{
    const uint64_t start = (uint64_t)sample * elements;
    for (uint64_t i = (uint64_t)part * blockDim.x + threadIdx.x; i < elements / N;
         i += (uint64_t)parts * blockDim.x) {
        const uint64_t at = start + i * N;
        float v[N], u[N];
        mrk_read<T, N>(from, at, v);
        mrk_read<T, N>(from2 ? from2 : from, at, u);
        MRK_UNROLL for (int k = 0; k < N; k++) v[k] = keep ? (from2 ? v[k] + u[k] : v[k]) * scale : 0;
        mrk_write<T, N>(to, at, v);
    }
}

template <class T, int N> MRK_INLINE void drop_samples(const mrk_drop_samples_args &a)
{
    for (uint64_t b = blockIdx.x; b < (uint64_t)a.n * a.parts; b += gridDim.x) {
        const uint32_t sample = (uint32_t)(b / a.parts), part = (uint32_t)(b - (uint64_t)sample * a.parts);
        const mrk_words d = mrk_philox(a.key, 0, a.first + sample, a.values->step);
        const bool keep = (d.v[0] & 0xFFFF) >= a.threshold;
        keep_part<T, N>(a.elements, sample, part, a.parts, keep, a.scale, a.x, nullptr, a.y);
        if (part == 0 && threadIdx.x == 0) a.kept[sample] = keep;
    }
}

/* y = kept ? x * scale : 0, sample by sample; x, y [n][elements], y may be x. Any grid. Same bits in every
 * run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_drop_samples(const struct mrk_drop_samples_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, drop_samples, a);
}

template <class T, int N> MRK_INLINE void drop_samples_backward(const mrk_drop_samples_backward_args &a)
{
    for (uint64_t b = blockIdx.x; b < (uint64_t)a.n * a.parts; b += gridDim.x) {
        const uint32_t sample = (uint32_t)(b / a.parts), part = (uint32_t)(b - (uint64_t)sample * a.parts);
        keep_part<T, N>(a.elements, sample, part, a.parts, a.kept[sample] != 0, a.scale, a.dy, a.dy2, a.dx);
    }
}

/* dx = kept ? (dy + dy2) * scale : 0; [n][elements], dx may be dy. Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS)
    mrk_drop_samples_backward(const struct mrk_drop_samples_backward_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, drop_samples_backward, a);
}
