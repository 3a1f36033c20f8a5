/* kernels/cpu/cpu.h: the device kind "cpu". Takes kernels/host/ and kernels/ops/; backends.c puts it into the
 * table of kinds. */
#ifndef MRI_CPU_H
#define MRI_CPU_H

struct mri_backend;
extern const struct mri_backend mri_cpu_backend;

#endif
