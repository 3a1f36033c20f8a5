/* kernels/sim/sim.h: the device kind "sim". Takes kernels/host/ and kernels/ops/; backends.c puts it into the
 * table of kinds. */
#ifndef MRI_SIM_H
#define MRI_SIM_H

struct mri_backend;
extern const struct mri_backend mri_sim_backend;

#endif
