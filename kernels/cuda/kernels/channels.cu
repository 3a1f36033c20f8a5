/* kernels/cuda/kernels/channels.cu: rows of channels beside each other, or with zeros around them. Memory is
 * passed once, values are moved as they are stored. */
#include "kernels/cuda/kernels/values.h"

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
        else {
            float zeros[N];
            MRK_UNROLL for (int z = 0; z < N; z++) zeros[z] = 0;
            mrk_close(r, zeros);
        }
        mrk_store_raw<T, N>(a.to, row * a.to_step + k, r);
    }
}

/* Any grid. Same bits in every run. */
extern "C" __global__ void __launch_bounds__(MRK_THREADS) mrk_channels(const struct mrk_channels_args a)
{
    MRK_DISPATCH(a.dtype, a.vectors, channels, a);
}
