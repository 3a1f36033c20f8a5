/* tests/cuda_emu/kernels.cc: our kernels, compiled for the processor, by name. One row for each of
 * MRK_KERNELS; a kernel whose accesses kernel_spans.h does not tell is an error of the compiler here. */
#include <string.h>

#include "kernels/cuda/kernels/args.h"
#include "tests/cuda_emu/blocks.h"
#include "tests/cuda_emu/kernel_spans.h"

#define DECLARE(name) extern "C" void mrk_##name(const struct mrk_##name##_args a);
MRK_KERNELS(DECLARE)
#undef DECLARE

namespace
{

template <class Args, void (*kernel)(const Args)> struct row {
    static void body(const void *args) { kernel(*static_cast<const Args *>(args)); }
    static void run(const void *args, unsigned grid_x, unsigned grid_y, unsigned threads,
                    unsigned shared_bytes)
    {
        emu_run_grid(body, args, grid_x, grid_y, threads, shared_bytes);
    }
    static int tell(const void *args, unsigned grid_x, unsigned grid_y, emu_span *out)
    {
        emu_span_list list{out, 0, grid_x, grid_y};
        spans(*static_cast<const Args *>(args), list);
        return list.count;
    }
};

const struct emu_kernel kernels[] = {
#define ROW(name)                                                                                            \
    {"mrk_" #name, sizeof(struct mrk_##name##_args), row<struct mrk_##name##_args, mrk_##name>::run,         \
     row<struct mrk_##name##_args, mrk_##name>::tell},
    MRK_KERNELS(ROW)
#undef ROW
};

} // namespace

extern "C" const struct emu_kernel *emu_kernel_find(const char *name)
{
    for (const struct emu_kernel &k : kernels) {
        if (strcmp(k.name, name) == 0) return &k;
    }
    return nullptr;
}
