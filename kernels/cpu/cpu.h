/* kernels/cpu/cpu.h: the device kind "cpu": the processor, or a part of its threads.
 *
 * Takes a device's settings from device.c. Gives one struct mri_backend, which backends.c puts into the table
 * of kinds: nobody else calls this room. It stands on kernels/host/ and kernels/ops/. */
#ifndef MRI_CPU_H
#define MRI_CPU_H

struct mri_backend;
extern const struct mri_backend mri_cpu_backend;

#endif
