/* kernels/cuda/host/cuda_image.c: our kernels, compiled by nvcc, as bytes of the program: machine code for
 * each generation the build names, and PTX that a driver translates for later ones. images.h is written by
 * the build: MRI_CUDA_IMAGES(X), X(name, "path of the file"). */
#include "images.h"

#include "kernels/cuda/host/gpu.h"

#define EMBED(name, path)                                                                                    \
    __asm__(".pushsection .rodata\n"                                                                         \
            ".balign 64\n"                                                                                   \
            ".globl mri_cuda_image_" #name "\n"                                                              \
            ".hidden mri_cuda_image_" #name "\n"                                                             \
            "mri_cuda_image_" #name ":\n"                                                                    \
            ".incbin \"" path "\"\n"                                                                         \
            ".popsection\n");                                                                                \
    extern const unsigned char mri_cuda_image_##name[] __attribute__((visibility("hidden")));
MRI_CUDA_IMAGES(EMBED)

#define ENTRY(name, path) {#name, mri_cuda_image_##name},
const struct mri_cuda_image mri_cuda_images[] = {MRI_CUDA_IMAGES(ENTRY){NULL, NULL}};
