/* kernels/cuda/kernels/channels.cu: rows of channels beside each other, or with zeros around them; pictures
 * with zeros around them, or without their edges. Memory is passed once, values are moved as they are
 * stored. */
#include "kernels/cuda/kernels/values.h"

template <class T, int N> MRK_INLINE mrk_raw<T, N> nothing()
{
    mrk_raw<T, N> r;
    float zeros[N];
    MRK_UNROLL for (int z = 0; z < N; z++) zeros[z] = 0;
    mrk_close(r, zeros);
    return r;
}

template <class T, int N> MRK_INLINE void channels(const mrk_channels_args &a)
{
    const uint32_t width = a.width / N;
    const uint64_t packs = a.rows * width;
    for (uint64_t i = mrk_thread(); i < packs; i += mrk_threads()) {
        const uint64_t row = i / width;
        const uint32_t k = (uint32_t)(i - row * width) * N;
        const bool inside = k >= a.at && k - a.at < a.count;
        mrk_raw<T, N> r;
        if (inside) r = mrk_load<T, N>(a.from, row * a.from_step + (k - a.at));
        else r = nothing<T, N>();
        mrk_store_raw<T, N>(a.to, row * a.to_step + k, r);
    }
}

/* Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_channels(const struct mrk_channels_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, channels, a);
}

template <class T, int N> MRK_INLINE void window(const mrk_window_args &a)
{
    const uint32_t packs = a.c / N;
    const uint64_t row_packs = (uint64_t)a.to_w * packs, sample_packs = a.to_h * row_packs;
    for (uint64_t i = mrk_thread(); i < a.n * sample_packs; i += mrk_threads()) {
        const uint64_t sample = i / sample_packs, in = i - sample * sample_packs;
        const uint32_t row = (uint32_t)(in / row_packs), rest = (uint32_t)(in - row * row_packs),
                       column = rest / packs;
        const uint32_t y = row + (uint32_t)a.top, x = column + (uint32_t)a.left; /* below 0: very large */
        const bool inside = y < a.from_h && x < a.from_w;
        const uint64_t from = ((sample * a.from_h + y) * a.from_w + x) * a.c + (rest - column * packs) * N;
        mrk_store_raw<T, N>(a.to, i * N, inside ? mrk_load<T, N>(a.from, from) : nothing<T, N>());
    }
}

/* Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_window(const struct mrk_window_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, window, a);
}
