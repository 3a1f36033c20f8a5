/* kernels/backends.c: the table of the kinds of device. A new kind is its folder and a line here. */
#include "kernels/backends.h"

#include "kernels/cpu/cpu.h"
#include "kernels/sim/sim.h"
#ifdef MRI_CUDA
#include "kernels/cuda/cuda.h"
#endif

static const struct mri_backend *const backends[] = {
    &mri_cpu_backend,
    &mri_sim_backend,
#ifdef MRI_CUDA
    &mri_cuda_backend,
#endif
};

const struct mri_backend *mri_backend_at(uint32_t at)
{
    return at < MRI_ARRAY_COUNT(backends) ? backends[at] : NULL;
}
